"""What the ledger learns where no loss function of torch is called: from gradients, and from what the script says."""
import math

import pytest
import torch
import torch.nn.functional as F

from tests.python.test_hook_ledger import EVAL, TRAIN, classes, ledger_of, quantities, total, train

import tocsin
from tocsin.adapters.torch.ledger import same
from tocsin.adapters.torch.ledger.models import squared_error


def calls_of(out):
    """Steps of training with rows of a loss call; other parts of the ledger have rows of their own."""
    others = ("movement/", "plan/", "world/")
    steps = {step: {name: value for name, value in rows.items() if not name.startswith(others)} for step, rows in ledger_of(out)[TRAIN].items()}
    return {step: rows for step, rows in steps.items() if rows}


def by_hand_cross_entropy(z, t):
    return (z.logsumexp(1) - z.gather(1, t[:, None])[:, 0]).mean()


def by_hand_switches(z, t):
    return (z.clamp(min=0) - z * t + (1 + (-z.abs()).exp()).log()).mean()


def switches(inputs):
    return (inputs[:, :1] > 0.3).float()


def test_a_squared_error_by_hand(out):
    _, losses = train(lambda z, t: ((z - t) ** 2).mean(), 3, quantities, out=out)
    steps = calls_of(out)
    assert len(steps) >= 50
    for step, rows in steps.items():
        assert rows["mse_loss/loss"] / rows["mse_loss/samples"] == pytest.approx(losses[step], rel=1e-4)
    sums = total({step: rows for step, rows in steps.items() if step > 20}, "mse_loss")
    assert sums["wins"] > 0.8 * sums["pairs"] and sums["loss"] < sums["trivial"]


@pytest.mark.parametrize("loss,outputs,targets,name", (
    (by_hand_cross_entropy, 4, classes, "cross_entropy"), (by_hand_switches, 1, switches, "binary_cross_entropy_with_logits")))
def test_classes_by_hand(out, loss, outputs, targets, name):
    _, losses = train(loss, outputs, targets, out=out)
    steps = calls_of(out)
    assert len(steps) >= 50
    for step, rows in steps.items():
        assert rows[f"{name}/loss"] / rows[f"{name}/samples"] == pytest.approx(losses[step], rel=1e-3)
    sums = total({step: rows for step, rows in steps.items() if step > 20}, name)
    assert sums["wins"] > 0.8 * sums["pairs"]


@pytest.mark.parametrize("loss", (
    lambda z, t: F.cross_entropy(z, t), by_hand_cross_entropy, lambda z, t: -F.logsigmoid(z[:, 0] - z[:, 1]).mean()))
def test_a_true_answer_that_always_stands_first_has_no_trivial_loss(out, loss):
    """One true pair among many (InfoNCE), or the better one of two: its place is how the loss is written."""
    train(loss, 2, lambda inputs: torch.zeros(len(inputs), dtype=torch.long), out=out)
    steps = calls_of(out)
    assert len(steps) >= 50 and not any(name.endswith("/trivial") for rows in steps.values() for name in rows)


@pytest.mark.parametrize("reduce", (lambda losses, kept: losses.mean(), lambda losses, kept: (losses * kept).sum() / kept.sum()))
def test_losses_that_the_script_reduces_have_no_trivial_answer(out, reduce):
    """Where it masks them, the mean over all of them is not what is trained."""
    _, losses = train(lambda z, t: reduce(F.cross_entropy(z, t, reduction="none"), (t < 2).float()), 4, classes, out=out)
    steps = calls_of(out)
    assert len(steps) >= 50 and not any("cross_entropy/trivial" in rows for rows in steps.values())
    sums = total({step: rows for step, rows in steps.items() if step > 20}, "cross_entropy")
    assert sums["pairs"] > 0 and sums["wins"] > 0


@pytest.mark.parametrize("loss", (
    lambda z, t: (z - t).abs().mean(), lambda z, t: ((z - t) ** 4).mean(), lambda z, t: ((z - t) ** 2).mean().sqrt(),
    lambda z, t: (1 - z * t.sign()).clamp(min=0).mean(), lambda z, t: ((z - t) ** 2 + 0.1 * z ** 2).mean(),
    lambda z, t: torch.log(torch.cosh(z - t)).mean()))
