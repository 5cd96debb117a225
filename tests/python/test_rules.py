"""tocsin.rules: trials, rules over recordings, what a rule remembers, and the process of a rule."""

import collections
import json
import math
import os
import socket
import struct
import subprocess
import sys
import textwrap
import time

import pytest

from tocsin import exceptions, modes, wire
from tocsin.rules import Rule, create_trial, invoke_rule, saving
from tocsin.rules.trial import Row, SavedStep, StepState, Trial

TRAIN, EVAL, GLOBAL = modes.TRAIN, modes.EVAL, modes.GLOBAL


def tensor(*values):
    n, total = len(values), sum(values)
    mean = total / n
    return Row(None, (n, total, sum(v * v for v in values), sum((v - mean) ** 2 for v in values),
                      sum(abs(v) for v in values), min(values), max(values), 0, 0, 0,
                      sum(v == 0 for v in values), sum(v < 0 for v in values)), {})


def scalar(value):
    return Row(value, None, {})


@pytest.fixture
def trial():
    out = Trial("digits", "4e30/1")
    for step in range(5):
        out.add(SavedStep(TRAIN, step * 10, step * 12, step, {
            "gradient/conv1.weight": {"worker_1": tensor(1.0, -2.0, 0.0, 3.0 + step), "worker_0": tensor(1.0)},
            "loss": {"worker_0": scalar(5.0 - step)}}))
    out.add(SavedStep(EVAL, 3, 50, 50, {"loss": {"worker_0": scalar(7.0)}}))
    out.describe("gradient/conv1.weight", "gradient", shape=(2, 2))
    out.describe("loss", "loss")
    return out


def test_a_trial_counts_steps_by_mode_and_over_all(trial):
    assert trial.steps() == [0, 12, 24, 36, 48, 50]
    assert trial.steps(mode=TRAIN) == [0, 10, 20, 30, 40]
    assert trial.steps(mode=EVAL) == [3]
    assert trial.modes() == [TRAIN, EVAL]
    assert trial.mode(24) is TRAIN and trial.mode_step(24) == 20 and trial.global_step(EVAL, 3) == 50
    assert trial.mode_modestep(50) == (EVAL, 3)
    assert trial.has_passed_step(13) is StepState.UNAVAILABLE
    assert trial.has_passed_step(51) is StepState.NOT_YET_AVAILABLE
    with pytest.raises(exceptions.StepUnavailable):
        trial.mode_step(13)
    with pytest.raises(exceptions.StepNotYetAvailable):
        trial.wait_for_steps([0, 60])


def test_names_by_collection_pattern_step_and_the_originals_spelling(trial):
    assert trial.tensor_names() == ["gradient/conv1.weight", "loss"]
    assert trial.tensor_names(collection="gradients") == ["gradient/conv1.weight"]
    assert trial.tensor_names(regex="^lo") == ["loss"]
    assert trial.tensor_names(step=50) == ["loss"]
    assert trial.tensor_names(mode=EVAL) == ["loss"]
    with pytest.raises(ValueError):
        trial.tensor_names(regex="a", collection="losses")
    assert trial.tensor("gradient/My_Net_conv1.weight").name == "gradient/conv1.weight"
    assert trial.tensor("scalar/loss").name == "loss"
    with pytest.raises(exceptions.TensorUnavailable):
        trial.tensor("nothing")


