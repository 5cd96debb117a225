"""What happened to runs, looked back at: by the API and by the page, with a real training script, a real stop and a real message."""
import json
import os
import re
import signal
import subprocess
import sys
import textwrap
import time
import urllib.error
import urllib.request

import pytest

from tests.support.hook_support import wait_for
from tests.support.program import BUILD, ROOT
from tests.support.webhook_receiver import WebhookReceiver

CONFIG = """
transport: {{journal: {journal}}}
cluster: lab
capture: {{every: 1 steps, collections: [gradients, losses]}}
rules: [{{use: exploding_tensor, actions: [stop]}}]
route: {{receiver: people, group_wait: 0s, group_interval: 5s, group_by: [job]}}
receivers:
  people: {{webhook: {{url: '{url}', allow_private: [127.0.0.0/8], send_resolved: false}}}}
  stop: {{stop_training: {{armed: true, mode: checkpoint_then_stop, grace: 20s}}}}
http: {{listen: '127.0.0.1:0'}}
{more}
"""

SCRIPT = """
import pathlib, sys, time
import numpy
import tocsin
hook = tocsin.watch(run="r", job="digits", labels={"team": "vision"})
weight = numpy.ones((4, 3), dtype=numpy.float32)
for step in range(900):
    gradient = weight * (float("nan") if step >= 40 else 0.5)
    hook.save_tensor("gradient/fc.weight", gradient, collection="gradients")
    hook.log(loss=1.0)
    hook.step()
    if hook.should_stop():
        path = pathlib.Path(sys.argv[1])
        path.write_bytes(b"weights" * 1000)
        hook.acknowledge_stop(checkpoint=str(path))
        hook.close(outcome="stopped_by_rule")
        sys.exit(tocsin.EXIT_STOPPED)
    time.sleep(0.02)
"""


def asked(server, path):
    status, text = server.get(path)
    assert status == 200, text
    return json.loads(text)


def train(tmp_path, journal):
    path = tmp_path / "train.py"
    path.write_text(textwrap.dedent(SCRIPT))
    environment = {**os.environ, "TOCSIN_OUT": str(journal), "PYTHONPATH": str(ROOT / "python"),
                   "TOCSIN_LIBRARY": os.environ.get("TOCSIN_LIBRARY", str(BUILD / "collectors/hook/libtocsin_client.so.0"))}
    done = subprocess.run([sys.executable, path, tmp_path / "last.ckpt"], env=environment, timeout=60, capture_output=True, text=True)
    assert done.returncode == 77, done.stderr


@pytest.fixture
def stopped(server, tmp_path):
    """A server that has seen a run go wrong, stopped it and told people; with its issue."""
    with WebhookReceiver() as hook:
        one = server(CONFIG.format(journal=tmp_path / "journal", url=hook.url, more=""))
        one.wait_for("ready")
        train(tmp_path, tmp_path / "journal")
        hook.wait(1)

        def told():
            (run,) = asked(one, "/api/v1/runs")["items"] or [None]
            return run if run and run["state"] == "ended" and run["told"] else None
        run = wait_for(told, 20)
        yield one, run, tmp_path


def test_an_issue_says_what_where_who_was_told_and_what_was_done(stopped):
    one, run, folder = stopped
    head = run["headline"]
    answer = asked(one, f"/api/v1/issues/{head['key']}/{head['episode']}")
    assert answer["issue"]["tensor"] == "gradient/fc.weight" and answer["issue"]["step"] == 40 and answer["issue"]["worker"] == "worker_0"
    assert answer["evidence"]["observed"]["name"] and answer["run"]["uid"] == run["uid"]
    assert {one["type"]: one["state"] for one in answer["deliveries"]}["webhook"] == "delivered"
    stop = answer["stop"]
    assert stop["state"] == "stopped" and stop["rule"] == "exploding_tensor" and stop["ranks"]["stopped"] == 1
    assert stop["checkpoint"]["path"] == str(folder / "last.ckpt") and stop["checkpoint"]["host"]
    detail = asked(one, f"/api/v1/runs/{run['uid'][:8]}")
    assert detail["run"] == run and detail["stop"] == stop and [i["key"] for i in detail["issues"]].count(head["key"]) == 1
    kinds = [line["kind"] for line in asked(one, f"/api/v1/runs/{run['uid']}/history")["items"]]
    assert kinds[-1] == "run" and {"issue", "message", "command", "answer", "run"} == set(kinds)


def test_a_run_that_is_none_is_named(stopped):
    one, _, _ = stopped
    with pytest.raises(urllib.error.HTTPError) as refused:
        urllib.request.urlopen(f"http://{one.wait_for('started')['http']}/api/v1/runs/ffffffff", timeout=5)
    assert refused.value.code == 404 and "ffffffff" in json.load(refused.value)["detail"]


def everything(server, uid):
    answer = {path: asked(server, path) for path in ("/api/v1/runs", f"/api/v1/runs/{uid}", f"/api/v1/runs/{uid}/history")}
    for one in answer.values():
        one.pop("as_of")
    return answer


