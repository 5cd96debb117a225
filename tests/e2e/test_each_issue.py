"""Actions that keep a state of each issue (MQTT, Alertmanager, metrics): all issues arrive, whatever one of them holds."""
import json
import re
import shutil
import subprocess
import time

import pytest

from tests.support.issues import deliveries, raise_issues
from tests.support.mosquitto import Mosquitto
from tests.support.receiver import wait_for
from tests.support.webhook_receiver import WebhookReceiver

LOCAL = ["127.0.0.0/8"]


def config(journal, action, route=None):
    return json.dumps({"transport": {"journal": str(journal)}, "http": {"listen": "127.0.0.1:0"},
                       "receivers": {"r": action, "none": {}},
                       "route": {"receiver": "r", "group_by": ["job"], "group_wait": "1s",
                                 "routes": [{"matchers": ['rule=~"delivery_.*"'], "receiver": "none"}], **(route or {})}})


def started(server, journal, action, route=None):
    one = server(config(journal, action, route), role="route")
    one.wait_for("ready")
    return one


def of_group(count, **more):
    return [({"alertname": "x", "rule": "r", "job": "j", "tensor": f"t{i}"}, more) for i in range(count)]


def test_a_group_of_150_issues_has_150_topics_and_their_ends(server, tmp_path):
    with Mosquitto() as broker:
        started(server, tmp_path / "j", {"mqtt": {"host": "127.0.0.1", "port": broker.port, "retain": True, "topic": "i/{tensor}"}},
                {"group_interval": "2s"})
        raise_issues(tmp_path / "j", *of_group(150))
        wait_for(lambda: len(broker.retained("i/#")) == 150, 30, "150 topics")
        assert {state for _, state, _, _ in deliveries(tmp_path / "j")} == {"delivered"}
        raise_issues(tmp_path / "j", *of_group(150, status="resolved"))
        wait_for(lambda: {json.loads(p)["status"] for p in broker.retained("i/#").values()} == {"resolved"}, 30, "150 ends")


@pytest.mark.parametrize("count, text", [(300, 200), (600, 50)])
def test_alertmanager_is_sent_every_alert_of_a_group(server, tmp_path, count, text):
    with WebhookReceiver() as receiver:
        started(server, tmp_path / "j", {"alertmanager": {"url": receiver.url, "allow_private": LOCAL, "max_payload": "64KiB"}})
        raise_issues(tmp_path / "j", *of_group(count, annotations={"summary": "s" * text}))

        def told():
            return {alert["labels"]["tensor"] for request in receiver.accepted() for alert in request["json"]}
        wait_for(lambda: len(told()) == count, 30, f"{count} alerts (has {len(told())})")
        assert all(len(json.dumps(request["json"], separators=(",", ":"))) <= 64 * 1024 for request in receiver.accepted())


def test_a_broker_of_mqtt_3_with_a_packet_limit_gets_the_large_message_in_short_form(server, tmp_path):
    with Mosquitto(more="max_packet_size 4000", log=True) as broker:
        started(server, tmp_path / "j", {"mqtt": {"host": "127.0.0.1", "port": broker.port, "version": "3.1.1", "retain": True,
                                                 "topic": "i/{alertname}"}},
                {"group_by": ["alertname"], "group_wait": "0s"})
        raise_issues(tmp_path / "j", ({"alertname": "large", "rule": "r"}, {"annotations": {"summary": "s", "description": "d" * 8000}}))
        for i in range(25):
            raise_issues(tmp_path / "j", ({"alertname": f"n{i}", "rule": "r"}, {}))
            time.sleep(0.2)
        wait_for(lambda: len(broker.retained("i/#")) == 26, 60, "26 topics")
        assert "dddd" not in broker.retained("i/large")["i/large"]
        assert len(re.findall("as tocsin-", broker.log())) < 15, "connections"


def test_a_broker_of_mqtt_5_announces_its_limit_and_is_not_tried(server, tmp_path):
    with Mosquitto(more="max_packet_size 4000", log=True) as broker:
        started(server, tmp_path / "j", {"mqtt": {"host": "127.0.0.1", "port": broker.port, "retain": True, "topic": "i/{alertname}"}},
                {"group_by": ["alertname"], "group_wait": "0s"})
        raise_issues(tmp_path / "j", ({"alertname": "large", "rule": "r"}, {"annotations": {"summary": "s", "description": "d" * 8000}}),
                     ({"alertname": "small", "rule": "r"}, {}))
        wait_for(lambda: len(broker.retained("i/#")) == 2, 30, "2 topics")
        assert len(re.findall("as tocsin-", broker.log())) == 1, "connections"


