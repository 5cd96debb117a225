"""A loop's own word (`hook.report_progress`): a promise that is not kept is told, long before the rule's threshold."""
import json
import os
import subprocess
import sys
import time
import uuid

from tests.support.program import BUILD, ROOT
from tests.support.telemetry import journal_events

CONFIG = """
transport: {{journal: {journal}}}
rules:
- {{use: stalled_training_rule, name: heeds, with: {{threshold: 86400, grace: 0}}}}
http: {{listen: '127.0.0.1:0'}}
"""


def test_a_promise_that_is_not_kept_is_told_and_ends_when_the_loop_goes_on(server, tmp_path):
    journal, go, uid = tmp_path / "journal", tmp_path / "go", str(uuid.uuid4())
    server(CONFIG.format(journal=journal), role="evaluate").wait_for("ready")
    env = {key: value for key, value in os.environ.items() if not key.startswith("TOCSIN_") or key == "TOCSIN_LIBRARY"}
    env.setdefault("TOCSIN_LIBRARY", str(BUILD / "collectors/hook/libtocsin_client.so.0"))
    env.update(TOCSIN_OUT=str(journal), TOCSIN_RUN=uid, PYTHONPATH=str(ROOT / "python"), WITHIN="1", GO=str(go))
    job = subprocess.Popen([sys.executable, str(ROOT / "tests" / "support" / "promising_job.py")], env=env)

    def issues():
        return [data for _, data, _ in journal_events(journal, "issues") if data["run"]["uid"] == uid]

    def until(holds):
        end = time.monotonic() + 60
        while not any(holds(data) for data in issues()):
            assert time.monotonic() < end and job.poll() in (None, 0), issues()
            time.sleep(0.1)

    until(lambda data: data.get("rule") == "heeds" and data.get("status") == "firing")
    go.touch()
    assert job.wait(60) == 0
    until(lambda data: data.get("phase") == "ended")
    stalls = [(data["rule"], data["status"]) for data in issues() if data.get("rule") == "heeds" and "evidence" in data]
    assert stalls == [("heeds", "firing"), ("heeds", "resolved")]
    [fired] = [data for data in issues() if data.get("rule") == "heeds" and data["status"] == "firing" and "evidence" in data]
    assert "it promised its next step in 1 s" in json.dumps(fired), fired
