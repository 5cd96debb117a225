"""X20: errors and throttling of a node's GPUs are marks on the step charts of its runs; beside a plain walk over what was written."""
import re
import time

import numpy
import pytest

from tests.e2e.test_complaints import base_of
from tests.e2e.test_curves import asked, refused
from tests.e2e.test_page_acts import pictured
from tests.e2e.test_page_marks import belongs_here
from tests.e2e.test_store_ages import moved
from tests.support import axe, narrow
from tests.support.hook_support import wait_for, wire
from tests.support.written_journal import WrittenJournal

CONFIG = """
transport: {{journal: {journal}}}
collect: {{collectors: [memory], node: elsewhere}}
rules: [{{use: exploding_tensor}}]
route: {{receiver: nobody}}
receivers: {{nobody: {{}}}}
http: {{listen: '127.0.0.1:0'}}
"""
AGENT = 0xFFFFFFFF
STEPS, STEP, SWEEPS, SWEEP = 600, 200, 300, 500  # ms
GPUS = ("GPU-a", "GPU-b")
CALM = 10_000  # ms


def counted(rises, reset=None):
    """A counter that begins at 5 and rises so much at these sweeps; made anew at `reset`."""
    out, value = [], 5
    for sweep in range(SWEEPS):
        value = (0 if sweep == reset else value) + rises.get(sweep, 0)
        out.append(value)
    return out


def held(*stretches):
    return [float(any(first <= sweep <= last for first, last in stretches)) for sweep in range(SWEEPS)]


# series: (values, counter)
XID_B = {40: 1, 100: 3, 160: 1}
NUMBERS = {40: 79, 100: 31, 160: 48}
SERIES = {
    "hw.gpu.utilization{hw.id=GPU-a}": ([0.9] * SWEEPS, 0), "hw.gpu.utilization{hw.id=GPU-b}": ([0.8] * SWEEPS, 0),
    "hw.errors{error.type=xid,hw.id=GPU-a,hw.type=gpu}": (counted({}), 1),
    "hw.errors{error.type=xid,hw.id=GPU-b,hw.type=gpu}": (counted(XID_B, reset=150), 1),
    "hw.errors{error.type=uncorrected,hw.id=GPU-a,hw.type=gpu}": (counted({200: 2}), 1),
    "hw.errors{error.type=corrected,hw.id=GPU-a,hw.type=gpu}": (counted({20: 4, 30: 9}), 1),
    "tocsin.gpu.throttled{hw.id=GPU-a,reason=thermal}": (held((60, 80), (84, 90), (200, 205)), 0),
    "tocsin.gpu.throttled{hw.id=GPU-a,reason=power}": (held(), 0),
    "tocsin.gpu.throttled{hw.id=GPU-b,reason=hardware}": (held((7, 7)), 0),
    "hw.status{hw.id=GPU-b,hw.state=failed,hw.type=gpu}": (held((290, SWEEPS - 1)), 0),
}
KINDS = {"xid": "xid", "uncorrected": "memory"}


def time_of(sweep, begin):
    return begin + sweep * SWEEP + 130  # between the ends of two steps


def truth(begin):
    """(kind, gpu, first ms, last ms, step, count, xid, reason) of everything, in order of time."""
    ends = numpy.array([begin + (step + 1) * STEP for step in range(STEPS)])
    out = []
    for name, (values, counter) in SERIES.items():
        gpu = GPUS.index(re.search("hw.id=([^,}]+)", name).group(1))
        error, reason = re.search("error.type=([^,}]+)", name), re.search("reason=([^,}]+)", name)
        if counter and error.group(1) in KINDS:
            for sweep, grown in enumerate(numpy.diff(values, prepend=values[0])):
                if grown > 0:
                    xid = NUMBERS[sweep] if error.group(1) == "xid" else None
                    out.append([KINDS[error.group(1)], gpu, time_of(sweep, begin), time_of(sweep, begin), int(grown), xid, None])
        if "throttled" in name or "hw.status" in name:
            for sweep in numpy.flatnonzero(values):
                at, kind = time_of(int(sweep), begin), "throttled" if reason else "lost"
                mine = [one for one in out if (one[0], one[1], one[6]) == (kind, gpu, reason and reason.group(1))]
                if mine and at - mine[-1][3] <= CALM:
                    mine[-1][3], mine[-1][4] = at, mine[-1][4] + 1
                else:
                    out.append([kind, gpu, at, at, 1, None, reason and reason.group(1)])
    steps = [int(min(numpy.searchsorted(ends, one[2]), STEPS - 1)) for one in out]
    return sorted((one[2], one[0], one[1], one[3], step, *one[4:]) for one, step in zip(out, steps))


