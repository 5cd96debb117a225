"""Curves: a real training job explodes; its loss is drawn with the alarm, the stop and the checkpoint, while it runs and after."""
import json
import os
import re
import signal
import subprocess
import sys
import textwrap
import time
import urllib.error
import urllib.parse
import urllib.request

import numpy
import pytest

from tests.support.hook_support import Telemetry, wait_for
from tests.support.program import BUILD, ROOT

CONFIG = """
transport: {{journal: {journal}}}
cluster: lab
rules: [{{use: exploding_tensor, actions: [stop]}}, {{use: loss_not_decreasing}}]
route: {{receiver: nobody, group_by: [job]}}
receivers:
  nobody: {{}}
  stop: {{stop_training: {{armed: true, mode: checkpoint_then_stop, grace: 20s}}}}
http: {{listen: '127.0.0.1:0'}}
"""

# Values that a page must not lose: a jump of one step, numbers that are none, a metric of another mode.
SCRIPT = """
import sys, time, numpy, tocsin
hook = tocsin.watch(run="r", job="curves")
for step in range(int(sys.argv[1])):
    loss = 3.0 / (1 + step / 50) + 0.1 * ((step * 7919) % 13) / 13
    if step == 700: loss = 50.0
    if step in (300, 301): loss = float("nan")
    hook.log(loss=loss, lr=0.1, grad_norm=loss * 2)
    hook.step()
    if len(sys.argv) > 2: time.sleep(float(sys.argv[2]))
hook.close()
"""


def environment(journal):
    return {**os.environ, "TOCSIN_OUT": str(journal), "PYTHONPATH": str(ROOT / "python"), "PYTHONDONTWRITEBYTECODE": "1",
            "TOCSIN_LIBRARY": os.environ.get("TOCSIN_LIBRARY", str(BUILD / "collectors/hook/libtocsin_client.so.0"))}


def train(tmp_path, journal, *arguments):
    path = tmp_path / "train.py"
    path.write_text(textwrap.dedent(SCRIPT))
    return subprocess.Popen([sys.executable, path, *map(str, arguments)], env=environment(journal), cwd=tmp_path)


def asked(server, path, **query):
    status, text = server.get(path + ("?" + urllib.parse.urlencode(query) if query else ""))
    assert status == 200, text
    return json.loads(text)


def refused(server, path, **query):
    address = server.wait_for("started")["http"]
    with pytest.raises(urllib.error.HTTPError) as error:
        urllib.request.urlopen(f"http://{address}{path}?{urllib.parse.urlencode(query)}", timeout=5)
    return error.value.code, json.load(error.value)


def truth(journal, name, mode=1):
    telemetry = Telemetry(journal)
    rows = {row["step"]: row["value"] for frame in telemetry.of_kind(2) if frame.header["mode"] == mode for row in frame.rows if telemetry.names[row["name"]] == name}
    steps = numpy.array(sorted(rows))
    return steps, numpy.array([rows[step] for step in steps])


def run_with(server, count, name="loss"):
    def complete():
        status, text = server.get("/api/v1/runs")  # 503: nothing is kept yet
        runs = json.loads(text)["items"] if status == 200 else []
        if not runs:
            return None
        items = asked(server, f"/api/v1/runs/{runs[0]['uid']}/names", name=name)["items"]
        return runs[0]["uid"] if items and items[0]["stored"] >= count else None
    return wait_for(complete, 20)


@pytest.fixture
def trained(server, tmp_path):
    one = server(CONFIG.format(journal=tmp_path / "journal"))
    one.wait_for("ready")
    assert train(tmp_path, tmp_path / "journal", 3000).wait(60) == 0
    uid = run_with(one, 3000)
    assert uid
    return one, uid, tmp_path / "journal"


