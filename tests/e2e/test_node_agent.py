"""What a node's agent samples is changed while it runs, by the API and by `tocsin agent`: through kills, on the journal and on Kafka."""
import json
import os
import subprocess
import sys
import uuid

import pytest

from tests.e2e.test_curves import environment
from tests.e2e.test_inbound import ask
from tests.support import journal
from tests.support.hook_support import wait_for
from tests.support.kafka import Kafka
from tests.support.program import run_cli

SHIFT, GUEST = "0123456789-of-the-shift", "9876543210-of-a-guest"
CONFIG = """
transport: {transport}
{topics}
cluster: lab
collect: {{node: n7, interval: 1s, collectors: [cpu, memory]}}
rules: [exploding_tensor]
route: {{receiver: nobody}}
receivers: {{nobody: {{}}}}
http:
  listen: '127.0.0.1:0'
  auth: {{tokens: [{{name: shift, role: operator, token_file: {folder}/shift}}, {{name: guest, role: viewer, token_file: {folder}/guest}}]}}
"""
PATH = "/api/v1/nodes/n7/agent"
SCRIPT = """
import time
import tocsin
hook = tocsin.watch(run="beside-an-agent", job="beside", out=__import__("sys").argv[1])
for step in range(30):
    hook.log(loss=1.0 / (step + 1))
    hook.step()
    time.sleep(0.02)
assert not hook.should_stop()
hook.close()
"""


class Place:
    def __init__(self, folder, transport, topics=""):
        for name, token in (("shift", SHIFT), ("guest", GUEST)):
            (folder / name).write_text(token)
            (folder / name).chmod(0o600)
        self.folder, self.config = folder, folder / "t.yaml"
        self.config.write_text(CONFIG.format(folder=folder, transport=transport, topics=topics))

    def cli(self, *words):
        return run_cli(*words, "-c", self.config)


@pytest.fixture
def place(tmp_path):
    return Place(tmp_path, f"{{journal: {tmp_path}/journal}}")


def said(program, method, path=PATH, body=None, token=SHIFT):
    return ask(program, method, path, body, headers={"Authorization": f"Bearer {token}"})


def begun(server, place):
    """Its node has been heard of."""
    one = server(place.config)
    one.wait_for("ready", timeout=60)
    assert wait_for(lambda: said(one, "GET")[0] == 200, 60), said(one, "GET")
    return one


def answered(one, phase="applied", after=""):
    """The agent's answer, once it is of this phase and later than `after`."""
    def look():
        status, page = said(one, "GET", token=GUEST)
        there = status == 200 and page["answer"] and page["answer"]["phase"] == phase and page["answer"]["at"] > after
        return page if there else None
    page = wait_for(look, 60)
    assert page, said(one, "GET")
    return page


def samples_every(one):
    """Milliseconds between samples of the last minute, by the fleet; None: not known."""
    status, page = said(one, "GET", "/api/v1/nodes/n7", token=GUEST)
    return page["node"]["agent"]["interval_ms"] if status == 200 and page["node"]["agent"] else None


def nothing_refused(one, place):
    code, text, error = place.cli("dlq", "list", "--output", "json")
    assert code == 0 and "node:" not in text and not one.all("record_refused"), text + error
    assert not one.all("stop_progress") and not one.all("stop_asked"), "a stop is another thing"