def written(folder):
    """A run of 600 steps on n7, and its agent's samples until half a minute behind its last step. Gives when it began, in ms."""
    begin = int(time.time()) * 1000 - 200_000
    run = WrittenJournal(folder, run=wire.run_uid("hardware", "one"), now=lambda: begin * 10**6)
    run.held = []
    run.event(0, "start", job="digits", launch="one", node="n7")
    run.scalars(0, [("loss", step, 3 / (step + 3), (begin + (step + 1) * STEP) * 10**6) for step in range(STEPS)])
    for step in range(STEPS):
        run.step_end(0, step, start=(begin + step * STEP) * 10**6, end=(begin + (step + 1) * STEP) * 10**6)
    numbers = "tocsin.gpu.xid{hw.id=GPU-b}"
    for sweep in range(SWEEPS):
        at = time_of(sweep, begin) * 10**6
        rows = [(name, float(values[sweep]), counter) for name, (values, counter) in SERIES.items()]
        rows += [(numbers, float(NUMBERS[sweep]), 0)] if sweep in NUMBERS else []

        def head():
            run.sequence += 1
            return wire.header(run.run, worker="n7", rank=AGENT, mode=0, incarnation=3, time=at, sequence=run.sequence)
        if sweep == 0:
            run.put(wire.encode_dictionary(head(), [{"type": 5, "name": "n7"}, *({"type": 3, "name": name} for name in [*SERIES, numbers])]))
        run.put(wire.encode_frame(head(), wire.SYSTEM, [{"series": wire.xxh64(name), "time": at, "value": value, "meta": meta} for name, value, meta in rows]))
    run.sealed()
    belongs_here(folder)
    return begin


@pytest.fixture(scope="module")
def broken(module_server, tmp_path_factory):
    folder = tmp_path_factory.mktemp("hardware")
    begin = written(folder / "journal")
    one = module_server(CONFIG.format(journal=folder / "journal"))
    one.wait_for("ready")
    uid = str(wire.run_uid("hardware", "one"))

    def all_there():
        status, _ = one.get(f"/api/v1/runs/{uid}/hardware")
        return status == 200 and len(asked(one, f"/api/v1/runs/{uid}/hardware")["items"]) == len(truth(begin)) and asked(one, f"/api/v1/runs/{uid}/hardware")["items"][-1]["count"] == 10
    assert wait_for(all_there, 60), one.get(f"/api/v1/runs/{uid}/hardware")
    return one, uid, begin


def millis(text):
    whole, _, rest = text.rstrip("Z").partition(".")
    return int(time.mktime(time.strptime(whole, "%Y-%m-%dT%H:%M:%S")) - time.timezone) * 1000 + int((rest + "000")[:3])


def told(item):
    return (millis(item["time"]), item["kind"], item["gpu"], millis(item["until"]), item["step"], item["count"], item["xid"], item["reason"])


