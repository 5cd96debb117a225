"""`tocsin silence`: nobody is told of what matches, and everybody sees it all the same."""
import json
import random

from tests.support.hook_support import wait_for
from tests.support.program import run_cli
from tests.support.telemetry import JournalWriter, kafka_produce, scalar

CONFIG = """
transport: {transport}
topics: {{prefix: {prefix}, partitions: 3}}
rules: [exploding_tensor]
route: {{receivers: [people, stop, board], group_wait: 0s, group_by: [job]}}
receivers:
  people: {{webhook: {{shadow: true, url: 'http://127.0.0.1:9/', allow_private: [127.0.0.0/8], secret: 'whsec_MDEyMzQ1Njc4OWFiY2RlZjAxMjM0NTY3ODlhYmNkZWY='}}}}
  stop: {{stop_training: {{armed: true, mode: stop}}}}
  board: {{publish_metric: {{}}}}
http: {{listen: '127.0.0.1:0'}}
"""


def broken(job):
    """A run whose loss becomes NaN at step 3."""
    return [scalar(job, "loss", "NaN" if step == 3 else 1.0, step, job=job) for step in range(5)]


def told_of(program, receiver="people"):
    return {event["group_key"].split('job="')[1].split('"')[0] for event in program.all("notification_decided")
            if event["integration"].startswith(receiver)}


def silenced(server, tmp_path, transport, send):
    config = tmp_path / "t.yaml"
    config.write_text(CONFIG.format(transport=transport, prefix=f"quiet{random.randrange(10**9)}"))
    program = server(config)
    program.wait_for("ready", timeout=90)
    code, out, err = run_cli("silence", "add", "--job", "quiet", "--for", "2h", "--comment", "known, looked at", "-c", config)
    assert code == 0 and '{job="quiet"}' in out, out + err
    identity = out.splitlines()[0]
    send(config, broken("quiet"))
    code, out, err = run_cli("silence", "add", "--job", "unstopped", "--actions", "stop_training", "--comment", "let it run", "-c", config)
    assert code == 0 and "mutes stops of" in out, out + err
    send(config, broken("quiet"))
    program.wait_for("issue_fired", job="quiet", timeout=60)
    send(config, broken("unstopped"))
    program.wait_for("issue_fired", job="unstopped", timeout=60)
    send(config, broken("loud"))
    assert wait_for(lambda: told_of(program) == {"loud", "unstopped"} and told_of(program, "board") >= {"loud", "unstopped", "quiet"}, 60)
    assert wait_for(lambda: told_of(program, "stop") == {"loud"}, 60)

    code, out, _ = run_cli("status", "-c", config)
    assert code == 0 and "known, looked at" in out and out.count("exploding_tensor") >= 3, out  # all are open
    assert out.count("silenced: ") == 1 and out.count("silenced (stop_training): ") == 1, out
    assert wait_for(lambda: "\ntocsin_router_silences{state=\"active\"} 2\n" in program.get("/metrics")[1], 20)
    [one] = [one for one in json.loads(run_cli("status", "-c", config, "-o", "json")[1])["silences"] if one["id"] == identity]
    assert one["matchers"] == '{job="quiet"}' and "@" in one["created_by"]
    code, out, _ = run_cli("silence", "list", "-c", config)
    assert code == 0 and "active" in out, out

    assert program.stop() == 0
    program = server(config)  # what it was asked survives
    program.wait_for("ready", timeout=90)
    send(config, broken("loud again"))
    assert wait_for(lambda: "loud again" in told_of(program), 60)
    assert "quiet" not in told_of(program) | told_of(program, "stop")
    code, out, _ = run_cli("silence", "expire", identity, "-c", config)
    assert code == 0 and out == f"{identity} ended\n", out
    assert identity not in run_cli("silence", "list", "-c", config)[1]
    assert "expired" in run_cli("silence", "list", "--all", "-c", config)[1]
    assert run_cli("silence", "expire", identity, "-c", config)[0] == 1


def test_a_silence_over_the_journal(server, tmp_path):
    silenced(server, tmp_path, f"{{journal: {tmp_path / 'data'}}}", lambda _, records: JournalWriter(tmp_path / "data").append(*records))


def test_a_silence_over_kafka(server, kafka, tmp_path):
    def send(config, records):
        prefix = next(line for line in config.read_text().splitlines() if "prefix" in line).split("prefix: ")[1].split(",")[0]
        kafka_produce(kafka, f"{prefix}.telemetry.v1", records)
    silenced(server, tmp_path, f"{{kafka: {{bootstrap.servers: '{kafka}'}}}}", send)


def test_what_is_refused(server, tmp_path):
    config = tmp_path / "t.yaml"
    config.write_text(CONFIG.format(transport=f"{{journal: {tmp_path / 'data'}}}", prefix="p"))
    server(config).wait_for("ready")
    for words in ([], ["job!=\"a\""], ["job=\"a"], ["--for", "soon", "job=\"a\""], ["--for", "0s", "job=\"a\""], ["--actions", "mail", "job=\"a\""]):
        code, _, err = run_cli("silence", "add", *words, "--comment", "why", "-c", config)
        assert code == 2 and err.startswith("tocsin"), (words, err)
    assert run_cli("silence", "add", "job=\"a\"", "-c", config)[0] == 2, "without a comment"
    code, out, _ = run_cli("silence", "add", "job=\"a\"", "--comment", "why", "--dry-run", "-c", config)
    assert code == 0 and out.startswith("would begin"), out
    code, _, err = run_cli("silence", "add", "--run", "nobody", "--comment", "why", "-c", config)
    assert code == 1 and 'no run "nobody"' in err, err
    assert run_cli("silence", "list", "-c", config)[1] == "no silences\n"
    code, _, err = run_cli("silence", "add", 'severty="error"', 'rule="overfitt"', "--job", "nobody", "--comment", "why", "--dry-run", "-c", config)
    assert code == 0 and 'label "severty" so far; did you mean "severity"?' in err and 'rule "overfitt" so far; did you mean "overfit"?' in err
    assert 'there is no job "nobody" so far\n' in err
    assert run_cli("silence", "add", 'rule="overfit"', 'severity="error"', "--comment", "why", "--dry-run", "-c", config)[2] == ""
