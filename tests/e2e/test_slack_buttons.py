"""Buttons of messages in Slack: pressed by people, followed by a real server, and what the channel shows then."""
import json
import os
import subprocess
import sys
import textwrap
import threading
import time
import urllib.request

import pytest

from tests.fakes.slack_app import ADA, BOB, GUEST, SIGNING_SECRET, SlackApp
from tests.support.hook_support import wait_for
from tests.support.program import BUILD, ROOT, run_cli
from tests.support.telemetry import JournalWriter, scalar

TOKEN = "0123456789-of-the-shift"
CONFIG = """
transport: {{journal: {folder}/journal}}
rules: [exploding_tensor]
route: {{receiver: people, group_wait: 0s, group_interval: 1s, repeat_interval: 2s{stops}}}
receivers:
  people: {{slack: {{url: '{slack}', token_file: {folder}/bot, channel: '#training', allow_private: [127.0.0.0/8]}}}}
  stop: {{stop_training: {{armed: true, approval: always, mode: stop, deadline: {{ack: 60s}}}}}}
http:
  listen: '127.0.0.1:0'
  auth: {{tokens: [{{name: shift, role: operator, token_file: {folder}/shift}}]}}
  inbound:
    - {{name: chat, type: slack, integrations: [people/slack], secret_file: {folder}/signing, stoppers: [{stoppers}],
       replies_to: '{root}', allow_private: [127.0.0.0/8]}}
"""
ALSO_STOPS = ", routes: [{matchers: ['rule=exploding_tensor'], receiver: stop, continue: true}, {receiver: people}]"


@pytest.fixture
def slack():
    with SlackApp() as app:
        yield app


@pytest.fixture
def begin(server, tmp_path, slack):
    """begin() starts a server; gives it, its hook's URL and a function that asks its API."""
    def start(stoppers="U0ADA", stops=""):
        for name, text in (("bot", slack.token), ("shift", TOKEN), ("signing", SIGNING_SECRET)):
            (tmp_path / name).write_text(text + "\n")
            (tmp_path / name).chmod(0o600)
        config = tmp_path / "t.yaml"
        config.write_text(CONFIG.format(folder=tmp_path, slack=slack.url, root=slack.root, stoppers=stoppers, stops=stops))
        program = server(config)
        program.wait_for("ready")
        place = "http://" + program.wait_for("started")["http"]

        def listed(what):
            request = urllib.request.Request(f"{place}/api/v1/{what}", headers={"Authorization": f"Bearer {TOKEN}"})
            with urllib.request.urlopen(request, timeout=30) as answer:
                return json.loads(answer.read())["items"]

        return program, place + "/hooks/chat", listed

    return start


def goes_nan(tmp_path):
    JournalWriter(tmp_path / "journal").append(*[scalar("digits", "loss", "NaN" if step >= 3 else 1.0, step, job="digits") for step in range(5)])


def test_a_press_acknowledges_and_silences_and_the_message_says_who(begin, slack, tmp_path):
    program, hook, listed = begin()
    goes_nan(tmp_path)
    assert wait_for(lambda: len(slack.messages) >= 2, 60), "it is repeated"
    assert not slack.refused, slack.refused
    message = slack.messages[-1]
    assert list(slack.buttons(message)) == ["Acknowledge", "Silence 1 h"], slack.text_of(message)
    assert "all of run" in slack.buttons(message)["Silence 1 h"]["confirm"]["text"]["text"]
    records = b"".join(path.read_bytes() for path in (tmp_path / "journal").glob("*") if path.is_file())
    assert SIGNING_SECRET.encode() not in records

    status, seconds = slack.press(message, "Acknowledge", hook)
    assert status == 200 and seconds < 3, (status, seconds)
    assert wait_for(lambda: message.get("edited"), 20), (slack.refused, slack.whispers, program.events[-3:])
    assert list(slack.buttons(message)) == ["Silence 1 h"] and "Acknowledged by slack:ada (U0ADA)." in slack.text_of(message), slack.text_of(message)
    assert "loss is NaN since step 3" in slack.text_of(message), "the rest of the message stands"
    [ack] = listed("acks")
    assert (ack["by"], ack["origin"], ack["holds"]) == ("slack:ada (U0ADA)", "people/slack", True), ack
    assert "acknowledged by slack:ada (U0ADA)" in run_cli("issues", "list", "-c", tmp_path / "t.yaml")[1]
    sent = len(slack.messages)
    time.sleep(5)  # several repeat intervals
    assert len(slack.messages) == sent, "it is not repeated"

    older = slack.messages[0]
    assert slack.press(older, "Acknowledge", hook, BOB)[0] == 200
    assert wait_for(lambda: older.get("edited"), 20)
    assert "Acknowledged already by slack:ada (U0ADA)" in slack.text_of(older) and len(listed("acks")) == 1

    assert slack.press(message, "Silence 1 h", hook, BOB)[0] == 200
    assert wait_for(lambda: not slack.buttons(message), 20), slack.text_of(message)
    [silence] = listed("silences")
    assert (silence["created_by"], silence["actions"]) == ("slack:bob (U0BOB)", "notify"), silence
    assert f"tocsin silence expire {silence['id']}" in slack.text_of(message)
    changes = {(one["what"], one["who"], one["by"], one["role"]) for one in listed("audit")}
    assert changes == {("ack.set", "slack:ada (U0ADA)", "signature", "operator"), ("silence.set", "slack:bob (U0BOB)", "signature", "operator")}
    assert not slack.refused and not slack.whispers, (slack.refused, slack.whispers)