def test_values_and_reductions_of_a_worker(trial):
    gradient, loss = trial.tensor("gradient/conv1.weight"), trial.tensor("loss")
    assert loss.value(24) == 3.0 and loss.value(20, mode=TRAIN) == 3.0
    assert loss.values(mode=TRAIN) == {0: 5.0, 10: 4.0, 20: 3.0, 30: 2.0, 40: 1.0}
    assert gradient.workers(12) == ["worker_0", "worker_1"]
    assert gradient.reduction_value(12, "mean") == 1.0  # of worker_0, the first one
    of = dict(worker="worker_1")
    assert gradient.reduction_value(12, "max", **of) == 4.0
    assert gradient.reduction_value(12, "mean", abs=True, **of) == 7 / 4
    assert gradient.reduction_value(12, "l2", **of) == pytest.approx(math.sqrt(1 + 4 + 16))
    assert gradient.reduction_value(12, "min", abs=True, **of) == 0.0
    assert gradient.reduction_value(12, "variance", **of) == pytest.approx(4.6875)
    assert gradient.reduction_values(12, **of)["max", True] == 4.0
    assert gradient.statistic(12, "zero", **of) == 1
    assert gradient.shape(12) == (2, 2) and loss.shape(12) == (1,)
    assert gradient.prev_steps(30, n=2) == [12, 24] and gradient.prev_steps(24, n=9) == [0, 12, 24]
    with pytest.raises(exceptions.TensorUnavailableForStep, match="reduction_value"):
        gradient.value(12)
    with pytest.raises(exceptions.TensorUnavailableForStep):
        gradient.reduction_value(50, "mean")
    with pytest.raises(exceptions.TensorUnavailableForStep):
        gradient.reduction_value(12, "median")
    with pytest.raises(exceptions.InvalidWorker):
        loss.value(12, worker="worker_9")
    with pytest.raises(ValueError):
        gradient.reduction_value(12, "average")


def test_only_the_newest_steps_are_kept(trial):
    trial.keep(2)
    assert trial.steps() == [48, 50] and trial.has_tensor("gradient/conv1.weight")
    trial.keep(1)
    assert trial.steps() == [50] and not trial.has_tensor("gradient/conv1.weight")
    with pytest.raises(exceptions.MissingData):
        trial.tensor("loss").value(24)


class Falling(Rule):
    """What the loss did since the step before."""

    def __init__(self, base_trial, least=1.0):
        super().__init__(base_trial)
        self.least = float(least)
        self.seen = []

    def set_required_tensors(self, step):
        steps = self.base_trial.tensor("loss").prev_steps(step, n=2)
        self.req_tensors.add("loss", steps)

    def invoke_at_step(self, step):
        self.seen.append(step)
        values = [self.req_tensors.get()[0].value(one) for one in self.req_tensors.get_tensor_steps("loss")]
        return len(values) == 2 and values[0] - values[1] < self.least


def test_a_rule_over_a_trial(trial):
    assert invoke_rule(Falling(trial)) == [50]
    assert invoke_rule(Falling(trial, least="1.5"), start_step=12, end_step=48) == [12, 24, 36]
    with pytest.raises(exceptions.RuleEvaluationConditionMet) as met:
        invoke_rule(Falling(trial), raise_eval_cond=True)
    assert met.value.step == 50 and met.value.rule_name == "Falling"


def test_a_rule_may_raise_and_may_miss_something(trial):
    class Raises(Rule):
        def invoke_at_step(self, step):
            self.base_trial.tensor("gradient/conv1.weight").reduction_value(step, "mean")
            raise exceptions.RuleEvaluationConditionMet(self.rule_name, step)

    assert invoke_rule(Raises(trial)) == [0, 12, 24, 36, 48]  # step 50 has no gradient


def test_issues_of_a_rule(trial):
    class Tells(Rule):
        def invoke_at_step(self, step):
            self.issue("too large", key="loss", severity="error", evidence={"last": float("nan")},
                       observed=("loss", 2.0), threshold=(">", "limit", 1))
            return False

    told = Tells(trial).evaluate(12)
    assert told == [{"key": "loss", "summary": "too large", "recommendation": "", "severity": "error",
                     "values": {"last": "NaN"}, "observed_name": "loss", "observed": 2.0, "operator": ">",
                     "threshold_name": "limit", "threshold": 1.0}]

    class Wrong(Rule):
        def invoke_at_step(self, step):
            self.issue(severity="loud")

    with pytest.raises(ValueError, match="loud"):
        Wrong(trial).evaluate(12)


