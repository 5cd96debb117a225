"""The report about a run: from the server, from a directory, as a page, as Markdown and for programs, with curves whose numbers are the frames'."""
import html.parser
import json
import os
import pathlib
import re
import subprocess
import sys
import tarfile
import textwrap
import urllib.request

import pytest

from tests.support.hook_support import wait_for
from tests.support.notebook import run_notebook
from tests.support.program import BINARY, BUILD, ROOT
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
reports: {{at_end: html, dir: {reports}}}
"""

# The loss falls, jumps at step 37 and is no number from step 40 on; the evaluation counts its own steps.
SCRIPT = """
import pathlib, sys, time
import numpy
import tocsin
hook = tocsin.watch(run="r", job="</script><b>digits", labels={"team": "vision"})
weight = numpy.ones((4, 3), dtype=numpy.float32)
for step in range(900):
    bad = step >= 40
    hook.save_tensor("gradient/fc.weight", weight * (float("nan") if bad else 0.5), collection="gradients")
    hook.log(loss=float("nan") if bad else 9.0 if step >= 37 else 3.0 / (step + 1), accuracy=min(1.0, step / 50))
    hook.step()
    if hook.should_stop():
        path = pathlib.Path(sys.argv[1])
        path.write_bytes(b"weights" * 1000)
        hook.acknowledge_stop(checkpoint=str(path))
        hook.close(outcome="stopped_by_rule")
        sys.exit(tocsin.EXIT_STOPPED)
    time.sleep(0.02)
