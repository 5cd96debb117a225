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
    assert Telemetry(out).protocol_kept() == [[{"kind": "kept", "model": "Net", "count": 22, "names": []}]]


def test_parameters_in_no_optimizer(out, capfd):
    model = Net()
    optimizer = torch.optim.Adam(model.body.parameters())
    hook = tocsin.watch(model, optimizer, out=out)
    train(model, optimizer, hook)
    hook.close()
    assert findings(out) == [{"kind": "no_optimizer", "model": "Net", "count": 2, "names": ["head.weight", "head.bias"]}]
    assert "tocsin: 2 trainable parameters of Net are in no watched optimizer, and do not change: head.weight, head.bias\n" \
        in capfd.readouterr().err


@pytest.mark.parametrize("shape, told", [((6, 4), False), ((6, 5), True)])
def test_a_target_network_is_trained_by_nobody(out, capfd, shape, told):
    """Unless it has another shape than what is trained: then it is no copy."""
    model = Net()
    model.body_target = torch.nn.Linear(*shape)
    optimizer = torch.optim.Adam([*model.body.parameters(), *model.head.parameters()])
    hook = tocsin.watch(model, optimizer, out=out)
    train(model, optimizer, hook)
    hook.close()
    assert bool(findings(out)) is told and ("body_target.weight" in capfd.readouterr().err) is told


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


def loop(model, optimizer, clear, passes=1, updates=5):
    for _ in range(updates):
        for _ in range(passes):
            loss = model(torch.randn(4, 6)).square().mean()
            clear("before the pass")
            loss.backward()
        optimizer.step()
        clear("behind the update")


def kinds(out):
    return [finding["kind"] for finding in findings(out)]


@pytest.mark.parametrize("passes", [1, 3])
def test_gradients_that_are_never_cleared(out, capfd, passes):
    model = Net()
    optimizer = torch.optim.SGD(model.parameters(), lr=1e-3)
    hook = tocsin.watch(model, optimizer, out=out)
    loop(model, optimizer, lambda when: None, passes)
    hook.close()
    assert kinds(out) == ["gradients_kept"]
    assert "tocsin: gradients of Net are never cleared" in capfd.readouterr().err


def test_a_parameter_without_a_slope_yet_does_not_hide_it(out):
    """The first matrix of LoRA has gradients of zeros as long as the second is zero."""
    model = torch.nn.Sequential(torch.nn.Linear(6, 1, bias=False), torch.nn.Linear(1, 8, bias=False))
    torch.nn.init.zeros_(model[1].weight)
    optimizer = torch.optim.SGD(model.parameters(), lr=1e-3)
    hook = tocsin.watch(model, optimizer, out=out)
    for _ in range(5):
        (model(torch.randn(4, 6)) - 1).square().mean().backward()
        optimizer.step()
    hook.close()
    assert kinds(out) == ["gradients_kept"]


def _by_hand(model, optimizer):
    for parameter in model.parameters():
        if parameter.grad is not None:
            parameter.grad.data.zero_()


def _replaced(model, optimizer):
    for parameter in model.parameters():
        if parameter.grad is not None:
            parameter.grad = torch.zeros_like(parameter.grad)


CLEARED = {"default": lambda model, optimizer: optimizer.zero_grad(), "zeros": lambda model, optimizer: optimizer.zero_grad(set_to_none=False),
           "model": lambda model, optimizer: model.zero_grad(), "data": _by_hand, "replaced": _replaced}


@pytest.mark.parametrize("when", ["before the pass", "behind the update"])
@pytest.mark.parametrize("how", CLEARED)
def test_gradients_that_are_cleared_in_any_way_are_not_talked_of(out, how, when):
    model = Net()
    optimizer = torch.optim.SGD(model.parameters(), lr=1e-3)
    hook = tocsin.watch(model, optimizer, out=out)
    loop(model, optimizer, lambda now: CLEARED[how](model, optimizer) if now == when else None)
    hook.close()
    assert kinds(out) == [] and not model.body.weight._backward_hooks and not model.head.bias._backward_hooks


def test_gradients_that_are_gathered_over_passes_are_not_talked_of(out):
    model = Net()
    optimizer = torch.optim.SGD(model.parameters(), lr=1e-3)
    hook = tocsin.watch(model, optimizer, out=out)
    loop(model, optimizer, lambda now: optimizer.zero_grad(set_to_none=False) if now == "behind the update" else None, passes=4)
    hook.close()
    assert kinds(out) == []


