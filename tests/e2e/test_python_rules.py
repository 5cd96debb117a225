"""Rules in Python: over recordings, over a real Kafka, and what their failures do to nobody else."""
import json
import os
import pathlib
import random
import signal
import sqlite3
import subprocess
import sys
import textwrap
import time
import uuid

import pytest

from tests.e2e.test_recovery import wait_until
from tests.support.program import BUILD, ROOT, Server, run_cli
from tests.support.telemetry import JournalWriter, journal_events, kafka_events, kafka_produce, scalar
from tocsin import wire

pytestmark = pytest.mark.apart

# As the documentation of Amazon SageMaker Debugger shows one; what was changed is `smdebug`, in its imports.
GRADIENT = """
from tocsin.rules.rule import Rule

class CustomGradientRule(Rule):
    def __init__(self, base_trial, threshold=10.0):
        super().__init__(base_trial)
        self.threshold = float(threshold)

    def set_required_tensors(self, step):
        for tname in self.base_trial.tensor_names(collection="gradients", step=step):
            self.req_tensors.add(tname, steps=[step])

    def invoke_at_step(self, step):
        for t in self.req_tensors.get():
            abs_mean = t.reduction_value(step, "mean", abs=True)
            if abs_mean > self.threshold:
                return True
        return False
"""

# Remembers something, looks back, and tells it in its own words.
RISES = """
from tocsin.rules import Rule

class Rises(Rule):
    def __init__(self, base_trial, times=3):
        super().__init__(base_trial)
        self.times, self.rises, self.lows = int(times), 0, {}

    def invoke_at_step(self, step):
        loss = self.base_trial.tensor("loss")
        before = loss.prev_steps(step, n=2)
        if len(before) == 2 and loss.value(before[1]) > loss.value(before[0]):
            self.rises += 1
        self.lows[step % 5] = min(loss.value(one) for one in loss.steps())
        if self.rises and self.rises % self.times == 0:
            self.issue(f"the loss has risen {self.rises} times, {len(self.lows)}", observed=("rises", self.rises),
                       threshold=(">=", "times", self.times), evidence={"low": min(self.lows.values())})
"""


@pytest.fixture(autouse=True)
def package(monkeypatch):
    monkeypatch.setenv("PYTHONPATH", str(ROOT / "python"))
    monkeypatch.setenv("PYTHONDONTWRITEBYTECODE", "1")


def record(folder, steps):
    """A directory as a hook writes it: one gradient and one loss a step. steps: [(gradient, loss)]."""
    folder.mkdir()
    run = wire.run_uid("digits", "one")
    worker, gradient, loss = (wire.xxh64(name) for name in (b"worker_0", b"gradient/fc.weight", b"loss"))
    records, sequence = [], 0
    base = dict(worker="worker_0", mode=wire.TRAIN, world_size=1, incarnation=1)

    def head(step=0):
        nonlocal sequence
        sequence += 1
        return wire.header(run, step=step, global_step=step, time=(1_760_000_000 + step) * 10**9, sequence=sequence, **base)

    records.append(wire.encode_lifecycle(head(), {"event": "start", "job": "digits", "launch": ""}))
    records.append(wire.encode_dictionary(head(), [
        {"hash": worker, "type": 4, "name": "worker_0"},
        {"hash": gradient, "type": 1, "dtype": 1, "role": 3, "dims": [2, 2], "name": "gradient/fc.weight",
         "attrs": json.dumps({"collections": ["gradients"]})},
        {"hash": loss, "type": 2, "dtype": 2, "role": 4, "name": "loss", "attrs": json.dumps({"collections": ["losses"]})}]))
    for step, (size, value) in enumerate(steps):
        records.append(wire.encode_frame(head(step), wire.SUMMARY, [{
            "name": gradient, "count": 4, "sum": 0.0, "sumsq": 4 * size * size, "m2": 4 * size * size, "abs_sum": 4 * size,
            "min": -size, "max": size, "nan": 0, "posinf": 0, "neginf": 0, "zero": 0, "negative": 2, "meta": 1 | 3 << 8}]))
        records.append(wire.encode_frame(head(step), wire.SCALAR, [{
            "name": loss, "step": step, "global_step": step, "time": (1_760_000_000 + step) * 10**9, "value": value,
            "meta": 2 | 4 << 8}]))
        records.append(wire.encode_frame(head(step), wire.STEP_END, [{
            "step": step, "global_step": step, "start": (1_760_000_000 + step) * 10**9 - 10**8,
            "end": (1_760_000_000 + step) * 10**9, "micro_steps": 1, "meta": 0}]))
    records.append(wire.encode_lifecycle(head(len(steps)), {"event": "end", "outcome": "completed", "exit_code": 0}))
    make_journal(folder, str(run), records)
    return str(run)


