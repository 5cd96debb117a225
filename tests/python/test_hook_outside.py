"""What a compiler, a copy and a part make of the hooks on modules: a compiled model, one that is evaluated as a copy, parts in a state of their own."""
import copy

import pytest
import torch

from tests.support.hook_support import Telemetry, wire

import tocsin

EVERYTHING = {"every": "1 step", "overhead": "100%", "collections": ["layers", "inputs", "outputs", "labels", "gradients"]}


class Net(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.body, self.drop, self.head = torch.nn.Linear(6, 8), torch.nn.Dropout(0.1), torch.nn.Linear(8, 3)

    def forward(self, x):
        return self.head(self.drop(self.body(x)))


def build():
    torch.manual_seed(0)
    model = Net()
    return model, torch.optim.SGD(model.parameters(), lr=0.1), torch.nn.CrossEntropyLoss()


def train(hook, model, optimizer, criterion, steps=1):
    for _ in range(steps):
        optimizer.zero_grad()
        loss = criterion(model(torch.randn(5, 6)), torch.randint(0, 3, (5,)))
        loss.backward()
        hook.log(loss=loss)
        optimizer.step()


def told_in_evaluation(out):
    """What was said of the model's state in evaluations."""
    return [value for mode, _, value in Telemetry(out).scalars("model_training") if mode == wire.EVAL]


@pytest.mark.skipif(not hasattr(torch, "compile"), reason="torch 1 has no compiler")
def test_a_compiler_finds_nothing_of_ours_and_the_models_own_inputs_are_seen(out):
    """``fullgraph``: it raises at the first thing that it cannot trace. A model is traced at its first pass, so it does not matter when it is compiled."""
    torch._dynamo.reset()
    model, optimizer, criterion = build()
    compiled = torch.compile(model, backend="aot_eager", fullgraph=True)
    with pytest.warns(RuntimeWarning, match="the model is compiled, so what its layers are given and give"):
        hook = tocsin.watch(compiled, optimizer, out=out, loss=criterion, capture=EVERYTHING)
    train(hook, compiled, optimizer, criterion, steps=3)
    hook.close()
    for step in range(3):
        rows = Telemetry(out).summaries(step)
        assert rows["Net_input_0"]["count"] == 30 and rows["Net_output_0"]["count"] == 15, step
        assert "gradient/body.weight" in rows
        assert not [name for name in rows if name.startswith(("body_", "drop_", "head_"))]
    assert hook.stats()["hook_errors_total"] == {}


def test_a_loss_module_beside_a_copy_does_not_say_how_the_model_stands(out):
    """Schedule-free optimizers and averaged weights: the copy is evaluated, the loss is the one that is watched."""
    model, optimizer, criterion = build()
    hook = tocsin.watch(model, optimizer, out=out, loss=criterion, capture=EVERYTHING)
    mean = copy.deepcopy(model).eval()
    for _ in range(2):
        train(hook, model, optimizer, criterion)
        with hook.mode("eval"), torch.no_grad():
            criterion(mean(torch.randn(5, 6)), torch.randint(0, 3, (5,)))
            hook.step()
    hook.close()
    assert told_in_evaluation(out) == []


def test_a_part_in_a_state_of_its_own_does_not_say_how_the_model_stands(out):
    model, optimizer, criterion = build()

    def apply():
        return model.head(model.drop(model.body(torch.randn(5, 6))))
    hook = tocsin.watch(model, optimizer, out=out, capture=EVERYTHING)
    for own_state in (True, False):
        loss = criterion(apply(), torch.randint(0, 3, (5,)))
        optimizer.zero_grad()
        loss.backward()
        hook.log(loss=loss)
        optimizer.step()
        for part in model.children():
            part.train(not own_state)
        with hook.mode("eval"), torch.no_grad():
            apply()
            hook.step()
        model.train()
    hook.close()
    assert told_in_evaluation(out) == [1.0], "in the second pass all was in training"


@pytest.mark.parametrize("capture", [{}, EVERYTHING])
def test_who_evaluates_first_and_then_says_so_has_evaluated_in_the_eval_state(out, capture):
    """``validate()`` puts the model back into its training state before its result is logged."""
    model, optimizer, criterion = build()
    hook = tocsin.watch(model, optimizer, out=out, capture=capture)

    def validate(forgets):
        model.train(forgets)
        with torch.no_grad():
            loss = criterion(model(torch.randn(5, 6)), torch.randint(0, 3, (5,)))
        model.train()
        with hook.mode("eval"):
            hook.log(loss=loss)
            hook.step()
    for forgets in (False, False, True):
        train(hook, model, optimizer, criterion, steps=3)
        validate(forgets)
    hook.close()
    told = told_in_evaluation(out)
    # Where modules are looked at, it is known besides that the model is not applied where it is said.
    assert told.count(1.0) == (0 if capture else 1) and 1.0 not in told[:-1]
