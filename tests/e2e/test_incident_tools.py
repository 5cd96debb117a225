"""A run whose loss becomes NaN, in every tool that keeps incidents, on telephones and in a bot's channel at once: opened once, told in the tool's
own terms, and over at the end."""
import contextlib
import json

import pytest

from tests.fakes.grafana_irm import GrafanaIrm
from tests.fakes.jira import Jira
from tests.fakes.jsm import Jsm
from tests.fakes.servicenow import ServiceNow
from tests.fakes.slack_bot import SlackBot
from tests.fakes.sns import Sns
from tests.fakes.twilio import Twilio
from tests.support.hook_support import run_script, wait_for
from tests.support.program import run_cli
from tests.support.telemetry import journal_records

NUMBER = "+4915112345678"
AWS = "aws: {{region: {0.region}, access_key_id: {0.access_key_id}, secret_access_key: '{0.secret_access_key}'}}".format
# name: (type, its fake, its keys, its secrets as they go over the wire)
TOOLS = {
    "jsm": ("jsm", Jsm, lambda fake: f"url: '{fake.url}', api_key: '{fake.api_key}', responders: [{{type: team, name: ml}}]", lambda fake: fake.api_key),
    "grafana": ("grafana_irm", GrafanaIrm, lambda fake: f"url: '{fake.url}'", lambda fake: fake.secret.replace("/", "")),
    "incident": ("servicenow", ServiceNow, lambda fake: f"url: '{fake.url}', mode: incident, basic_auth: {{username: {fake.user}, password: '{fake.password}'}}, "
                 "fields: {assignment_group: ML}", lambda fake: fake.password),
    "event": ("servicenow", ServiceNow, lambda fake: f"url: '{fake.url}', mode: event, basic_auth: {{username: {fake.user}, password: '{fake.password}'}}",
              lambda fake: fake.password),
    "jira": ("jira", Jira, lambda fake: f"url: '{fake.url}', project: OPS, email: {fake.email}, api_token: '{fake.api_token}', transition: done",
             lambda fake: fake.api_token),
    "twilio": ("sms", Twilio, lambda fake: f"url: '{fake.url}', to: ['{NUMBER}'], account_sid: {fake.sid}, auth_token: '{fake.token}', from: '+15005550006', "
               "min_severity: warning", lambda fake: fake.token),
    "sns_phone": ("sms", Sns, lambda fake: f"url: '{fake.url}', provider: sns, to: ['{NUMBER}'], min_severity: warning, {AWS(fake)}",
                  lambda fake: fake.secret_access_key),
    "sns_topic": ("sns", Sns, lambda fake: f"url: '{fake.url}', topic_arn: '{fake.topic}', {AWS(fake)}", lambda fake: fake.secret_access_key),
    "bot": ("slack", SlackBot, lambda fake: f"url: '{fake.url}', token: {fake.token}, channel: '#training', threading: true", lambda fake: fake.token),
}

CONFIG = """
transport: {{journal: {journal}}}
rules: [exploding_tensor]
route: {{receiver: people, group_wait: 100ms, group_interval: 200ms}}
receivers:
  people:
{actions}
http: {{listen: '127.0.0.1:0', external_url: 'https://tocsin.example'}}
"""

# A job whose name would mention somebody, become markup, end a string, or leave the alphabet of telephones.
SCRIPT = """
import math, time, tocsin
hook = tocsin.watch(run="r", job='<!channel> [~admin] {noformat} "q" \\u4e2d')
for step in range(8):
    hook.log(loss=1.0 if step < 5 else math.nan)
    hook.step()
time.sleep(4)
hook.close()
"""


def actions_of(fakes):
    """As a receiver lists them where a type repeats."""
    lines = []
    for name, fake in fakes.items():
        kind, _, keys, _ = TOOLS[name]
        lines.append(f"    - {kind}: {{id: people/{name}, {keys(fake)}, allow_private: [127.0.0.0/8]}}")
    return "\n".join(lines)


def over(name, fake):
    """The tool shows the incident as over, once."""
    states = {"jsm": lambda: [alert["status"] for alert in fake.messages] == ["closed"],
              "grafana": lambda: [group["status"] for group in fake.messages] == ["resolved"],
              "incident": lambda: [record["state"] for record in fake.messages] == ["6"],
              "event": lambda: [alert["severity"] for alert in fake.messages] == ["0"],
              "jira": lambda: [issue["status"] for issue in fake.messages] == ["Done"] and fake.messages[0]["comments"],
              "bot": lambda: len(fake.messages) == 1 and fake.messages[0].get("edited")}
    return states.get(name, lambda: any("job completed" in text for text in fake.shown()))()


