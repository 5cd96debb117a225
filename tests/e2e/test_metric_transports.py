"""A run whose loss becomes NaN, pushed as metrics to everything at once: a real Prometheus, a real Pushgateway, and strict fakes."""
import contextlib
import json

import pytest

from tests.fakes.cloudwatch import CloudWatch
from tests.fakes.otlp import Otlp
from tests.support.hook_support import run_script
from tests.support.metric_servers import Prometheus, Pushgateway, StatsdSocket
from tests.support.program import Server, run_cli
from tests.support.receiver import wait_for

CONFIG = """
transport: {{journal: {folder}/journal}}
rules: [exploding_tensor]
route: {{receiver: metrics, group_wait: 100ms, group_interval: 200ms}}
receivers:
  metrics:
{actions}
http: {{listen: '127.0.0.1:0'}}
"""
COMMON = "allow_private: [127.0.0.0/8], linger: 3s, interval: 1s"

SCRIPT = """
import math, time, tocsin
hook = tocsin.watch(run="r", job='llm/7 b')
for step in range(8):
    hook.log(loss=1.0 if step < 5 else math.nan)
    hook.step()
time.sleep(6)
hook.close()
"""


def actions_for(prometheus, gateway, otlp, statsd, cloud, folder):
    (folder / "aws").write_text(cloud.secret + "\n")
    aws = (f"aws: {{region: {cloud.region}, access_key_id: {cloud.access_key_id}, secret_access_key_file: {folder}/aws, "
           f"session_token: {cloud.session_token}}}")
    return [f"publish_metric: {{transport: remote_write, url: '{prometheus.url}', {COMMON}}}",
            f"publish_metric: {{transport: pushgateway, url: '{gateway.url}', {COMMON}}}",
            f"publish_metric: {{transport: otlp, url: '{otlp.url}', {COMMON}}}",
            f"publish_metric: {{transport: statsd, address: '{statsd.address}', linger: 3s, interval: 1s}}",
            f"publish_metric: {{transport: cloudwatch, url: '{cloud.url}', {aws}, {COMMON}}}"]


def in_receivers(actions, name="metrics"):
    """One receiver has one action of a type: each gets a receiver of its own, and the route tells all."""
    return "".join(f"  {name}{i}:\n    {action}\n" for i, action in enumerate(actions))


class Told:
    """What each far side showed, in turn."""


@pytest.fixture(scope="module")
def told(tmp_path_factory):
    folder = tmp_path_factory.mktemp("metrics")
    out = Told()
    with contextlib.ExitStack() as stack:
        out.prometheus = stack.enter_context(Prometheus(folder))
        out.gateway = stack.enter_context(Pushgateway())
        out.otlp, out.cloud = stack.enter_context(Otlp()), stack.enter_context(CloudWatch())
        out.statsd = stack.enter_context(StatsdSocket())
        actions = actions_for(out.prometheus, out.gateway, out.otlp, out.statsd, out.cloud, folder)
        config = folder / "tocsin.yaml"
        routes = ", ".join(f"{{receiver: metrics{i}, continue: true}}" for i in range(len(actions)))
        config.write_text(CONFIG.format(folder=folder, actions="").replace("  metrics:\n", in_receivers(actions)).replace(
            "receiver: metrics,", f"receiver: metrics0, routes: [{routes}],"))
        server = Server(config)
        stack.callback(lambda: server.process.poll() is None and server.kill())
        server.wait_for("ready")
        script = stack.enter_context(contextlib.closing(Running(SCRIPT, folder)))
        out.active = wait_for(lambda: out.prometheus.now("tocsin_issue_active == 1"), 30)
        out.group = wait_for(lambda: out.gateway.groups(), 10)
        script.end()
        out.over = wait_for(lambda: out.prometheus.now("tocsin_issue_active == 0"), 30)
        out.ended = wait_for(lambda: not out.prometheus.now("tocsin_issue_active"), 30)
        out.deleted = wait_for(lambda: not out.gateway.groups(), 30)
        out.history = out.prometheus.now("max_over_time(tocsin_issue_episodes_total[5m])")
        wait_for(lambda: any(value is None for value in out.otlp.messages.values()), 10)
        out.events = list(server.events)
        yield out


class Running:
    """A script beside the test."""

    def __init__(self, text, folder):
        import threading
        self.result = None
        self._thread = threading.Thread(target=self._run, args=(text, folder))
        self._thread.start()

    def _run(self, text, folder):
        self.result = run_script(text, folder, TOCSIN_OUT=str(folder / "journal"))

    def end(self):
        self._thread.join(60)
        assert self.result.returncode == 0, self.result.stderr

    def close(self):
        self._thread.join(60)


def labels_of(found):
    return [dict(labels) for labels in found]


def test_prometheus_has_the_issue_then_its_end_and_then_no_series(told):
    assert {(one["rule"], one["job"], one["__name__"]) for one in labels_of(told.active)} == {
        ("exploding_tensor", "llm/7 b", "tocsin_issue_active")}
    assert told.over and told.ended
    assert list(told.history.values()) == [1.0], "episodes are counted absolutely, however often they were pushed"


def test_the_gateway_has_a_group_of_the_job_until_it_is_over(told):
    (labels, group), = told.group.items()
    assert dict(labels) == {"job": "llm/7 b", "cluster": "default"}
    assert "tocsin_issue_active" in group and told.deleted


def test_otlp_takes_every_request_and_hears_of_the_end(told):
    assert told.otlp.refused == []
    active = [labels for name, labels in told.otlp.messages if name == "tocsin_issue_active"]
    assert [dict(labels)["job"] for labels in active] == ["llm/7 b"]
    assert set(told.otlp.messages.values()) == {None}, "all have ended"


def test_statsd_gets_gauges_in_short_datagrams(told):
    assert told.statsd.longest <= 1432
    active = [line for line in told.statsd.lines if line.startswith("tocsin_issue_active:")]
    assert any(line.startswith("tocsin_issue_active:1|g|#") and "job:llm/7 b" in line for line in active)
    assert any(line.startswith("tocsin_issue_active:0|g|#") for line in active)


def test_cloudwatch_takes_signed_requests(told):
    assert told.cloud.refused == [] and told.cloud.requests
    assert {name for name, _ in told.cloud.messages} == {
        "tocsin_issue_active", "tocsin_issue_last_transition_timestamp_seconds", "tocsin_issue_episodes_total"}
    assert 0.0 in told.cloud.messages.values()


def test_no_push_failed_and_no_credential_is_logged(told):
    text = json.dumps(told.events)
    assert "metrics_push_failed" not in text
    assert told.cloud.secret not in text and told.cloud.session_token not in text


def test_send_test_reaches_each_and_leaves_nothing(told, tmp_path):
    actions = actions_for(told.prometheus, told.gateway, told.otlp, told.statsd, told.cloud, tmp_path)
    for action in actions:
        config = tmp_path / "tocsin.yaml"
        config.write_text(CONFIG.format(folder=tmp_path, actions=f"    {action}"))
        code, out, err = run_cli("send-test", "metrics", "--drill", "-c", config, "--output", "json")
        trial, = json.loads(out)
        assert code == 0 and trial["passed"], (action, out, err)
        assert "tocsin_issue_active" in json.dumps(trial["steps"][0]["requests"]), action
        assert told.cloud.secret not in out and told.cloud.session_token not in out
    assert not told.prometheus.now("tocsin_issue_active") and not told.gateway.groups()
    assert told.otlp.refused == [] and told.cloud.refused == []
