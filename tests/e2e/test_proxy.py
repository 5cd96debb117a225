"""HTTP actions through a real proxy: by the key `proxy` and by the environment, and what the guard still refuses."""
import json
import os

from tests.support.connect_proxy import ConnectProxy
from tests.support.issues import deliveries, raise_issues
from tests.support.receiver import wait_for
from tests.support.webhook_receiver import WebhookReceiver


def config(journal, **webhook):
    return json.dumps({"transport": {"journal": str(journal)}, "http": {"listen": "127.0.0.1:0"},
                       "receivers": {"r": {"webhook": {"format": "native", **webhook}}, "none": {}},
                       "route": {"receiver": "r", "group_wait": "0s",
                                 "routes": [{"matchers": ['rule=~"delivery_.*"'], "receiver": "none"}]}})


def told(journal):
    return deliveries(journal)


def port_of(url):
    return url.rstrip("/").rsplit(":", 1)[-1].split("/")[0]


def test_a_name_that_only_the_proxy_knows_is_reached_through_it(server, tmp_path):
    with WebhookReceiver() as receiver, ConnectProxy() as proxy:
        one = server(config(tmp_path / "j", url=f"http://hooks.invalid:{port_of(receiver.url)}/x", proxy=proxy.url), role="route")
        one.wait_for("ready")
        raise_issues(tmp_path / "j", ({"rule": "r"}, {}))
        wait_for(receiver.accepted, 20, "a message")
        assert proxy.asked[0]["target"].startswith("http://hooks.invalid:")


def test_the_environment_names_a_proxy_and_who_goes_without_one(server, tmp_path, monkeypatch):
    with WebhookReceiver() as receiver, ConnectProxy() as proxy:
        monkeypatch.setenv("http_proxy", proxy.url)
        monkeypatch.setenv("no_proxy", "127.0.0.1")
        port = port_of(receiver.url)
        for number, host in enumerate(("hooks.invalid", "127.0.0.1")):
            journal = tmp_path / str(number)
            server(config(journal, url=f"http://{host}:{port}/x", allow_private=["127.0.0.0/8"]), role="route").wait_for("ready")
            raise_issues(journal, ({"rule": "r"}, {}))
            wait_for(lambda: len(receiver.accepted()) == number + 1, 20, "a message")
        assert [one["target"] for one in proxy.asked] == [f"http://hooks.invalid:{port}/x"]


def test_the_key_none_goes_without_the_proxy_of_the_environment(server, tmp_path, monkeypatch):
    with WebhookReceiver() as receiver, ConnectProxy() as proxy:
        monkeypatch.setenv("http_proxy", proxy.url)
        server(config(tmp_path / "j", url=receiver.url, allow_private=["127.0.0.0/8"], proxy="none"), role="route").wait_for("ready")
        raise_issues(tmp_path / "j", ({"rule": "r"}, {}))
        wait_for(receiver.accepted, 20, "a message")
        assert not proxy.asked


def test_https_is_tunnelled_and_a_refusal_of_the_proxy_is_a_matter_of_configuration(server, tmp_path):
    with ConnectProxy(user="me:canary-password") as proxy:
        secret = tmp_path / "proxy"
        secret.write_text(f"http://me:wrong-canary@127.0.0.1:{proxy.port}\n")
        os.chmod(secret, 0o600)
        one = server(config(tmp_path / "j", url="https://hooks.invalid/x", proxy_file=str(secret)), role="route")
        one.wait_for("ready")
        raise_issues(tmp_path / "j", ({"rule": "r"}, {}))
        wait_for(lambda: told(tmp_path / "j"), 20, "an attempt")
        assert told(tmp_path / "j")[0][2:] == ("configuration", "proxy"), told(tmp_path / "j")
        assert proxy.asked[0] == {"method": "CONNECT", "target": "hooks.invalid:443", "authorized": False}
        one.stop()
        everything = json.dumps(one.events) + (tmp_path / "j" / "control.db").read_bytes().decode("latin-1")
        assert "wrong-canary" not in everything


def test_a_password_of_a_file_opens_the_proxy(server, tmp_path):
    with WebhookReceiver() as receiver, ConnectProxy(user="me:opensesame") as proxy:
        secret = tmp_path / "proxy"
        secret.write_text(f"http://me:opensesame@127.0.0.1:{proxy.port}")
        os.chmod(secret, 0o600)
        server(config(tmp_path / "j", url=f"http://hooks.invalid:{port_of(receiver.url)}/x", proxy_file=str(secret)),
               role="route").wait_for("ready")
        raise_issues(tmp_path / "j", ({"rule": "r"}, {}))
        wait_for(receiver.accepted, 20, "a message")
        assert proxy.asked[-1]["authorized"]


def test_the_guard_holds_for_addresses_behind_a_proxy(server, tmp_path):
    with ConnectProxy() as proxy:
        server(config(tmp_path / "j", url="http://localhost:1/x", proxy=proxy.url), role="route").wait_for("ready")
        raise_issues(tmp_path / "j", ({"rule": "r"}, {}))
        wait_for(lambda: told(tmp_path / "j"), 20, "an attempt")
        assert told(tmp_path / "j")[0][2:] == ("configuration", "address_blocked") and not proxy.asked