@pytest.mark.parametrize("lost", [False, True], ids=["kept", "deleted"])
def test_after_kill_9_it_answers_the_same_with_its_file_and_without(stopped, server, lost):
    one, run, folder = stopped
    seen = []

    def settled():  # the last answers and ends have arrived
        seen.append(everything(one, run["uid"]))
        time.sleep(0.5)
        return seen[-3:].count(seen[-1]) == 3
    assert wait_for(settled, 20)
    before = seen[-1]
    one.process.send_signal(signal.SIGKILL)
    one.process.wait(10)
    if lost:
        for path in (folder / "journal").glob("insights.db*"):
            path.unlink()
    again = server(CONFIG.format(journal=folder / "journal", url="http://127.0.0.1:9/", more=""))
    again.wait_for("ready")

    def current():
        status, text = again.get("/api/v1/runs")
        assert status == 200 or (status == 503 and "ask again" in text), text  # the store is being made
        return status == 200 and json.loads(text)["current"]
    assert wait_for(current, 60)
    assert everything(again, run["uid"]) == before


def test_switched_off_it_keeps_nothing_and_says_so(server, tmp_path):
    one = server(CONFIG.format(journal=tmp_path / "journal", url="http://127.0.0.1:9/", more="insights: {enabled: false}"))
    address = one.wait_for("ready")["http"]
    with pytest.raises(urllib.error.HTTPError) as refused:
        urllib.request.urlopen(f"http://{address}/api/v1/runs", timeout=5)
    assert refused.value.code == 503 and "insights.enabled" in json.load(refused.value)["detail"]
    assert not list((tmp_path / "journal").glob("insights.db*"))


def test_the_page_is_fixed_files_with_a_strict_policy(stopped):
    one, run, _ = stopped
    address = one.wait_for("started")["http"]
    for path, kind in (("/", "text/html"), (f"/runs/{run['uid']}", "text/html"), ("/assets/app.js", "text/javascript"), ("/assets/app.css", "text/css")):
        with urllib.request.urlopen(f"http://{address}{path}", timeout=5) as answer:
            policy = answer.headers["Content-Security-Policy"]
            assert answer.headers["Content-Type"].startswith(kind) and len(answer.read()) > 200
            assert policy.startswith("default-src 'none'") and "unsafe" not in policy and "frame-ancestors 'none'" in policy
    foreign = urllib.request.Request(f"http://{address}/", headers={"Host": "evil.example"})
    with pytest.raises(urllib.error.HTTPError) as refused:
        urllib.request.urlopen(foreign, timeout=5)
    assert refused.value.code == 421


# The stranger's test: where somebody who has never seen the page finds each answer.
SEVEN = {"what": ("h1", r"(?i)NaN|not a number"), "step": ("#where", r"\b40\b"), "layer": ("#where", "fc.weight"), "rank": ("#where", r"\b0\b"),
         "told": ("#told", "people by webhook: delivered"), "stopped": ("#done", r"Stop: stopped(.|\n)*exploding_tensor(.|\n)*last\.ckpt"),
         "next": ("#next", "tocsin ")}


@pytest.mark.parametrize("theme", ["light", "dark"])
@pytest.mark.parametrize("width,height", [(1440, 900), (390, 844)])
def test_a_stranger_finds_all_seven_answers_on_the_page(stopped, browser, width, height, theme):
    one, run, _ = stopped
    base = f"http://{one.wait_for('started')['http']}"
    context = browser.new_context(viewport={"width": width, "height": height}, color_scheme=theme)
    page = context.new_page()
    wrong = []
    page.on("console", lambda message: wrong.append(message.text) if message.type == "error" else None)
    page.on("request", lambda request: wrong.append(request.url) if not request.url.startswith((base, "data:")) else None)
    screens = ROOT / "build" / "screens"
    screens.mkdir(parents=True, exist_ok=True)

    def look(name):
        page.wait_for_selector("h1")
        page.wait_for_selector(".live.good")
        page.screenshot(path=screens / f"{name}-{width}-{theme}.png")
        assert page.evaluate("document.documentElement.scrollWidth") <= width, f"{name} is wider than the window"
    page.goto(base + "/")
    page.wait_for_selector(".run")
    look("runs")
    page.click(".run-head a")  # one click from the list to the issue, whose address is a real path
    page.wait_for_selector("#where")
    assert re.fullmatch(re.escape(base) + "/issues/[a-z0-9]+/[0-9]+", page.url)
    look("issue")
    for question, (place, answer) in SEVEN.items():
        box = page.locator(place).first
        assert re.search(answer, box.inner_text()), f"{question}: {box.inner_text()}"
        assert width < 700 or box.bounding_box()["y"] < height, f"{question} is below the first window"
    page.reload()  # the address is the whole view
    page.wait_for_selector("#where")
    page.go_back()
    page.wait_for_selector(".run")
    page.goto(f"{base}/runs/{run['uid']}")
    page.wait_for_selector(".panel")
    look("run")
    page.click("text=History")
    page.wait_for_selector(".history li")
    look("history")
    page.goto(base + "/system")
    page.wait_for_selector(".panel")
    look("system")
    assert wrong == []
    context.close()


def test_the_list_follows_without_a_reload(server, browser, tmp_path):
    one = server(CONFIG.format(journal=tmp_path / "journal", url="http://127.0.0.1:9/", more=""))
    one.wait_for("ready")
    page = browser.new_page()
    page.goto(f"http://{one.wait_for('started')['http']}/")
    page.wait_for_selector("text=No run was heard of yet")
    train(tmp_path, tmp_path / "journal")
    page.wait_for_selector("text=stopped by rule", timeout=15000)