def test_who_may_not_is_told_so_and_what_slack_did_not_sign_does_nothing(begin, slack, tmp_path):
    program, hook, listed = begin()
    goes_nan(tmp_path)
    assert wait_for(lambda: slack.messages, 60)
    message = slack.messages[0]
    assert slack.press(message, "Acknowledge", hook, GUEST)[0] == 200
    assert wait_for(lambda: slack.whispers, 20)
    [(user, text)] = slack.whispers
    assert user == "U0GUEST" and "You may not acknowledge" in text and "U0GUEST" in text, text
    assert not message.get("edited") and listed("acks") == []

    payload = slack._payload(message, slack.buttons(message)["Acknowledge"], ADA, slack.root + "/actions/x")
    now = time.time()
    assert slack.request(hook, payload, secret="0123456789-of-nobody")[0] == 401
    assert slack.request(hook, payload, change="&x=1")[0] == 401
    assert slack.request(hook, payload, at=now - 400)[0] == 401 and slack.request(hook, payload, at=now + 400)[0] == 401
    assert slack.request(hook, {"type": "view_submission"})[0] == 200, "of another kind: nothing to do"
    time.sleep(1)
    assert listed("acks") == []
    assert 'tocsin_router_signature_failures_total{hook="chat"} 4' in program.get("/metrics")[1]

    # A response_url of another host is never asked; what the click asks for is done all the same.
    elsewhere = {**payload, "response_url": "http://localhost.evil.example/x"}
    assert slack.request(hook, elsewhere, at=now)[0] == 200
    assert wait_for(lambda: listed("acks"), 20)
    assert slack.request(hook, elsewhere, at=now)[0] == 200, "the same again, which is nothing new"
    [error] = [one["error"] for one in program.all("slack_click_unanswered")]
    assert "expected one of " + slack.root in error, error
    assert "evil" not in json.dumps(program.events)


SCRIPT = """
import sys, time
import tocsin
hook = tocsin.watch(run="r", job="digits")
for step in range(6000):
    hook.log(loss=float("nan") if step > 3 else 1.0)
    hook.step()
    if hook.should_stop():
        hook.acknowledge_stop()
        hook.close(outcome="stopped_by_rule")
        sys.exit(tocsin.EXIT_STOPPED)
    time.sleep(0.02)
"""


