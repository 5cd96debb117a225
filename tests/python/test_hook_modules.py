"""Inputs and outputs of modules: opt-in, by patterns or because a rule asks; model inputs, predictions and labels."""
import copy
import io
import json
import pickle
import subprocess
import sys

import pytest
import torch

from tests.support.hook_support import CommandWriter, Telemetry, wait_for, wire

import tocsin

ROLES = {code: name for name, code in wire.ROLES.items()}


class Net(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.body, self.relu, self.head = torch.nn.Linear(6, 8), torch.nn.ReLU(), torch.nn.Linear(8, 3)

    def forward(self, x):
        return self.head(self.relu(self.relu(self.body(x))))


def build():
    torch.manual_seed(0)
    model = Net()
    return model, torch.optim.SGD(model.parameters(), lr=0.1), torch.nn.CrossEntropyLoss()


def train(hook, model, optimizer, criterion, steps=4, passes=1, log_last=False):
    for _ in range(steps):
        optimizer.zero_grad()
        for _ in range(passes):
            loss = criterion(model(torch.randn(5, 6)), torch.randint(0, 3, (5,)))
            loss.backward()
        if not log_last:
            hook.log(loss=loss)
        optimizer.step()
        if log_last:
            hook.log(loss=loss)


def module_rows(out, step):
    """name -> row, of what is neither a parameter nor a gradient."""
    return {name: row for name, row in Telemetry(out).summaries(step).items() if "put_" in name}


def role_of(out, name):
    entry = next(entry for entry in Telemetry(out).entries.values() if entry["name"] == name)
    return ROLES[entry["role"]], json.loads(entry["attrs"] or "{}").get("op_type")


def test_nothing_is_hooked_that_nobody_wants(out):
    model, optimizer, criterion = build()
    hook = tocsin.watch(model, optimizer, out=out, loss=criterion, phases=False, capture={"ledger": False})
    train(hook, model, optimizer, criterion)
    assert not model._forward_pre_hooks and not model.relu._forward_hooks
    hook.close()
    assert module_rows(out, 0) == {}


@pytest.mark.parametrize("log_last", [False, True])
def test_outputs_that_a_pattern_names_are_those_of_their_step(out, log_last):
    model, optimizer, criterion = build()
    kept = []
    model.relu.register_forward_hook(lambda module, given, result: kept.append(result.detach().clone()))
    hook = tocsin.watch(model, optimizer, out=out, capture={
        "overhead": "100%", "collections": {"relu": {"include": ["relu_output"], "every": "2 steps"}}})
    train(hook, model, optimizer, criterion, log_last=log_last)
    hook.close()
    for step in range(4):
        rows = module_rows(out, step)
        if step % 2:
            assert rows == {}
            continue
        assert set(rows) == {"relu_output_0", "relu_output_1"}  # one module, applied twice
        for call in range(2):
            told, value = rows[f"relu_output_{call}"], kept[2 * step + call]
            assert (told["count"], told["zero"]) == (40, int((value == 0).sum()))
            assert told["sum"] == pytest.approx(float(value.sum()), rel=1e-5)
    assert role_of(out, "relu_output_0") == ("activation_out", "ReLU")


def test_the_collection_of_layers_has_inputs_too(out):
    model, optimizer, criterion = build()
    hook = tocsin.watch(model, optimizer, out=out, capture={"overhead": "100%", "collections": ["layers"]})
    train(hook, model, optimizer, criterion, steps=1)
    hook.close()
    assert set(module_rows(out, 0)) == {"body_input_0", "body_output_0", "relu_input_0", "relu_output_0", "relu_input_1", "relu_output_1",
                                        "head_input_0", "head_output_0"}
    assert role_of(out, "head_input_0") == ("activation_in", "Linear")


def test_what_the_model_is_given_and_gives_and_what_it_should_have_given(out):
    model, optimizer, criterion = build()
    hook = tocsin.watch(model, optimizer, out=out, loss=criterion, capture={
        "overhead": "100%", "collections": ["inputs", "outputs", "labels", "predictions"]})
    train(hook, model, optimizer, criterion, steps=1)
    hook.close()
    rows = module_rows(out, 0)
    assert {name: role_of(out, name)[0] for name in rows} == {
        "Net_input_0": "input", "Net_output_0": "output", "CrossEntropyLoss_input_0": "prediction", "CrossEntropyLoss_input_1": "label"}
    assert rows["CrossEntropyLoss_input_1"]["max"] <= 2 and rows["CrossEntropyLoss_input_1"]["count"] == 5
    assert rows["Net_output_0"]["sum"] == rows["CrossEntropyLoss_input_0"]["sum"]


def test_of_several_passes_in_a_step_the_first_is_told(out):
    model, optimizer, criterion = build()
    first = []
    model.body.register_forward_hook(lambda module, given, result: first.append(float(result.detach().sum())))
    hook = tocsin.watch(model, optimizer, out=out, capture={"overhead": "100%", "every": "1 step", "collections": {"b": {"include": ["body_output"]}}})
    train(hook, model, optimizer, criterion, steps=2, passes=3)
    hook.close()
    for step in range(2):
        assert module_rows(out, step)["body_output_0"]["sum"] == pytest.approx(first[3 * step], rel=1e-5)


def test_evaluation_has_its_own_grid(out):
    model, optimizer, criterion = build()
    hook = tocsin.watch(model, optimizer, out=out, capture={"overhead": "100%", "every": {"train": "1 step", "eval": "2 steps"},
                                                            "collections": {"b": {"include": ["head_output"]}}})
    train(hook, model, optimizer, criterion, steps=1)
    model.eval()
    for _ in range(3):
        hook.log(loss=criterion(model(torch.randn(5, 6)), torch.randint(0, 3, (5,))))
        hook.step()
    hook.close()
    frames = [(frame.header["mode"], frame.header["step"]) for frame in Telemetry(out).of_kind(wire.SUMMARY)]
    assert sorted(frames) == [(wire.TRAIN, 0), (wire.EVAL, 0), (wire.EVAL, 2)]


def test_a_rule_that_asks_gets_hooks_and_takes_them_away_again(out):
    model, optimizer, criterion = build()
    hook = tocsin.watch(model, optimizer, out=out, capture={"overhead": "100%", "every": "1 step"})
    train(hook, model, optimizer, criterion, steps=1)
    writer = CommandWriter(out)
    before = hook.stats()["commands_received_total"]
    writer.stop(hook.run, hook.attempt, action="capture", command_id="cmd_c",
                args={"version": "v1", "plans": [{"collections": {"layers": {}}}]})
    assert wait_for(lambda: hook.stats()["commands_received_total"] > before)
    train(hook, model, optimizer, criterion, steps=3)
    assert model.relu._forward_hooks
    writer.write(hook.run, "capture", None)
    assert wait_for(lambda: (train(hook, model, optimizer, criterion, steps=1), not model.relu._forward_hooks)[1])
    hook.close()
    assert "relu_output_0" in Telemetry(out).summaries()
    assert not model._forward_pre_hooks


def test_two_optimizers_of_one_model_show_its_modules_once(out):
    model, _, criterion = build()
    body, head = torch.optim.SGD(model.body.parameters(), lr=0.1), torch.optim.SGD(model.head.parameters(), lr=0.1)
    hook = tocsin.watch(model, body, out=out, capture={"overhead": "100%", "collections": {"b": {"include": ["relu_output"]}}})
    tocsin.watch(model, head)
    for _ in range(2):
        loss = criterion(model(torch.randn(5, 6)), torch.randint(0, 3, (5,)))
        loss.backward()
        body.step()
        head.step()
        hook.log(loss=loss)
    hook.close()
    rows = [row for frame in Telemetry(out).of_kind(wire.SUMMARY) for row in frame.rows]
    assert len(rows) == 2 and not hook.stats()["hook_errors_total"]


def test_a_sequence_has_a_bounded_number_of_tensors(out):
    class Recurrent(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.cell = torch.nn.Linear(6, 6)

        def forward(self, x):
            for _ in range(50):
                x = self.cell(x)
            return x

    model = Recurrent()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.001)
    hook = tocsin.watch(model, optimizer, out=out, capture={"overhead": "100%", "collections": {"b": {"include": ["cell_output"]}}})
    model(torch.randn(2, 6)).square().mean().backward()
    optimizer.step()
    hook.close()
    assert len(module_rows(out, 0)) == 8


def training(out):
    return [(mode, step, value) for mode, step, value in Telemetry(out).scalars("model_training")]


def test_the_training_flag_is_told_when_it_changes_and_while_it_does_not_fit(out):
    model, optimizer, criterion = build()
    model.relu = torch.nn.Sequential(torch.nn.ReLU(), torch.nn.Dropout(0.1))
    hook = tocsin.watch(model, optimizer, out=out)
    train(hook, model, optimizer, criterion, steps=3)
    model.eval()
    for _ in range(2):
        hook.log(loss=1.0)
        hook.step()
    train(hook, model, optimizer, criterion, steps=2)  # forgot model.train()
    with hook.mode("eval"):
        model.train()  # and here model.eval()
        for _ in range(2):
            hook.log(loss=1.0)
            hook.step()
    hook.close()
    assert training(out) == [(wire.TRAIN, 0, 1.0), (wire.EVAL, 0, 0.0), (wire.TRAIN, 3, 0.0), (wire.TRAIN, 4, 0.0),
                             (wire.EVAL, 3, 1.0), (wire.EVAL, 4, 1.0)]  # the log() before the update counted as one of eval



@pytest.mark.parametrize("captured", [True, False])
def test_a_model_that_is_not_evaluated_does_not_say_how_it_stands_meanwhile(out, captured):
    model, optimizer, criterion = build()
    model.relu = torch.nn.Dropout(0.1)
    mean = copy.deepcopy(model).eval()
    capture = {"overhead": "100%", "collections": {"seen": {"include": ["put_"]}}} if captured else {}
    hook = tocsin.watch(model, optimizer, out=out, capture=capture)
    for _ in range(2):
        train(hook, model, optimizer, criterion, steps=3)
        with hook.mode("eval"), torch.no_grad():
            for _ in range(2):
                mean(torch.randn(5, 6))
                hook.log(loss=1.0)
                hook.step()
    with hook.mode("eval"), torch.no_grad():
        model(torch.randn(5, 6))  # forgot model.eval()
        hook.log(loss=1.0)
        hook.step()
        hook.log(loss=1.0)
        hook.step()
    hook.close()
    told = [(wire.EVAL, 4, 1.0), (wire.EVAL, 5, 1.0)]
    unseen = [] if captured else [(wire.EVAL, step, 1.0) for step in range(4)]
    assert [one for one in training(out) if one[0] == wire.EVAL] == unseen + told


def test_a_model_whose_states_do_not_differ_says_nothing_of_them(out):
    model, optimizer, criterion = build()
    model.relu = torch.nn.Sequential(torch.nn.ReLU(), torch.nn.Dropout(0.0), torch.nn.LayerNorm(8))
    hook = tocsin.watch(model, optimizer, out=out)
    train(hook, model, optimizer, criterion, steps=2)
    with hook.mode("eval"):
        hook.log(loss=1.0)
        hook.step()
    hook.close()
    assert training(out) == []


class Looks(torch.nn.Module):
    def forward(self, x):
        return torch.nn.functional.dropout(x, 0.5, self.training)


def test_what_makes_the_two_states_of_a_model_differ():
    from tocsin.adapters.torch.models.state import state_matters
    nn = torch.nn
    for part in (nn.Dropout(0.1), nn.BatchNorm1d(3), nn.LSTM(3, 3, 2, dropout=0.1), nn.RReLU(), Looks(),
                 nn.TransformerEncoderLayer(4, 2)):
        assert state_matters(nn.Sequential(nn.Linear(3, 3), part)), part
    for part in (nn.Dropout(0.0), nn.BatchNorm1d(3, track_running_stats=False), nn.LSTM(3, 3), nn.LayerNorm(3), Net(),
                 nn.TransformerEncoderLayer(4, 2, dropout=0.0)):
        assert not state_matters(nn.Sequential(nn.Linear(3, 3), part)), part


class Parts(torch.nn.Module):
    """Applied part by part, and never itself, as a LightningModule is whose training_step calls ``self.net(x)``."""
    def __init__(self):
        super().__init__()
        self.net = torch.nn.Sequential(torch.nn.Linear(6, 8), torch.nn.ReLU())
        self.head = torch.nn.Linear(8, 3)


@pytest.mark.parametrize("log_last", [False, True])
def test_parts_that_are_applied_without_their_model_are_seen(out, log_last):
    torch.manual_seed(0)
    model = Parts()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    capture = {"every": "2 steps", "overhead": "100%", "collections": {"seen": {"include": ["put_"]}}}
    hook = tocsin.watch(model, optimizer, out=out, capture=capture)
    given = []
    for _ in range(6):
        batch, labels = torch.randn(5, 6), torch.randint(0, 3, (5,))
        given.append((batch.sum().item(), labels.sum().item()))
        optimizer.zero_grad()
        loss = torch.nn.functional.cross_entropy(model.head(model.net(batch)), labels)
        loss.backward()
        if not log_last:
            hook.log(loss=loss)
        optimizer.step()
        if log_last:
            hook.log(loss=loss)
    hook.close()
    assert Telemetry(out).steps() == list(range(6))
    for step in (0, 2, 4):
        rows = module_rows(out, step)
        assert {"net.0_output_0", "net.1_output_0", "head_output_0", "Parts_input_0"} <= set(rows), step
        assert "head_output_1" not in rows
        assert rows["Parts_input_0"]["sum"] == pytest.approx(given[step][0], rel=1e-4)
    # Which part is the last one the first sampled step shows.
    assert "cross_entropy_input_1" not in module_rows(out, 0)
    for step in (2, 4):
        assert module_rows(out, step)["cross_entropy_input_1"]["sum"] == given[step][1]
    assert module_rows(out, 1) == {}
    assert role_of(out, "Parts_input_0") == ("input", "Parts")


def test_a_model_that_is_applied_itself_is_seen_once(out):
    """Also where the loop applies one of its parts besides."""
    model, optimizer, criterion = build()
    hook = tocsin.watch(model, optimizer, out=out, loss=criterion, capture={"every": "1 step", "overhead": "100%", "collections": {"seen": {"include": ["put_"]}}})
    for _ in range(3):
        optimizer.zero_grad()
        loss = criterion(model(torch.randn(5, 6)), torch.randint(0, 3, (5,))) + model.head.weight.sum() * 0
        model.body(torch.randn(2, 6))
        loss.backward()
        hook.log(loss=loss)
        optimizer.step()
    hook.close()
    rows = module_rows(out, 2)
    assert rows["Net_input_0"]["count"] == 30 and rows["relu_output_1"]["count"] == 40
    assert rows["body_output_0"]["count"] == 40


@pytest.mark.parametrize("scripted", (False, True))
def test_a_model_whose_modules_are_captured_is_copied_pickled_and_scripted_as_any(out, tmp_path, scripted):
    """As averages of weights, checkpoints of whole models and workers do; where it is unpickled nothing of ours has to be there."""
    torch.manual_seed(0)
    model = torch.nn.Sequential(torch.nn.Linear(6, 8), torch.nn.ReLU(), torch.nn.Linear(8, 3))
    model[1].criterion = torch.nn.CrossEntropyLoss()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    capture = {"every": "1 step", "overhead": "100%", "collections": {"seen": {"include": ["put_"]}}}
    hook = tocsin.watch(model, optimizer, out=out, loss=model[1].criterion, capture=capture)
    batch = torch.randn(5, 6)
    model[1].criterion(model(batch), torch.randint(0, 3, (5,))).backward()
    optimizer.step()
    if scripted:
        assert torch.equal(torch.jit.script(model)(batch), model(batch))
    twin = copy.deepcopy(model)
    assert torch.equal(twin(batch), model(batch))
    torch.save(model, io.BytesIO())
    (tmp_path / "model.pickle").write_bytes(pickle.dumps(model))
    done = subprocess.run([sys.executable, "-c", "import pickle, sys, torch; model = pickle.load(open(sys.argv[1], 'rb')); print(model(torch.ones(1, 6)).shape); "
                           "assert not any('tocsin' in name for name in sys.modules)", str(tmp_path / "model.pickle")], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert hook.stats()["hook_errors_total"] == {}
    hook.close()
    assert "1_output_0" in module_rows(out, 0)


def replay(out, steps=60, repeats=lambda step, memory: torch.randint(0, len(memory), (16,))):
    """A loop with a replay memory: the model acts on what it sees, which does not change from some step on, and is trained on what it
    remembers. What the rule says."""
    model, optimizer, _ = build()
    hook = tocsin.watch(model, optimizer, out=out, rules=["repeated_batch"], capture={"every": "1 step", "overhead": "100%",
                                                                                     "collections": {"inputs": {}}})
    memory = torch.randn(200, 6)
    for step in range(steps):
        with torch.no_grad():
            model(memory[min(step, 20)].reshape(1, 6)).argmax()
        optimizer.zero_grad()
        loss = model(memory[repeats(step, memory)]).square().mean()
        loss.backward()
        hook.log(loss=loss)
        optimizer.step()
    hook.close()
    assert not hook.stats()["hook_errors_total"]
    return {issue["kind"] for issue in hook.issues()}


def test_the_batch_of_a_replay_memory_is_the_one_that_is_trained_on(out):
    assert replay(out) == set()
    assert {row["count"] for name, row in module_rows(out, 30).items() if name == "Net_input_0"} == {16 * 6}


def test_a_replay_memory_that_gives_the_same_batch_is_told(out):
    assert replay(out, repeats=lambda step, memory: torch.arange(16) + min(step, 20)) == {"stuck"}
