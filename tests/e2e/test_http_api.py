"""The HTTP API with the client of Debian's Alertmanager: what people have, works on ours."""
import json
import random
import re
import subprocess
import urllib.error
import urllib.request

import pytest

from tests.support.hook_support import wait_for
from tests.support.telemetry import JournalWriter, kafka_produce, scalar

TOKENS = {"shift": "0123456789-of-the-shift", "guard": "0123456789-of-the-guard"}
CONFIG = """
transport: {transport}
topics: {{prefix: {prefix}, partitions: 3}}
rules: [exploding_tensor]
route: {{receiver: people, group_wait: 0s, group_interval: 5s, group_by: [job]}}
receivers:
  people: {{webhook: {{shadow: true, url: 'http://127.0.0.1:9/', allow_private: [127.0.0.0/8], secret: 'whsec_MDEyMzQ1Njc4OWFiY2RlZjAxMjM0NTY3ODlhYmNkZWY='}}}}
http:
  listen: '127.0.0.1:0'
  auth:
    tokens:
      - {{name: shift, role: operator, token_file: {folder}/shift}}
      - {{name: guard, role: stopper, token_file: {folder}/guard}}
"""


@pytest.fixture
def configured(tmp_path):
    def write(transport):
        for name, token in TOKENS.items():
            (tmp_path / name).write_text(token + "\n")
            (tmp_path / name).chmod(0o600)
        config = tmp_path / "t.yaml"
        config.write_text(CONFIG.format(transport=transport, prefix=f"api{random.randrange(10**9)}", folder=tmp_path))
        return config
    return write


def address(program):
    return program.wait_for("started")["http"]


def ask(program, path, body=None, token="shift", method=None, headers=None):
    """(status, JSON or text)"""
    request = urllib.request.Request(f"http://{address(program)}{path}", method=method, data=None if body is None else json.dumps(body).encode(),
                                     headers={"Content-Type": "application/json", **({"Authorization": f"Bearer {TOKENS[token]}"} if token else {}), **(headers or {})})
    try:
        with urllib.request.urlopen(request, timeout=30) as answer:
            text, status = answer.read().decode(), answer.status
    except urllib.error.HTTPError as refused:
        text, status = refused.read().decode(), refused.code
    try:
        return status, json.loads(text)
    except ValueError:
        return status, text


class Amtool:
    """Debian's amtool as somebody on call runs it."""

    def __init__(self, program, folder):
        self.client = folder / "client.yml"
        self.client.write_text(f"authorization: {{credentials_file: {folder}/shift}}\n")
        self.url = f"http://{address(program)}"

    def __call__(self, *words):
        done = subprocess.run(["amtool", f"--alertmanager.url={self.url}", f"--http.config.file={self.client}", *words],
                              capture_output=True, text=True, timeout=60)
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout


def told_of(program):
    return {re.search('job="([^"]*)"', event["group_key"]).group(1) for event in program.all("notification_decided")}