"""


class Outline(html.parser.HTMLParser):
    """Elements and texts of a page, and whatever could run or load something."""

    def __init__(self, text):
        super().__init__()
        self.texts, self.figures, self.active, self.tables = [], [], [], 0
        self._in = []
        self.feed(text)

    def handle_starttag(self, tag, attributes):
        given = dict(attributes)
        self._in.append(tag)
        if tag == "figure":
            self.figures.append({"caption": "", "polylines": 0, "bad": 0, "marks": []})
        if tag in ("polyline", "circle") and self.figures:
            self.figures[-1]["polylines"] += 1
        if tag == "rect" and given.get("class") == "notfinite":
            self.figures[-1]["bad"] += 1
        if tag == "g" and (given.get("class") or "").startswith("m-"):
            self.figures[-1]["marks"].append(given["class"])
        if tag in ("script", "iframe", "link", "img", "object", "embed", "form") and given.get("type") != "application/json":
            self.active.append(tag)
        self.active += [name for name, value in attributes if name.startswith("on") or (name in ("href", "src") and not (value or "").startswith(
            "data:image/png;base64," if tag == "image" else "#"))]

    def handle_data(self, data):
        self.texts.append(data)
        if self._in and self._in[-1] == "figcaption":
            self.figures[-1]["caption"] += data

    @property
    def text(self):
        return " ".join(" ".join(self.texts).split())


@pytest.fixture(scope="module")
def stopped(tmp_path_factory):
    """A run that went wrong, was stopped and of which people were told; the server goes on."""
    from tests.support.program import Server
    folder = tmp_path_factory.mktemp("report")
    with WebhookReceiver() as hook:
        config = folder / "tocsin.yaml"
        config.write_text(CONFIG.format(journal=folder / "journal", url=hook.url, reports=folder / 'reports'))
        server = Server(config)
        try:
            server.wait_for("ready")
            script = folder / "train.py"
            script.write_text(textwrap.dedent(SCRIPT))
            environment = {**os.environ, "TOCSIN_OUT": str(folder / "journal"), "PYTHONPATH": str(ROOT / "python"),
                           "TOCSIN_LIBRARY": os.environ.get("TOCSIN_LIBRARY", str(BUILD / "collectors/hook/libtocsin_client.so.0"))}
            done = subprocess.run([sys.executable, script, folder / "last.ckpt"], env=environment, timeout=60, capture_output=True, text=True)
            assert done.returncode == 77, done.stderr
            hook.wait(1)

            def told():
                (run,) = json.loads(server.get("/api/v1/runs")[1])["items"] or [None]
                return run if run and run["state"] == "ended" and run["told"] else None
            run = wait_for(told, 20)

            def whole():
                status, text = server.get(f"/api/v1/runs/{run['uid']}/series?name=loss")
                return status == 200 and [s for s in json.loads(text)["series"] if s["stored"] >= run["step"]]
            assert wait_for(whole, 20)
            yield server, run, folder
        finally:
            server.kill()


def fetched(server, run, ending):
    address = server.wait_for("started")["http"]
    with urllib.request.urlopen(f"http://{address}/api/v1/runs/{run['uid'][:8]}/report.{ending}", timeout=10) as answer:
        return answer.headers, answer.read().decode()


def check_page(text, folder, kept):
    page = Outline(text)
    assert page.active == []
    loss, accuracy = (next(one for one in page.figures if one["caption"] == name) for name in ("loss", "accuracy"))
    assert loss["polylines"] and loss["bad"] and accuracy["polylines"] and not accuracy["bad"]
    assert {"m-alarm", "m-stop", "m-checkpoint"} <= set(loss["marks"]) if kept else "m-alarm" in loss["marks"]
    assert page.figures[0] is loss, "the loss comes first"
    # Numbers are those of the script.
    assert "from 3 to 9, least 0.0810811 at 36, greatest 9 at 37; not finite for the first time at 40" in page.text
    assert "Norms of gradients" in page.text and "1 tensor, steps 0 to" in page.text
    assert "not finite for the first time in gradient/fc.weight, at 40" in page.text and text.count("<image class=\"heat\"") == 1
    assert "First sign, at train 40" in page.text and "</script><b>digits" in page.text
    assert "people" in page.text and "webhook" in page.text and "delivered" in page.text
    assert f"{folder / 'last.ckpt'}" in page.text and "asked by rule exploding_tensor; 1 of 1 ranks stopped" in page.text
    assert "tocsin issues reproduce" in page.text
    return page


def test_the_server_gives_it_as_a_page(stopped):
    server, run, folder = stopped
    headers, text = fetched(server, run, "html")
    page = check_page(text, folder, kept=True)
    assert headers["Content-Type"].startswith("text/html") and "curves of the training" not in page.text
    policy = headers["Content-Security-Policy"]
    assert policy.startswith("sandbox; default-src 'none'; style-src 'sha256-") and "; img-src data:; " in policy and "unsafe" not in policy
    assert re.fullmatch(r'inline; filename="_+script__b_digits-[0-9a-f]{8}-\d+\.html"', headers["Content-Disposition"])
    # The page carries what programs read, and it is what the other route gives.
    data = json.loads(re.search(r'<script type="application/json" id="report">(.*?)</script>', text, re.S)[1])
    assert data == json.loads(fetched(server, run, "json")[1])
    assert data["stop"]["state"] == "stopped" and data["stop"]["rule"] == "exploding_tensor"
    assert [one["state"] for one in data["messages"] if one["type"] == "webhook"] == ["delivered"]
    assert len(text) < 200_000


def test_its_policy_lets_its_own_style_through_and_nothing_else(stopped, browser):
    server, run, folder = stopped
    (folder / "report.html").write_text(fetched(server, run, "html")[1])
    screens = ROOT / "build" / "screens"
    screens.mkdir(parents=True, exist_ok=True)
    for width, height, theme in ((1440, 900, "light"), (1440, 900, "dark"), (390, 844, "light"), (390, 844, "dark")):
        context = browser.new_context(viewport={"width": width, "height": height}, color_scheme=theme, java_script_enabled=False)
        page, wrong = context.new_page(), []
        page.on("console", lambda message: wrong.append(message.text))
        page.on("request", lambda request: wrong.append(request.url) if not request.url.startswith("file:") else None)
        page.goto(f"file://{folder / 'report.html'}")
        assert page.locator("nav").evaluate("one => getComputedStyle(one).marginTop") == "16px", "the style counts"
        assert page.evaluate("document.documentElement.scrollWidth") <= width, "nothing lies beside the page"
        page.screenshot(path=screens / f"report-{width}-{theme}.png", full_page=True)
        assert wrong == []
        context.close()
    context = browser.new_context()
    page = context.new_page()
    page.goto(f"file://{folder / 'report.html'}")
    page.emulate_media(media="print")
    assert not page.locator("nav").is_visible()
    context.close()


def test_the_run_page_offers_it(stopped, browser):
    server, run, _ = stopped
    page = browser.new_context(viewport={"width": 390, "height": 844}, accept_downloads=True).new_page()
    page.goto(f"http://{server.wait_for('started')['http']}/runs/{run['uid']}")
    with page.expect_download() as download:
        page.get_by_role("link", name="Download report").click()
    check_page(pathlib.Path(download.value.path()).read_text(), stopped[2], kept=True)
    assert download.value.suggested_filename.startswith("__script__b_digits-")
    page.context.close()


def test_markdown_is_for_a_merge_request_and_holds_no_element_of_the_training(stopped):
    server, run, folder = stopped
    headers, text = fetched(server, run, "md")
    assert headers["Content-Type"].startswith("text/markdown")
    assert text.startswith("# Training report: \\</script\\>\\<b\\>digits") and "<b>" not in text
    assert "## Issues" in text and "## What was done" in text and "**loss**" in text and "from 3 to 9" in text


def test_the_notebook_computes_it_from_the_server(stopped, tmp_path):
    server, run, _ = stopped
    headers, text = fetched(server, run, "ipynb")
    assert headers["Content-Type"].startswith("application/x-ipynb+json") and headers["Content-Disposition"].endswith(".ipynb\"")
    (tmp_path / "report.ipynb").write_text(text)
    space, shown = run_notebook(tmp_path / "report.ipynb")
    assert space["source"] == f"http://{server.wait_for('started')['http']}" and space["run"] == run["uid"]
    assert any("from 3 to 9, least 0.08108 at 36, greatest 9 at 37; not finite for the first time at 40" in str(one) for one in shown["How the training went"])
    assert shown["Issues"][0][0]["rule"] == "exploding_tensor" and shown["Step durations"][1]["steps"] > 40
    assert {row["rule"] for row in shown["Rules"][0]} >= {"exploding_tensor"}


def program(folder, *arguments, **environment):
    return subprocess.run([BINARY, "report", "--from", folder / "journal", *arguments], capture_output=True, text=True, timeout=120,
                          env={**os.environ, **environment})


def test_the_run_page_offers_the_bundle_that_the_command_writes(stopped, browser, tmp_path):
    server, run, folder = stopped
    page = browser.new_context(accept_downloads=True).new_page()
    page.goto(f"http://{server.wait_for('started')['http']}/runs/{run['uid']}")
    with page.expect_download() as download:
        page.get_by_role("link", name="as a bundle").click()
    name = download.value.suggested_filename
    assert name.startswith("__script__b_digits-") and name.endswith(".tar")
    with tarfile.open(download.value.path()) as archive:
        inside = {member.name: archive.extractfile(member).read() for member in archive.getmembers()}
        assert all(member.isfile() and member.mode == 0o644 and member.mtime > 1_600_000_000 for member in archive.getmembers())
    page.context.close()
    done = program(folder, run["uid"], "--bundle", tmp_path / "bundle")
    assert done.returncode == 0, done.stderr
    written = {f"{name[:-4]}/{path.relative_to(tmp_path / 'bundle')}": path.read_bytes() for path in (tmp_path / "bundle").rglob("*") if path.is_file()}
    assert set(inside) == set(written) and len(inside) >= 2
    documents = [path for path in inside if "/profiler-reports/" in path]
    assert [inside[path] for path in documents] == [written[path] for path in documents]
    check_page(inside[f"{name[:-4]}/profiler-output/profiler-report.html"].decode(), folder, kept=True)
    json.loads(inside[f"{name[:-4]}/profiler-output/profiler-report.ipynb"])


def test_the_command_gives_the_same_from_the_directory(stopped, tmp_path):
    _, run, folder = stopped
    done = program(folder, run["uid"], "--html", tmp_path / "one.html", "--md", tmp_path / "one.md", SOURCE_DATE_EPOCH="1700000000")
    assert done.returncode == 0, done.stderr
    check_page((tmp_path / "one.html").read_text(), folder, kept=True)
    assert "2023-11-14T22:13:20" in (tmp_path / "one.html").read_text() and "## Issues" in (tmp_path / "one.md").read_text()
    again = program(folder, run["uid"], "--html", tmp_path / "two.html", SOURCE_DATE_EPOCH="1700000000")
    assert again.returncode == 0 and (tmp_path / "two.html").read_bytes() == (tmp_path / "one.html").read_bytes()
    text = program(folder, run["uid"])
    assert text.returncode == 0 and "from 3 to 9, least 0.0810811 at 36" in text.stdout and "stopped at step" in text.stdout


def test_the_page_at_the_end_of_the_run_has_it_all(stopped):
    server, _, folder = stopped
    check_page(pathlib.Path(server.wait_for("report_written", timeout=60)["path"]).read_text(), folder, kept=True)


def test_a_run_that_is_none_is_named(stopped):
    server, _, _ = stopped
    for ending in ("html", "json", "md", "ipynb"):
        status, text = server.get(f"/api/v1/runs/ffffffff/report.{ending}")
        assert status == 404 and "ffffffff" in json.loads(text)["detail"]
