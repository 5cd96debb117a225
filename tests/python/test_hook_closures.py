"""Optimizers that take a closure: the gradients exist only after it has run."""
import pytest
import torch

from tests.support.hook_support import Telemetry

import tocsin


def make(kind):
    torch.manual_seed(0)
    model = torch.nn.Linear(6, 2)
    return model, kind(model.parameters())


OPTIMIZERS = [lambda p: torch.optim.LBFGS(p, max_iter=4, line_search_fn="strong_wolfe"), torch.optim.Adam,
              lambda p: torch.optim.SGD(p, lr=0.1)]


@pytest.mark.parametrize("kind", OPTIMIZERS, ids=["lbfgs", "adam", "sgd"])
@pytest.mark.parametrize("named", [False, True])
def test_gradients_are_those_of_the_closures_own_backward(out, kind, named):
    """Zeroed after each update: what is there before the closure is nothing."""
    model, optimizer = make(kind)
    hook = tocsin.watch(model, optimizer, out=out, capture={"overhead": "100%", "every": "1 step"})
    firsts, weights = [], []
    for _ in range(3):
        x, calls = torch.randn(4, 6), []

        def closure():
            optimizer.zero_grad()
            loss = model(x).square().mean()
            loss.backward()
            calls.append(model.weight.grad.clone())
            hook.log(loss=loss)
            return loss

        weights.append(model.weight.detach().clone())
        result = optimizer.step(closure=closure) if named else optimizer.step(closure)
        assert float(result.detach()) > 0
        optimizer.zero_grad()
        firsts.append(calls[0])
    hook.close()
    telemetry = Telemetry(out)
    assert telemetry.steps() == [0, 1, 2]
    for step in range(3):
        rows = telemetry.summaries(step=step)
        assert rows["gradient/weight"]["sum"] == pytest.approx(float(firsts[step].double().sum()), rel=1e-5)
        assert rows["weight"]["sum"] == pytest.approx(float(weights[step].double().sum()), rel=1e-5), "before the update"
    assert hook.stats()["hook_errors_total"] == {}


def test_what_the_closure_raises_reaches_the_script(out):
    model, optimizer = make(torch.optim.Adam)
    hook = tocsin.watch(model, optimizer, out=out)

    def closure():
        raise KeyError("the script's own")

    with pytest.raises(KeyError, match="the script's own"):
        optimizer.step(closure)
    hook.close()