def test_other_losses_are_no_squared_error(out, loss):
    train(loss, 3, quantities, out=out)
    assert not calls_of(out)


def test_the_identity_of_the_squared_error():
    """It takes each squared error, and no other loss more than once in a hundred."""
    torch.manual_seed(4)
    wrong = {name: 0 for name in ("absolute", "fourth", "root", "huber", "smooth", "penalty", "cosh")}
    for _ in range(1000):
        shape = (int(torch.randint(2, 40, ())), int(torch.randint(1, 5, ())))
        t = torch.randn(shape) * 10 ** float(torch.randn(()))
        z = (t * float(torch.rand(())) + torch.randn(shape)).requires_grad_()
        losses = {"mean": F.mse_loss(z, t), "sum": F.mse_loss(z, t, reduction="sum"), "rows": ((z - t) ** 2).sum(1).mean(),
                  "absolute": (z - t).abs().mean(), "fourth": ((z - t) ** 4).mean(), "root": F.mse_loss(z, t).sqrt(),
                  "huber": F.huber_loss(z, t, delta=0.1), "smooth": F.smooth_l1_loss(z, t),
                  "penalty": F.mse_loss(z, t) + 0.1 * z.square().mean(), "cosh": torch.log(torch.cosh((z - t).clamp(-20, 20))).mean()}
        for name, loss in losses.items():
            gradient, = torch.autograd.grad(loss, z, retain_graph=True)
            scale = squared_error(z.detach(), gradient, float(loss))
            if name in wrong:
                wrong[name] += scale is not None
                continue
            assert scale is not None, name
            found = z.detach() - gradient * z.numel() / (2 * scale)
            assert torch.allclose(found, t, rtol=1e-3, atol=1e-3 * float(t.abs().max())), name
    assert all(count <= 10 for count in wrong.values()), wrong


@pytest.mark.parametrize("loss", (lambda z, t: ((z - t) ** 2).mean(), lambda z, t: (z - t).abs().pow(1.5).mean()))
def test_training_is_bit_for_bit_the_same(out, loss):
    backward = torch.Tensor.backward
    bare, bare_losses = train(loss, 3, quantities, updates=20, watched=False)
    with_it, losses = train(loss, 3, quantities, updates=20, out=out)
    assert losses == bare_losses and all(torch.equal(one, other) for one, other in zip(bare, with_it))
    assert torch.Tensor.backward is backward


def test_a_model_has_no_hook_of_the_ledger_where_functions_are_called(out):
    torch.manual_seed(1)
    model = torch.nn.Sequential(torch.nn.Linear(8, 4))
    optimizer = torch.optim.SGD(model.parameters(), 0.1)
    hook = tocsin.watch(model, optimizer, out=out, capture={"collections": {}})

    def ours():
        return [one for one in model._forward_hooks.values() if type(one).__name__ == "_Passed"]

    assert ours()
    for _ in range(3):
        x = torch.randn(16, 8)
        F.cross_entropy(model(x), classes(x)).backward()
        optimizer.step()
    assert not ours()
    hook.close()


def test_a_model_has_no_hook_of_the_ledger_while_calls_are_passed_over(out):
    torch.manual_seed(1)
    model = torch.nn.Sequential(torch.nn.Embedding(20, 8), torch.nn.Linear(8, 20))
    optimizer = torch.optim.SGD(model.parameters(), 0.1)
    hook = tocsin.watch(model, optimizer, out=out, capture={"collections": {}})
    ledger, ids = hook.sink.ledger, torch.randint(0, 20, (4, 10))

    def ours():
        return [sum(type(one).__name__ == "_Passed" for one in part._forward_hooks.values()) for part in (model, *model)]

    def train():
        F.cross_entropy(model(ids).flatten(0, 1), ids.flatten()).backward()
        optimizer.step()

    train()
    measured = ledger.counts()["measured"]
    ledger.skip = 5
    seen = []
    for _ in range(5):
        train()
        seen.append(ours())
    there, gone = [1, 1, 1], [0, 0, 0]
    assert seen == [there, gone, gone, gone, there]  # they are back before the call that is measured
    assert ledger.counts()["measured"] == measured
    train()
    assert ledger.counts()["measured"] == measured + 1
    ledger.skip = 5
    for _ in range(3):
        train()
    assert ours() == gone
    model.eval()
    with torch.no_grad():
        model(ids)
    assert ours() == there and ledger._models.input() is ids  # an evaluation is looked at
    model.train()
    train()
    train()
    hook.close()
    assert ours() == gone and not model._forward_pre_hooks and not vars(model[0]).get("__prepare_scriptable__")
    same = {step: rows["cross_entropy/same_as_input"] for step, rows in ledger_of(out)[TRAIN].items() if "cross_entropy/samples" in rows}
    assert same == {0: 40, 6: 40}