def test_a_stop_that_waits_has_its_buttons_and_only_a_stopper_is_obeyed(begin, slack, tmp_path):
    _, hook, listed = begin(stops=ALSO_STOPS)
    path = tmp_path / "train.py"
    path.write_text(textwrap.dedent(SCRIPT))
    training = subprocess.Popen([sys.executable, path], env={
        **os.environ, "TOCSIN_OUT": str(tmp_path / "journal"), "PYTHONPATH": str(ROOT / "python"), "TOCSIN_QUIET": "1",
        "TOCSIN_LIBRARY": os.environ.get("TOCSIN_LIBRARY", str(BUILD / "collectors/hook/libtocsin_client.so.0"))})
    try:
        def waiting():
            return next((one for one in slack.messages if "Stop the run" in slack.buttons(one)), None)
        assert wait_for(waiting, 60), slack.shown()
        message = waiting()
        print(slack.text_of(message))
        stop = slack.buttons(message)["Stop the run"]
        assert stop["style"] == "danger" and "asks digits, attempt " in stop["confirm"]["text"]["text"]
        assert slack.press(message, "Stop the run", hook, BOB)[0] == 200
        assert wait_for(lambda: slack.whispers, 20)
        assert "You may not decide on stops" in slack.whispers[0][1] and training.poll() is None
        assert [one["state"] for one in listed("stops")] == ["awaiting_approval"]

        assert slack.press(message, "Stop the run", hook, ADA)[0] == 200
        assert training.wait(60) == 77
        assert wait_for(lambda: "Stop approved by slack:ada (U0ADA)." in slack.text_of(message)
                        or "stop_waits" not in slack.text_of(message), 20), slack.text_of(message)
        [change] = [one for one in listed("audit") if one["what"] == "stop.approved"]
        assert (change["who"], change["by"], change["role"]) == ("slack:ada (U0ADA)", "signature", "stopper"), change
    finally:
        training.kill()
        training.wait(10)
    assert not slack.refused, slack.refused


def test_without_stoppers_no_message_offers_a_stop_and_check_names_what_lacks(begin, tmp_path, slack):
    def errors(inbound, chat="token: xoxb-1, channel: '#x'"):
        config = tmp_path / "c.yaml"
        config.write_text(f"""
transport: {{journal: data}}
rules: [exploding_tensor]
route: {{receiver: people}}
receivers:
  people: {{slack: {{{chat}}}}}
http:
  inbound: [{{name: chat, type: slack, secret: 0123456789-signing, {inbound}}}]
""")
        code, out, err = run_cli("check", config)
        return "" if code == 0 else out + err
    assert errors("integrations: [people/slack]") == ""
    assert "give it a `token`" in errors("integrations: [people/slack]", "url: 'https://hooks.slack.com/services/T/B/x'")
    assert 'did you mean "people/slack"?' in errors("integrations: [peple/slack]")
    assert 'missing key "integrations"' in errors("operators: [U1]")
    assert "expected the member ID" in errors("integrations: [people/slack], stoppers: [ada]")
    assert "names `integrations`" in errors("integration: people/slack")
    assert "scheme and host alone" in errors("integrations: [people/slack], replies_to: 'https://hooks.slack.com/x'")


def test_more_presses_than_may_wait_are_refused_and_may_be_pressed_again(begin, slack, tmp_path):
    """Slack shows the person an error for what is not 2xx; nothing of it is done behind their back."""
    program, hook, _ = begin()
    goes_nan(tmp_path)
    assert wait_for(lambda: slack.messages, 60)
    message = slack.messages[0]
    stuck, gone = threading.Event(), threading.Event()
    answered = slack._answer_to_a_click

    def slowly(*request):
        stuck.set()
        gone.wait(20)
        return answered(*request)
    slack._answer_to_a_click = slowly
    # By somebody who may not: nothing changes but the answers. The first is being answered, a hundred wait.
    assert slack.press(message, "Acknowledge", hook, user=GUEST)[0] == 200
    assert stuck.wait(10)
    for number in range(100):
        assert slack.press(message, "Acknowledge", hook, user=GUEST)[0] == 200, number
    payload = slack._payload(message, slack.buttons(message)["Acknowledge"], GUEST, slack.root + "/actions/T0TOCSIN/last/of-them")
    slack._response_urls["/actions/T0TOCSIN/last/of-them"] = {"user": GUEST["id"], "message": message, "uses": 0}
    at = time.time()
    assert slack.request(hook, payload, at=at)[0] == 503
    gone.set()
    assert wait_for(lambda: len(slack.whispers) == 101, 60), (len(slack.whispers), program.events[-3:])
    assert slack.request(hook, payload, at=at)[0] == 200, "it was not done, so the same request counts"
    assert wait_for(lambda: len(slack.whispers) == 102, 20)
    assert {text for _, text in slack.whispers} == {slack.whispers[0][1]} and "may not acknowledge" in slack.whispers[0][1]
    assert program.stop() == 0