def make_journal(folder, key, records):
    """An empty journal is made by the program itself; the records are put into it."""
    config = folder.parent / "empty.yaml"
    config.write_text(json.dumps({"transport": {"journal": str(folder)}, "http": {"listen": "127.0.0.1:0"}}))
    server = Server(config, role="evaluate")
    server.wait_for("ready")
    server.kill()
    database = sqlite3.connect(folder / "telemetry.db", isolation_level=None)
    columns = [row[1] for row in database.execute("PRAGMA table_info(telemetry)")]
    assert columns[:4] == ["id", "ts", "key", "value"], columns
    database.executemany("INSERT INTO telemetry(id, ts, key, value) VALUES (?, ?, ?, ?)",
                         [(number, 1_760_000_000_000 + number, key.encode(), value) for number, value in enumerate(records)])
    database.close()


@pytest.fixture
def recorded(tmp_path_factory):
    folder = tmp_path_factory.mktemp("python") / "run"
    record(folder, [(20.0 if step in (7, 8) else 1.0, 5.0 - step if step % 4 else 5.0 + step) for step in range(20)])
    return folder


def judge(tmp_path, recorded, items, sources, expect=None, timeout=60, **more):
    for name, text in sources.items():
        (tmp_path / name).write_text(textwrap.dedent(text))
    rules = tmp_path / "rules.yaml"
    rules.write_text(json.dumps({"rules": items, **more}))
    code, out, err = run_cli("evaluate", "--from", recorded, "--rules", rules, "--format", "json", timeout=timeout)
    assert code == expect if expect is not None else code in (0, 1), out + err
    answer = json.loads(out)
    [run] = answer["runs"]
    return {one["rule"]: one for one in run["rules"]}, answer


def test_a_rule_of_the_original_over_a_recording(tmp_path, recorded):
    item = {"name": "big", "type": "python", "source": "gradient.py", "with": {"threshold": "10"}}
    rules, answer = judge(tmp_path, recorded, [item, "exploding_tensor"], {"gradient.py": GRADIENT}, expect=1)
    assert rules["big"]["status"] == "IssuesFound" and rules["exploding_tensor"]["status"] == "NoIssuesFound"
    firing = [one for one in answer["issues"] if one["rule"] == "big" and one["status"] == "firing"]
    assert [one["step"] for one in firing] == [7]
    assert "CustomGradientRule" not in rules and "train step 7" in firing[0]["annotations"]["summary"]


def test_in_this_process_it_finds_the_same(recorded, tmp_path, monkeypatch):
    from tocsin.rules import create_trial, invoke_rule
    namespace = {}
    exec(GRADIENT, namespace)  # pylint: disable=exec-used
    assert invoke_rule(namespace["CustomGradientRule"](create_trial(str(recorded)), threshold="10")) == [7, 8]


FAILS = {
    "raises": ("""
        from tocsin.rules import Rule
        class Fails(Rule):
            def invoke_at_step(self, step):
                {}["missing"]
        """, "KeyError: 'missing'"),
    "leaves": ("""
        import os
        from tocsin.rules import Rule
        class Fails(Rule):
            def invoke_at_step(self, step):
                print("about to go")
                os._exit(9)
        """, "its process ended with exit code 9: about to go"),
    "crashes": ("""
        import ctypes
        from tocsin.rules import Rule
        class Fails(Rule):
            def invoke_at_step(self, step):
                ctypes.string_at(0)
        """, "its process was ended by signal 11"),
    "hangs": ("""
        from tocsin.rules import Rule
        class Fails(Rule):
            def invoke_at_step(self, step):
                while True:
                    pass
        """, "it gave no answer within 300 ms and was ended"),
    "eats": ("""
        from tocsin.rules import Rule
        class Fails(Rule):
            def invoke_at_step(self, step):
                self.much = bytearray(4 << 30)
        """, "MemoryError"),
    "refuses to begin": ("""
        from tocsin.rules import Rule
        class Fails(Rule):
            def __init__(self, base_trial):
                raise RuntimeError("not today")
        """, "RuntimeError: not today"),
    "is no Python": ("class Fails(:\n", "SyntaxError"),
}


