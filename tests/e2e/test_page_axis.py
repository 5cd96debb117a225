"""U24: curves by step, by time, by time since the start and by epoch, chosen in the address; compared with NumPy over the logged frames."""
import datetime
import re
import time

import numpy
import pytest

from tests.e2e.test_complaints import base_of
from tests.e2e.test_curves import asked
from tests.e2e.test_fleet import CONFIG
from tests.support import axe, journal, narrow
from tests.support.hook_support import wait_for
from tests.support.issues import issue_record
from tests.support.program import ROOT, Server
from tocsin import wire

SECOND = 1_000_000_000
SEED = 20261128
RUN, BARE, LONG = (wire.run_uid("", name) for name in ("paced", "bare", "long"))
RESTART = 701  # the step from which the long run's second attempt goes on, inside of a point of two steps
LONG_ENDS = numpy.concatenate([numpy.cumsum(numpy.random.default_rng(SEED).integers(5, 30, RESTART)), 60_000 + numpy.cumsum(numpy.random.default_rng(SEED + 9).integers(5, 30, 1100 - RESTART))])
EPOCHS = {0: 0, 30: 1, 70: 2, 110: 3}  # logged at these steps
# attempt: (its steps, seconds after the begin when its first step begins)
ATTEMPTS = {1: (numpy.arange(0, 80), 1.0), 2: (numpy.arange(50, 140), 60.0)}
ALARM, REPLACED = 100, 70  # steps of alarms of attempts 2 and 1
PLOT = "[data-name=loss][data-mode=train] .plot"


def ends_of(number):
    """Milliseconds after the begin at which the steps of an attempt ended: no two steps take the same time."""
    steps, first = ATTEMPTS[number]
    took = numpy.random.default_rng(SEED + number).integers(300, 900, len(steps)) * (1 + (steps > 110))
    return first * 1000 + numpy.cumsum(took)


def held():
    """Milliseconds after the begin of each step of the run: what attempt 2 did again is attempt 2's."""
    return numpy.concatenate([ends_of(1)[:50], ends_of(2)])


def frames_of(run, number, begin, clocked):
    steps, first = ATTEMPTS[number]
    sequence = 0

    def head(step, millis):
        nonlocal sequence
        sequence += 1
        return wire.header(run, worker="worker_0", rank=0, world_size=1, attempt=number, incarnation=number, step=step, global_step=step,
                           time=begin + int(millis) * 1_000_000, sequence=sequence)
    names = ["loss", *(["epoch"] if clocked else [])]
    yield wire.encode_dictionary(head(0, 0), [{"type": 4, "name": "worker_0"}, *({"type": 2, "dtype": 2, "role": wire.ROLES["loss" if name == "loss" else "metric"], "name": name} for name in names)])
    yield wire.encode_lifecycle(head(0, first * 1000 - 500), {"event": "start", "job": "paced" if clocked else "bare", "launch": f"l{number}", "node": "n1", "labels": {}, "worker": "worker_0"})
    began = first * 1000
    for step, end in zip(steps.tolist(), ends_of(number).tolist()):
        if clocked:
            yield wire.encode_frame(head(step, end), wire.STEP_END, [{"step": step, "global_step": step, "start": begin + int(began) * 1_000_000, "end": begin + int(end) * 1_000_000}])
        began = end
        logged = [("loss", 1.0 / (1 + step)), *([("epoch", EPOCHS[step])] if clocked and step in EPOCHS else [])]
        yield wire.encode_frame(head(step, end), wire.SCALAR, [{"name": wire.xxh64(name), "step": step, "global_step": step, "time": begin + int(end) * 1_000_000,
                                                                 "value": float(value), "meta": 5 << 8} for name, value in logged])
    yield wire.encode_lifecycle(head(int(steps[-1]), end + 100), {"event": "end", "outcome": "failed" if number == 1 else "completed", "exit_code": 3 if number == 1 else 0})


