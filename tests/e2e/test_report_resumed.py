"""A run that a rule stopped and somebody resumed: the report about the new attempt tells of that attempt alone."""
import json
import os
import subprocess
import sys
import textwrap

from tests.e2e.test_run_report import CONFIG, Outline
from tests.support.hook_support import wait_for
from tests.support.program import BINARY, BUILD, ROOT
from tests.support.webhook_receiver import WebhookReceiver

SCRIPT = """
import sys, time
import numpy
import tocsin
hook = tocsin.watch(run="r", job="digits")
bad_from, steps = int(sys.argv[1]), int(sys.argv[2])
for step in range(steps):
    hook.save_tensor("gradient/fc.weight", numpy.full((4, 3), float("nan") if step >= bad_from else 0.5, "f4"), collection="gradients")
    hook.log(loss=1.0 / (step + 1))
    hook.step()
    if hook.should_stop():
        hook.acknowledge_stop()
        hook.close(outcome="stopped_by_rule")
        sys.exit(tocsin.EXIT_STOPPED)
    time.sleep(0.02)
hook.close()
"""


def test_the_stop_of_the_attempt_before_is_not_told_of_the_resumed_one(server, tmp_path):
    with WebhookReceiver() as hook:
        program = server(CONFIG.format(journal=tmp_path / "journal", url=hook.url, reports=tmp_path / "reports"))
        program.wait_for("ready")
        script = tmp_path / "train.py"
        script.write_text(textwrap.dedent(SCRIPT))
        environment = {**os.environ, "TOCSIN_OUT": str(tmp_path / "journal"), "PYTHONPATH": str(ROOT / "python"),
                       "TOCSIN_LIBRARY": os.environ.get("TOCSIN_LIBRARY", str(BUILD / "collectors/hook/libtocsin_client.so.0"))}

        def train(bad_from, steps):
            return subprocess.run([sys.executable, script, str(bad_from), str(steps)], env=environment, timeout=90).returncode

        def reports():
            """Of the command and of the server, for programs; None: not told yet."""
            shown = subprocess.run([BINARY, "report", "--from", tmp_path / "journal", "digits", "-o", "json"], capture_output=True, text=True, timeout=60)
            (run,) = json.loads(program.get("/api/v1/runs")[1])["items"]
            return json.loads(shown.stdout), json.loads(program.get(f"/api/v1/runs/{run['uid']}/report.json")[1])

        assert train(bad_from=20, steps=3000) == 77
        assert wait_for(lambda: all(one["stop"] and one["stop"]["state"] == "stopped" for one in reports()), 30)
        first = reports()[0]["attempt"]

        # Resumed, and well.
        assert train(bad_from=10**6, steps=60) == 0
        assert wait_for(lambda: all(one["attempt"] > first and one["outcome"] for one in reports()), 30)
        for one in reports():
            assert one["stop"] is None and one["issues"] == [] and one["outcome"] == "completed", one
        page = Outline(subprocess.run([BINARY, "report", "--from", tmp_path / "journal", "digits", "--html", "-"], capture_output=True, text=True,
                                      timeout=60).stdout)
        assert "asked by rule" not in page.text and "ranks stopped" not in page.text
        # The attempt before keeps its own.
        written = wait_for(lambda: next(iter(tmp_path.glob(f"reports/*-{first}.*")), None), 30)  # it waits for what people were told
        assert written
        assert "asked by rule exploding_tensor; 1 of 1 ranks stopped" in Outline(written.read_text()).text
