"""U17, U24: which attempt a stretch of a chart belongs to, and where each begins, on charts over steps, on charts over time and on the map of cores and GPUs."""
import datetime
import time

import pytest

from tests.e2e.test_complaints import base_of
from tests.e2e.test_curves import asked
from tests.e2e.test_fleet import CONFIG
from tests.support import axe, journal, narrow
from tests.support.hook_support import wait_for
from tests.support.issues import issue_record
from tests.support.program import ROOT, Server
from tocsin import wire

RUN = wire.run_uid("", "resumed")
RUN_TEXT = str(RUN)
AGENT = 0xFFFFFFFF
SECOND = 1_000_000_000
# number: (world size, steps, seconds after the begin, outcome, exit code)
ATTEMPTS = {1: (1, range(0, 80), (0, 40), "failed", 3), 2: (2, range(50, 140), (60, 105), "completed", 0)}
BEFORE = 0.5  # seconds that the first step of an attempt took
CORE, GPU = "system.cpu.utilization{cpu.logical_number=0,cpu.mode=idle}", "hw.gpu.utilization{hw.id=GPU-a}"


def of_attempt(number, begin):
    world, steps, (first, last), outcome, exit_code = ATTEMPTS[number]
    for rank in range(world):
        name, sequence = f"worker_{rank}", 0

        def head(step, seconds):
            nonlocal sequence
            sequence += 1
            return wire.header(RUN, worker=name, rank=rank, world_size=world, attempt=number, incarnation=number, step=step, global_step=step,
                               time=begin + int(seconds * SECOND), sequence=sequence)
        yield wire.encode_dictionary(head(0, first), [{"type": 4, "name": name}, {"type": 2, "dtype": 2, "role": wire.ROLES["loss"], "name": "loss"}])
        yield wire.encode_lifecycle(head(0, first), {"event": "start", "job": "resumed", "launch": f"l{number}", "node": "n1", "labels": {}, "worker": name})
        began = first + 1 - BEFORE
        for step in steps:
            at = first + 1 + (last - first - 2) * (step - steps[0]) / len(steps)
            yield wire.encode_frame(head(step, at), wire.STEP_END, [{"step": step, "global_step": step, "start": begin + int(began * SECOND), "end": begin + int(at * SECOND)}])
            began = at
            yield wire.encode_frame(head(step, at), wire.SCALAR, [{"name": wire.xxh64("loss"), "step": step, "global_step": step,
                                                                        "time": begin + int(at * SECOND), "value": 1.0 / (1 + step), "meta": 5 << 8}])
        yield wire.encode_lifecycle(head(steps[-1], last), {"event": "end", "outcome": outcome, "exit_code": exit_code})


def of_node(begin):
    for second in range(0, 110, 2):
        head = [wire.header(RUN, worker="n1", rank=AGENT, mode=0, incarnation=9, time=begin + second * SECOND, sequence=second + more) for more in (1, 2)]
        if second == 0:
            yield wire.encode_dictionary(head[0], [{"type": 5, "name": "n1"}, *({"type": 3, "name": name} for name in (CORE, GPU))])
        works = 0 <= second < 40 or second >= 60
        yield wire.encode_frame(head[1], wire.SYSTEM, [{"series": wire.xxh64(name), "time": begin + second * SECOND, "value": value, "meta": 0}
                                                       for name, value in ((CORE, 0.25 if works else 0.875), (GPU, 0.9 if works else 0.0))])