def test_every_number_is_what_numpy_computes_from_the_frames(trained):
    one, uid, journal = trained
    steps, values = truth(journal, "loss")
    assert len(steps) == 3000
    for points in (10, 100, 1000, 5000):
        answer = asked(one, f"/api/v1/runs/{uid}/series", name="loss", points=points)
        (curve,) = answer["series"]
        width = answer["width"]
        assert curve["stored"] == 3000 and len(curve["x0"]) <= points
        bad = {curve["x0"][at]: (nan, x) for at, nan, _, _, x in curve["bad"]}
        for at, x0 in enumerate(curve["x0"]):
            inside = values[(steps >= x0) & (steps < x0 + width)]
            finite = inside[numpy.isfinite(inside)]
            assert bad.get(x0, (0,))[0] == numpy.isnan(inside).sum()
            if width == 1:
                assert curve["value"][at] == (finite[0] if len(finite) else None)
                continue
            assert curve["n"][at] == len(finite)
            assert (curve["min"][at], curve["max"][at], curve["first"][at], curve["last"][at]) == \
                (finite.min(), finite.max(), finite[0], finite[-1])
            assert curve["mean"][at] == pytest.approx(finite.mean(), rel=1e-12)
        assert min(x for _, x in bad.values()) == 300
        assert max(v for v in curve.get("max", curve.get("value")) if v is not None) == 50.0  # one step is seen at every zoom


def test_what_is_asked_wrongly_is_named(trained):
    one, uid, _ = trained
    path = f"/api/v1/runs/{uid}/series"
    for query, field, word in (({"pionts": 5}, "pionts", "points"), ({"points": 0}, "points", "10000"), ({"name": "loss("}, "name", "regular expression"),
                               ({"from": "yesterday"}, "from", "a step or a time"), ({"from": 9, "to": 9}, "to", "behind from"),
                               ({"agg": "maks"}, "agg", "max"), ({"mode": "trian"}, "mode", "train")):
        code, body = refused(one, path, **query)
        assert code == 400 and body["field"] == field and word in body["detail"], body
    assert refused(one, "/api/v1/runs/ffffffff/series")[0] == 404
    assert asked(one, path, name="no_such_thing")["series"] == []


def test_names_times_and_step_seconds(trained):
    one, uid, _ = trained
    names = {item["name"]: item for item in asked(one, f"/api/v1/runs/{uid}/names")["items"]}
    assert set(names) >= {"loss", "lr", "grad_norm", "step_seconds"} and names["loss"]["role"] == "loss" and names["loss"]["last_step"] == 2999
    (curve,) = asked(one, f"/api/v1/runs/{uid}/series", name="loss", points=5000)["series"]
    begin = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())
    assert curve["t0"] <= begin and curve["dt"] == sorted(curve["dt"])
    middle = f"{curve['t0'][:10]}T{numpy.datetime64(curve['t0'].rstrip('Z')) + numpy.timedelta64(int(curve['dt'][1500]), 'ms')}".split("T", 1)[1] + "Z"
    (later,) = asked(one, f"/api/v1/runs/{uid}/series", **{"name": "loss", "points": 5000, "from": middle})["series"]
    assert abs(later["x0"][0] - 1500) <= 1 + sum(abs(dt - curve["dt"][1500]) <= 1 for dt in curve["dt"])
    (clock,) = asked(one, f"/api/v1/runs/{uid}/series", name="step_seconds", points=5000)["series"]
    assert clock["kind"] == "clock" and clock["unit"] == "s" and all(0 <= value < 5 for value in clock["value"])


def test_a_finished_range_may_be_kept_and_is_not_sent_again(trained, server):
    one, uid, journal = trained

    def fetch(of, tag=None, **query):
        address = of.wait_for("started")["http"]
        asked = urllib.parse.urlencode({"name": "loss", **query})
        request = urllib.request.Request(f"http://{address}/api/v1/runs/{uid}/series?{asked}", headers={"If-None-Match": tag} if tag else {})
        try:
            with urllib.request.urlopen(request, timeout=10) as answer:
                return answer.status, answer.headers, json.load(answer)
        except urllib.error.HTTPError as error:
            return error.code, error.headers, error.read()
    _, open_end, _ = fetch(one)
    assert open_end["Cache-Control"] == "no-store" and "ETag" not in open_end
    status, kept, first = fetch(one, to=1000)
    assert status == 200 and kept["Cache-Control"] == "private, max-age=600", kept
    tag = kept["ETag"]
    status, headers, later = fetch(one, to=1000)
    assert headers["ETag"] == tag and later["as_of"] > first["as_of"]
    status, headers, body = fetch(one, tag, to=1000)
    assert (status, headers["ETag"], body) == (304, tag, b"")
    status, headers, _ = fetch(one, tag, to=1001)
    assert status == 200 and headers["ETag"] != tag
    # Another replica, which reads the topics itself, gives the same tag.
    one.kill()
    for file in journal.glob("curves.db*"):
        file.unlink()
    again = server(CONFIG.format(journal=journal))
    again.wait_for("ready")
    assert run_with(again, 3000) == uid
    assert wait_for(lambda: fetch(again, to=1000)[1].get("ETag") == tag, 10)