@pytest.mark.parametrize("what", FAILS)
def test_what_fails_is_an_error_of_its_rule_alone(tmp_path, recorded, what):
    text, reason = FAILS[what]
    items = [{"name": "fails", "source": "fails.py", "options": {"timeout": "300ms", "memory": "1GiB"}},
             {"name": "big", "source": "gradient.py"}, "exploding_tensor"]
    rules, _ = judge(tmp_path, recorded, items, {"fails.py": text, "gradient.py": GRADIENT}, timeout=120)
    assert rules["fails"]["status"] == "Error"
    assert reason in rules["fails"]["reason"], rules["fails"]["reason"]
    assert rules["big"]["status"] == "IssuesFound" and rules["exploding_tensor"]["status"] == "NoIssuesFound"


def test_an_interpreter_that_is_not_there(tmp_path, recorded):
    rules, _ = judge(tmp_path, recorded, [{"name": "big", "source": "gradient.py"}], {"gradient.py": GRADIENT},
                     plugins={"python": "/nowhere/python3"})
    assert rules["big"]["status"] == "Error" and "/nowhere/python3: No such file" in rules["big"]["reason"]


# Over a real Kafka


def status_of(events, rule):
    found = [data["status"] for _, data, headers in events
             if headers.get("ce_type") == "dev.tocsin.rule.v1" and data["rule"] == rule]
    return found[-1] if found else None


def issues_of(events, rule):
    return [(headers["ce_id"], data["annotations"]["summary"]) for _, data, headers in events
            if headers.get("ce_type") == "dev.tocsin.issue.v1" and data["rule"] == rule]


def losses(run, steps):
    return [scalar(run, "loss", 1.0 + (step * 7 % 11) / 10, step) for step in steps]


def config(kafka, prefix, **more):
    return json.dumps({"transport": {"kafka": {"bootstrap.servers": kafka}}, "topics": {"prefix": prefix, "partitions": 2},
                       "http": {"listen": "127.0.0.1:0"}, "engine": {"snapshot_interval": "1s"}, **more})


@pytest.fixture
def worker(tmp_path):
    """worker(config, file, *arguments) starts a rule-worker; all end with the test."""
    running = []

    def start(*arguments):
        running.append(Server(*arguments, role="rule-worker"))
        return running[-1]

    yield start
    for one in running:
        if one.process.poll() is None:
            one.kill()


def run_to_the_end(kafka, prefix, tmp_path, worker, kills):
    """The rule over one run of 60 steps, in parts; behind each part somebody is killed. What was told."""
    (tmp_path / f"{prefix}.yaml").write_text(config(kafka, prefix))
    source = tmp_path / "rises.py"
    source.write_text(RISES)
    topic, issues = f"{prefix}.telemetry.v1", f"{prefix}.issues.v1"
    arguments = (tmp_path / f"{prefix}.yaml", source, "--set", "times=3")
    one = worker(*arguments)
    one.wait_for("ready", timeout=60)
    for part in range(4):
        kafka_produce(kafka, topic, losses("one", range(part * 15, part * 15 + 15)))
        time.sleep(2.5)
        if kills == "child":
            for pid in children_of(one.process.pid):
                os.kill(pid, signal.SIGKILL)
        elif kills == "worker":
            one.kill()
            one = worker(*arguments)
            one.wait_for("ready", timeout=60)
    kafka_produce(kafka, topic, losses("one", range(60, 63)))
    found = wait_until(lambda: (lambda told: told if len(told) >= 1 and settled(kafka, issues, told) else None)(
        issues_of(kafka_events(kafka, issues), "Rises")), 60, "issues")
    one.kill()
    return found


