"""A trainer that is killed says no last word: the agent on its node saw the process, and people are told by default."""
import os
import pathlib
import signal
import subprocess
import sys
import textwrap

import pytest

from tests.support.program import BUILD, ROOT
from tests.support.webhook_receiver import WebhookReceiver

CONFIG = """
transport: {{journal: {journal}}}
rules: [exploding_tensor]
route: {{receiver: people, group_wait: 0s}}
receivers: {{people: {{webhook: {{format: alertmanager_v4, url: '{url}', allow_private: [127.0.0.0/8]}}}}}}
http: {{listen: '127.0.0.1:0'}}
"""

SCRIPT = """
import os, sys, time
import tocsin
hook = tocsin.watch(run="r", job="mortal")
for step in range(2000):
    hook.log(loss=1.0)
    hook.step()
    if step == 20:
        print("ready", flush=True)
    time.sleep(0.02)
"""


@pytest.fixture
def people():
    with WebhookReceiver() as receiver:
        yield receiver


def told(people, rule):
    return [alert for request in people.accepted() for alert in (request["json"] or {}).get("alerts", [])
            if alert["labels"].get("rule") == rule]


def start(tmp_path, journal, script=SCRIPT):
    path = tmp_path / "train.py"
    path.write_text(textwrap.dedent(script))
    environment = {**os.environ, "TOCSIN_OUT": str(journal), "PYTHONPATH": str(ROOT / "python"),
                   "TOCSIN_LIBRARY": os.environ.get("TOCSIN_LIBRARY", str(BUILD / "collectors/hook/libtocsin_client.so.0"))}
    trainer = subprocess.Popen([sys.executable, str(path)], env=environment, stdout=subprocess.PIPE, text=True)
    return trainer


def wait_until_told(people, rule, timeout):
    import time
    end = time.monotonic() + timeout
    while time.monotonic() < end:
        alerts = told(people, rule)
        if alerts:
            return alerts
        time.sleep(0.1)
    raise AssertionError(f"nobody was told of {rule} within {timeout} s; told: {[r['json'] for r in people.accepted()]}")


def test_a_killed_trainer_is_told_of_within_seconds(server, tmp_path, people):
    journal = tmp_path / "journal"
    one = server(CONFIG.format(journal=journal, url=people.url))
    one.wait_for("ready")
    trainer = start(tmp_path, journal)
    assert trainer.stdout.readline().strip() == "ready"
    one.wait_for("job_started")
    trainer.send_signal(signal.SIGKILL)
    trainer.wait(10)
    # A parent that is not ours knows the code; the agent knows that the process is gone.
    alert = wait_until_told(people, "job_lost", 15)[0]
    assert alert["status"] == "firing" and alert["labels"]["job"] == "mortal"
    one.wait_for("job_ended", outcome="lost")


def test_the_node_collector_keeps_no_dead_run_alive(server, tmp_path, people):
    journal = tmp_path / "journal"
    one = server(CONFIG.format(journal=journal, url=people.url) + "collect: {interval: 100ms}\n")
    one.wait_for("ready")
    trainer = start(tmp_path, journal)
    assert trainer.stdout.readline().strip() == "ready"
    one.wait_for("job_started")
    trainer.kill()
    trainer.wait(10)
    wait_until_told(people, "job_lost", 15)


def test_an_exit_with_an_error_is_a_failed_job(server, tmp_path, people):
    journal = tmp_path / "journal"
    one = server(CONFIG.format(journal=journal, url=people.url))
    one.wait_for("ready")
    trainer = start(tmp_path, journal, SCRIPT.replace("time.sleep(0.02)", "time.sleep(0.02)\n    if step == 30: sys.exit(3)"))
    assert trainer.wait(30) == 3
    alert = wait_until_told(people, "job_failed", 15)[0]
    assert alert["labels"]["job"] == "mortal"


def test_the_message_about_a_failed_job_says_what_was_raised_and_where(server, tmp_path, people):
    journal = tmp_path / "journal"
    one = server(CONFIG.format(journal=journal, url=people.url))
    one.wait_for("ready")
    script = SCRIPT.replace("time.sleep(0.02)", "time.sleep(0.02)\n    if step == 30: raise RuntimeError('CUDA out of memory. Tried to allocate 2.00 GiB.\\nmore')")
    trainer = start(tmp_path, journal, script)
    assert trainer.wait(30) == 1
    (path,) = {pathlib.Path(one) for one in trainer.args if str(one).endswith(".py")}
    line = next(number for number, text in enumerate(path.read_text().splitlines(), 1) if "raise RuntimeError" in text)
    alert = wait_until_told(people, "job_failed", 15)[0]
    wanted = f"mortal failed with exit code 1: RuntimeError: CUDA out of memory. Tried to allocate 2.00 GiB. ({path.name}:{line} in <module>) (worker_0)."
    assert alert["annotations"]["summary"] == wanted, alert["annotations"]


def test_a_job_that_completes_alarms_nobody(server, tmp_path, people):
    journal = tmp_path / "journal"
    one = server(CONFIG.format(journal=journal, url=people.url))
    one.wait_for("ready")
    trainer = start(tmp_path, journal, SCRIPT.replace("range(2000)", "range(40)"))
    assert trainer.wait(30) == 0
    one.wait_for("job_ended", outcome="completed")
    assert not people.accepted()
