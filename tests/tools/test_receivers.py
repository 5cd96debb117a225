"""The receivers that demo and end-to-end tests rely on: they keep what they get and misbehave on demand."""

import json
import pathlib
import smtplib
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request
from email.message import EmailMessage

import pytest

from tests.support.mosquitto import Mosquitto, Subscriber
from tests.support.receiver import free_port, wait_for
from tests.support.smtp_receiver import SmtpReceiver
from tests.support.webhook_receiver import WebhookReceiver, new_secret, sign, verify

SUPPORT = pathlib.Path(__file__).resolve().parents[1] / "support"
SECRET = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"


def send_mail(port, subject="loss is NaN", timeout=5.0):
    message = EmailMessage()
    message["Subject"], message["From"], message["To"] = subject, "tocsin@localhost", "oncall@localhost"
    message.set_content("step 31: gradient/conv1.weight is not finite\n")
    with smtplib.SMTP("127.0.0.1", port, timeout=timeout) as client:
        client.send_message(message)


def post(url, body=b'{"type":"dev.tocsin.issue.v1"}', secret=SECRET, timestamp=None, timeout=5.0):
    timestamp = str(int(time.time()) if timestamp is None else timestamp)
    request = urllib.request.Request(url, data=body, headers={
        "webhook-id": "ntf_1", "webhook-timestamp": timestamp,
        "webhook-signature": sign(secret, "ntf_1", timestamp, body)})
    try:
        with urllib.request.urlopen(request, timeout=timeout) as answer:
            return answer.status, answer.headers
    except urllib.error.HTTPError as error:
        with error:
            return error.code, error.headers


# --- mail -----------------------------------------------------------------------------------------


def test_mail_is_kept():
    with SmtpReceiver() as smtp:
        send_mail(smtp.port)
        (mail,) = smtp.wait(1)
    assert mail["subject"] == "loss is NaN" and mail["to"] == ["oncall@localhost"]
    assert "gradient/conv1.weight" in mail["body"]


def test_mail_server_can_refuse_for_now_and_for_good():
    with SmtpReceiver() as smtp:
        smtp.answer(451, times=2)
        smtp.answer(550)
        for code in (451, 451, 550):
            with pytest.raises(smtplib.SMTPDataError) as refused:
                send_mail(smtp.port)
            assert refused.value.smtp_code == code
        send_mail(smtp.port)
        assert [record["accepted"] for record in smtp.records] == [False, False, False, True]


def test_mail_server_can_hang_and_be_closed_meanwhile():
    with SmtpReceiver() as smtp:
        smtp.hang()
        with pytest.raises((socket.timeout, smtplib.SMTPServerDisconnected)):
            send_mail(smtp.port, timeout=0.5)
        send_mail(smtp.port)
        assert len(smtp.accepted()) == 1


def test_mail_server_can_go_away_and_return_on_its_port():
    with SmtpReceiver() as smtp:
        smtp.refuse()
        with pytest.raises(ConnectionRefusedError):
            send_mail(smtp.port)
        smtp.accept()
        send_mail(smtp.port)
        smtp.wait(1)


# --- webhook --------------------------------------------------------------------------------------


def test_signature_of_the_standard_webhooks_example():
    # The example in the Standard Webhooks libraries' own tests.
    body = b'{"test": 2432232314}'
    expected = "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE="
    assert sign(SECRET, "msg_p5jXN8AQM9LWM0D4loKWxJek", "1614265330", body) == expected
    headers = {"webhook-id": "msg_p5jXN8AQM9LWM0D4loKWxJek", "webhook-timestamp": "1614265330",
               "webhook-signature": f"v1,b2xk {expected}"}
    assert verify(SECRET, headers, body, now=1614265330) is None
    assert "fits" in verify(SECRET, headers, body + b" ", now=1614265330)
    assert "five minutes" in verify(SECRET, headers, body)
    assert "missing" in verify(SECRET, {}, body)


def test_signature_of_our_own_specification():
    secret = new_secret(b"0123456789abcdef0123456789abcdef")
    assert sign(secret, "msg_p5jXN8AQM9LWM0D4loKWxJek", "1614265330", b'{"test": 2432232314}') == \
        "v1,hK4CWvngkaAwjY1pABLuUbOIkEJjW9tAapq1no4ojG0="