def served(server, configured, tmp_path, transport, send):
    config = configured(transport)
    program = server(config)
    program.wait_for("ready", timeout=90)
    amtool = Amtool(program, tmp_path)
    send(config, [scalar("sick", "loss", "NaN" if step == 3 else 1.0, step, job="sick") for step in range(5)])
    program.wait_for("issue_fired", job="sick", timeout=60)

    # An issue of our own rule, as amtool shows alerts.
    assert wait_for(lambda: "exploding_tensor" in amtool("alert", "query"), 30)
    [alert] = json.loads(amtool("alert", "query", "-o", "json", "job=sick"))
    assert alert["labels"]["rule"] == alert["labels"]["alertname"] == "exploding_tensor"
    assert "NaN" in alert["annotations"]["summary"] and alert["receivers"] == [{"name": "people"}], alert
    assert "exploding_tensor" not in amtool("alert", "query", "job=other")

    # A silence by amtool is one of ours, and holds for what comes.
    identity = amtool("silence", "add", "--author=ada", "--comment=known", "--duration=2h", "job=quiet").strip()
    assert identity.startswith("sil_")
    assert "known" in amtool("silence", "query")
    assert identity in amtool("silence", "update", "--comment=known, and longer", "--duration=3h", identity)
    assert "known, and longer" in amtool("silence", "query")
    amtool("alert", "add", "GpuFellOff", "job=quiet", "--annotation=summary=GPU 3 is gone")
    amtool("alert", "add", "GpuFellOff", "job=loud", "--annotation=summary=GPU 3 is gone")
    assert wait_for(lambda: "loud" in told_of(program), 60)
    assert "quiet" not in told_of(program)
    assert [one["labels"]["job"] for one in json.loads(amtool("alert", "query", "-o", "json", "--silenced"))] == ["quiet"]
    amtool("silence", "expire", identity)
    assert wait_for(lambda: "quiet" in told_of(program), 90), "the end of a silence is news"
    assert json.loads(amtool("silence", "query", "-o", "json")) == []
    # Ended by its producer.
    status, said = ask(program, "/api/v2/alerts", [{"labels": {"alertname": "GpuFellOff", "job": "loud"}, "endsAt": "2026-01-02T03:04:05Z"}])
    assert status == 200, said
    assert wait_for(lambda: not json.loads(amtool("alert", "query", "-o", "json", "job=loud")), 30)

    # What was asked for survives a kill.
    kept = amtool("silence", "add", "--author=ada", "--comment=the night", "--duration=2h", "job=later").strip()
    program.kill()
    program = server(config)
    program.wait_for("ready", timeout=90)
    amtool = Amtool(program, tmp_path)
    assert kept in amtool("silence", "query") and "GpuFellOff" in amtool("alert", "query", "job=quiet")
    amtool("alert", "add", "GpuFellOff", "job=later")
    amtool("alert", "add", "GpuFellOff", "job=after")
    assert wait_for(lambda: "after" in told_of(program), 60)
    assert "later" not in told_of(program)


def test_amtool_over_the_journal(server, configured, tmp_path):
    served(server, configured, tmp_path, f"{{journal: {tmp_path / 'data'}}}", lambda _, records: JournalWriter(tmp_path / "data").append(*records))


def test_amtool_over_kafka(server, configured, kafka, tmp_path):
    def send(config, records):
        prefix = re.search(r"prefix: (\w+)", config.read_text()).group(1)
        kafka_produce(kafka, f"{prefix}.telemetry.v1", records)

    served(server, configured, tmp_path, f"{{kafka: {{bootstrap.servers: '{kafka}'}}}}", send)


def test_who_may_not_is_told_why_and_no_token_is_ever_shown(server, configured, tmp_path):
    program = server(configured(f"{{journal: {tmp_path / 'data'}}}"))
    program.wait_for("ready", timeout=90)
    assert ask(program, "/api/v2/status", token=None)[0] == 200
    silence = {"matchers": [{"name": "job", "value": "a", "isRegex": False}], "startsAt": "2026-01-02T03:04:05Z", "endsAt": "2126-01-02T03:04:05Z",
               "createdBy": "mallory", "comment": "hush"}
    status, said = ask(program, "/api/v2/silences", silence, token=None)
    assert status == 401 and "operator" in said["detail"], said
    status, said = ask(program, "/api/v2/silences", silence, headers={"Origin": "http://evil.example"})
    assert status == 403 and "evil.example" in said["detail"], said
    assert ask(program, "/api/v2/status", headers={"Host": "evil.example"})[0] == 421
    assert ask(program, "/api/v2/silences", silence, headers={"Content-Type": "text/plain"})[0] == 415
    event = {"specversion": "1.0", "type": "dev.tocsin.issue.v1", "source": "/probe", "id": "1", "data": {
        "status": "firing", "labels": {"rule": "fire"}, "run": {"uid": "9f1c8e2a-0000-4000-8000-000000000001", "attempt": 1}}}
    structured = {"Content-Type": "application/cloudevents+json"}
    status, said = ask(program, "/api/v1/events", event, headers=structured)
    assert status == 400 and "role stopper" in said["detail"], said
    assert ask(program, "/api/v1/events", event, token="guard", headers=structured)[0] == 202
    assert wait_for(lambda: "fire" in {alert["labels"]["rule"] for alert in ask(program, "/api/v2/alerts")[1]}, 30)
    shown = program.get("/metrics")[1] + json.dumps(ask(program, "/api/v2/status")) + "".join(path.read_text() for path in tmp_path.glob("*.log"))
    assert program.stop() == 0
    for token in TOKENS.values():
        assert token not in shown and token not in "".join(map(str, program.events))