@pytest.mark.parametrize("value", [
    None, True, 3, -0.1, "ü", [1, [2.5, None]], {"a": {"b": 1}}, (1, (2, "x")), {1: "one", (2, 3): [4]}, {3, 1},
    frozenset({"a"}), collections.deque([1, 2], maxlen=2), {"~": "mine"}, float("inf")])
def test_plain_data_comes_back(value):
    again = saving.value_of(saving.text_of(value))
    assert again == value and type(again) is type(value)


def test_arrays_come_back():
    numpy = pytest.importorskip("numpy")
    array = numpy.arange(6, dtype="float32").reshape(2, 3)
    again = saving.value_of(saving.text_of({"a": array, "n": numpy.float64(0.1)}))
    assert again["a"].dtype == array.dtype and (again["a"] == array).all() and again["n"] == 0.1


def test_what_is_no_plain_data_is_left_to_the_constructor(trial, caplog):
    class Odd(Falling):
        def __init__(self, base_trial):
            super().__init__(base_trial)
            self.function = lambda: 1
            self.counts = collections.defaultdict(int)

    rule = Odd(trial)
    rule.counts["a"] += 1
    invoke_rule(rule)
    kept = rule.save()
    assert "function" not in kept and "function" in caplog.text
    again = Odd(trial)
    again.load(saving.value_of(saving.text_of(kept)))
    assert again.seen == rule.seen and again.function() == 1
    again.counts["new"] += 1  # still one that makes missing keys
    assert again.counts == {"a": 1, "new": 1}


# The process


class Process:
    def __init__(self):
        ours, theirs = socket.socketpair()
        # Descriptor 3, whatever else is open here.
        self.process = subprocess.Popen(
            [sys.executable, "-c", textwrap.dedent(f"""
                import os, runpy
                os.dup2({theirs.fileno()}, 3)
                runpy.run_module("tocsin.rules.worker", run_name="__main__")
                """)], pass_fds=[theirs.fileno()], stdin=subprocess.DEVNULL, stderr=subprocess.PIPE)
        theirs.close()
        self.stream = ours.makefile("rwb")
        ours.close()

    def ask(self, **request):
        data = json.dumps(request).encode()
        self.stream.write(struct.pack("<I", len(data)) + data)
        self.stream.flush()
        return json.loads(self.stream.read(struct.unpack("<I", self.stream.read(4))[0]))

    def hello(self, source, **more):
        return self.ask(type="hello", protocol=1, source=str(source), **more)

    def step(self, step, loss, session=1, judge=True, kept=0):
        return self.ask(type="step", session=session, judge=judge, kept=kept, mode="train", step=step,
                        global_step=step, time=step, rows=[{"n": "7", "w": "worker_0", "role": "loss", "v": loss}],
                        names={"7": {"name": "loss"}})


@pytest.fixture
def process():
    one = Process()
    yield one
    one.stream.close()
    one.process.stderr.close()
    one.process.kill()
    one.process.wait()


SOURCE = """
from tocsin.rules.rule import Rule

class Growing(Rule):
    def __init__(self, base_trial, by=0.0):
        super().__init__(base_trial)
        self.by = float(by)
        self.last = None

    def invoke_at_step(self, step):
        value = self.base_trial.tensor("loss").value(step)
        if value == 13:
            print("unlucky")
            raise RuntimeError("no thirteens")
        last, self.last = self.last, float(value)
        return last is not None and value > last + self.by
"""


