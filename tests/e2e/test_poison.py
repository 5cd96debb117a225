"""One message, or one recipient, that a receiver cannot take keeps nobody else waiting."""
import email.utils
import json
import time

import pytest

from tests.support import journal
from tests.support.choosy import ChoosyMailServer, ChoosyReceiver, usual
from tests.support.receiver import wait_for

pytestmark = pytest.mark.apart


def config(folder, *integrations):
    """A router in which own alarms about deliveries go nowhere."""
    return json.dumps({
        "transport": {"journal": str(folder)}, "http": {"listen": "127.0.0.1:0"},
        "receivers": {"r": list(integrations), "none": {}},
        "route": {"receiver": "r", "group_by": ["alertname"], "group_wait": "0s",
                  "routes": [{"matchers": ['rule=~"delivery_.*"'], "receiver": "none"}]}})


def webhook(name, receiver, **more):
    return {"webhook": {"id": name, "url": receiver.url, "allow_private": ["127.0.0.0/8"], "format": "native", **more}}


def at(seconds):
    return time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(seconds)) + f".{int(seconds % 1 * 1e6):06d}Z"


def issue(folder, name, status="firing", began=None):
    """One issue of that name; when it was written."""
    now = time.time()
    data = {"status": status, "labels": {"alertname": name, "rule": "r"}, "annotations": {"summary": name},
            "starts_at": at(began or now), "expiry": "explicit"}
    if status == "resolved":
        data["ends_at"] = at(now)
    heads = {"ce_specversion": "1.0", "ce_type": "dev.tocsin.issue.v1", "ce_source": "/test",
             "ce_id": str(time.time_ns()), "ce_time": at(now), "content-type": "application/json"}
    journal.append(folder, ("issues", "", json.dumps(data), [(key, value.encode()) for key, value in heads.items()]))
    return time.monotonic()


def name_of(body):
    return body["issues"][0]["labels"]["alertname"]


def told(receiver, name):
    """When it was accepted, or None."""
    for when, status, body in list(receiver.seen):
        if status == 200 and name_of(body) == name:
            return when
    return None


def finals(folder):
    values = [json.loads(record["value"]) for record in journal.records(folder, "router-deliveries")]
    return [(one["notification_id"], one["state"], one["code"]) for one in values if one["state"] != "pending"]


def odd(answer):
    return lambda body: answer if b"odd" in body else 200


THROTTLED = (429, {"Retry-After": "3"})  # holds the integration, once for each message that is answered so


@pytest.mark.parametrize("answer, count", [(500, 1), (500, 6), ("reset", 1), ("reset", 6), (None, 1), (None, 6), (404, 6), (413, 6),
                                           (410, 1), (THROTTLED, 1)])
def test_messages_that_a_receiver_cannot_take_keep_no_other_waiting(server, tmp_path, answer, count):
    with ChoosyReceiver(odd(answer)) as receiver:
        one = server(config(tmp_path / "j", webhook("hook", receiver, timeout="2s")), role="route")
        one.wait_for("ready")
        for number in range(count):
            issue(tmp_path / "j", f"odd{number}")
        time.sleep(8)
        for number in range(4):
            name = f"well{number}"
            sent = issue(tmp_path / "j", name)
            when = wait_for(lambda n=name: told(receiver, n), 12, name)
            assert when - sent < 8, (name, when - sent)
            time.sleep(1)


def test_after_a_kill_the_message_that_hangs_goes_behind(server, tmp_path):
    with ChoosyReceiver(odd(None)) as receiver:
        settings = config(tmp_path / "j", webhook("hook", receiver, timeout="3s", concurrency=1))
        one = server(settings, role="route")
        one.wait_for("ready")
        for number in range(3):
            issue(tmp_path / "j", f"odd{number}")
        time.sleep(11)
        one.kill()
        again = server(settings, role="route")
        again.wait_for("ready")
        sent = issue(tmp_path / "j", "well")
        assert wait_for(lambda: told(receiver, "well"), 15, "well") - sent < 8


@pytest.mark.parametrize("wait", ["0", "-1", "past", "soon", "99999999999999999999999"])
def test_no_retry_after_makes_a_storm(server, tmp_path, wait):
    value = email.utils.formatdate(time.time() - 90, usegmt=True) if wait == "past" else wait
    with ChoosyReceiver(lambda body: (429, {"Retry-After": value})) as receiver:
        one = server(config(tmp_path / "j", webhook("hook", receiver)), role="route")
        one.wait_for("ready")
        issue(tmp_path / "j", "x")
        wait_for(lambda: receiver.seen, 10, "first attempt")
        time.sleep(8)
        assert len(receiver.seen) <= 16, len(receiver.seen)
        assert sum(path.stat().st_size for path in (tmp_path / "j").iterdir()) < 10_000_000


