"""What the person on call gets for a real job that was stopped, with the timers that a new user has (group_wait 30 s)."""
import json
import os
import re
import shlex
import subprocess
import time

import pytest

from tests.support.program import BUILD, ROOT, Server, run_cli
from tests.support.smtp_receiver import SmtpReceiver
from tests.support.webhook_receiver import WebhookReceiver

pytestmark = pytest.mark.alone
PYTHON = "/usr/bin/python3"  # Debian's, which has torch and scikit-learn
CONFIG = """
transport: {{journal: {journal}}}
rules: [{{use: exploding_tensor, actions: [stop]}}]
route: {{receiver: oncall}}
receivers:
  oncall:
    email: {{to: oncall@example.com, from: tocsin@example.com, host: 127.0.0.1, port: {smtp}, tls: none}}
    webhook: {{url: '{hook}', allow_private: [127.0.0.0/8]}}
  stop: {{stop_training: {{armed: true, mode: checkpoint_then_stop}}}}
http: {{listen: '127.0.0.1:0'}}
"""


@pytest.fixture(scope="module")
def story(tmp_path_factory):
    """One stopped run, watched from its first step until the mailbox is quiet: everything that was told of it."""
    folder = tmp_path_factory.mktemp("handover")
    journal, checkpoint = folder / "tocsin-data", folder / "checkpoint.pt"
    with SmtpReceiver() as smtp, WebhookReceiver() as hook:
        config = folder / "tocsin.yaml"
        config.write_text(CONFIG.format(journal=journal, smtp=smtp.port, hook=hook.url))
        server = Server(config)
        try:
            server.wait_for("ready")
            environment = {**os.environ, "TOCSIN_OUT": str(journal), "PYTHONPATH": str(ROOT / "python"),
                           "OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1",
                           "TOCSIN_LIBRARY": os.environ.get("TOCSIN_LIBRARY", str(BUILD / "collectors/hook/libtocsin_client.so.0"))}
            command = [PYTHON, ROOT / "deploy" / "demo" / "train_digits.py", "--scenario", "exploding", "--run", "handover",
                       "--checkpoint", checkpoint, "--progress", "json"]
            code = subprocess.run(command, env=environment, stdout=subprocess.DEVNULL, timeout=120, check=False).returncode
            ended = time.monotonic()
            mails = smtp.wait(1, timeout=45)
            waited = time.monotonic() - ended
            hooks = hook.wait(1, timeout=45)
            time.sleep(1.5)
            run = server.wait_for("job_ended")["run"]
        finally:
            if server.process.poll() is None:
                server.stop()
        yield {"exit": code, "journal": journal, "checkpoint": checkpoint, "run": run, "waited": waited,
               "mails": list(smtp.records) or mails, "hooks": list(hook.records) or hooks}


def first_step(story):
    return story["hooks"][0]["json"]["data"]["issues"][0]["step"]


def test_it_comes_within_seconds_of_the_end_and_not_after_group_wait(story):
    assert story["exit"] == 77 and story["checkpoint"].exists()
    assert story["waited"] < 10


def test_the_subject_names_the_job_the_finding_its_step_and_what_was_done(story):
    subject = story["mails"][0]["subject"]
    assert re.fullmatch(r"\[error\] digits: \S+ (is|has) (NaN|Inf|\+Inf) since step \d+ – stopped, checkpoint saved", subject), subject


def test_the_mail_is_a_handover(story):
    body = story["mails"][0]["body"]
    for part in (f"At          step {first_step(story)} (train)", "limit: >= 1", "What to do", "stopped at step", "exit code 77",
                 str(story["checkpoint"]), story["run"], "exploding_tensor", "Job         digits", "Host        "):
        assert part in body, (part, body)
    assert "FIRING" not in body and len(body) < 8000
    assert body.count("Lower the learning rate or clip gradients") == 1


def test_the_run_of_the_mail_is_shown_by_itself(story):
    code, out, err = run_cli("status", story["run"], "--from", story["journal"], "-o", "json")
    assert code == 0, out + err
    seen = json.loads(out)
    (run,), (stop,) = seen["runs"], seen["stops"]
    assert (run["run"], run["job"], run["state"]) == (story["run"], "digits", "stopped_by_rule")
    assert (stop["run"], stop["checkpoint"]["path"]) == (story["run"], str(story["checkpoint"])) and seen["issues"] == []
    code, out, err = run_cli("status", story["run"][:8], "--from", story["journal"])
    assert code == 0 and re.search(r"runs\n +JOB +RUN .*\n +digits ", out) and str(story["checkpoint"]) in out, out + err


def test_the_commands_of_the_mail_can_be_pasted(story):
    lines = [line.strip() for line in story["mails"][0]["body"].splitlines() if line.strip().startswith("tocsin ")]
    assert len(lines) == 3
    told = ""
    for line in lines:
        words = shlex.split(line)
        assert words[0] == "tocsin" and str(story["journal"]) in words
        code, out, err = run_cli(*words[1:])
        assert code == 0, (line, out, err)
        told += out
    assert re.search(r"NaN|Inf", told) and story["run"] in told


def test_every_line_of_the_raw_mail_is_within_its_limit(story):
    for mail in story["mails"]:
        head, _, body = mail["raw"].partition("\r\n\r\n")
        assert all(len(line) <= 78 for line in head.split("\r\n")), head
        assert all(len(line) <= 76 for line in body.split("\r\n"))


def test_the_webhook_says_what_was_found_and_how_it_ended(story):
    data = story["hooks"][0]["json"]["data"]
    issue, run = data["issues"][0], data["runs"][0]
    assert re.search(r"NaN|Inf|no finite", issue["annotations"]["summary"]) and "stopped, checkpoint saved" in data["headline"]
    assert issue["evidence"]["threshold"] == {"name": "limit", "value": 1} and issue["evidence"]["values"]
    assert issue["annotations"]["recommendation"]
    assert run["run"]["uid"] == story["run"]
    assert run["stop"]["state"] == "stopped" and run["stop"]["command_id"].startswith("cmd_")
    assert run["stop"]["checkpoint"]["path"] == str(story["checkpoint"]) and run["stop"]["checkpoint"]["bytes"] > 0
    if issue["status"] == "resolved":
        assert issue["ends_at"] and issue["ending"]["summary"]
    assert story["hooks"][0]["json"]["causationid"] == issue["event_id"]


def test_every_event_that_was_told_can_be_shown(story):
    for hook in story["hooks"]:
        for issue in hook["json"]["data"]["issues"]:
            code, out, err = run_cli("issues", "show", issue["event_id"], "--from", story["journal"])
            assert code == 0, (issue["event_id"], err)
            assert re.search(r"NaN|Inf|no finite", out), out


def test_nothing_that_was_told_says_that_an_ended_run_fires(story):
    for told in story["mails"] + story["hooks"]:
        text = json.dumps(told)
        assert "FIRING" not in text and "several rules" not in text and "00000000-0000" not in text