def test_whole_numbers_that_are_the_models_input(out):
    torch.manual_seed(1)
    model = torch.nn.Sequential(torch.nn.Embedding(20, 8), torch.nn.Linear(8, 20))
    optimizer = torch.optim.Adam(model.parameters(), 1e-2)
    hook = tocsin.watch(model, optimizer, out=out)
    for step in range(8):
        ids = torch.randint(0, 20, (4, 10))
        targets = ids if step % 2 else ids.roll(-1, 1)
        F.cross_entropy(model(ids).flatten(0, 1), targets.flatten()).backward()
        optimizer.step()
    assert hook.stats()["hook_errors_total"] == {}
    hook.close()
    for step, rows in ledger_of(out)[TRAIN].items():
        assert rows["cross_entropy/input_places"] == 40
        share = rows["cross_entropy/same_as_input"] / 40
        assert share == 1 if step % 2 else share < 0.4
        assert 0 < rows["cross_entropy/same_by_chance"] < 10


class OwnLoss(torch.nn.Module):
    """As those of Transformers: given the labels, it computes its loss itself."""

    def __init__(self):
        super().__init__()
        self.body = torch.nn.Embedding(20, 8)
        self.head = torch.nn.Linear(8, 20)

    def forward(self, ids, labels):
        return F.cross_entropy(self.head(self.body(ids)).flatten(0, 1), labels.flatten())


def test_whole_numbers_of_a_model_that_computes_its_own_loss(out):
    torch.manual_seed(1)
    model = OwnLoss()
    optimizer = torch.optim.Adam(model.parameters(), 1e-2)
    hook = tocsin.watch(model, optimizer, out=out)
    for _ in range(8):
        ids = torch.randint(0, 20, (4, 10))
        model(ids, labels=ids).backward()
        optimizer.step()
        del ids
    assert hook.stats()["hook_errors_total"] == {}
    hook.close()
    told = ledger_of(out)[TRAIN]
    assert len(told) == 8
    for rows in told.values():
        assert (rows["cross_entropy/input_places"], rows["cross_entropy/same_as_input"]) == (40, 40)


def test_a_script_says_what_its_outputs_are_compared_with(out):
    torch.manual_seed(1)
    model = torch.nn.Linear(8, 3)
    optimizer = torch.optim.Adam(model.parameters(), 0.05)
    hook = tocsin.watch(model, optimizer, out=out)

    def margin(outputs, targets):
        return (outputs - targets).abs().clamp(max=5).sum(1)

    for step in range(60):
        x = torch.randn(32, 8)
        z, t = model(x), quantities(x)
        optimizer.zero_grad()
        margin(z, t).mean().backward()
        hook.targets(z, t, loss=margin)
        hook.targets(z.detach(), t)
        optimizer.step()
    model.eval()
    with torch.no_grad():
        hook.targets(model(x), t, loss=margin)
    assert hook.stats()["hook_errors_total"] == {}
    hook.targets(z, t[:5], loss=margin)
    hook.targets(z, t, loss="hinge")
    hook.targets(z, t, loss=lambda z, t: (z - t).sum())
    assert hook.stats()["hook_errors_total"] == {"targets": 3}
    hook.close()
    ledger = ledger_of(out)
    late = {step: rows for step, rows in ledger[TRAIN].items() if step > 20}
    for name in ("margin", "mse_loss"):
        sums = total(late, name)
        assert sums["samples"] == 32 * sums["calls"] and sums["wins"] > 0.8 * sums["pairs"] > 0, sums
    assert "trivial" not in total(late, "margin") and total(late, "mse_loss")["trivial"] > 0
    assert total(ledger[EVAL], "margin")["samples"] == 32


