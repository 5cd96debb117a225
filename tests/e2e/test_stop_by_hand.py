"""`tocsin stop RUN`: a person stops a run, by the command and the fence that rules use, and sees what becomes of it."""
import json
import os
import random
import subprocess
import sys
import textwrap

import pytest

from tests.support.hook_support import wait_for
from tests.support.program import BUILD, ROOT, run_cli
from tests.support.telemetry import journal_events, kafka_events

# Nothing here stops by itself: the only stops are those of the test.
CONFIG = """
transport: {transport}
topics: {{prefix: {prefix}, partitions: 3}}
rules: [exploding_tensor]
route: {{receiver: board, group_wait: 0s}}
receivers: {{board: {{publish_metric: {{}}}}}}
http: {{listen: '127.0.0.1:0'}}
"""

SCRIPT = """
import sys, time
import tocsin
hook = tocsin.watch(run="r", job="stubborn")
print("open", flush=True)
for step in range(6000):
    hook.log(loss=1.0)
    hook.step()
    stop = {asks} and hook.should_stop()
    if stop:
        print(stop.mode, stop.reason, flush=True)
        hook.acknowledge_stop(checkpoint="/tmp/ck")
        hook.close(outcome="stopped_by_rule")
        sys.exit(tocsin.EXIT_STOPPED)
    time.sleep(0.02)
"""


@pytest.fixture
def place(server, tmp_path):
    """place(transport) starts a server on it; gives train() and the configuration's path."""
    processes = []

    def begin(transport):
        config = tmp_path / "tocsin.yaml"
        config.write_text(CONFIG.format(transport=transport, prefix=f"hand{random.randrange(10**9)}"))
        one = server(config)
        one.wait_for("ready", timeout=90)

        def train(asks=True):
            script = tmp_path / "train.py"
            script.write_text(textwrap.dedent(SCRIPT.format(asks=asks)))
            environment = {key: value for key, value in os.environ.items() if not key.startswith("TOCSIN_") or key == "TOCSIN_LIBRARY"}
            environment.setdefault("TOCSIN_LIBRARY", str(BUILD / "collectors/hook/libtocsin_client.so.0"))
            environment.update(TOCSIN_CONFIG=str(config), PYTHONPATH=str(ROOT / "python"), TOCSIN_QUIET="1")
            processes.append(subprocess.Popen([sys.executable, script], env=environment, stdout=subprocess.PIPE, text=True))
            before = len(one.all("job_started"))
            assert processes[-1].stdout.readline() == "open\n"
            assert wait_for(lambda: len(one.all("job_started")) > before, 60), "the run is not known"
            return processes[-1]

        return one, config, train

    yield begin
    for process in processes:
        if process.poll() is None:
            process.kill()
        process.wait(10)


def stopped_by_a_person(place, transport, events):
    one, config, train = place(transport)
    training = train()
    code, out, err = run_cli("stop", "stubborn", "-c", config, "--reason", "wrong learning rate", "--wait", "60s", timeout=90)
    assert code == 0, out + err
    assert training.wait(30) == 77
    assert training.stdout.read() == "checkpoint_then_stop wrong learning rate\n"
    who = f"{os.environ.get('USER', '')}@" if "USER" in os.environ else "@"
    for said in (who, "requested checkpoint_then_stop: wrong learning rate", "accepted", "checkpoint /tmp/ck", "ended: stopped_by_person"):
        assert said in out, out
    one.wait_for("job_ended", outcome="stopped_by_person")
    asked = one.wait_for("stop_asked")  # the log of the server has it too
    assert os.uname().nodename in asked["requested_by"] and asked["reason"] == "wrong learning rate"

    commands = [data for _, data, _ in events(config, "commands") if data["action"] == "stop"]
    assert len(commands) == 1 and commands[0]["requested_by"] == asked["requested_by"]
    assert commands[0]["run"]["launch"] and commands[0]["args"]["fence"]["pid"] == training.pid
    told = [data for _, data, _ in events(config, "issues") if data.get("rule") == "stopped_by_hand"]
    assert len(told) == 1 and told[0]["labels"]["severity"] == "info" and "wrong learning rate" in told[0]["annotations"]["summary"]
    one.wait_for("delivery_finished", state="delivered")  # and it is the only issue

    code, out, _ = run_cli("status", "-c", config)
    assert code == 0 and "wrong learning rate" in out and asked["requested_by"] in out, out
    assert "stopped_by_hand" not in out  # over, with its run
    code, out, _ = run_cli("stop", "stubborn", "-c", config)
    assert code == 0 and "has ended already: stopped_by_person" in out, out


