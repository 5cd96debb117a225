"""What the first updates show: parts of a model that do not train. They were never published, and are the fault."""
import pytest
import torch

from tests.support.hook_support import Telemetry

import tocsin


class Net(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.body, self.head = torch.nn.Linear(6, 4), torch.nn.Linear(4, 2)
        self.frozen = torch.nn.Linear(4, 4).requires_grad_(False)

    def forward(self, x):
        return self.head(self.body(x))


def train(model, optimizer, hook, steps=4, through=None):
    for _ in range(steps):
        optimizer.zero_grad()
        loss = (through or model)(torch.randn(4, 6)).square().mean()
        loss.backward()
        hook.log(loss=loss)
        optimizer.step()


def findings(out):
    told = Telemetry(out).lifecycles("preflight")
    return told[0]["findings"] if told else []


def test_a_model_that_trains_as_a_whole_is_not_talked_of(out, capfd):
    model = Net()
    optimizer = torch.optim.Adam(model.parameters())
    hook = tocsin.watch(model, optimizer, out=out)
    train(model, optimizer, hook)
    hook.close()
    assert findings(out) == [] and "parameter" not in capfd.readouterr().err


def test_parameters_in_no_optimizer(out, capfd):
    model = Net()
    optimizer = torch.optim.Adam(model.body.parameters())
    hook = tocsin.watch(model, optimizer, out=out)
    train(model, optimizer, hook)
    hook.close()
    assert findings(out) == [{"kind": "no_optimizer", "model": "Net", "count": 2, "names": ["head.weight", "head.bias"]}]
    assert "tocsin: 2 trainable parameters of Net are in no optimizer that is watched, and do not change: head.weight, head.bias\n" \
        in capfd.readouterr().err


class ByData(torch.optim.SGD):
    """As optimizers of old: torch does not count a change through `.data`."""

    @torch.no_grad()
    def step(self, closure=None):
        for parameter in self.param_groups[0]["params"]:
            parameter.data = parameter.data - 0.1 * parameter.grad.data


@pytest.mark.parametrize("kind", [torch.optim.SGD, ByData])
def test_a_second_optimizer_that_is_not_watched_is_no_fault(out, capfd, kind):
    model = Net()
    optimizer, second = torch.optim.Adam(model.body.parameters()), kind(model.head.parameters(), lr=0.1)
    hook = tocsin.watch(model, optimizer, out=out)
    for _ in range(4):
        optimizer.zero_grad()
        second.zero_grad()
        model(torch.randn(4, 6)).square().mean().backward()
        optimizer.step()
        second.step()
    hook.close()
    assert findings(out) == []
    assert "tocsin: 2 trainable parameters of Net are updated by an optimizer that is not watched, " \
        "watch(model, optimizer) takes it too: head.weight, head.bias\n" in capfd.readouterr().err


def test_parameters_without_a_gradient(out, capfd):
    model = Net()
    optimizer = torch.optim.Adam(model.parameters())
    hook = tocsin.watch(model, optimizer, out=out)
    train(model, optimizer, hook, through=model.body)
    hook.close()
    assert findings(out) == [{"kind": "no_gradient", "model": "Net", "count": 2, "names": ["head.weight", "head.bias"]}]
    assert "tocsin: 2 parameters of Net got no gradient: head.weight, head.bias\n" in capfd.readouterr().err


def test_a_part_that_has_its_turn_later_is_none_of_them(out):
    model = Net()
    optimizer = torch.optim.Adam(model.parameters())
    hook = tocsin.watch(model, optimizer, out=out)
    train(model, optimizer, hook, steps=1, through=model.body)
    train(model, optimizer, hook, steps=3)
    hook.close()
    assert findings(out) == []


def test_an_optimizer_of_the_model_before(out, capfd):
    """A notebook: the cell of the model was run again, the one of the optimizer was not."""
    optimizer = torch.optim.Adam(Net().parameters())
    model = Net()
    hook = tocsin.watch(model, optimizer, out=out)
    train(model, optimizer, hook)
    hook.close()
    assert {finding["kind"]: finding["count"] for finding in findings(out)} == {
        "no_optimizer": 4, "foreign_parameters": 4, "no_gradient": 4}
    assert "the optimizer of Net holds 4 parameters that the model does not have" in capfd.readouterr().err


def test_a_model_in_its_eval_state(out):
    model = Net()
    model.add_module("drop", torch.nn.Dropout(0.5))
    model.eval()
    optimizer = torch.optim.Adam(model.parameters())
    hook = tocsin.watch(model, optimizer, out=out)
    train(model, optimizer, hook)
    hook.close()
    assert [finding["kind"] for finding in findings(out)] == ["eval_mode"]


def test_an_eval_state_that_changes_nothing_is_no_finding(out):
    model = Net().eval()
    optimizer = torch.optim.Adam(model.parameters())
    hook = tocsin.watch(model, optimizer, out=out)
    train(model, optimizer, hook)
    hook.close()
    assert findings(out) == []


@pytest.mark.parametrize("kind", [torch.optim.LBFGS, torch.optim.Adam])
def test_with_a_closure_the_gradients_are_looked_at_after_it(out, kind):
    model = Net()
    optimizer = kind(model.parameters())
    hook = tocsin.watch(model, optimizer, out=out)
    for _ in range(4):
        def closure():
            optimizer.zero_grad()
            loss = model(torch.randn(4, 6)).square().mean()
            loss.backward()
            return loss
        optimizer.step(closure)
        optimizer.zero_grad()
    hook.close()
    assert findings(out) == []
