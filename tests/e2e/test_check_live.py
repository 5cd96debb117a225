"""`tocsin check --live`: who answers now, asked by connections alone."""
import json
import socket
import ssl
import subprocess
import threading

import pytest

from tests.support.program import run_cli
from tests.support.receiver import wait_for
from tests.support.webhook_receiver import WebhookReceiver

PRIVATE = {"allow_private": ["127.0.0.0/8"]}


def free_port():
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        return one.getsockname()[1]


@pytest.fixture
def tls_server(tmp_path):
    """(port, file of its authority) of a server that speaks TLS and counts what it is told behind the handshake."""
    key, certificate = tmp_path / "key.pem", tmp_path / "cert.pem"
    subprocess.run(["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-keyout", key, "-out", certificate, "-days", "30", "-subj", "/CN=localhost",
                    "-addext", "subjectAltName=DNS:localhost"], check=True, capture_output=True)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate, key)
    listener = socket.create_server(("127.0.0.1", 0))
    heard = []

    def serve():
        while True:
            try:
                connection, _ = listener.accept()
            except OSError:
                return
            try:
                with context.wrap_socket(connection, server_side=True) as one:
                    one.settimeout(5)
                    heard.append(one.recv(4096))
            except OSError:
                heard.append(b"")
    thread = threading.Thread(target=serve, daemon=True)
    thread.start()
    yield listener.getsockname()[1], certificate, heard
    listener.close()


def check(folder, receivers, *more, transport=None):
    path = folder / "tocsin.yaml"
    path.write_text(json.dumps({"transport": transport or {"journal": str(folder / "journal")}, "rules": [{"use": "exploding_tensor"}],
                                "route": {"receiver": next(iter(receivers), "none"), "routes": [{"matchers": [f'job="{name}"'], "receiver": name}
                                                                                               for name in list(receivers)[1:]]},
                                "receivers": receivers or {"none": {}}}))
    code, out, err = run_cli("check", "--live", "-c", path, *more, timeout=60)
    return code, out, err


def test_a_receiver_that_answers_is_sent_nothing(tmp_path):
    with WebhookReceiver() as hook:
        code, out, err = check(tmp_path, {"people": {"webhook": {"url": hook.url + "/secret-path", **PRIVATE}}})
        assert code == 0, (out, err)
        origin = hook.url.split("/")[2]
        assert f"people/webhook  http://{origin}  answers: 127.0.0.1" in out and "secret-path" not in out
        assert "journal" in out and hook.records == []


def test_one_that_does_not_answer_is_named_and_the_others_are_asked(tmp_path):
    port = free_port()
    with WebhookReceiver() as hook:
        code, out, _ = check(tmp_path, {
            "away": {"webhook": {"url": f"http://127.0.0.1:{port}/", **PRIVATE}}, "people": {"webhook": {"url": hook.url, **PRIVATE}},
            "mail": {"email": {"host": "127.0.0.1", "port": port, "tls": "none", "from": "a@example.com", "to": "b@example.com"}},
            "guarded": {"webhook": {"url": "http://localhost:9/"}}, "nobody": {"webhook": {"url": "https://no-such-host.invalid/"}}}, "--output", "json")
        assert code == 1, out
        live = {one["who"]: one for one in json.loads(out)["live"]}
        assert live["people/webhook"]["state"] == "answers" and json.loads(out)["findings"] == []
        assert live["away/webhook"]["state"] == "fails" and str(port) in live["away/webhook"]["detail"]
        assert live["mail/email"]["state"] == "fails" and live["mail/email"]["place"] == f"127.0.0.1:{port}"
        assert "allow_private" in live["guarded/webhook"]["detail"]
        assert "no-such-host.invalid" in live["nobody/webhook"]["detail"]
        assert hook.records == []


def test_the_certificate_is_checked_and_its_end_is_told(tmp_path, tls_server):
    port, authority, heard = tls_server
    url = f"https://localhost:{port}/hook"
    code, out, _ = check(tmp_path, {"people": {"webhook": {"url": url, "tls": {"ca_file": str(authority)}, **PRIVATE}}})
    assert code == 0 and "certificate until" in out, out
    code, out, _ = check(tmp_path, {"people": {"webhook": {"url": url, **PRIVATE}}})
    assert code == 1 and "certificate" in out.split("FAILS")[1], out
    assert wait_for(lambda: len(heard) == 2, 10, "two handshakes") and heard == [b"", b""], "no request followed"


def test_a_broker_that_is_away_is_exit_code_4_and_the_receivers_are_asked_all_the_same(tmp_path):
    with WebhookReceiver() as hook:
        code, out, _ = check(tmp_path, {"people": {"webhook": {"url": hook.url, **PRIVATE}}},
                             transport={"kafka": {"bootstrap.servers": f"127.0.0.1:{free_port()}"}})
        assert code == 4 and "FAILS" in out.split("people/webhook")[0] and "answers" in out.split("people/webhook")[1], out


def test_topics_that_are_missing_are_named(kafka, tmp_path):
    prefix = f"live{free_port()}"
    path = tmp_path / "tocsin.yaml"
    path.write_text(json.dumps({"transport": {"kafka": {"bootstrap.servers": kafka}}, "topics": {"prefix": prefix, "partitions": 1},
                                "rules": [{"use": "exploding_tensor"}], "route": {"receiver": "none"}, "receivers": {"none": {}}}))
    code, out, _ = run_cli("check", "--live", "-c", path, timeout=60)
    assert code == 1 and f"topics are missing: {prefix}." in out and "topics apply" in out, out
    assert run_cli("topics", "apply", "-c", path, timeout=60)[0] == 0
    code, out, _ = run_cli("check", "--live", "-c", path, timeout=60)
    assert code == 0 and "all topics are as wanted" in out, out


def test_a_configuration_with_errors_asks_nobody(tmp_path):
    with WebhookReceiver() as hook:
        code, out, err = check(tmp_path, {"people": {"webhook": {"url": hook.url, "tymeout": "5s", **PRIVATE}}})
        assert code == 3 and "asked now" not in out and "timeout" in out + err