@pytest.fixture(scope="module")
def told(tmp_path_factory):
    """{tool: its fake}, after a run that failed; `journal` and `log` beside them."""
    from tests.support.program import Server
    folder = tmp_path_factory.mktemp("incident-tools")
    with contextlib.ExitStack() as stack:
        fakes = {name: stack.enter_context(fake()) for name, (_, fake, _, _) in TOOLS.items()}
        fakes["jsm"].slow = 1  # the first question for a result comes too early
        config = folder / "tocsin.yaml"
        config.write_text(CONFIG.format(journal=folder / "journal", actions=actions_of(fakes)))
        server = Server(config)
        stack.callback(lambda: server.process.poll() is None and server.kill())
        server.wait_for("ready")
        done = run_script(SCRIPT, folder, TOCSIN_OUT=str(folder / "journal"))
        assert done.returncode == 0, done.stderr
        server.wait_for("job_ended")
        with contextlib.suppress(TimeoutError, AssertionError):  # each test says what its tool lacks
            wait_for(lambda: all(over(name, fake) for name, fake in fakes.items()), 45)
        yield {"fakes": fakes, "journal": folder / "journal", "log": server.events}


@pytest.mark.parametrize("name", sorted(TOOLS))
def test_the_tool_takes_every_message_and_the_incident_is_opened_once_and_over(told, name):
    fake = told["fakes"][name]
    print("\n\n".join(fake.shown()))
    print([(request["method"], request["path"], request["status"]) for request in fake.requests])
    assert not fake.refused
    assert over(name, fake)
    assert "loss" in fake.shown()[0] and "job completed" in "\n".join(fake.shown())
    assert name == "bot" or "NaN since step 5" in fake.shown()[0]


@pytest.mark.parametrize("name", sorted(TOOLS))
def test_no_secret_is_in_a_record_or_in_the_log(told, name):
    secret = TOOLS[name][3](told["fakes"][name])
    records = b"".join(record["value"] or b"" for topic in ("router-outbox", "router-deliveries") for record in journal_records(told["journal"], topic))
    assert b"ntf_" in records
    assert secret.encode() not in records and secret not in json.dumps(told["log"])


@pytest.fixture(scope="module")
def drill(tmp_path_factory):
    """{tool: its fake}, and what `send-test --drill` says of each."""
    folder = tmp_path_factory.mktemp("incident-drill")
    with contextlib.ExitStack() as stack:
        fakes = {name: stack.enter_context(fake()) for name, (_, fake, _, _) in TOOLS.items()}
        config = folder / "tocsin.yaml"
        config.write_text(CONFIG.format(journal=folder / "journal", actions=actions_of(fakes)))
        code, out, err = run_cli("send-test", "people", "--drill", "-c", config, "--output", "json")
        yield fakes, code, {trial["integration"].split("/")[1]: trial for trial in json.loads(out)}, out + err


@pytest.mark.parametrize("name", sorted(TOOLS))
def test_a_drill_arrives_leaves_nothing_open_and_shows_no_secret(drill, name):
    fakes, code, trials, shown = drill
    fake = fakes[name]
    assert code == 0 and not fake.refused, shown
    assert [step["outcome"] for step in trials[name]["steps"]] == ["delivered", "delivered"]
    assert fake.messages and "TEST message" in json.dumps([request["body"] for request in fake.requests]).replace("%20", " ")
    assert TOOLS[name][3](fake) not in shown
    if name not in ("twilio", "sns_phone", "sns_topic"):
        assert len(fake.messages) == 1 and over(name, fake), "the test is over there"


def test_a_dry_run_shows_what_would_be_created_and_sends_nothing(tmp_path):
    with ServiceNow() as snow, Jira() as jira:
        config = tmp_path / "tocsin.yaml"
        config.write_text(CONFIG.format(journal=tmp_path / "journal", actions=actions_of({"incident": snow, "jira": jira})))
        code, out, err = run_cli("send-test", "people", "--dry-run", "-c", config, "--output", "json")
        assert code == 0, out + err
        for trial in json.loads(out):
            search, create = trial["steps"][0]["requests"]
            assert search["request"].startswith("GET") and create["request"].startswith("POST") and "TEST message" in create["body"]
        assert not snow.requests and not jira.requests