def test_after_kill_9_and_without_its_file_the_curves_are_the_same(trained, server):
    one, uid, journal = trained
    path, query = f"/api/v1/runs/{uid}/series", {"name": "loss|lr|step_seconds", "points": 700}

    def answer(of):
        out = asked(of, path, **query)
        out.pop("as_of")
        return out
    before = answer(one)
    one.process.send_signal(signal.SIGKILL)
    one.process.wait(10)
    for lost in (False, True):
        if lost:
            for file in journal.glob("curves.db*"):
                file.unlink()
        again = server(CONFIG.format(journal=journal))
        again.wait_for("ready")
        assert run_with(again, 3000) == uid
        assert wait_for(lambda: answer(again) == before, 10)
        again.kill()


def test_a_logged_value_is_on_the_screen_within_a_second(server, browser, tmp_path):
    one = server(CONFIG.format(journal=tmp_path / "journal"))
    one.wait_for("ready")
    job = train(tmp_path, tmp_path / "journal", 400, 0.05)
    uid = run_with(one, 5)
    page = browser.new_page()
    page.goto(f"http://{one.wait_for('started')['http']}/runs/{uid}")
    page.wait_for_selector(".chart[data-name=loss][data-mode=train] figcaption")

    def late():
        """Steps that the page is behind the frames."""
        shown = int(re.search(r"last [^;]* at step (\d+)", page.inner_text(".chart[data-name=loss][data-mode=train] figcaption")).group(1))
        return int(truth(tmp_path / "journal", "loss")[0][-1]) - shown
    behind = []
    for _ in range(20):
        time.sleep(0.3)
        behind.append(late())
    job.terminate()
    job.wait(10)
    assert sorted(behind)[10] * 0.05 <= 1.2, behind  # frames themselves are counted when they are in the journal
    assert wait_for(lambda: late() == 0, 3)  # also when no further one comes


def look(page, name, width, theme):
    screens = ROOT / "build" / "screens"
    screens.mkdir(parents=True, exist_ok=True)
    page.screenshot(path=screens / f"{name}-{width}-{theme}.png", full_page=True)
    assert page.evaluate("document.documentElement.scrollWidth") <= width, f"{name} is wider than the window"


@pytest.fixture(scope="module")
def demo(tmp_path_factory):
    """The demo's exploding job, at its settings, stopped by its alarm."""
    pytest.importorskip("torch", reason="torch is not here")
    pytest.importorskip("sklearn", reason="scikit-learn is not here")
    from tests.support.program import Server
    folder = tmp_path_factory.mktemp("demo")
    config = folder / "tocsin.yaml"
    config.write_text(CONFIG.format(journal=folder / "journal"))
    one = Server(config, role="up")
    one.wait_for("ready")
    done = subprocess.run([sys.executable, ROOT / "deploy" / "demo" / "train_digits.py", "--scenario", "exploding", "--run", "exploding",
                           "--checkpoint", folder / "checkpoint.pt"], env=environment(folder / "journal"), cwd=folder, timeout=120,
                          capture_output=True, text=True)
    assert done.returncode == 77, done.stderr

    def settled():
        runs = asked(one, "/api/v1/runs")["items"]
        return runs and runs[0]["state"] == "ended" and runs[0]["headline"] and runs[0]
    run = wait_for(settled, 20)
    assert run
    yield one, run, folder / "journal"
    one.kill()