@pytest.mark.parametrize("to_none", [True, False])
def test_two_adversaries_clear_each_its_own_gradients_only(out, to_none):
    """The passes of the one add to the gradients of the other, behind its update: they are cleared before its own pass."""
    maker, judge = Net(), torch.nn.Linear(2, 1)
    of_maker, of_judge = torch.optim.SGD(maker.parameters(), lr=1e-3), torch.optim.SGD(judge.parameters(), lr=1e-3)
    hook = tocsin.watch(maker, of_maker, out=out)
    assert tocsin.watch(judge, of_judge) is hook
    for _ in range(6):
        of_judge.zero_grad(set_to_none=to_none)
        (judge(torch.randn(4, 2)).mean() - judge(maker(torch.randn(4, 6))).mean()).backward()
        of_judge.step()
        of_maker.zero_grad(set_to_none=to_none)
        judge(maker(torch.randn(4, 6))).mean().backward()
        of_maker.step()
    hook.close()
    assert kinds(out) == []


# ---- settings that are hardly ever meant


def settled(out, model, optimizer):
    """The findings of a loop that does all else right."""
    hook = tocsin.watch(model, optimizer, out=out)
    train(model, optimizer, hook)
    hook.close()
    return findings(out)


def test_betas_in_the_wrong_order(out, capfd):
    model = Net()
    told = settled(out, model, torch.optim.AdamW(model.parameters(), betas=(0.999, 0.9)))
    assert told == [{"kind": "betas_swapped", "model": "Net", "count": 2, "names": ["0.999", "0.9"]}]
    assert "are they in the wrong order?): 0.999, 0.9" in capfd.readouterr().err


@pytest.mark.parametrize("betas", [(0.9, 0.999), (0.5, 0.9), (0.0, 0.99), (0.9, 0.9), (0.95, 0.95)])
def test_betas_by_which_adam_converges(out, betas):
    model = Net()
    assert settled(out, model, torch.optim.Adam(model.parameters(), betas=betas)) == []


class Lion(torch.optim.SGD):
    """Its betas are no rates of forgetting of moments."""

    def __init__(self, parameters):
        super().__init__(parameters, lr=1e-3)
        for group in self.param_groups:
            group["betas"] = (0.99, 0.9)


def test_betas_of_another_kind_are_not_judged(out):
    model = Net()
    assert settled(out, model, Lion(model.parameters())) == []


class Dropping(Net):
    def __init__(self, share):
        super().__init__()
        self.drop = torch.nn.Dropout(share)

    def forward(self, x):
        return self.head(self.drop(self.body(x)))


@pytest.mark.parametrize("share, names", [(0.9, ["drop"]), (0.8, []), (0.1, [])])
def test_a_dropout_that_drops_what_should_be_kept(out, share, names):
    model = Dropping(share)
    told = settled(out, model, torch.optim.Adam(model.parameters()))
    assert [one["names"] for one in told if one["kind"] == "dropout_high"] == ([names] if names else [])
    assert len(told) == len(names)


def test_attention_drops_by_a_setting_of_its_own(out):
    class Attends(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.attention = torch.nn.MultiheadAttention(6, 2, dropout=0.95)

        def forward(self, x):
            x = x[None]
            return self.attention(x, x, x)[0]

    model = Attends()
    told = settled(out, model, torch.optim.Adam(model.parameters()))
    assert [(one["kind"], one["names"]) for one in told if one["kind"] == "dropout_high"] == [("dropout_high", ["attention"])]


class Bodied(torch.nn.Module):
    """A body as from_pretrained() gives it, and a fresh head."""

    def __init__(self, frozen=False, batch_norm=False):
        super().__init__()
        inner = torch.nn.Sequential(torch.nn.Dropout(0.1), torch.nn.Linear(4, 4))
        self.body = torch.nn.Sequential(torch.nn.Linear(6, 4), inner, *([torch.nn.BatchNorm1d(4)] if batch_norm else []))
        self.head = torch.nn.Linear(4, 2)
        self.body.requires_grad_(not frozen)

    def forward(self, x):
        return self.head(self.body(x))


def silent(out, model, steps=4):
    optimizer = torch.optim.Adam([one for one in model.parameters() if one.requires_grad])
    hook = tocsin.watch(model, optimizer, out=out)
    train(model, optimizer, hook, steps=steps)
    hook.close()
    return [(one["kind"], one["names"]) for one in findings(out) if one["kind"] == "parts_in_eval"]


def test_a_body_that_trains_in_its_eval_state_is_told(out, capfd):
    model = Bodied()
    model.body.eval()
    assert silent(out, model) == [("parts_in_eval", ["body.1.0"])]
    assert "1 of the dropouts of Bodied is in evaluation mode during training" in capfd.readouterr().err


def test_a_single_dropout_that_was_switched_off_is_told(out):
    model = Bodied()
    model.body[1][0].eval()
    assert silent(out, model) == [("parts_in_eval", ["body.1.0"])]


@pytest.mark.parametrize("make", [lambda: Bodied(), lambda: Bodied(frozen=True), lambda: Bodied(batch_norm=True)],
                         ids=["in train state", "frozen", "batch norm"])
def test_parts_that_may_well_be_in_eval_state(out, make):
    model = make()
    if model.body[0].weight.requires_grad is False:
        model.body.eval()
    elif len(model.body) == 3:
        model.body[2].eval()  # statistics that are kept: usual when batches are small
    assert silent(out, model) == []
