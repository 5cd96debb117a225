"""The way of an alarm as an OpenTelemetry trace: from the measured value to the answer of the far side, on the settings that ship."""
import time

import pytest

from tests.fakes.otlp_traces import OtlpTraces
from tests.support.hook_support import run_script
from tests.support.program import Server
from tests.support.receiver import free_port, wait_for
from tests.support.webhook_receiver import WebhookReceiver

CONFIG = """
transport: {{journal: {folder}/journal}}
rules: [exploding_tensor]
route: {{receiver: oncall, group_wait: 100ms, group_interval: 200ms}}
receivers:
  oncall:
    webhook: {{url: '{hook}', allow_private: [127.0.0.0/8], retry: {{initial: 100ms}}}}
tracing: {{url: '{collector}', bearer_token_file: {folder}/token}}
http: {{listen: '127.0.0.1:0'}}
"""

SCRIPT = """
import math, time, tocsin
hook = tocsin.watch(run="r", job="digits")
for step in range(8):
    hook.log(loss=1.0 if step < 5 else math.nan)
    hook.step()
time.sleep(3)  # it is told while it fires
hook.close()
"""
TOKEN = "canary-token-of-the-collector"


@pytest.fixture
def hook():
    receiver = WebhookReceiver()
    receiver.accept()
    yield receiver
    receiver.refuse()


def serve(folder, hook, collector):
    (folder / "token").write_text(TOKEN + "\n")
    config = folder / "tocsin.yaml"
    config.write_text(CONFIG.format(folder=folder, hook=hook.url, collector=collector))
    server = Server(config)
    server.wait_for("ready")
    return server


def train(folder):
    result = run_script(SCRIPT, folder, TOCSIN_OUT=str(folder / "journal"))
    assert result.returncode == 0, result.stderr


def named(spans, name):
    return [span for span in spans if span["name"] == name]


def test_an_alarm_is_one_trace_from_the_value_to_the_answer(tmp_path, hook):
    hook.answer(503)
    with OtlpTraces() as collector:
        server = serve(tmp_path, hook, collector.url)
        try:
            began = time.time_ns()
            train(tmp_path)
            wait_for(lambda: len(named(collector.messages, "send webhook")) >= 2, 30, "two attempts in the trace")
            ended = time.time_ns()
        finally:
            server.kill()
        assert not collector.refused, collector.refused
        spans = list(collector.messages)
        assert {request["headers"]["authorization"] for request in collector.requests} == {f"Bearer {TOKEN}"}

    event, = named(spans, "exploding_tensor fired")
    message = named(spans, "tell oncall")[0]
    first, second = sorted((span for span in named(spans, "send webhook") if span["parentSpanId"] == message["spanId"]),
                           key=lambda span: span["attributes"]["tocsin.attempt"])[:2]
    assert len({span["traceId"] for span in (event, message, first, second)}) == 1
    assert "parentSpanId" not in event and message["parentSpanId"] == event["spanId"]
    assert event["attributes"]["tocsin.step"] == 5 and event["attributes"]["tocsin.job"] == "digits"
    assert "loss" in event["attributes"]["tocsin.summary"], "the trace says what was found"
    assert first["status"]["code"] == 2 and "503" in first["status"]["message"]
    assert second["status"] == {} and second["attributes"]["tocsin.code"] == "200"
    times = [int(span[key]) for span in (event, message, first, second) for key in ("startTimeUnixNano", "endTimeUnixNano")]
    assert began <= times[0] and times == sorted(times) and times[-1] <= ended, times
    assert event["service"] == {"service.name": "tocsin", "service.namespace": "default"}

    # What the far side does continues the message's span.
    assert [record["headers"]["traceparent"] for record in hook.records[:2]] == [f"00-{message['traceId']}-{message['spanId']}-01"] * 2
    assert TOKEN not in str(server.events)


def test_without_a_collector_the_alarm_comes_and_the_spans_come_later(tmp_path, hook):
    port = free_port()
    server = serve(tmp_path, hook, f"http://127.0.0.1:{port}")
    try:
        train(tmp_path)
        wait_for(lambda: hook.records, 10, "the alarm")
        trouble = server.wait_for("spans_not_sent")
        assert str(port) in trouble["reason"] or "refused" in trouble["reason"] or "connect" in trouble["reason"], trouble
        with OtlpTraces(port) as collector:
            wait_for(lambda: named(collector.messages, "send webhook"), 30, "the spans")
            assert named(collector.messages, "exploding_tensor fired")
        server.wait_for("spans_sent_again")
    finally:
        server.kill()
