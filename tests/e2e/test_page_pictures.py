"""The pictures of the page in README: a real training job that explodes, with people who are told of it.

`tools/page_pictures` makes them again, where paths and the host have names that mean something to a reader.
"""
import json
import os
import pathlib
import struct
import subprocess
import sys

import pytest

from tests.support.hook_support import wait_for
from tests.support.program import BUILD, ROOT
from tests.support.webhook_receiver import WebhookReceiver

PICTURES = ROOT / "docs" / "images"
NAMES = [f"page-{screen}-{theme}.png" for screen in ("issue", "run") for theme in ("light", "dark")]
WRITE = os.environ.get("TOCSIN_WRITE_PICTURES")

CONFIG = """
transport: {{journal: {journal}}}
cluster: lab
rules: [{{use: exploding_tensor, actions: [stop]}}, {{use: loss_not_decreasing}}]
route: {{receiver: ml-oncall, group_wait: 0s, group_interval: 5s, group_by: [job]}}
receivers:
  ml-oncall: {{webhook: {{url: '{url}', allow_private: [127.0.0.0/8], send_resolved: false}}}}
  stop: {{stop_training: {{armed: true, mode: checkpoint_then_stop, grace: 20s}}}}
http: {{listen: '127.0.0.1:0'}}
"""


def test_readme_shows_pictures_that_are_there():
    text = (ROOT / "README.md").read_text()
    for name in NAMES:
        picture = (PICTURES / name).read_bytes()
        assert f"docs/images/{name}" in text, name
        width, height = struct.unpack(">II", picture[16:24])
        assert (width, height) == (1440, 900), name
        assert len(picture) < 400_000, f"{name} is large"


@pytest.mark.skipif(not WRITE, reason="tools/page_pictures makes them")
def test_pictures_are_made(module_server, browser):
    folder = pathlib.Path(WRITE)
    with WebhookReceiver() as hook:
        one = module_server(CONFIG.format(journal=folder / "journal", url=hook.url))
        one.wait_for("ready")
        environment = {**os.environ, "TOCSIN_OUT": str(folder / "journal"), "PYTHONPATH": str(ROOT / "python"),
                       "TOCSIN_LIBRARY": os.environ.get("TOCSIN_LIBRARY", str(BUILD / "collectors/hook/libtocsin_client.so.0"))}
        done = subprocess.run([sys.executable, ROOT / "deploy/demo/train_digits.py", "--scenario", "exploding", "--run", "exploding",
                               "--checkpoint", folder / "digits.pt"], env=environment, cwd=folder, timeout=120, capture_output=True, text=True)
        assert done.returncode == 77, done.stderr

        def told():
            status, text = one.get("/api/v1/runs")
            runs = json.loads(text)["items"] if status == 200 else []
            if not runs or runs[0]["state"] != "ended" or not runs[0]["told"]:
                return None
            head = runs[0]["headline"]
            _, text = one.get(f"/api/v1/issues/{head['key']}/{head['episode']}")
            return runs[0] if any(sent["type"] == "webhook" for sent in json.loads(text)["deliveries"]) else None
        run = wait_for(told, 30)
        assert run
        head = run["headline"]
        for screen, path, drawn in (("issue", f"/issues/{head['key']}/{head['episode']}", "#evidence .chart canvas"), ("run", f"/runs/{run['uid']}", "#curves .chart canvas")):
            for theme in ("light", "dark"):
                page = browser.new_context(viewport={"width": 1440, "height": 900}, color_scheme=theme).new_page()
                page.goto(f"http://{one.wait_for('started')['http']}{path}")
                page.wait_for_selector(drawn)
                page.wait_for_selector(".live.good")
                page.wait_for_timeout(500)
                page.screenshot(path=PICTURES / f"page-{screen}-{theme}.png")
                page.context.close()