def test_the_process_of_a_rule(process, tmp_path):
    source = tmp_path / "growing.py"
    source.write_text(SOURCE)
    assert process.hello(source, parameters={"by": "0.5"}) == {"type": "ready", "classes": ["Growing"]}
    assert process.ask(type="open", session=1, run="u/1", job="j", rule="mine")["outcome"] == "ok"
    first = process.step(0, 1.0)
    assert first["outcome"] == "ok" and "1.0" in first["saved"]
    assert process.step(1, 1.2, kept=1)["outcome"] == "ok"
    last = process.step(2, 3.0, kept=2)
    assert last["outcome"] == "hit" and last["issues"][0]["key"] == ""
    failed = process.step(3, 13, kept=3)
    assert failed["type"] == "error" and failed["error"].endswith("RuntimeError: no thirteens")
    assert "growing.py" in failed["error"] and "worker.py" not in failed["error"]
    # Another process goes on from what this one said.
    other = Process()
    other.hello(source, parameters={"by": "0.5"})
    other.ask(type="open", session=1, run="u/1", saved=last["saved"])
    assert other.step(2, 3.0, judge=False)["outcome"] == "ok"
    assert other.step(4, 3.2, kept=1)["outcome"] == "ok"
    assert other.step(5, 4.0, kept=2)["outcome"] == "hit"
    other.stream.close()
    other.process.wait(10)  # it ends when nobody is there any more
    other.process.stderr.close()


def test_a_rule_as_the_originals_own_are_written(process, tmp_path):
    source = tmp_path / "originals.py"
    source.write_text(textwrap.dedent("""
        from tocsin.core.collection import CollectionKeys
        from tocsin.core.logger import get_logger
        from tocsin.core.modes import ModeKeys
        from tocsin.rules.rule import Rule

        class LossLow(Rule):
            def __init__(self, base_trial, action_str, threshold=1):
                super().__init__(base_trial, action_str=action_str)
                self.threshold, self.logger = float(threshold), get_logger()

            def set_required_tensors(self, step):
                for name in self.base_trial.tensor_names(step=step, collection=CollectionKeys.LOSSES):
                    self.req_tensors.add(name, steps=[step])

            def invoke_at_step(self, step):
                self.logger.info("at %s", step)
                return any(one.value(step, mode=ModeKeys.GLOBAL) < self.threshold for one in self.req_tensors.get())
        """))
    process.hello(source, parameters={"threshold": "2"})
    assert process.ask(type="open", session=1, run="u/1")["outcome"] == "ok"
    assert [process.step(step, loss, kept=step)["outcome"] for step, loss in enumerate((3, 1))] == ["ok", "hit"]


@pytest.mark.parametrize("what", ["raise MemoryError", "raise ImportError('libtorch_cpu.so: failed to map segment from shared object')"])
def test_too_little_memory_is_said_with_what_gives_more(process, tmp_path, what):
    source = tmp_path / "large.py"
    source.write_text("import resource\nresource.setrlimit(resource.RLIMIT_AS, (3 << 30, 3 << 30))\n" + what)
    assert process.hello(source)["error"].endswith("Its process may have 3 GiB of address space: options.memory gives it more")


def test_what_it_lacks_is_said_once(process, tmp_path):
    source = tmp_path / "lacks.py"
    source.write_text(SOURCE.replace('"loss"', '"accuracy"'))
    process.hello(source)
    process.ask(type="open", session=1, run="u/1", rule="mine")
    assert {process.step(step, 1.0, kept=step)["outcome"] for step in range(3)} == {"insufficient_data"}
    process.stream.close()
    assert process.process.stderr.read().decode().splitlines() == [
        "WARNING tocsin.rules mine cannot judge step 0: tensor accuracy is not there (said once)"]


def test_a_file_is_what_it_was_when_its_version_was_settled(process, tmp_path):
    source = tmp_path / "growing.py"
    (tmp_path / "beside.py").write_text("LEAST = 0")
    source.write_text("raise RuntimeError('another version')")
    assert process.hello(source, content="from beside import LEAST\n" + SOURCE)["classes"] == ["Growing"]
    process.ask(type="open", session=1, run="u/1")
    failed = process.step(0, 13)
    assert 'growing.py", line' in failed["error"] and failed["error"].endswith("RuntimeError: no thirteens")


