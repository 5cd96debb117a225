"""Marks on charts: they are switched off by kind, lead to what they are of, and tell attempts, captures and settings; and what was lost is told."""
import sqlite3
import subprocess
import sys
import textwrap

from tests.e2e import test_complaints
from tests.e2e.test_complaints import LOSS, RESUMED, base_of, opened
from tests.e2e.test_curves import CONFIG, asked, environment, run_with
from tests.support.hook_support import wait_for, wire
from tests.support.written_journal import WrittenJournal

ended = test_complaints.ended


def picture(page, at=LOSS):
    """What the chart has drawn."""
    return page.evaluate("(at) => document.querySelector(at + ' canvas').toDataURL()", at)


def sign_at(page, step):
    """Where the sign of a mark at a step lies in the window."""
    return page.evaluate("""([at, step]) => {
      const over = document.querySelector(at + ' .u-over').getBoundingClientRect();
      const [from, to] = /steps (\\d+) to (\\d+)/.exec(document.querySelector('#curves .tools').textContent).slice(1).map(Number);
      return [over.left + over.width * (step - from) / (to - from), over.top - 10];
    }""", [LOSS, step])


def test_u24_marks_are_switched_off_and_lead_to_what_they_are_of(ended, browser):
    one, uid = ended
    page = opened(browser, one, f"/runs/{uid}")
    page.wait_for_selector("#curves .marks li")
    with_marks = picture(page)
    page.click(".marks-of button:has-text('issues')")
    page.wait_for_function("() => location.search.includes('marks=')")
    page.wait_for_timeout(300)
    assert page.locator("#curves .marks .alarm").count() == 0
    without = picture(page)
    assert without != with_marks
    page.reload()
    page.wait_for_selector(f"{LOSS} canvas")
    page.wait_for_timeout(500)
    assert page.locator("#curves .marks .alarm").count() == 0, "the address remembers"
    assert page.get_attribute(".marks-of button:has-text('issues')", "aria-pressed") == "false"
    page.click(".marks-of button:has-text('issues')")
    page.wait_for_selector("#curves .marks .alarm")
    page.keyboard.press("m")
    page.wait_for_function("() => location.search.includes('marks=none')")
    assert page.locator("#curves .marks li").count() == 0
    page.keyboard.press("m")
    page.wait_for_selector("#curves .marks .alarm")
    assert "marks=" not in page.url
    page.wait_for_timeout(300)
    page.mouse.click(*sign_at(page, 300))
    page.wait_for_selector("#where")
    assert "/issues/" in page.url
    page.context.close()


def resumed(folder, journal, ranks):
    """The run of RESUMED with so many ranks: killed at step 150, it goes on from 100."""
    for again in (False, True):
        started = []
        for rank in range(ranks):
            place = folder / str(rank)
            place.mkdir(exist_ok=True)
            started.append(subprocess.Popen([sys.executable, "-c", RESUMED, *(["state"] if again else [])], cwd=place,
                                            env={**environment(journal), "RANK": str(rank), "WORLD_SIZE": str(ranks), "TOCSIN_LAUNCH": f"l{again}"}))
        assert [one.wait(60) for one in started] == [0 if again else -9] * ranks


def test_u17_each_attempt_of_several_workers_begins_with_a_mark_that_says_why(server, browser, tmp_path):
    one = server(CONFIG.format(journal=tmp_path / "journal"))
    one.wait_for("ready")
    resumed(tmp_path, tmp_path / "journal", 2)
    uid = run_with(one, 500)
    assert uid
    answer = asked(one, f"/api/v1/runs/{uid}/series", name="loss", agg="mean")
    restart, = answer["restarts"]
    assert (restart["step"], restart["workers"], restart["world_size"], restart["number"], restart["again"]) == (100, 2, 2, 2, 50), restart
    heat = asked(one, f"/api/v1/runs/{uid}/heatmap", by="rank", name="loss")
    assert [(mark["mode"], mark["step"], mark["world_size"]) for mark in heat["restarts"]] == [("train", 100, 2)]
    page = opened(browser, one, f"/runs/{uid}")
    assert "mean of 2 workers" in page.inner_text(f"{LOSS} figcaption")
    mark = page.inner_text("#curves .marks li:has(.restart)")
    assert "step 100: attempt 2 goes on from here with 2 ranks; " in mark and "50 steps are done again" in mark, mark
    assert restart["reason"] is None or restart["reason"].replace("_", " ").split()[0] in mark
    before = picture(page)
    page.click(".marks-of button:has-text('restarts')")
    page.wait_for_timeout(300)
    assert picture(page) != before, "it is drawn, also on a mean"
    page.goto(f"{base_of(one)}/runs/{uid}/ranks?of=loss")
    page.wait_for_selector("#by-rank .cells canvas")
    assert "attempt 2 goes on from here with 2 ranks" in page.get_attribute("#by-rank .cells", "aria-label")
    page.context.close()