def test_an_operator_changes_what_an_agent_samples(server, place):
    one = begun(server, place)
    assert said(one, "GET", token=GUEST)[1] == {"node": "n7", "asked": None, "answer": None}
    assert said(one, "PUT", body={"interval": "100ms"}, token=GUEST)[0] == 403 and said(one, "DELETE", token=GUEST)[0] == 403
    for wrong, word in (({"interval": "5ms"}, "expected a time from 100ms to 1m"), ({"interval": 5}, "expected a time"), ({"collectors": ["gpuu"]}, 'did you mean "gpu"?'),
                        ({"collectors": []}, "at least one name"), ({"intervall": "1s"}, 'did you mean "interval"?'), ([], "an object"),
                        ({"for": "10m"}, "expected interval or collectors beside it"), ({"interval": "1s", "for": "0s"}, "expected a time from 1s"), (b"x" * 5000, "")):
        status, answer = said(one, "PUT", body=wrong)
        assert status in (400, 413) and word in answer["detail"], answer
    status, answer = said(one, "PUT", "/api/v1/nodes/n8/agent", {"interval": "100ms"})
    assert status == 404 and 'did you mean "n7"?' in answer["detail"], answer
    assert said(one, "GET", "/api/v1/audit")[1]["items"] == []

    status, answer = said(one, "PUT", body={"interval": "100ms"})
    assert status == 200 and answer["asked"]["interval"] == "100ms" and answer["asked"]["by"] == "shift" and answer["asked"]["until"] is None, answer
    page = answered(one)
    assert page["answer"]["detail"] == "samples cpu and memory every 100ms" and page["asked"] == answer["asked"]
    assert wait_for(lambda: 100 <= (samples_every(one) or 0) < 1000, 60), samples_every(one)
    assert said(one, "PUT", body={"interval": "100ms"})[1]["asked"] == page["asked"], "who asked first stays"
    assert len(said(one, "GET", "/api/v1/audit")[1]["items"]) == 1
    listed = wait_for(lambda: [line for line in said(one, "GET", "/api/v1/commands?node=n7&action=agent")[1]["items"] if line["phase"] == "applied"], 30)
    assert [(line["node"], line["run"], line["phase"], line["answers"][0]["reason"]) for line in listed] == [("n7", None, "applied", "samples cpu and memory every 100ms")]
    assert said(one, "GET", "/api/v1/commands?node=n8")[1]["items"] == []

    one.kill()
    one = begun(server, place)
    again = answered(one, after=page["answer"]["at"])
    assert again["asked"] == page["asked"] and again["answer"]["detail"] == "samples cpu and memory every 100ms", "a new agent knows it"

    status, answer = said(one, "PUT", body={"collectors": ["memory"], "interval": None})
    assert status == 200 and answer["asked"]["collectors"] == ["memory"] and answer["asked"]["interval"] is None, answer
    assert answered(one)["answer"]["detail"] == "samples memory every 1s"
    status, answer = said(one, "PUT", body={})
    assert status == 200 and answer == {"node": "n7", "asked": None, "answer": None}, answer
    assert said(one, "DELETE")[0] == 200
    changes = [(change["what"], change["subject"], change["who"]) for change in said(one, "GET", "/api/v1/audit")[1]["items"]]
    assert changes == [(what, "node:n7/agent", "shift") for what in ("agent.reset", "agent.set", "agent.set")]

    def ended():
        acks = [json.loads(record["value"]) for record in journal.records(place.folder / "journal", "acks")]
        return [ack["reason"] for ack in acks if ack["phase"] == "ended"]
    assert wait_for(ended, 60) == ["withdrawn; samples cpu and memory every 1s"]
    nothing_refused(one, place)


def test_what_is_asked_for_a_while_ends_by_itself(server, place):
    one = begun(server, place)
    status, answer = said(one, "PUT", body={"interval": "200ms", "for": "2s"})
    assert status == 200 and answer["asked"]["until"] > answer["asked"]["at"], answer
    assert answered(one, "ended")["answer"]["detail"] == "its time is over; samples cpu and memory every 1s"
    one.kill()
    one = begun(server, place)
    assert answered(one, "ended")["answer"]["detail"].endswith("every 1s"), "it is over for a new agent too"


