"""The collection optimizer_variables: what PyTorch's optimizers remember of each parameter, before each update."""

import pytest
import torch

from tests.support.hook_support import Telemetry

import tocsin

CAPTURE = {"overhead": "100%", "every": "1 step", "collections": ["weights", "optimizer_variables"]}


def train(out, make, steps=3, capture=CAPTURE, watch_optimizer=True):
    """What the optimizer held before each update, by (step, name)."""
    torch.manual_seed(0)
    model = torch.nn.Sequential(torch.nn.Linear(3, 2), torch.nn.ReLU(), torch.nn.Linear(2, 1))
    optimizer = make(model.parameters())
    hook = tocsin.watch(model, optimizer if watch_optimizer else None, out=out, capture=capture)
    names, held = {id(one): name for name, one in model.named_parameters()}, {}
    for step in range(steps):
        optimizer.zero_grad()
        model(torch.randn(4, 3)).pow(2).mean().backward()
        for parameter, state in optimizer.state.items():
            for slot, value in state.items():
                if torch.is_tensor(value) and value.dim():
                    held[step, f"optimizer/{names[id(parameter)]}/{slot}"] = value.clone()
        optimizer.step()
        if not watch_optimizer:
            hook.step()
    hook.close()
    assert not hook.stats()["hook_errors_total"]
    return held


@pytest.mark.parametrize("make", [
    lambda parameters: torch.optim.Adam(parameters, lr=0.01, amsgrad=True), lambda parameters: torch.optim.SGD(parameters, 0.01, momentum=0.9),
    lambda parameters: torch.optim.RMSprop(parameters, 0.01), lambda parameters: torch.optim.Adagrad(parameters, 0.01)],
    ids=["adam", "momentum", "rmsprop", "adagrad"])
def test_each_value_is_what_the_update_began_with(out, make):
    held = train(out, make)
    telemetry = Telemetry(out)
    seen = {(step, name): row for step in range(3) for name, row in telemetry.summaries(step).items() if name.startswith("optimizer/")}
    assert held and set(seen) == set(held)
    for key, value in held.items():
        assert seen[key]["sum"] == pytest.approx(float(value.double().sum()), abs=1e-6), key
    entry = next(one for one in telemetry.entries.values() if one["name"].startswith("optimizer/0.weight/"))
    assert entry["role"] == 10 and list(entry["dims"]) == [2, 3]


def test_nothing_is_read_unless_it_is_asked_for(out):
    train(out, lambda parameters: torch.optim.Adam(parameters), capture={**CAPTURE, "collections": ["weights"]})
    assert not any(one["name"].startswith("optimizer/") for one in Telemetry(out).entries.values())


def test_a_pattern_takes_some_of_it(out):
    train(out, lambda parameters: torch.optim.Adam(parameters), capture={
        **CAPTURE, "collections": {"second": {"include": [r"optimizer/2\.weight/exp_avg_sq$"]}}})
    assert sorted(one["name"] for one in Telemetry(out).entries.values() if one["name"].startswith("optimizer/")) \
        == ["optimizer/2.weight/exp_avg_sq"]


@pytest.mark.parametrize("make, watched", [(lambda parameters: torch.optim.SGD(parameters, 0.01), True),
                                           (lambda parameters: torch.optim.Adam(parameters), False)], ids=["remembers nothing", "not given"])
def test_what_cannot_be_captured_is_said_aloud(out, capfd, make, watched):
    train(out, make, watch_optimizer=watched)
    assert "collection optimizer_variables held nothing" in capfd.readouterr().err


def test_a_collection_that_held_something_is_not_said(out, capfd):
    train(out, lambda parameters: torch.optim.Adam(parameters))
    assert "held nothing" not in capfd.readouterr().err