def test_other_trials_may_come_second(trial):
    class Old(Rule):
        def __init__(self, base_trial, other_trials):
            super().__init__(base_trial, other_trials)
    rule = Old(trial, [Trial("other")])
    assert [one.name for one in rule.other_trials] == ["other"] and rule.action_str == ""


def test_a_fork_that_comes_back_answers_nothing(process, tmp_path):
    source = tmp_path / "forks.py"
    source.write_text(textwrap.dedent("""
        import os
        import time
        from tocsin.rules import Rule

        class Forks(Rule):
            def invoke_at_step(self, step):
                if step == 0 and os.fork() == 0:
                    time.sleep(0.2)  # its parent has answered
                return step == 1
        """))
    process.hello(source)
    process.ask(type="open", session=1, run="u/1")
    assert process.step(0, 1.0)["outcome"] == "ok"
    time.sleep(0.5)
    assert [process.step(step, 1.0, kept=step)["outcome"] for step in range(1, 4)] == ["hit", "ok", "ok"]


@pytest.mark.parametrize("text, more, error", [
    ("import nothing_like_that", {}, "No module named 'nothing_like_that'"),
    ("x = 1", {}, "has no rules: derive a class from tocsin.rules.Rule"),
    (SOURCE + SOURCE.replace("Growing", "Other"), {}, "has 2 rules (Growing, Other): name one of them"),
    (SOURCE, {"class": "Gone"}, "has no rule Gone; it has Growing"),
    (SOURCE, {"parameters": {"bye": 1}}, "Growing takes no argument bye; it takes by"),
    ("def f(:\n", {}, "SyntaxError"),
])
def test_a_file_that_cannot_be_used(process, tmp_path, text, more, error):
    source = tmp_path / "rules.py"
    source.write_text(text)
    answer = process.hello(source, **more)
    assert answer["type"] == "error" and error in answer["error"]


def test_a_recording(tmp_path):
    import sqlite3
    database = sqlite3.connect(tmp_path / "telemetry.db")
    database.execute("CREATE TABLE telemetry(id INTEGER PRIMARY KEY, value BLOB)")
    head = dict(worker="worker_0", mode=wire.TRAIN)
    run = wire.run_uid("digits", "one")
    frames = []
    name = wire.xxh64(b"loss")
    for step in range(4):
        frames.append(wire.encode_frame(wire.header(run, step=step, global_step=step, sequence=step + 1, **head),
                                        wire.SCALAR, [{"name": name, "step": step, "global_step": step, "time": step,
                                                       "value": 3.0 - step, "meta": 4 << 8}]))
    frames.append(wire.encode_dictionary(wire.header(run, sequence=9, **head), [
        {"hash": name, "type": 2, "dtype": 2, "role": 4, "name": "loss", "attrs": json.dumps({"collections": ["losses"]})}]))
    frames.append(b"{\"run\": \"x\"}")
    database.executemany("INSERT INTO telemetry VALUES (?, ?)", list(enumerate(frames)))
    database.commit()
    database.close()
    recorded = create_trial(str(tmp_path))
    assert recorded.steps() == [0, 1, 2, 3] and recorded.tensor_names(collection="losses") == ["loss"]
    assert recorded.tensor("loss").values() == {0: 3.0, 1: 2.0, 2: 1.0, 3: 0.0}
    assert create_trial(str(tmp_path), range_steps=(1, 3)).steps() == [1, 2]
    assert invoke_rule(Falling(recorded, least=1.5)) == [1, 2, 3]
    with pytest.raises(FileNotFoundError):
        create_trial(os.path.join(str(tmp_path), "nothing"))
    with pytest.raises(ValueError, match="no run ffff"):
        create_trial(str(tmp_path), run="ffff")