def test_a_person_stops_a_run_over_the_journal(place, tmp_path):
    journal = tmp_path / "journal"
    stopped_by_a_person(place, f"{{journal: {journal}}}", lambda _, topic: journal_events(journal, topic))


def test_a_person_stops_a_run_over_kafka(place, kafka):
    def events(config, topic):
        prefix = next(line for line in config.read_text().splitlines() if "prefix" in line).split("prefix: ")[1].split(",")[0]
        return kafka_events(kafka, f"{prefix}.{topic}.v1")
    stopped_by_a_person(place, f"{{kafka: {{bootstrap.servers: '{kafka}'}}}}", events)


def test_each_stop_is_of_one_attempt(place, tmp_path):
    """What was asked of the first launch does not touch the second, and the second can be asked as well."""
    journal = tmp_path / "journal"
    _, config, train = place(f"{{journal: {journal}}}")
    for number in (1, 2):
        training = train()
        # It hears what was asked of the one before it, and goes on until it is asked itself.
        assert wait_for(lambda: steps_of(config) >= 5, 30)
        assert training.poll() is None
        assert run_cli("stop", "r", "--job", "stubborn", "-c", config, "--mode", "stop")[0] == 0
        assert training.wait(30) == 77
    commands = [data for _, data, _ in journal_events(journal, "commands") if data["action"] == "stop"]
    attempts = {command["run"]["attempt"] for command in commands}
    assert len({command["command_id"] for command in commands}) == len(attempts)


def steps_of(config):
    """Newest step of the newest run, by `tocsin status`; 0 while it has ended."""
    runs = json.loads(run_cli("status", "-c", config, "-o", "json")[1])["runs"]
    return (runs[0]["step"] or 0) if runs and runs[0]["state"] == "running" else 0


def test_a_loop_that_never_asks_is_ended_by_its_node(place, tmp_path):
    _, config, train = place(f"{{journal: {tmp_path / 'journal'}}}")
    training = train(asks=False)
    code, out, _ = run_cli("stop", "stubborn", "-c", config, "--ack", "1s", timeout=130)
    assert code == 0 and "ended: stopped_by_person" in out, out
    assert training.wait(30) == -15


def test_what_a_person_sees_who_does_not_wait(place, tmp_path):
    _, config, train = place(f"{{journal: {tmp_path / 'journal'}}}")
    training = train(asks=False)
    code, out, _ = run_cli("stop", "stubborn", "-c", config, "--dry-run")
    assert code == 0 and out.startswith("would ask stubborn, run ") and training.poll() is None, out
    assert not [1 for _, data, _ in journal_events(tmp_path / "journal", "commands") if data["action"] == "stop"]
    code, out, _ = run_cli("stop", "stubborn", "-c", config, "--wait", "0s", "--ack", "10m", "-o", "json")
    said = json.loads(out)
    assert code == 0 and said["state"] == "asked" and said["requested_by"], said
    code, out, _ = run_cli("stop", "stubborn", "-c", config, "--wait", "1s")
    assert code == 75 and "already requested by " in out and "not ended yet" in out, out
    code, out, _ = run_cli("status", "-c", config)
    assert "stopped_by_hand" in out and "received" in out, out  # open while the run goes on


def test_a_run_that_is_not_there(place, tmp_path):
    _, config, train = place(f"{{journal: {tmp_path / 'journal'}}}")
    train()
    code, _, err = run_cli("stop", "stuborn", "-c", config)
    assert code == 1 and 'did you mean "stubborn"?' in err, err
    code, _, err = run_cli("stop", "stubborn", "--out", tmp_path / "nowhere")
    assert code == 4 and "there is no journal" in err
    code, _, err = run_cli("stop", "stubborn", "-c", config, "--wait", "soon")
    assert code == 2 and "is no duration" in err, err
    code, _, err = run_cli("stop", "-c", config)
    assert code == 2, err
