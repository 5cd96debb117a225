"""A run whose loss becomes NaN, in every chat tool and in PagerDuty at once: each takes it, and it says what a person must know."""
import contextlib
import json
import re

import pytest

from tests.fakes.discord import Discord
from tests.fakes.mattermost import Mattermost
from tests.fakes.msteams import MsTeams
from tests.fakes.ntfy import Ntfy
from tests.fakes.pagerduty import PagerDuty
from tests.fakes.slack import Slack
from tests.fakes.telegram import Telegram
from tests.support.hook_support import run_script, wait_for
from tests.support.telemetry import journal_records

CHATS = {"discord": Discord, "mattermost": Mattermost, "msteams": MsTeams, "ntfy": Ntfy, "slack": Slack, "telegram": Telegram}
FAKES = {**CHATS, "pagerduty": PagerDuty}
CHANGES = {"discord", "telegram"}  # the message of an incident is changed when it is over

CONFIG = """
transport: {{journal: {journal}}}
rules: [exploding_tensor]
route: {{receiver: people, group_wait: 100ms, group_interval: 200ms}}
receivers:
  people:
{actions}
http: {{listen: '127.0.0.1:0', external_url: 'https://tocsin.example'}}
"""

# A job whose name would mention somebody, become markup, or end a string.
SCRIPT = """
import math, time, tocsin
hook = tocsin.watch(run="r", job='<!channel> @channel *b* [a](https://evil.example) "q"')
for step in range(8):
    hook.log(loss=1.0 if step < 5 else math.nan)
    hook.step()
time.sleep(4)
hook.close()
"""


def settings(name, fake, folder):
    """As a user writes it: what is secret stands in a file."""
    def in_file(text):
        path = folder / f"{name}.secret"
        path.write_text(text + "\n")
        return path
    own = {"telegram": lambda: f"url: '{fake.url}', bot_token_file: {in_file(fake.token)}, chat_id: '{fake.chat_id}'",
           "pagerduty": lambda: f"url: '{fake.url}', routing_key_file: {in_file(fake.routing_key)}",
           "ntfy": lambda: f"url: '{fake.url}', topic_file: {in_file(fake.topic)}"}
    keys = own.get(name, lambda: f"url_file: {in_file(fake.url)}")()
    return f"    {name}: {{{keys}, allow_private: [127.0.0.0/8]}}"


@pytest.fixture(scope="module")
def told(tmp_path_factory):
    """{tool: its fake}, after a run that failed; `journal` and `log` beside them."""
    from tests.support.program import Server
    folder = tmp_path_factory.mktemp("chats")
    with contextlib.ExitStack() as stack:
        fakes = {name: stack.enter_context(fake()) for name, fake in FAKES.items()}
        config = folder / "tocsin.yaml"
        config.write_text(CONFIG.format(journal=folder / "journal", actions="\n".join(settings(name, fake, folder) for name, fake in fakes.items())))
        server = Server(config)
        stack.callback(lambda: server.process.poll() is None and server.kill())
        server.wait_for("ready")
        done = run_script(SCRIPT, folder, TOCSIN_OUT=str(folder / "journal"))
        assert done.returncode == 0, done.stderr
        server.wait_for("job_ended")
        wait_for(lambda: all(over(name, fake) for name, fake in fakes.items()), 30)
        yield {"fakes": fakes, "journal": folder / "journal", "log": server.events}


def over(name, fake):
    if name == "pagerduty":
        return [incident["status"] for incident in fake.messages] == ["resolved"]
    return any("job completed" in text for text in fake.shown()) and (name not in CHANGES or len(fake.messages) == 1)


@pytest.mark.parametrize("name", sorted(CHATS))
def test_the_tool_takes_every_message_and_it_says_what_a_person_must_know(told, name):
    fake = told["fakes"][name]
    print("\n\n".join(fake.shown()))
    assert not fake.refused and all(request["status"] < 300 for request in fake.requests), fake.refused
    first, *later = [fake.text_of(message) for message in fake.messages]
    if name in CHANGES:
        assert not later and fake.messages[0]["edited"], "the message of the incident changed"
    else:
        assert "loss is NaN since step 5" in first
        assert "tocsin ack iss_" in first
        assert re.search("What to do", first)
    last = ([first] + later)[-1]
    assert "loss" in last and "job completed" in last


def test_an_incident_is_opened_and_resolved_once(told):
    pager = told["fakes"]["pagerduty"]
    print("\n\n".join(pager.shown()))
    assert not pager.refused
    (incident,) = pager.messages
    assert [event["event_action"] for event in incident["events"]] == ["trigger", "resolve"]
    assert "loss is NaN since step 5" in incident["events"][0]["payload"]["summary"]


@pytest.mark.parametrize("name", sorted(FAKES))
def test_no_secret_is_in_a_record_or_in_the_log(told, name):
    fake = told["fakes"][name]
    secret = fake.secret.replace("/", "")
    records = b"".join(record["value"] or b"" for topic in ("router-outbox", "router-deliveries") for record in journal_records(told["journal"], topic))
    assert b"ntf_" in records
    assert secret.encode() not in records and secret not in json.dumps(told["log"])