def mail(server, *recipients, **more):
    return {"email": {"id": "mail", "to": list(recipients), "host": "127.0.0.1", "port": server.port, "tls": "none",
                      "timeout": "3s", **more}}


def test_a_refused_recipient_decides_no_later_failure(server, tmp_path):
    losses = [1, 1]

    def say(line, lines):
        if line.startswith("RCPT") and "gone@" in line:
            return "550 5.1.1 unknown"
        if line == "." and losses:
            losses.pop()
            return None
        return usual(line)

    # Lost within DATA: the connection is closed instead of the 354's answer.
    def cut(line, lines):
        if line == "DATA" and losses:
            losses.pop()
            return None
        return say(line, lines)

    with ChoosyMailServer(cut) as smtp:
        one = server(config(tmp_path / "j", mail(smtp, "gone@example.com", "here@example.com")), role="route")
        one.wait_for("ready")
        issue(tmp_path / "j", "x")
        wait_for(lambda: smtp.mails, 20, "mail")
        assert smtp.mails[0][1] == ["here@example.com"]
        wait_for(lambda: finals(tmp_path / "j"), 10, "end")
        assert [state for _, state, _ in finals(tmp_path / "j")] == ["delivered"]


@pytest.mark.parametrize("refusal", ["452 4.2.2 over quota", "451 4.7.1 greylisted", "550 5.1.1 unknown", "421 4.3.2 closing", None],
                         ids=["quota", "greylisted", "unknown", "421", "hangs up"])
def test_one_mailbox_keeps_no_mail_from_the_others(server, tmp_path, refusal):
    def say(line, lines):
        return refusal if line.startswith("RCPT") and "odd@" in line else usual(line)

    with ChoosyMailServer(say) as smtp:
        one = server(config(tmp_path / "j", mail(smtp, "odd@example.com", "here@example.com")), role="route")
        one.wait_for("ready")
        for number in range(8):
            sent = issue(tmp_path / "j", f"n{number}")
            wait_for(lambda n=number: len([m for m in smtp.mails if f"n{n}" in m[2]]) >= 1, 12, f"mail {number}")
            assert time.monotonic() - sent < 8
            time.sleep(0.5)
        assert all(recipients == ["here@example.com"] for _, recipients, _ in smtp.mails)
        assert len(smtp.mails) == 8, "nobody gets it twice"


def test_what_is_owed_to_a_full_mailbox_survives_a_kill(server, tmp_path):
    full = [True]

    def say(line, lines):
        return "452 full" if full[0] and line.startswith("RCPT") and "odd@" in line else usual(line)

    with ChoosyMailServer(say) as smtp:
        settings = config(tmp_path / "j", mail(smtp, "odd@example.com", "here@example.com"))
        one = server(settings, role="route")
        one.wait_for("ready")
        issue(tmp_path / "j", "x")
        wait_for(lambda: smtp.mails, 10, "mail")
        time.sleep(2)
        one.kill()
        full[0] = False
        again = server(settings, role="route")
        again.wait_for("ready")
        wait_for(lambda: len(smtp.mails) >= 2, 40, "mail to the other")
        time.sleep(2)
        assert [recipients for _, recipients, _ in smtp.mails] == [["here@example.com"], ["odd@example.com"]]
        ids = {line for _, _, text in smtp.mails for line in text.splitlines() if line.startswith("Message-ID")}
        assert len(ids) == 1, ids
        assert sorted(state for _, state, _ in finals(tmp_path / "j")) == ["delivered", "delivered"]


def test_an_integration_that_stands_still_is_told_by_the_others(server, tmp_path):
    with ChoosyReceiver(lambda body: 503) as broken, ChoosyReceiver(lambda body: 200) as good:
        settings = json.loads(config(tmp_path / "j", webhook("broken", broken, standing_after="3s"), webhook("good", good)))
        settings["route"]["routes"] = []
        settings["route"]["group_by"] = ["alertname", "rule"]
        settings["route"]["group_interval"] = "2s"
        one = server(json.dumps(settings), role="route")
        one.wait_for("ready")
        issue(tmp_path / "j", "x")

        def standing(status):
            return [body for _, _, body in list(good.seen) if body["status"] == status
                    and body["issues"][0]["labels"].get("rule") == "delivery_standing"]

        firing = wait_for(lambda: standing("firing"), 30, "delivery_standing")
        assert firing[0]["issues"][0]["labels"]["integration"] == "broken"
        broken.answer = lambda body: 200
        wait_for(lambda: standing("resolved"), 120, "its end")