def test_the_command_asks_waits_and_takes_back(server, place):
    one = begun(server, place)
    code, text, error = place.cli("agent", "show")
    assert code == 0 and text == "nothing is asked of any node's agent; each samples as its own file says\n", text + error
    code, text, error = place.cli("agent", "set", "n7", "--interval", "300ms", "--dry-run")
    assert code == 0 and text == "n7: would be asked to sample every 300ms\n", text + error
    for words, wanted in ((("--interval", "5ms"), "expected a time from 100ms to 1m"), (("--collectors", "cpu,memmory"), 'did you mean "memory"?'), ((), "expected --interval or --collectors")):
        code, _, error = place.cli("agent", "set", "n7", *words)
        assert code == 2 and wanted in error, error
    code, _, error = place.cli("agent", "set", "rack/7", "--interval", "1s")
    assert code == 2 and "without a slash" in error, error
    code, text, error = place.cli("agent", "set", "n7", "--interval", "300ms", "--collectors", "cpu", "--author", "ada", "--wait", "60s")
    assert code == 0 and text == "n7 applied: samples cpu every 300ms\n", text + error
    page = answered(one)
    assert page["asked"]["by"] == "ada" and page["asked"]["collectors"] == ["cpu"]
    code, text, _ = place.cli("agent", "show", "n7", "--output", "json")
    (shown,) = json.loads(text)["items"]
    assert code == 0 and shown == page
    code, text, _ = place.cli("agent", "show")
    assert "cpu every 300ms" in text and "ada" in text and "applied: samples cpu every 300ms" in text, text
    code, text, _ = place.cli("agent", "set", "n9", "--interval", "300ms", "--wait", "1s")
    assert code == 75 and "no answer within 1s" in text, text
    code, text, error = place.cli("agent", "reset", "n7")
    assert code == 0 and text == "n7: samples as its own file says\n", error
    assert wait_for(lambda: said(one, "GET")[1]["asked"] is None, 30)
    code, _, error = place.cli("agent", "reset", "n7")
    assert code == 1 and "nothing is asked" in error, error
    nothing_refused(one, place)


# Any program may write to the topics: the agent says what it does not know, and a run beside it hears nothing of it.
def test_the_agent_says_why_it_refuses_and_runs_are_not_disturbed(server, place):
    one = begun(server, place)
    heads = {"ce_specversion": "1.0", "ce_type": "dev.tocsin.command.v1", "ce_source": "/test", "ce_id": "cmd_by_hand", "content-type": "application/json"}
    record = {"command_id": "cmd_by_hand", "action": "agent", "run": {"uid": None, "attempt": None}, "revision": 1, "issued_at": "2026-01-02T03:04:05Z",
              "requested_by": "a script", "args": {"collectors": ["cpu", "memori"]}}
    journal.append(place.folder / "journal", ("commands", "node:n7/agent", json.dumps(record), [(name, value.encode()) for name, value in heads.items()]))
    page = answered(one, "refused")
    assert page["answer"]["detail"] == 'collectors: no collector is called "memori"; did you mean "memory"?; samples cpu and memory every 1s'
    assert page["asked"]["collectors"] == ["cpu", "memori"] and page["asked"]["by"] == "a script"
    script = place.folder / "train.py"
    script.write_text(SCRIPT)
    done = subprocess.run([sys.executable, script, place.folder / "journal"], env=environment(place.folder / "journal"), cwd=place.folder, timeout=120)
    assert done.returncode == 0
    run = wait_for(lambda: next(iter(said(one, "GET", "/api/v1/runs")[1]["items"]), None), 60)
    lines = said(one, "GET", f"/api/v1/runs/{run['uid']}/history")[1]["items"]
    assert {line["kind"] for line in lines} == {"run"}, "what is asked of an agent is no history of a run"
    keys = {record["key"] for record in journal.records(place.folder / "journal", "acks")}
    assert keys == {b"node:n7"}, "no hook has answered"
    nothing_refused(one, place)


def test_on_kafka_it_outlives_the_broker_and_every_process(server, tmp_path):
    with Kafka(f"agent-{uuid.uuid4().hex[:8]}") as cluster:
        if cluster.existing:
            pytest.skip("somebody else's cluster is not restarted")
        place = Place(tmp_path, f"{{kafka: {{bootstrap.servers: '{cluster.bootstrap}'}}}}", f"topics: {{prefix: agents{os.getpid()}}}")
        one = begun(server, place)
        assert said(one, "PUT", body={"interval": "200ms", "collectors": ["memory"]})[0] == 200
        page = answered(one)
        assert page["answer"]["detail"] == "samples memory every 200ms"
        one.kill()
        cluster.kill()
        cluster.restart()
        one = begun(server, place)
        again = answered(one, after=page["answer"]["at"])
        assert again["asked"] == page["asked"] and again["answer"]["detail"] == "samples memory every 200ms"
        code, text, error = place.cli("agent", "reset", "n7")
        assert code == 0, text + error
        assert wait_for(lambda: said(one, "GET")[1]["asked"] is None, 60)
        nothing_refused(one, place)