def test_x20_events_are_those_of_a_walk_over_what_was_written(broken):
    one, uid, begin = broken
    answer = asked(one, f"/api/v1/runs/{uid}/hardware")
    wanted = truth(begin)
    assert sorted(map(told, answer["items"])) == wanted and answer["left_out"] == 0
    assert [item["time"] for item in answer["items"]] == sorted(item["time"] for item in answer["items"])
    assert {(item["node"], item["device"]) for item in answer["items"]} == {("n7", gpu) for gpu in GPUS}
    words = [item["text"] for item in answer["items"]]
    assert words == ["GPU 1 of n7 throttled by the hardware", "XID 79 on GPU 1 of n7", "GPU 0 of n7 throttled by heat for 15 s", "3 XIDs on GPU 1 of n7, the newest 31",
                     "XID 48 on GPU 1 of n7", *sorted(["2 uncorrected memory errors on GPU 0 of n7", "GPU 0 of n7 throttled by heat for 2.5 s"], reverse=words[5][0] == "G"),
                     "GPU 1 of n7 lost by its driver for 4.5 s"], words
    assert answer["items"][-1]["step"] == STEPS - 1, "behind the last step it is the last one"


def test_the_newest_are_told_and_the_past_knows_no_later_ones(broken):
    one, uid, begin = broken
    wanted = truth(begin)
    few = asked(one, f"/api/v1/runs/{uid}/hardware", limit=3)
    assert sorted(map(told, few["items"])) == wanted[-3:] and few["left_out"] == len(wanted) - 3
    second = asked(one, f"/api/v1/runs/{uid}/hardware")["items"][1]["time"]
    assert len(asked(one, f"/api/v1/runs/{uid}/hardware", at=second)["items"]) == 2
    assert len(asked(one, f"/api/v1/runs/{uid}/hardware", at=moved(second, -0.001))["items"]) == 1
    status, body = refused(one, f"/api/v1/runs/{uid}/hardware", at="2101-01-01T00:00:00Z")
    assert status == 400 and body["field"] == "at", body
    assert refused(one, "/api/v1/runs/ffffffff/hardware")[0] == 404


@pytest.mark.parametrize("width,theme", [(1440, "light"), (390, "dark")])
def test_x20_the_page_marks_steps_and_times(broken, browser, width, theme):
    one, uid, begin = broken
    context = browser.new_context(viewport={"width": width, "height": 900}, color_scheme=theme)
    axe.bring(context)
    page = context.new_page()
    wrong = []
    page.on("pageerror", lambda error: wrong.append(str(error)))
    page.goto(f"{base_of(one)}/runs/{uid}")
    page.wait_for_selector("#curves .marks .hardware")
    steps = {}
    for item in asked(one, f"/api/v1/runs/{uid}/hardware")["items"]:
        steps.setdefault(item["step"], []).append(item["text"])
    lines = page.locator("#curves .marks li:has(.hardware)")
    assert lines.count() == len(steps), "one mark for each step"
    xid = next(step for step, texts in steps.items() if "XID 79 on GPU 1 of n7" in texts)
    assert f"step {xid}: XID 79 on GPU 1 of n7" in lines.all_inner_texts()[1]
    (both,) = [texts for texts in steps.values() if len(texts) == 2]
    line = next(text for text in lines.all_inner_texts() if both[0] in text)
    assert line.index("uncorrected") < line.index("throttled"), "the worse first"
    label = page.get_attribute("#curves .chart .plot", "aria-label")
    assert f"step {xid}: XID 79 on GPU 1 of n7" in label, label
    page.locator("#curves .chart").first.scroll_into_view_if_needed()
    pictured(page, f"hardware-steps-{width}-{theme}")
    assert axe.faults(page, "hardware") == {} and (width > 390 or narrow.troubles(page) == [])
    page.click(f"#curves .marks-of button:has-text('hardware {len(steps)}')")
    page.wait_for_function("() => document.querySelectorAll('#curves .marks .hardware').length === 0")
    page.click("#curves .marks-of button:has-text('hardware')")
    page.click("#curves .marks a:has-text('XID 79')")
    page.wait_for_selector("#node-charts .marks .hardware")
    assert "node=n7" in page.url
    assert any("XID 79 on GPU 1 of n7" in text for text in page.locator("#node-charts .marks li").all_inner_texts())
    page.locator("#node-charts").scroll_into_view_if_needed()
    pictured(page, f"hardware-times-{width}-{theme}")
    assert not wrong, wrong
    context.close()
