"""`tocsin template render`: the message that each action would send, of a recorded issue or of an example, and nothing is sent."""
import json

import pytest

from tests.fakes.mattermost import Mattermost
from tests.support.on_call import ask, issue, router
from tests.support.program import run_cli
from tests.support.receiver import wait_for
from tests.support.smtp_receiver import SmtpReceiver
from tests.support.webhook_receiver import WebhookReceiver

BODY = '{"say": "{{headline}}", "label": "{{#issues}}{{labels.example}}{{labels.alertname}}{{/issues}}", "status": "{{status}}", "group": "{{group_labels.alertname}}"}'


@pytest.fixture
def people(tmp_path):
    with WebhookReceiver() as hook, Mattermost() as chat:
        path = router(tmp_path, hook, format="template", body=BODY)
        config = json.loads(path.read_text())
        config["receivers"]["r"]["mattermost"] = {"id": "chat", "url": chat.url, "allow_private": ["127.0.0.0/8"]}
        config["receivers"]["stop"] = {"stop_training": {"armed": True}}
        path.write_text(json.dumps(config))
        yield path, hook, chat


def test_an_example_shows_how_values_are_escaped_and_needs_no_transport(people, tmp_path):
    path, hook, chat = people
    code, out, err = run_cli("template", "render", "hook", "-c", path)
    head, body = out.split("\n", 2)[0], out.split("\n", 2)[2]
    assert code == 0 and head == "# hook (webhook)" and out.split("\n")[1].startswith("# POST http://127.0.0.1"), out + err
    said = json.loads(body)
    assert said["label"] == 'quotes " and <angle> & ampersand' and r'quotes \" and' in body and said["status"] == "firing"
    assert "loss became NaN" in said["say"] or "loss is NaN" in said["say"]
    code, out, _ = run_cli("template", "render", "hook", "--resolved", "-c", path)
    assert code == 0 and json.loads(out.split("\n", 2)[2])["status"] == "resolved"
    code, trials = ask("template", "render", "r", config=path)
    assert code == 0 and {one["type"]: one["passed"] for one in trials} == {"webhook": True, "mattermost": True}
    assert chat.secret not in json.dumps(trials), "the path of a chat's webhook is a credential"
    assert not (tmp_path / "data").exists() and not hook.records and not chat.requests


def test_a_recorded_issue_is_rendered_as_its_route_groups_it(people, server):
    path, hook, chat = people
    program = server(path)
    program.wait_for("ready", timeout=60)
    issue(path, "disk")
    hook.wait(1)
    sent = len(hook.records)
    listed = wait_for(lambda: "disk is wrong" in (out := run_cli("issues", "list", "-c", path)[1]) and out, 20, "listed")
    identity = next(line.split()[0] for line in listed.splitlines() if "disk is wrong" in line)
    code, out, err = run_cli("template", "render", "hook", "--issue", identity, "-c", path)
    assert code == 0, err
    rendered = json.loads(out.split("\n", 2)[2])
    assert rendered == hook.records[0]["json"], "as the router has sent it"
    assert rendered["group"] == "disk" and len(hook.records) == sent
    code, out, err = run_cli("template", "render", "hook", "--issue", "ffffffff", "-c", path)
    assert code == 1 and "no issue with ID ffffffff; see: tocsin issues list --all" in err and out == ""


def test_what_cannot_be_rendered_is_said(people):
    path, _, _ = people
    code, _, err = run_cli("template", "render", "hok", "-c", path)
    assert code == 2 and 'did you mean "hook"?' in err
    code, out, _ = run_cli("template", "render", "stop", "-c", path)
    assert code == 1 and "takes no message" in out, out


def test_a_mail_is_shown_with_its_envelope(tmp_path):
    with SmtpReceiver() as mail:
        path = tmp_path / "t.yaml"
        path.write_text(f"""
transport: {{journal: {tmp_path}/data}}
rules: [exploding_tensor]
route: {{receiver: people}}
receivers: {{people: {{email: {{to: [ml@example.org], host: 127.0.0.1, port: {mail.port}, tls: none}}}}}}
""")
        code, out, err = run_cli("template", "render", "people", "-c", path)
        assert code == 0 and "ml@example.org" in out and "loss" in out, out + err
        assert not mail.records