@pytest.mark.parametrize("theme", ["light", "dark"])
@pytest.mark.parametrize("width,height", [(1440, 900), (390, 844)])
def test_the_exploding_loss_has_its_alarm_its_stop_and_its_checkpoint(demo, browser, width, height, theme):
    one, run, journal = demo
    base = f"http://{one.wait_for('started')['http']}"
    context = browser.new_context(viewport={"width": width, "height": height}, color_scheme=theme, has_touch=width < 700)
    page = context.new_page()
    wrong = []
    page.on("console", lambda message: wrong.append(message.text) if message.type == "error" else None)
    page.on("request", lambda request: wrong.append(request.url) if not request.url.startswith((base, "data:")) else None)
    page.goto(f"{base}/runs/{run['uid']}")
    page.wait_for_selector(".chart[data-name=loss][data-mode=train] canvas")
    page.wait_for_selector(".live.good")
    time.sleep(0.3)
    marks = page.inner_text("#curves .marks")
    head = run["headline"]
    assert f"step {head['step']}" in marks and re.search(r"step \d+: run stopped", marks) and "checkpoint" in marks
    steps, values = truth(journal, "loss", mode=1)
    finite = numpy.isfinite(values)
    told = page.inner_text(".chart[data-name=loss][data-mode=train] figcaption")
    assert f"{len(steps)} values stored" in told
    assert f"at step {steps[finite][values[finite].argmax()]}" in told and f"at step {steps[finite][-1]}" in told
    if (~finite).any():
        assert f"{(~finite).sum()} not finite, first at step {steps[~finite][0]}" in told
    # With keys alone: the last step, then what is read of it.
    page.focus(".chart[data-name=loss][data-mode=train] .plot")
    page.keyboard.press("Home")
    page.keyboard.press("ArrowRight")
    read = page.inner_text(".chart[data-name=loss][data-mode=train] .read")
    assert read.startswith(f"step {steps[1]}:") and f"{float(f'{values[1]:.5g}'):g}"[:5] in read, read
    assert page.inner_text("#curves .marks").count("first sign") == 1
    look(page, "curves", width, theme)
    if width > 700:  # drag: what is seen then is finer, the address says where, and all steps come back
        box = page.locator(".chart[data-name=loss][data-mode=train] .u-over").bounding_box()
        page.mouse.move(box["x"] + box["width"] * 0.5, box["y"] + 40)
        page.mouse.down()
        page.mouse.move(box["x"] + box["width"] * 0.9, box["y"] + 60, steps=5)
        page.mouse.up()
        page.wait_for_function("location.search.includes('from=')")
        page.click("text=All steps")
        page.wait_for_function("!location.search.includes('from=')")
    page.click(".chart[data-name=loss][data-mode=train] summary")
    page.wait_for_function(f"[...document.querySelectorAll('.chart[data-name=loss][data-mode=train] tbody tr')].pop().firstChild.textContent == {steps[-1]}")
    rows = page.locator(".chart[data-name=loss][data-mode=train] tbody tr")
    cells = rows.nth(rows.count() - 1).locator("td").all_text_contents()
    assert int(cells[0]) == steps[-1]
    page.goto(f"{base}/issues/{head['key']}/{head['episode']}")
    page.wait_for_selector("#evidence .chart canvas")
    page.wait_for_selector(".live.good")
    time.sleep(0.3)
    assert f"step {head['step']}" in page.inner_text("#evidence .marks")
    issues = asked(one, f"/api/v1/runs/{run['uid']}")["issues"]
    if any(issue["step"] < head["step"] and issue["mode"] == "train" for issue in issues):
        assert "This is the first sign" not in page.inner_text("#first-sign"), "though its rule spoke first"
    assert page.inner_text("header.head").count("job ended") == 1, "how it ended is said once"
    look(page, "evidence", width, theme)
    page.goto(f"{base}/runs/{run['uid']}/history")
    page.wait_for_selector("ol.history")
    told = page.inner_text("ol.history")
    for words in ("the run started 1 rank ", "rank 0: checkpoint done", "stop asked by router", "stopped by rule", "exploding_tensor: job ended"):
        assert words in re.sub(r"\s+", " ", told) + " ", words
    assert wrong == []
    context.close()