NAMES = {"quotes": "run \u0093v2\u0094", "nel": "a\u0085b", "none": "a\uffffb", "fdd0": "a\ufdd0b", "astral": "a\U0001fffeb",
         "plain": "größe 🚀", "wild": "a+b#c/d", "dollar": "$SYS", "empty": "", "delete": "a\u007fb", "escaped": "a%2Fb"}


def test_names_that_no_topic_may_have_are_told_with_their_bytes_in_hexadecimal(server, tmp_path):
    with Mosquitto() as broker:
        started(server, tmp_path / "j", {"mqtt": {"host": "127.0.0.1", "port": broker.port, "retain": True, "topic": "{job}/{alertname}"}},
                {"group_by": ["alertname"], "group_wait": "0s"})
        raise_issues(tmp_path / "j", *[({"alertname": name, "rule": "r", "job": job}, {}) for name, job in NAMES.items()])
        wait_for(lambda: {t.rsplit("/", 1)[-1] for t in broker.retained()} == set(NAMES), 30, "every name")
        topics = {t.rsplit("/", 1)[-1]: t.rsplit("/", 1)[0] for t in broker.retained()}
        assert topics["quotes"] == "run %C2%93v2%C2%94" and topics["none"] == "a%EF%BF%BFb" and topics["plain"] == "größe 🚀"
        assert topics["dollar"] == "%24SYS" and topics["escaped"] == "a%252Fb" and len(set(topics.values())) == len(NAMES)
        assert {state for _, state, _, _ in deliveries(tmp_path / "j")} == {"delivered"}


def test_two_routers_of_one_machine_share_a_broker(server, tmp_path):
    with Mosquitto(log=True) as broker:
        for name in ("a", "b"):
            started(server, tmp_path / name, {"mqtt": {"host": "127.0.0.1", "port": broker.port, "retain": True, "topic": name + "/{tensor}"}})
        for name in ("a", "b"):
            raise_issues(tmp_path / name, *of_group(3))
        wait_for(lambda: len(broker.retained()) == 6, 30, "3 topics of each")
        clients = set(re.findall(r"as (tocsin-\S+)", broker.log()))
        assert len(clients) == 2 and "already connected" not in broker.log()


def exposition(one):
    status, text = one.get("/metrics/issues")
    assert status == 200
    return text


def test_prometheus_takes_the_series_whatever_the_labels_hold(server, tmp_path):
    one = started(server, tmp_path / "j", {"publish_metric": {"labels": ["job", "a.b", "tensor"], "max_series": 20, "linger": "1s"}},
                  {"group_interval": "1s"})
    odd = ["a\rb", "a\nb", 'a"b', "a\\b", "} 1\nevil 2", "\u0085", "\uffff", "x" * 4000, "größe 🚀", "\u007f", "\u001b[31m"]
    raise_issues(tmp_path / "j", *[({"rule": "r", "job": "j", "a.b": value, "tensor": str(i)}, {}) for i, value in enumerate(odd)])
    wait_for(lambda: exposition(one).count("tocsin_issue_active{") == len(odd), 20, "a series each")
    if shutil.which("promtool"):
        checked = subprocess.run(["promtool", "check", "metrics"], input=exposition(one), capture_output=True, text=True, check=False)
        assert "error" not in checked.stderr.lower() and checked.returncode in (0, 3), checked.stderr  # 3: matters of style
    raise_issues(tmp_path / "j", *[({"rule": "r", "job": "j", "a.b": value, "tensor": str(i)}, {"status": "resolved"})
                                   for i, value in enumerate(odd)])
    wait_for(lambda: "tocsin_issue_active{" not in exposition(one), 20, "gone after linger")


def test_an_ended_jobs_series_goes_to_0_at_its_end(server, tmp_path):
    one = started(server, tmp_path / "j", {"publish_metric": {"labels": ["job"], "linger": "1h"}}, {"group_interval": "1h"})
    raise_issues(tmp_path / "j", ({"rule": "r", "job": "j"}, {}))
    wait_for(lambda: 'tocsin_issue_active{job="j"} 1' in exposition(one), 20, "shown")
    raise_issues(tmp_path / "j", ({"rule": "r", "job": "j"}, {"status": "resolved", "resolution": "job_ended"}))
    wait_for(lambda: 'tocsin_issue_active{job="j"} 0' in exposition(one), 10, "0, long before the next flush")
