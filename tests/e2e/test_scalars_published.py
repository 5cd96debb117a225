"""The newest scalars of a run, published beside its issues in every way that publish_metric has."""
import contextlib
import json
import os
import subprocess
import sys
import textwrap

from tests.fakes.cloudwatch import CloudWatch
from tests.fakes.otlp import Otlp
from tests.support.hook_support import wait_for
from tests.support.metric_servers import Prometheus, Pushgateway, StatsdSocket
from tests.support.program import BUILD, ROOT
from tests.support.telemetry import journal_events

CONFIG = """
transport: {{journal: {folder}/journal}}
rules: [exploding_tensor]
route: {{receiver: r0, group_wait: 0s, routes: [{routes}]}}
receivers:
{receivers}
http: {{listen: '127.0.0.1:0'}}
"""

SCRIPT = """
import math, os, sys, time, tocsin
hook = tocsin.watch(run="r", job="digits")
while not os.path.exists(sys.argv[1]):
    hook.log(loss=0.0625 if not os.path.exists(sys.argv[2]) else math.nan, accuracy=0.5, **{"train/rate": 0.25})
    hook.step()
    time.sleep(0.02)
hook.close()
"""
ASKED = "scalars: [loss, 'train/.*'], linger: 4s, interval: 1s"
FAR = "allow_private: [127.0.0.0/8]"


@contextlib.contextmanager
def training(folder, config, rank, ranks):
    script, go, bad = folder / "train.py", folder / "enough", folder / "bad"
    script.write_text(textwrap.dedent(SCRIPT))
    environment = {key: value for key, value in os.environ.items() if not key.startswith("TOCSIN_") or key == "TOCSIN_LIBRARY"}
    environment.setdefault("TOCSIN_LIBRARY", str(BUILD / "collectors/hook/libtocsin_client.so.0"))
    environment.update(TOCSIN_CONFIG=str(config), PYTHONPATH=str(ROOT / "python"), TOCSIN_QUIET="1", TOCSIN_LAUNCH="both", WORLD_SIZE=str(ranks),
                       RANK=str(rank))
    job = subprocess.Popen([sys.executable, script, go, bad], env=environment)
    try:
        yield job
    finally:
        go.touch()
        assert job.wait(60) == 0


def test_each_transport_shows_the_newest_of_each_rank_until_it_is_no_number(server, tmp_path):
    with contextlib.ExitStack() as stack:
        prometheus, gateway = stack.enter_context(Prometheus(tmp_path)), stack.enter_context(Pushgateway())
        otlp, cloud, statsd = stack.enter_context(Otlp()), stack.enter_context(CloudWatch()), stack.enter_context(StatsdSocket())
        aws = (f"aws: {{region: {cloud.region}, access_key_id: {cloud.access_key_id}, secret_access_key: '{cloud.secret}', "
               f"session_token: {cloud.session_token}}}")
        actions = [f"transport: remote_write, url: '{prometheus.url}', {FAR}", f"transport: pushgateway, url: '{gateway.url}', {FAR}",
                   f"transport: otlp, url: '{otlp.url}', {FAR}", f"transport: statsd, address: '{statsd.address}'",
                   f"transport: cloudwatch, url: '{cloud.url}', {aws}, {FAR}", "transport: kafka", "transport: scrape"]
        config = tmp_path / "tocsin.yaml"
        config.write_text(CONFIG.format(folder=tmp_path, routes=", ".join(f"{{receiver: r{i}, continue: true}}" for i in range(len(actions))),
                                        receivers="\n".join(f"  r{i}: {{publish_metric: {{{one}, {ASKED}}}}}" for i, one in enumerate(actions))))
        one = server(config)
        one.wait_for("ready", timeout=90)
        for rank in range(2):
            stack.enter_context(training(tmp_path, config, rank, 2))

        def scraped():
            return [line for line in one.get("/metrics/issues")[1].splitlines() if line.startswith("tocsin_training_scalar{")]

        assert wait_for(lambda: len(scraped()) == 4, 60), scraped()
        assert {(line.split('rank="')[1][0], line.split('scalar="')[1].split('"')[0], line.split()[-1]) for line in scraped()} == {
            (rank, name, value) for rank in "01" for name, value in (("loss", "0.0625"), ("train/rate", "0.25"))}, "not accuracy, which nobody asked for"
        assert wait_for(lambda: len(prometheus.now('tocsin_training_scalar{scalar="loss"} == 0.0625')) == 2, 30)
        assert wait_for(lambda: any("tocsin_training_scalar" in group for group in gateway.groups().values()), 30)
        assert wait_for(lambda: {value for (name, _), value in otlp.messages.items() if name == "tocsin_training_scalar"} == {0.0625, 0.25}, 30)
        assert wait_for(lambda: any(line.startswith("tocsin_training_scalar:0.0625|g|#job:digits") for line in statsd.lines), 30)
        assert wait_for(lambda: 0.0625 in [value for (name, _), value in cloud.messages.items() if name == "tocsin_training_scalar"], 30)
        records = lambda: [value for _, data, _ in journal_events(tmp_path / "journal", "metrics") for value in data
                           if value["name"] == "tocsin_training_scalar"]
        assert wait_for(records, 30)
        assert {(value["labels"]["scalar"], value["value"]) for value in records()} == {("loss", 0.0625), ("train/rate", 0.25)}
        (tmp_path / "bad").touch()
        assert wait_for(lambda: len(scraped()) == 2 and not any('scalar="loss"' in line for line in scraped()), 30), "NaN is no last good number"
        assert wait_for(lambda: not prometheus.now('tocsin_training_scalar{scalar="loss"}'), 30)
        assert "metrics_push_failed" not in json.dumps(one.events)
    assert wait_for(lambda: not scraped(), 30), "the run is over"
    assert otlp.refused == [] and cloud.refused == []


def test_without_scalars_nobody_reads_telemetry_here(server, tmp_path):
    config = tmp_path / "tocsin.yaml"
    config.write_text(CONFIG.format(folder=tmp_path, routes="", receivers="  r0: {publish_metric: {}}"))
    one = server(config)
    one.wait_for("ready", timeout=90)
    text = one.get("/metrics")[1]
    assert "tocsin_router_" in text and "scalars" not in text