def settled(kafka, topic, told):
    time.sleep(2)
    return issues_of(kafka_events(kafka, topic), "Rises") == told


def children_of(pid):
    return [int(child) for task in pathlib.Path(f"/proc/{pid}/task").iterdir()
            for child in (task / "children").read_text().split()]


def test_kills_of_the_worker_and_of_its_child_lose_and_repeat_nothing(kafka, worker, tmp_path):
    names = {kills: f"py{kills}{random.randrange(10**9)}" for kills in ("nobody", "child", "worker")}
    told = {kills: run_to_the_end(kafka, prefix, tmp_path, worker, kills) for kills, prefix in names.items()}
    assert len(told["nobody"]) >= 3 and len(set(told["nobody"])) == len(told["nobody"])
    assert told["child"] == told["nobody"]
    assert told["worker"] == told["nobody"]


def test_a_rule_that_hangs_holds_up_no_other(kafka, server, tmp_path):
    prefix = f"pyhang{random.randrange(10**9)}"
    (tmp_path / "hangs.py").write_text(textwrap.dedent(FAILS["hangs"][0]))
    (tmp_path / "rises.py").write_text(RISES)
    items = [{"name": "hangs", "source": "hangs.py", "options": {"timeout": "60s"}},
             {"name": "rises", "source": "rises.py", "with": {"times": 3}}, "exploding_tensor"]
    server(config(kafka, prefix, rules=items), role="evaluate").wait_for("ready", timeout=60)
    kafka_produce(kafka, f"{prefix}.telemetry.v1", losses("one", range(40)) + [scalar("one", "loss", "NaN", 40)])
    begun = time.monotonic()
    found = wait_until(lambda: (lambda events: events if issues_of(events, "rises") and issues_of(events, "exploding_tensor")
                                else None)(list(kafka_events(kafka, f"{prefix}.issues.v1"))), 40, "issues of the others")
    assert time.monotonic() - begun < 40 and status_of(found, "hangs") != "Error"  # it still hangs


def test_the_worker_alone_tells_of_its_rules_alone(kafka, worker, tmp_path):
    prefix = f"pyalone{random.randrange(10**9)}"
    (tmp_path / "tocsin.yaml").write_text(config(kafka, prefix))
    (tmp_path / "two.py").write_text(RISES + "\n" + textwrap.dedent(FAILS["raises"][0]))
    worker(tmp_path / "tocsin.yaml", tmp_path / "two.py").wait_for("ready", timeout=60)
    kafka_produce(kafka, f"{prefix}.telemetry.v1", losses("one", range(40)) + [scalar("one", "loss", "NaN", 41)])
    topic = f"{prefix}.issues.v1"
    events = wait_until(lambda: (lambda found: found if issues_of(found, "Rises") and status_of(found, "Fails") == "Error"
                                 else None)(list(kafka_events(kafka, topic))), 40, "issue and status")
    assert {data.get("rule") for _, data, _ in events} == {"Rises", "Fails"}
    [reason] = [data["reason"] for _, data, _ in events if data.get("status") == "Error"]
    assert "KeyError: 'missing'" in reason and "two.py" in reason


SEES = """
from tocsin.rules import Rule
class Sees(Rule):
    def invoke_at_step(self, step):
        return len(self.base_trial.tensor_names(collection="inputs")) > 0
"""