CHANGING = """
import math, os, sys, time, numpy, tocsin
hook = tocsin.watch(run="r", job="changing", capture={"every": "100000 steps", "collections": ["gradients"]})
hook.on_command("lr", lambda value: None, bounds=(0.0, 1.0))
step = 0
while not os.path.exists(sys.argv[1]):
    step += 1
    hook.save_tensor("gradient/w", numpy.ones(4, numpy.float32), collection="gradients")
    hook.log(loss=math.nan if step == 60 else 1.0)
    hook.step()
    hook.should_stop()
    time.sleep(0.02)
hook.close()
"""


def test_u24_captures_and_changed_settings_are_marks(server, browser, tmp_path):
    config = CONFIG.format(journal=tmp_path / "journal").replace("actions: [stop]", "actions: [closer, calm]").replace(
        "  stop: {stop_training: {armed: true, mode: checkpoint_then_stop, grace: 20s}}",
        "  closer: {raise_capture: {collections: [gradients], steps: 40}}\n  calm: {adjust: {name: lr, value: 0.001, bounds: [0, 0.01]}}")
    config = config.replace("receiver: nobody,", "receiver: nobody, group_wait: 0s,")
    assert "closer: {raise" in config and "group_wait" in config
    one = server(config)
    one.wait_for("ready")
    job = subprocess.Popen([sys.executable, "-c", textwrap.dedent(CHANGING), tmp_path / "enough"], env=environment(tmp_path / "journal"))
    try:
        uid = run_with(one, 60)
        seen = lambda: {change["kind"]: change for change in asked(one, f"/api/v1/runs/{uid}")["changes"] if change["by"] != "rules"}
        changes = wait_for(lambda: len(seen()) == 2 and seen(), 60)
        assert set(changes) == {"capture", "setting"}, changes
        page = opened(browser, one, f"/runs/{uid}")
        page.wait_for_selector("#curves .marks .setting")
        assert f"step {changes['setting']['step']}: lr set to 0.001" in page.inner_text("#curves .marks li:has(.setting)")
        assert f"step {changes['capture']['step']}: capture changed, asked by {changes['capture']['by']}" in page.inner_text("#curves .marks")
        page.click("#curves .marks li:has(.setting) a")
        page.wait_for_selector(".history li")
        page.context.close()
    finally:
        (tmp_path / "enough").touch()
        job.wait(60)


def belongs_here(folder):
    """A journal that another machine has not made."""
    database = sqlite3.connect(folder / "telemetry.db")
    database.execute("UPDATE meta SET value = '' WHERE key = 'machine'")
    database.commit()
    database.close()


def gap(run, **event):
    run.put(wire.encode_lifecycle(run.head(), {"event": "gap", **event}))


def test_u09_under_a_chart_stands_what_was_drawn_stored_and_lost(server, browser, tmp_path):
    """Eight numbers of frames are unused, and the hook tells of three of them."""
    run = WrittenJournal(tmp_path / "journal", names=("loss", "accuracy"))
    run.event(0, "start", launch="k", job="lossy")
    for step in range(40):
        if step == 10:
            run.sequence += 3
            gap(run, lane="scalars", reason="queue_full", frames=3, rows=45, first_step=8, last_step=9)
        if step == 20:
            run.sequence += 5
        run.scalars(0, [("loss", step, 1.0 / (step + 1))])
        run.step_end(0, step)
    run.scalars(0, [("loss", 39, 7.0)])
    run.sealed()
    belongs_here(tmp_path / "journal")
    one = server(CONFIG.format(journal=tmp_path / "journal"))
    uid = run_with(one, 40)
    assert uid
    answer = asked(one, f"/api/v1/runs/{uid}/series", name="loss")
    assert answer["lost"] == [
        {"lane": "scalars", "reason": "queue_full", "workers": 1, "frames": 3, "values": 45, "first_step": 8, "last_step": 9},
        {"lane": None, "reason": "never_came", "workers": 1, "frames": 5, "values": 0, "first_step": None, "last_step": None}]
    page = opened(browser, one, f"/runs/{uid}")
    told = page.inner_text(f"{LOSS} figcaption")
    assert "40 points drawn of 40 values stored" in told
    assert "45 values in 3 records, dropped by the training process because its queue was full (steps 8 to 9)" in told
    assert "Lost: 5 records never came" in told
    assert "Left out: 1 value for steps that had one already" in told
    page.goto(f"{base_of(one)}/runs/{uid}?from=10&to=20")
    page.wait_for_selector(f"{LOSS} figcaption:has-text('10 points drawn of 10 values in these steps, 40 stored in all')")
    page.context.close()
    one.kill()
    again = server(CONFIG.format(journal=tmp_path / "journal"))
    assert run_with(again, 40) and asked(again, f"/api/v1/runs/{uid}/series", name="loss")["lost"] == answer["lost"], "it is kept"


def test_u09_nothing_is_said_where_nothing_was_lost(ended, browser):
    one, uid = ended
    answer = asked(one, f"/api/v1/runs/{uid}/series", name="loss", points=200)
    assert answer["lost"] == [] and answer["refused"] == 0
    page = opened(browser, one, f"/runs/{uid}")
    assert page.locator(".lost").count() == 0
    assert f"of {answer['series'][0]['stored']} values stored" in page.inner_text(f"{LOSS} figcaption")
    page.context.close()
