"""`tocsin send-test`: a marked message arrives by the actions of the configuration, and what is shown of it holds no credential."""
import contextlib
import json

import pytest

from tests.fakes.discord import Discord
from tests.fakes.mattermost import Mattermost
from tests.fakes.msteams import MsTeams
from tests.fakes.ntfy import Ntfy
from tests.fakes.pagerduty import PagerDuty
from tests.fakes.slack import Slack
from tests.fakes.telegram import Telegram
from tests.support.program import run_cli
from tests.support.smtp_receiver import SmtpReceiver

FAKES = {"discord": Discord, "mattermost": Mattermost, "msteams": MsTeams, "ntfy": Ntfy, "pagerduty": PagerDuty, "slack": Slack,
         "telegram": Telegram}
OWN_KEYS = {"telegram": lambda fake: f"url: '{fake.url}', bot_token: '{fake.token}', chat_id: '{fake.chat_id}'",
            "pagerduty": lambda fake: f"url: '{fake.url}', routing_key: '{fake.routing_key}'",
            "ntfy": lambda fake: f"url: '{fake.url}', topic: '{fake.topic}'"}
CREDENTIAL = {"telegram": lambda fake: fake.token, "pagerduty": lambda fake: fake.routing_key, "ntfy": lambda fake: fake.topic}
CONFIG = """
transport: {{journal: {folder}/never-opened}}
rules: [exploding_tensor]
route: {{receiver: people}}
receivers:
  people:
{actions}
  stop:
    stop_training: {{armed: true}}
  nobody: {{}}
"""


def written(folder, *actions):
    config = folder / "tocsin.yaml"
    config.write_text(CONFIG.format(folder=folder, actions="\n".join(f"    {action}" for action in actions)))
    return config


def tried(*arguments):
    code, out, err = run_cli("send-test", *arguments, "--output", "json")
    return code, json.loads(out) if out else err


@pytest.fixture
def tools(tmp_path):
    """{tool: its fake}, and a configuration with all of them."""
    with contextlib.ExitStack() as stack:
        fakes = {name: stack.enter_context(fake()) for name, fake in FAKES.items()}
        actions = [f"{name}: {{{OWN_KEYS.get(name, lambda fake: f'url: {fake.url!r}')(fake)}, allow_private: [127.0.0.0/8]}}"
                   for name, fake in fakes.items()]
        yield fakes, written(tmp_path, *actions)
        assert not (tmp_path / "never-opened").exists(), "a test needs no transport"


def test_each_tool_takes_the_message_and_a_drill_leaves_nothing_open(tools):
    fakes, config = tools
    code, trials = tried("people", "--drill", "-c", config)
    assert code == 0, trials
    for name, fake in fakes.items():
        assert fake.refused == [], name
        trial = next(one for one in trials if one["type"] == name)
        assert [step["kind"] for step in trial["steps"]] == ["open", "close"], name
        answers = [request["answer"]["status"] for step in trial["steps"] for request in step["requests"]]
        assert answers == [f"HTTP {request['status']}" for request in fake.requests], name
        assert all("TEST message" in json.dumps(request["body"]) for request in fake.requests if "resolve" not in request["body"]), name
        secret = CREDENTIAL.get(name, lambda fake: fake.secret.replace("/", ""))(fake)
        assert secret in json.dumps(fake.requests) and secret not in json.dumps(trial), name
    assert [incident["status"] for incident in fakes["pagerduty"].messages] == ["resolved"]
    for name in ("discord", "telegram"):
        assert len(fakes[name].messages) == 1, f"{name}: the close changes the message"


def test_one_integration_alone_and_what_stays_open(tools):
    fakes, config = tools
    code, out, err = run_cli("send-test", "people/pagerduty", "--severity", "critical", "-c", config)
    assert code == 0, err
    assert "open: delivered, 202" in out and "    > POST http://127.0.0.1" in out and "    < HTTP 202" in out
    assert "note:" in out and "--drill" in out and fakes["pagerduty"].routing_key not in out
    assert [incident["status"] for incident in fakes["pagerduty"].messages] == ["triggered"]
    assert fakes["pagerduty"].messages[0]["events"][0]["payload"]["severity"] == "critical"
    assert not any(fake.requests for name, fake in fakes.items() if name != "pagerduty")


def test_a_mail_arrives_and_its_answer_is_shown(tmp_path):
    with SmtpReceiver() as smtp:
        config = written(tmp_path, f"email: {{to: [a@b.example], host: 127.0.0.1, port: {smtp.port}, tls: none}}")
        code, trials = tried("people", "-c", config)
        assert code == 0, trials
        mail = smtp.wait(1)[0]
        assert mail["subject"] == "[warning] TEST message, no action is needed" and "TEST: " in mail["body"]
        assert trials[0]["steps"][0]["requests"][0]["request"] == f"mail to a@b.example by 127.0.0.1:{smtp.port}"


def test_a_dry_run_sends_nothing(tools):
    fakes, config = tools
    code, trials = tried("people", "--dry-run", "-c", config)
    assert code == 0, trials
    assert not any(fake.requests for fake in fakes.values())
    assert all(trial["steps"][0]["requests"][0]["answer"] is None for trial in trials)


def test_exit_codes(tools, tmp_path):
    fakes, config = tools
    fakes["slack"].next_answers = [(404, {}, "no_service")]
    assert tried("people/slack", "-c", config)[0] == 1
    fakes["slack"].next_answers = [(503, {}, "busy")]
    assert tried("people/slack", "-c", config)[0] == 75
    code, out, _ = run_cli("send-test", "stop", "-c", config)
    assert code == 1 and "skipped: acts on runs" in out
    code, _, err = run_cli("send-test", "nobody", "-c", config)
    assert code == 1 and "has no action" in err
    code, _, err = run_cli("send-test", "peple", "-c", config)
    assert code == 2 and 'did you mean "people"?' in err
    broken = tmp_path / "broken.yaml"
    broken.write_text("receivers: {people: {slak: {}}}\n")
    code, _, err = run_cli("send-test", "people", "-c", broken)
    assert code == 3 and "slack" in err