def test_the_worker_alone_asks_the_hook_for_what_its_rules_need(kafka, worker, tmp_path):
    prefix, uid = f"pyasks{random.randrange(10**9)}", str(uuid.uuid4())
    (tmp_path / "sees.py").write_text(SEES)
    file = tmp_path / "tocsin.yaml"
    file.write_text(config(kafka, prefix, rules=[{"name": "sees", "source": "sees.py", "collections_to_save": ["inputs"]}]))
    asker = worker(file, tmp_path / "sees.py")
    asker.wait_for("ready", timeout=60)
    env = {key: value for key, value in os.environ.items() if not key.startswith("TOCSIN_") or key == "TOCSIN_LIBRARY"}
    env.setdefault("TOCSIN_LIBRARY", str(BUILD / "collectors/hook/libtocsin_client.so.0"))
    env.update(TOCSIN_RUN=uid, TOCSIN_CONFIG=str(file), PYTHONPATH=str(ROOT / "python"))
    job = subprocess.run([sys.executable, ROOT / "tests" / "support" / "fed_rules_job.py", "unchanged_tensor", "healthy"], env=env,
                         capture_output=True, text=True, timeout=120)
    assert job.returncode == 0, job.stderr
    found = wait_until(lambda: issues_of(kafka_events(kafka, f"{prefix}.issues.v1"), "sees"), 60, "the issue that says it has inputs")
    assert found
    answers = [data for _, data, _ in kafka_events(kafka, f"{prefix}.acks.v1") if data["run"]["uid"] == uid]
    assert [(one["action"], one["phase"]) for one in answers] == [("capture/sees", "received"), ("capture/sees", "applied")], answers
    said = asker.wait_for("capture_answered", timeout=30, action="capture/sees", phase="applied", run=uid)
    assert said["effective_step"] == answers[1]["effective_step"]
    assert 'tocsin_rules_capture_answers_total{asker="sees",phase="applied"} 1' in asker.get("/metrics")[1]


def test_a_file_that_changes_is_judged_as_it_was_until_a_restart(server, tmp_path):
    source = tmp_path / "high.py"
    source.write_text("from tocsin.rules import Rule\nclass High(Rule):\n    def invoke_at_step(self, step):\n"
                      "        return self.base_trial.tensor('loss').value(step) > 2\n")
    folder = tmp_path / "data"
    config = f"transport: {{journal: {folder}}}\nhttp: {{listen: '127.0.0.1:0'}}\nrules: [{{name: high, source: {source}}}]\n"
    running = server(config, role="evaluate")
    running.wait_for("ready", timeout=60)
    source.write_text("raise RuntimeError('another version')\n")  # before the first record: its process does not run yet
    running.wait_for("configuration_needs_restart", sections="rules in Python")
    JournalWriter(folder).append(*[scalar("r", "loss", value, step) for step, value in enumerate((1, 1, 3, 1))])

    def told():
        return [data for _, data, _ in journal_events(folder, "issues") if data.get("rule") == "high" and data.get("step") is not None]
    wait_until(told, 60, "the issue of the rule as it was")
    assert [one["step"] for one in told() if one["status"] == "firing"] == [2]


def test_check_tries_the_file(tmp_path):
    (tmp_path / "rises.py").write_text(RISES)
    config_file = tmp_path / "tocsin.yaml"
    for item, problem in [({}, None), ({"class": "Falls"}, "has no rule Falls; it has Rises"),
                          ({"with": {"time": 3}}, "Rises takes no argument time; it takes times")]:
        config_file.write_text(json.dumps({"rules": [{"name": "mine", "source": "rises.py", **item}]}))
        code, out, err = run_cli("check", config_file, "--format", "json")
        said = [one for one in json.loads(out) if one["path"] == "rules.mine"]
        assert code == 0 and [one["grade"] for one in said] == (["warning"] if problem else []), out + err
        assert problem is None or problem in said[0]["message"]


def test_what_the_command_refuses(tmp_path):
    def refused(*arguments, code):
        found, _, err = run_cli("rule-worker", *arguments, "--out", tmp_path / "data")
        assert found == code, err
        return err

    (tmp_path / "none.py").write_text("x = 1\n")
    (tmp_path / "rises.py").write_text(RISES)
    assert "no file" in refused(tmp_path / "gone.py", code=2)
    assert "derive a class" in refused(tmp_path / "none.py", code=3)
    assert "has no rule Falls; it has Rises" in refused(tmp_path / "rises.py", "--class", "Falls", code=2)
    assert "did you mean Rises?" in refused(tmp_path / "rises.py", "--class", "Rise", code=2)
    assert "--set: Rises takes no argument tims; it takes times" in refused(tmp_path / "rises.py", "--set", "tims=3", code=2)
    assert "NAME=VALUE" in refused(tmp_path / "rises.py", "--set", "times", code=2)