def test_genuine_request_is_verified_and_kept():
    with WebhookReceiver(secret=SECRET) as hook:
        assert post(hook.url)[0] == 200
        (record,) = hook.wait(1)
    assert record["verified"] is True and record["json"]["type"] == "dev.tocsin.issue.v1"


def test_forged_request_is_refused_and_marked():
    with WebhookReceiver(secret=SECRET) as hook:
        assert post(hook.url, secret=new_secret())[0] == 401
        assert post(hook.url, timestamp=time.time() // 1 - 3600)[0] == 401
        assert [record["verified"] for record in hook.records] == [False, False]


def test_webhook_can_fail_in_every_way_that_the_issue_names():
    with WebhookReceiver(secret=SECRET) as hook:
        hook.answer(500, times=2)
        hook.answer(429, retry_after=2)
        assert [post(hook.url)[0] for _ in range(2)] == [500, 500]
        code, headers = post(hook.url)
        assert (code, headers["Retry-After"]) == (429, "2")
        hook.hang()
        with pytest.raises(TimeoutError):
            post(hook.url, timeout=0.3)
        hook.refuse()
        with pytest.raises(urllib.error.URLError, match="refused"):
            post(hook.url)
        hook.accept()
        assert post(hook.url)[0] == 200
        assert len(hook.accepted()) == 1 and len(hook.records) == 5


# --- MQTT -----------------------------------------------------------------------------------------


def publish(port, topic, payload):
    return subprocess.run(["mosquitto_pub", "-h", "127.0.0.1", "-p", str(port), "-t", topic, "-m", payload,
                           "-q", "1"], capture_output=True, timeout=10, check=False).returncode


def test_broker_delivers_to_the_subscriber():
    with Mosquitto() as broker, Subscriber(broker.port, "tocsin/#") as messages:
        assert publish(broker.port, "tocsin/issues/digits", '{"rule":"exploding_tensor"}') == 0
        assert publish(broker.port, "elsewhere", "x") == 0
        assert messages.wait(1) == [{"topic": "tocsin/issues/digits", "qos": 1, "retain": 0,
                                     "payload": '{"rule":"exploding_tensor"}'}]


def test_broker_restarts_on_its_port():
    with Mosquitto() as broker:
        broker.kill()
        assert publish(broker.port, "t", "x") != 0
        broker.start()
        assert publish(broker.port, "t", "x") == 0


# --- as programs ----------------------------------------------------------------------------------


def program(name, *arguments):
    process = subprocess.Popen([sys.executable, SUPPORT / name, *arguments], text=True,
                               stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    first = process.stdout.readline()
    assert first.startswith("PORT="), first
    return process, int(first.removeprefix("PORT="))


def test_program_prints_its_port_and_each_request_and_takes_orders():
    process, port = program("webhook_receiver.py", "--secret", SECRET)
    with process:
        assert post(f"http://127.0.0.1:{port}/hook")[0] == 200
        assert json.loads(process.stdout.readline())["verified"] is True
        process.stdin.write("answer 503 1\n")
        process.stdin.flush()
        wait_for(lambda: post(f"http://127.0.0.1:{port}/hook")[0] == 503, what="scripted answer")
    assert process.returncode == 0  # the end of its input ended it


@pytest.mark.parametrize("name", ["smtp_receiver.py", "webhook_receiver.py", "mosquitto.py"])
def test_program_ends_with_the_one_that_started_it(name):
    process, port = program(name)
    with socket.create_connection(("127.0.0.1", port), 5):
        pass
    process.stdin.close()
    assert process.wait(10) == 0
    with pytest.raises(ConnectionRefusedError):
        socket.create_connection(("127.0.0.1", port), 5)
    process.stdout.close()


def test_port_can_be_chosen():
    port = free_port()
    process, printed = program("smtp_receiver.py", "--port", str(port))
    with process:
        assert printed == port
        send_mail(port)
        assert json.loads(process.stdout.readline())["accepted"] is True