def frames_of_long(begin):
    """Two workers, two attempts, epochs in training only."""
    for attempt, steps in ((1, range(RESTART)), (2, range(RESTART, len(LONG_ENDS)))):
        for rank in range(2):
            head = [wire.header(LONG, worker=f"worker_{rank}", rank=rank, world_size=2, attempt=attempt, incarnation=attempt, step=steps[-1], global_step=steps[-1], mode=mode,
                                time=begin + int(LONG_ENDS[steps[-1]]) * 1_000_000, sequence=sequence) for sequence, mode in enumerate((1, 1, 1, 1, 2, 1), 1)]
            end = {step: begin + int(LONG_ENDS[step]) * 1_000_000 for step in range(-1, len(LONG_ENDS))}
            end[-1] = begin
            yield wire.encode_dictionary(head[0], [{"type": 4, "name": f"worker_{rank}"}, *({"type": 2, "dtype": 2, "role": wire.ROLES[role], "name": name} for name, role in (("loss", "loss"), ("epoch", "metric")))])
            yield wire.encode_lifecycle(head[1], {"event": "start", "job": "long", "launch": f"g{attempt}", "node": "n1", "labels": {}, "worker": f"worker_{rank}"})
            yield wire.encode_frame(head[2], wire.STEP_END, [{"step": step, "global_step": step, "start": end[step] - 4_000_000, "end": end[step]} for step in steps])
            scalar = [{"name": wire.xxh64(name), "step": step, "global_step": step, "time": end[step], "value": value, "meta": 5 << 8}
                      for step in steps for name, value in (("loss", 1.0 / (1 + step)), ("epoch", float(step // 100))) if name == "loss" or step % 10 == 0]
            yield wire.encode_frame(head[3], wire.SCALAR, scalar)
            yield wire.encode_frame(head[4], wire.SCALAR, [{**row, "value": 2.0} for row in scalar if row["name"] == wire.xxh64("loss") and row["step"] % 100 == 0])
            yield wire.encode_lifecycle(head[5], {"event": "end", "outcome": "failed" if attempt == 1 else "completed", "exit_code": 0})


def alarm(number, step, begin):
    when = begin / SECOND + ends_of(number)[step - ATTEMPTS[number][0][0]] / 1000
    return issue_record({"rule": f"by_hand_{step}", "severity": "critical"}, annotations={"summary": f"alarm at {step}"}, began=when,
                        run={"uid": str(RUN), "attempt": number, "job": "paced"}, step=step, global_step=step, mode="train")


@pytest.fixture(scope="module")
def paced(tmp_path_factory):
    folder = tmp_path_factory.mktemp("paced")
    place = folder / "journal"
    (folder / "tocsin.yaml").write_text(CONFIG.format(journal=place))
    one = Server(folder / "tocsin.yaml", role="up")
    one.wait_for("ready")
    begin = (time.time_ns() // SECOND - 300) * SECOND
    for number in ATTEMPTS:
        journal.append(place, *(("telemetry", wire.route_key(RUN), frame) for frame in frames_of(RUN, number, begin, True)))
    journal.append(place, *(("telemetry", wire.route_key(BARE), frame) for frame in frames_of(BARE, 1, begin, False)),
                   *(("telemetry", wire.route_key(LONG), frame) for frame in frames_of_long(begin)),
                   alarm(1, REPLACED, begin), alarm(2, ALARM, begin))

    def complete():
        if not {str(RUN), str(BARE), str(LONG)} <= {row["uid"] for row in asked(one, "/api/v1/runs")["items"]}:
            return False
        told = asked(one, f"/api/v1/runs/{RUN}")
        stored = {row["name"]: row["stored"] for run in (RUN, BARE) for row in asked(one, f"/api/v1/runs/{run}/names")["items"]}
        return len(told["attempts"]) == 2 and {row["step"] for row in told["issues"]} >= {ALARM, REPLACED} and told["run"]["step"] == 139 and stored.get("loss") == 80 and \
            len(asked(one, f"/api/v1/runs/{LONG}")["attempts"]) == 2 and asked(one, f"/api/v1/runs/{LONG}")["run"]["step"] == len(LONG_ENDS) - 1 and \
            {row["name"]: row["stored"] for row in asked(one, f"/api/v1/runs/{LONG}/names")["items"]}.get("step_seconds") == 2 * len(LONG_ENDS) and \
            [row["stored"] for row in asked(one, f"/api/v1/runs/{RUN}/names")["items"] if row["name"] in ("loss", "step_seconds")] == [170, 170]
    assert wait_for(complete, 60)
    yield one, begin
    one.kill()


def screen(browser, one, query, width=1440, theme="light", run=RUN):
    context = browser.new_context(viewport={"width": width, "height": 900}, color_scheme=theme)
    axe.bring(context)
    page = context.new_page()
    page.add_init_script("""window.written = [];
      const write = CanvasRenderingContext2D.prototype.fillText;
      CanvasRenderingContext2D.prototype.fillText = function (text, ...more) { window.written.push(text); return write.call(this, text, ...more); };""")
    page.goto(f"{base_of(one)}/runs/{run}?{query}")
    page.wait_for_selector("[data-name=loss] canvas")
    return page


def table(page, name="loss"):
    """The rows of the table of the newest line: step, place."""
    page.evaluate("(at) => { document.querySelector(at + ' details').open = true; }", f"[data-name={name}]")
    rows = page.eval_on_selector_all(f"[data-name={name}] details table", "(all) => [...all[0].querySelectorAll('tbody tr')].map((row) => [...row.cells].slice(0, 2).map((one) => one.textContent))")
    return {int(step): place for step, place in rows}


def drawn_between(page, low, high, one, other):
    """How many pixels of the newest line's colour lie between two places of the axis."""
    return page.evaluate("""([at, low, high, one, other]) => {
      const canvas = document.querySelector(at + " canvas"), over = document.querySelector(at + " .u-over"), unit = devicePixelRatio;
      const probe = document.createElement("canvas").getContext("2d");
      probe.fillStyle = getComputedStyle(document.querySelector(at + " .keys i") ?? document.querySelector(at + " .u-cursor-pt")).backgroundColor;
      probe.fillRect(0, 0, 1, 1);
      const want = probe.getImageData(0, 0, 1, 1).data, wide = over.clientWidth * unit;
      const pixel = (place) => over.offsetLeft * unit + wide * (place - low) / (high - low);
      const all = canvas.getContext("2d").getImageData(pixel(one), over.offsetTop * unit, pixel(other) - pixel(one), over.clientHeight * unit).data;
      let count = 0;
      for (let at = 0; at < all.length; at += 4) if ([0, 1, 2].every((part) => Math.abs(all[at + part] - want[part]) < 4) && all[at + 3] > 200) count += 1;
      return count;
    }""", ["[data-name=loss][data-mode=train]", *(float(place) for place in (low, high, one, other))])


def of_clock(text):
    return datetime.datetime.strptime(text + "000", "%H:%M:%S.%f")


def drawn_at(page, place, low, high):
    """The pixel of a place of the axis from `low` to `high`, in the window."""
    page.locator(PLOT).scroll_into_view_if_needed()
    box = page.locator("[data-name=loss][data-mode=train] .u-over").bounding_box()
    return box["x"] + box["width"] * (place - low) / (high - low), box["y"] + box["height"] / 2, box["y"] - 10


def read_at(page, x, y, words):
    page.mouse.move(x, y)
    page.wait_for_function("([at, words]) => document.querySelector(at).textContent.includes(words)", arg=["[data-name=loss][data-mode=train] .read", words], timeout=10_000)


def test_times_of_steps_are_those_of_the_clock(paced, browser):
    one, begin = paced
    started = datetime.datetime.fromisoformat(asked(one, f"/api/v1/runs/{RUN}")["run"]["started_at"].replace("Z", "+00:00"))
    assert round(started.timestamp() * 1000) == begin // 1_000_000 + 500
    page = screen(browser, one, "v=loss&x=time")
    page.wait_for_selector("[data-name=loss][data-x=time]")
    zero = datetime.datetime(1900, 1, 1) + datetime.timedelta(seconds=begin // SECOND % 86400)
    minutes = [f"{zero + datetime.timedelta(seconds=60 * count - zero.second):%H:%M:00}" for count in (1, 2)]
    page.wait_for_function("(minutes) => minutes.every((tick) => written.includes(tick))", arg=minutes)
    read = table(page)
    assert list(read) == list(range(140))
    for step, end in enumerate(held().tolist()):
        assert (of_clock(read[step]) - zero).total_seconds() % 86400 == pytest.approx(end / 1000, abs=1e-6), step
    page.select_option(".x-axis select", "relative")
    page.wait_for_selector("[data-name=loss][data-x=relative]")
    assert "x=relative" in page.url
    read = table(page)
    for step, end in enumerate(((held() - 500) / 1000).tolist()):
        want = f"{end:.3f} s" if end < 60 else f"{int(end // 60)}:{int(end % 60):02d}"
        assert read[step] == want, step
    page.context.close()


@pytest.mark.parametrize("width,theme", [(1440, "light"), (1440, "dark"), (390, "light"), (390, "dark")])
def test_lines_marks_and_brushes_lie_where_the_time_is(paced, browser, width, theme):
    one, _ = paced
    page = screen(browser, one, "v=loss,step_seconds&x=relative&from=0&to=140", width, theme)
    page.wait_for_selector("[data-name=loss][data-x=relative]")
    at, first = held(), ends_of(1)
    low, high = at[0], at[139]
    page.wait_for_selector("#curves .marks li:has-text('alarm at 70')")
    for step in (20, 49, 50, 90, 120, 138):
        read_at(page, *drawn_at(page, at[step], low, high)[:2], "step ")
        found = int(re.search(r"step (\d+)", page.inner_text("[data-name=loss][data-mode=train] .read"))[1])
        near = (high - low) / page.locator("[data-name=loss][data-mode=train] .u-over").bounding_box()["width"]
        assert abs(at[found] - at[step]) <= near + 1, (found, step)
        other = page.inner_text("[data-name=step_seconds] .read")
        assert f"step {found}:" in other, "one cursor"
    page.wait_for_function("() => ['1:00', '2:00'].every((tick) => written.includes(tick))")
    # What was done again lies before the pause, in which there is no line.
    page.mouse.move(0, 0)
    pause = (at[49] + 1000, at[50] - 1000)
    assert wait_for(lambda: drawn_between(page, low, high, at[10], at[40]) > 20, 10)
    assert drawn_between(page, low, high, *pause) == 0
    read_at(page, *drawn_at(page, first[REPLACED], low, high)[:2], "replaced by a later attempt")
    assert abs(int(re.search(r"step (\d+)", page.inner_text("[data-name=loss][data-mode=train] .read"))[1]) - REPLACED) <= (0 if width > 390 else 3)
    for number, step in ((1, REPLACED), (2, ALARM)):
        x, _, y = drawn_at(page, ends_of(number)[step - ATTEMPTS[number][0][0]], low, high)
        page.mouse.move(x, y)
        page.wait_for_function("([at, words]) => document.querySelector(at).title.includes(words)", arg=[PLOT, f"alarm at {step}"], timeout=10_000)
    page.locator(PLOT).scroll_into_view_if_needed()
    shots = ROOT / "build" / "screens"
    shots.mkdir(parents=True, exist_ok=True)
    page.mouse.move(0, 0)
    page.screenshot(path=shots / f"axis-relative-{width}-{theme}.png")
    assert axe.faults(page, "axis") == {} and (width > 390 or narrow.troubles(page) == [])
    if width > 390:
        x, y, _ = drawn_at(page, at[60], low, high)
        page.mouse.move(x, y)
        page.mouse.down()
        page.mouse.move(drawn_at(page, at[90], low, high)[0], y, steps=4)
        page.mouse.up()
        page.wait_for_function("() => /from=(59|60)&to=9[12]/.test(location.search)")
        assert "x=relative" in page.url
    page.context.close()


def test_epochs_are_those_logged_at_or_before_a_step(paced, browser):
    one, _ = paced
    page = screen(browser, one, "v=loss&x=epoch")
    page.wait_for_selector("[data-name=loss][data-x=epoch]")
    read = table(page)
    begun = numpy.array(sorted(EPOCHS))
    for step in range(140):
        assert float(read[step]) == numpy.searchsorted(begun, step, side="right") - 1, step
    # Between two that were logged steps lie evenly; the newest is as long as the one before.
    place = numpy.interp(numpy.arange(151), [*begun, 150], [0, 1, 2, 3, 4])
    page.goto(f"{base_of(one)}/runs/{RUN}?v=loss&x=epoch&from=20&to=140")
    page.wait_for_selector("[data-name=loss][data-x=epoch]")
    page.wait_for_selector("#curves .marks li:has-text('alarm at 100')")
    for step in (29, 45, 71, 109, 130):
        read_at(page, *drawn_at(page, place[step], place[20], place[139])[:2], f"step {step}:")
        assert f"· epoch {numpy.searchsorted(begun, step, side='right') - 1}" in page.inner_text("[data-name=loss][data-mode=train] .read")
    x, _, y = drawn_at(page, place[ALARM], place[20], place[139])
    page.mouse.move(x, y)
    page.wait_for_function("([at, words]) => document.querySelector(at).title.includes(words)", arg=[PLOT, f"alarm at {ALARM}"], timeout=10_000)
    assert list(table(page)) == list(range(20, 140)) and table(page)[25] == "0", "also of steps before the first that the range has"
    page.wait_for_function("() => ['1', '1.5', '2', '2.5', '3', '3.5'].every((tick) => written.includes(tick))")
    page.mouse.move(0, 0)
    shots = ROOT / "build" / "screens"
    shots.mkdir(parents=True, exist_ok=True)
    page.screenshot(path=shots / "axis-epoch.png")
    page.keyboard.press("x")
    page.wait_for_selector("[data-name=loss][data-x=step]")
    assert "x=" not in page.url
    page.context.close()


def test_what_a_run_does_not_have_cannot_be_chosen(paced, browser):
    one, _ = paced
    page = screen(browser, one, "v=loss&x=epoch", run=BARE)
    page.wait_for_selector("#curves .tools:has-text('By step: no epoch was logged.')")
    assert page.get_attribute("[data-name=loss]", "data-x") == "step"
    options = page.eval_on_selector_all(".x-axis option", "(all) => all.map((one) => [one.textContent, one.disabled])")
    assert options == [["step", False], ["time (no step was timed)", True], ["time since the start (no step was timed)", True], ["epoch (no epoch was logged)", True]]
    page.context.close()


def test_points_of_several_steps_and_workers_lie_at_their_first_step(paced, browser):
    one, begin = paced
    page = screen(browser, one, "v=loss&x=time&from=0&to=1100", run=LONG)
    page.wait_for_selector("[data-name=loss][data-mode=train][data-x=time]")
    read = table(page)
    assert list(read) == list(range(700, 1100, 2)), "1 point = 2 steps"
    zero = datetime.datetime(1900, 1, 1) + datetime.timedelta(seconds=begin // SECOND % 86400)
    for step, place in read.items():
        assert (of_clock(place) - zero).total_seconds() % 86400 == pytest.approx(LONG_ENDS[step] / 1000, abs=1e-6), step
    # The second attempt begins in the middle of a point: its mark lies behind the pause.
    low, high = LONG_ENDS[0], LONG_ENDS[1099]
    x, _, y = drawn_at(page, LONG_ENDS[RESTART], low, high)
    page.mouse.move(x, y)
    page.wait_for_function("([at, words]) => document.querySelector(at).title.includes(words)", arg=[PLOT, f"step {RESTART}: attempt 2"], timeout=10_000)
    assert drawn_between(page, low, high, LONG_ENDS[RESTART] + 1000, LONG_ENDS[1050]) > 20
    assert drawn_between(page, low, high, LONG_ENDS[700] + 2000, LONG_ENDS[RESTART] - 2000) == 0, "no line across the pause"
    assert page.get_attribute("[data-mode=eval]", "data-x") == "time", "of values without a clock of their mode, their own times"
    page.select_option(".x-axis select", "epoch")
    page.wait_for_selector("[data-name=loss][data-mode=train][data-x=epoch]")
    read = table(page)
    assert [float(place) for place in read.values()] == [step // 10 * 10 // 100 for step in read]
    page.wait_for_selector("#curves .tools:has-text('Charts of eval are by step: no epoch is known there.')")
    assert page.get_attribute("[data-mode=eval]", "data-x") == "step"
    page.context.close()
