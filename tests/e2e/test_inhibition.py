"""`inhibit_rules`: while the loss of one run is NaN nobody is told of another run; a kill changes nothing, and the end frees it."""
import random

from tests.e2e.test_silences import told_of
from tests.support.hook_support import wait_for
from tests.support.telemetry import JournalWriter, kafka_produce, scalar

CONFIG = """
transport: {transport}
topics: {{prefix: {prefix}, partitions: 3}}
rules:
  - exploding_tensor
  - {{name: high, select: 'metric("rate")', when: 'value > 5'}}
route: {{receivers: [people, board], group_wait: 2s, group_interval: 1s, group_by: [job]}}
receivers:
  people: {{webhook: {{shadow: true, url: 'http://127.0.0.1:9/', allow_private: [127.0.0.0/8], secret: 'whsec_MDEyMzQ1Njc4OWFiY2RlZjAxMjM0NTY3ODlhYmNkZWY='}}}}
  board: {{publish_metric: {{}}}}
inhibit_rules:
  - {{name: nan-hides-rates, source_matchers: ['rule="exploding_tensor"'], target_matchers: ['rule="high"'], equal: []}}
http: {{listen: '127.0.0.1:0'}}
"""


def broken(job):
    return [scalar(job, "loss", "NaN" if step == 3 else 1.0, step, job=job) for step in range(5)]


def well_again(job):
    return [scalar(job, "loss", 1.0, step, job=job) for step in range(5, 12)]


def fast(job):
    return [scalar(job, "rate", 9.0, step, job=job) for step in range(5)]


def inhibited(server, tmp_path, transport, send):
    config = tmp_path / "t.yaml"
    config.write_text(CONFIG.format(transport=transport, prefix=f"inhibit{random.randrange(10**9)}"))
    program = server(config)
    program.wait_for("ready", timeout=90)
    send(config, broken("source"))
    program.wait_for("issue_fired", job="source", timeout=60)
    send(config, fast("target"))
    program.wait_for("issue_fired", job="target", timeout=60)
    assert wait_for(lambda: told_of(program) == {"source"} and told_of(program, "board") == {"source", "target"}, 60)
    assert "\ntocsin_router_inhibit_sources 1\n" in program.get("/metrics")[1]
    assert wait_for(lambda: "\ntocsin_router_inhibited_total 0\n" not in program.get("/metrics")[1], 60)

    program.kill()
    program = server(config)
    program.wait_for("ready", timeout=90)
    send(config, fast("another"))
    program.wait_for("issue_fired", job="another", timeout=60)
    assert wait_for(lambda: "another" in told_of(program, "board"), 60)
    assert not told_of(program) & {"target", "another"}
    send(config, well_again("source"))
    assert wait_for(lambda: told_of(program) >= {"target", "another"}, 60)
    assert "\ntocsin_router_inhibit_sources 0\n" in program.get("/metrics")[1]


def test_inhibition_over_the_journal(server, tmp_path):
    inhibited(server, tmp_path, f"{{journal: {tmp_path / 'data'}}}", lambda _, records: JournalWriter(tmp_path / "data").append(*records))


def test_inhibition_over_kafka(server, kafka, tmp_path):
    def send(config, records):
        prefix = next(line for line in config.read_text().splitlines() if "prefix" in line).split("prefix: ")[1].split(",")[0]
        kafka_produce(kafka, f"{prefix}.telemetry.v1", records)
    inhibited(server, tmp_path, f"{{kafka: {{bootstrap.servers: '{kafka}'}}}}", send)