def test_it_can_be_switched_off(out):
    own = F.cross_entropy
    hook = tocsin.watch(torch.nn.Linear(1, 1), out=out, capture={"ledger": False})
    assert F.cross_entropy is own and "ledger" not in hook.stats()
    hook.targets(torch.zeros(4, 2), torch.zeros(4, dtype=torch.long))
    assert hook.stats()["hook_errors_total"] == {}
    hook.close()


def test_the_grid_of_scalars_and_the_governor_leave_it_alone(out):
    train_with = {"scalars": "7 steps", "every": "1 step", "overhead": "0.01%"}
    torch.manual_seed(1)
    model = torch.nn.Linear(8, 4)
    optimizer = torch.optim.SGD(model.parameters(), 0.1)
    hook = tocsin.watch(model, optimizer, out=out, capture=train_with)
    for _ in range(30):
        x = torch.randn(16, 8)
        loss = F.cross_entropy(model(x), classes(x))
        loss.backward()
        optimizer.step()
        hook.log(loss=loss)
    assert hook.stats()["scalars_since_step"] == 0 and hook.stats()["ledger_scalars_total"] > 300
    hook.close()
    assert sorted(ledger_of(out)[TRAIN]) == list(range(30))
    assert math.isclose(total(ledger_of(out)[TRAIN], "cross_entropy")["calls"], 30)


def test_a_loss_of_a_model_that_is_not_watched_ends_no_step(out):
    torch.manual_seed(1)
    model, other = torch.nn.Linear(8, 4), torch.nn.Linear(8, 4)
    optimizer = torch.optim.SGD(model.parameters(), 0.1)
    hook = tocsin.watch(model, optimizer, out=out)
    for _ in range(5):
        x = torch.randn(16, 8)
        loss = F.cross_entropy(model(x), classes(x))
        loss.backward()
        optimizer.step()
        F.cross_entropy(other(x), classes(x)).backward()
        hook.log(loss=loss)
    hook.close()
    steps = ledger_of(out)[TRAIN]
    assert sorted(steps) == list(range(5)) and all(rows["cross_entropy/calls"] == 1 for rows in steps.values())


def test_a_loop_without_phases_and_without_log(out):
    torch.manual_seed(1)
    model = torch.nn.Linear(8, 4)
    optimizer = torch.optim.SGD(model.parameters(), 0.1)
    hook = tocsin.watch(model, optimizer, out=out, phases=False)
    for _ in range(5):
        x = torch.randn(16, 8)
        F.cross_entropy(model(x), classes(x)).backward()
        optimizer.step()
    hook.close()
    steps = ledger_of(out)[TRAIN]
    assert sorted(steps) == list(range(5)) and all(rows["cross_entropy/calls"] == 1 for rows in steps.values())


def test_a_scripted_model_is_watched(out):
    torch.manual_seed(1)
    model = torch.jit.script(torch.nn.Sequential(torch.nn.Linear(8, 4)))
    optimizer = torch.optim.SGD(model.parameters(), 0.1)
    hook = tocsin.watch(model, optimizer, out=out)
    for _ in range(5):
        x = torch.randn(16, 8)
        F.cross_entropy(model(x), classes(x)).backward()
        optimizer.step()
    assert hook.stats()["hook_errors_total"] == {}
    hook.close()
    assert sorted(ledger_of(out)[TRAIN]) == list(range(5))


def test_numpy_and_torch_agree_on_targets_that_are_the_input():
    numpy = pytest.importorskip("numpy")
    torch.manual_seed(3)
    for round_ in range(200):
        places, values = int(torch.randint(1, 60, (1,))), int(torch.randint(1, 30, (1,)))
        targets, inputs = torch.randint(-3, values, (places,)), torch.randint(-3, values, (places,))
        if round_ % 3 == 0:
            targets[torch.rand(places) < 0.5] = -100
        one = same._by_numpy(numpy, targets.numpy(), inputs.numpy(), -100)
        assert one == pytest.approx(same._by_torch(torch, targets, inputs, -100), rel=1e-9)