@pytest.fixture(scope="module")
def resumed(tmp_path_factory):
    folder = tmp_path_factory.mktemp("resumed")
    place = folder / "journal"
    (folder / "tocsin.yaml").write_text(CONFIG.format(journal=place))
    one = Server(folder / "tocsin.yaml", role="up")
    one.wait_for("ready")
    begin = (time.time_ns() // SECOND - 200) * SECOND
    key = wire.route_key(RUN)
    for number in ATTEMPTS:
        journal.append(place, *(("telemetry", key, frame) for frame in of_attempt(number, begin)))
    journal.append(place, *(("telemetry", key, frame) for frame in of_node(begin)),
                   issue_record({"rule": "by_clock", "severity": "critical"}, annotations={"summary": "the node throttles"}, began=begin / SECOND + 80,
                                run={"uid": RUN_TEXT, "attempt": 2, "job": "resumed"}))

    def complete():
        if RUN_TEXT not in [row["uid"] for row in asked(one, "/api/v1/runs")["items"]]:
            return False
        told = asked(one, f"/api/v1/runs/{RUN_TEXT}")
        events = len(told["attempts"]) == 2 and told["attempts"][1]["outcome"] and told["issues"] and told["run"]["step"] == 139
        loss = [row for row in asked(one, f"/api/v1/runs/{RUN_TEXT}/names")["items"] if row["name"] == "loss"]
        sampled = [row for row in asked(one, f"/api/v1/runs/{RUN_TEXT}/nodes")["items"] if row["node"] == "n1" and row["to"] - row["from"] >= 108_000]
        return events and [row["stored"] for row in loss] == [80 + 2 * 90] and sampled
    assert wait_for(complete, 60)
    yield one, begin
    one.kill()


def moment(text):
    """Nanoseconds of what the API tells in milliseconds."""
    return round(datetime.datetime.strptime(text, "%Y-%m-%dT%H:%M:%S.%fZ").replace(tzinfo=datetime.timezone.utc).timestamp() * 1e3) * 10**6


def ink(page, at, colour, rows, near=3):
    """Pixels of a colour of the page in so many CSS pixels at the top (or, negative, at the bottom) of the picture."""
    return page.evaluate("""([at, colour, rows, near]) => {
      const canvas = document.querySelector(at + " canvas"), probe = document.createElement("canvas").getContext("2d");
      probe.fillStyle = getComputedStyle(document.documentElement).getPropertyValue(colour);
      probe.fillRect(0, 0, 1, 1);
      const want = probe.getImageData(0, 0, 1, 1).data, high = Math.abs(rows) * devicePixelRatio;
      const all = canvas.getContext("2d").getImageData(0, rows < 0 ? canvas.height - high : 0, canvas.width, high).data;
      let count = 0;
      for (let at = 0; at < all.length; at += 4) if ([0, 1, 2].every((part) => Math.abs(all[at + part] - want[part]) < near) && all[at + 3] > 250) count += 1;
      return count;
    }""", [at, colour, rows, near])


def test_u17_the_run_tells_when_each_attempt_began_and_how_it_ended(resumed):
    one, begin = resumed
    told = asked(one, f"/api/v1/runs/{RUN_TEXT}")["attempts"]
    assert [(row["attempt"], row["number"], row["world_size"], row["outcome"], row["exit_code"]) for row in told] == [
        (number, number, world, outcome, code) for number, (world, _, _, outcome, code) in ATTEMPTS.items()]
    assert [moment(row["started_at"]) - begin for row in told] == [first * SECOND for _, _, (first, _), _, _ in ATTEMPTS.values()]
    restart, = [row for row in asked(one, f"/api/v1/runs/{RUN_TEXT}/series", name="loss", agg="mean")["restarts"] if row["step"] == 50]
    assert (restart["before"], restart["number"], restart["again"]) == (1, 2, 30)


@pytest.mark.parametrize("width,theme", [(1440, "light"), (390, "dark")])
def test_u17_a_band_under_charts_says_which_attempt_a_step_belongs_to(resumed, browser, width, theme):
    one, _ = resumed
    context = browser.new_context(viewport={"width": width, "height": 900}, color_scheme=theme)
    axe.bring(context)
    page = context.new_page()
    page.goto(f"{base_of(one)}/runs/{RUN_TEXT}")
    page.wait_for_selector("[data-name=loss] canvas")
    plot = page.locator("[data-name=loss] .plot")
    assert "Attempt 1 up to step 49, attempt 2 from step 50 on." in plot.get_attribute("aria-label")
    plot.focus()
    for key, attempt in (("Home", 1), ("End", 2)):
        page.keyboard.press(key)
        page.wait_for_selector(f"[data-name=loss] .read:has-text('(attempt {attempt})')")
    assert wait_for(lambda: ink(page, "[data-name=loss]", "--line", -10) > 300 and ink(page, "[data-name=loss]", "--ground", -10) > 300, 10), "both stretches are drawn"
    plot.scroll_into_view_if_needed()
    shots = ROOT / "build" / "screens"
    shots.mkdir(parents=True, exist_ok=True)
    page.screenshot(path=shots / f"attempt-band-{width}-{theme}.png")
    assert axe.faults(page, "attempts") == {} and (width > 390 or narrow.troubles(page) == [])
    page.goto(f"{base_of(one)}/runs/{RUN_TEXT}?from=60&to=100")
    page.wait_for_selector("[data-name=loss] canvas")
    assert wait_for(lambda: ink(page, "[data-name=loss]", "--ground", -10) > 300 and ink(page, "[data-name=loss]", "--line", -10) < 60, 10), "in this range there is only the second"
    context.close()


@pytest.mark.parametrize("width,theme", [(1440, "dark"), (390, "light")])
def test_u17_u24_restarts_and_issues_are_marks_over_time_and_on_the_map_of_cores(resumed, browser, width, theme):
    one, _ = resumed
    context = browser.new_context(viewport={"width": width, "height": 900}, color_scheme=theme)
    axe.bring(context)
    page = context.new_page()
    page.goto(f"{base_of(one)}/runs/{RUN_TEXT}/nodes")
    page.wait_for_selector("#node-charts .marks li:has(.restart)")
    mark = page.inner_text("#node-charts .marks li:has(.restart)")
    assert mark.endswith("attempt 2 begins with 2 ranks; the one before failed with exit code 3"), mark
    plot = page.locator("#chart-gpu .plot")
    plot.scroll_into_view_if_needed()
    plot.focus()
    for key, attempt in (("Home", 1), ("End", None)):  # the last sample is behind the end of attempt 2
        page.keyboard.press(key)
        page.wait_for_function("(want) => /: .+/.test(document.querySelector('#chart-gpu .read').textContent) && document.querySelector('#chart-gpu .read').textContent.includes('(attempt') === want", arg=attempt is not None)
    shots = ROOT / "build" / "screens"
    shots.mkdir(parents=True, exist_ok=True)
    page.screenshot(path=shots / f"attempt-times-{width}-{theme}.png")
    page.wait_for_selector("#cores .cells canvas")
    page.locator("#cores").scroll_into_view_if_needed()
    label = page.get_attribute("#cores .cells", "aria-label")
    assert "attempt 2 begins with 2 ranks" in label and "the node throttles" in label
    assert wait_for(lambda: ink(page, "#cores .cells", "--bad", 16, 48) > 4 and ink(page, "#cores .cells", "--dim", 16, 48) > 1, 20)
    page.screenshot(path=shots / f"core-marks-{width}-{theme}.png")
    assert axe.faults(page, "marks of cores") == {} and (width > 390 or narrow.troubles(page) == [])
    page.click("#node-charts .marks-of button:has-text('issues')")
    assert wait_for(lambda: ink(page, "#cores .cells", "--bad", 16, 48) == 0, 10), "the same switch"
    context.close()


@pytest.mark.parametrize("width,theme", [(1440, "light"), (390, "dark")])
def test_what_the_run_was_doing_when_is_a_band_with_its_interruption(resumed, browser, width, theme):
    one, _ = resumed
    told = asked(one, f"/api/v1/runs/{RUN_TEXT}/phases")
    context = browser.new_context(viewport={"width": width, "height": 900}, color_scheme=theme)
    axe.bring(context)
    page = context.new_page()
    page.goto(f"{base_of(one)}/runs/{RUN_TEXT}")
    page.wait_for_selector("[data-name=loss] canvas")

    def there():
        page.evaluate("() => { window.scrollTo(0, document.body.scrollHeight); }")
        page.wait_for_timeout(50)
        return page.locator(".job-band i").count() == 5
    assert wait_for(there, 20), str((told, page.inner_html("#job-times") if page.locator("#job-times").count() else page.inner_text("main")[-300:]))[:1800]
    blocks = page.evaluate("[...document.querySelectorAll('.job-band i')].map((one) => [one.dataset.kind, Number(one.dataset.seconds), one.getBoundingClientRect().width])")
    assert [kind for kind, _, _ in blocks] == ["initialization", "loop", "interrupted", "loop", "finalization"]
    loops = [(first + 1 - BEFORE, first + 1 + (last - first - 2) * (len(steps) - 1) / len(steps)) for _, steps, (first, last), _, _ in ATTEMPTS.values()]
    assert [long for _, long, _ in blocks][1:4] == pytest.approx([loops[0][1] - loops[0][0], loops[1][0] - loops[0][1], loops[1][1] - loops[1][0]], abs=0.01)
    seconds = {name: sum(long for kind, long, _ in blocks if kind == of) for of, name in
               (("initialization", "initialization"), ("loop", "training_loop"), ("interrupted", "interrupted"), ("finalization", "finalization"))}
    assert seconds == pytest.approx({name: told[name] for name in seconds}, abs=0.01)
    whole = sum(long for _, long, _ in blocks)
    for kind, long, wide in blocks:  # as wide as long, but for blocks too short to be seen
        assert wide == pytest.approx(long / whole * sum(wide for _, _, wide in blocks), rel=0.1) or wide <= 8, kind
    details = page.inner_text("#job-times")
    for word in ("Start", "End", "Duration", "Training loop began", "Training loop ended"):
        assert word in details, word
    for word, name in (("Initialization", "initialization"), ("Training loop", "training_loop"), ("Finalization", "finalization")):
        assert f"{word}: " in details and f"{told[name] / whole * 100:.1f} %" in details, (word, details)
    said = page.get_attribute(".job-band", "aria-label")
    assert "Training loop of attempt 2" in said and "Interrupted" in said
    page.locator(".job-band").scroll_into_view_if_needed()
    page.screenshot(path=ROOT / "build" / "screens" / f"job-band-{width}-{theme}.png")
    assert axe.faults(page, "job band") == {} and (width > 390 or narrow.troubles(page) == [])
    page.click(".job-band .interrupted")
    page.wait_for_url("**/nodes?from=*&to=*")
    begin, end = (int(page.url.split(f"{name}=")[1].split("&")[0]) for name in ("from", "to"))
    assert (end - begin) / 1000 == pytest.approx(seconds["interrupted"], abs=0.01)
    context.close()
