"""A frozen part that still has the values that its layers were made with: its pretrained weights were not loaded."""
import copy

import pytest
import torch

from tests.support.hook_support import Telemetry

import tocsin


class Net(torch.nn.Module):
    """A body of any kind, and a head that is trained."""

    def __init__(self, body, width=48):
        super().__init__()
        self.body, self.head = body, torch.nn.Linear(width, 2)

    def forward(self, x):
        out = self.body(x)
        return self.head(out[0] if isinstance(out, tuple) else out)


def layers(width=48):
    return torch.nn.Sequential(torch.nn.Linear(16, width), torch.nn.ReLU(), torch.nn.Linear(width, width), torch.nn.ReLU())


def run(out, model, inputs=None, before=lambda model: None, steps=4):
    """The findings of a loop that does all else right; ``before`` is what happens behind watch()."""
    optimizer = torch.optim.Adam([one for one in model.parameters() if one.requires_grad])
    hook = tocsin.watch(model, optimizer, out=out)
    before(model)
    for _ in range(steps):
        optimizer.zero_grad()
        loss = model(torch.randn(8, 16) if inputs is None else inputs).square().mean()
        loss.backward()
        hook.log(loss=loss)
        optimizer.step()
    stats = hook.stats()
    hook.close()
    assert stats["hook_errors_total"] == {}
    told = Telemetry(out).lifecycles("preflight")
    return told[0]["findings"] if told else []


def pretrained(body, width=48, inputs=16):
    """The body after some updates."""
    head = torch.nn.Linear(width, 2)
    optimizer = torch.optim.Adam([*body.parameters(), *head.parameters()], lr=1e-3)
    for _ in range(20):
        optimizer.zero_grad()
        out = body(torch.randn(64, inputs))
        head(out[0] if isinstance(out, tuple) else out).square().mean().backward()
        optimizer.step()
    return body


class Recurrent(torch.nn.LSTM):
    def __init__(self):
        super().__init__(16, 48, batch_first=True)


class NormalStart(torch.nn.Sequential):
    """As Transformers begin: normal numbers, biases of 0, a norm."""

    def __init__(self):
        super().__init__(torch.nn.Linear(16, 48), torch.nn.LayerNorm(48), torch.nn.Linear(48, 48))
        for one in self:
            if isinstance(one, torch.nn.Linear):
                torch.nn.init.normal_(one.weight, std=0.02)
                torch.nn.init.zeros_(one.bias)


class Convolutions(torch.nn.Sequential):
    """As residual networks begin: no biases, norms of batches."""

    def __init__(self):
        super().__init__(torch.nn.Unflatten(1, (1, 4, 4)), torch.nn.Conv2d(1, 24, 3, bias=False), torch.nn.BatchNorm2d(24), torch.nn.ReLU(),
                         torch.nn.Conv2d(24, 48, 2, bias=False), torch.nn.BatchNorm2d(48), torch.nn.Flatten())
        for one in self:
            if isinstance(one, torch.nn.Conv2d):
                torch.nn.init.kaiming_normal_(one.weight, mode="fan_out")


BODIES = [layers, Recurrent, NormalStart, Convolutions]


@pytest.mark.parametrize("make", BODIES)
def test_a_frozen_part_without_its_pretrained_weights(out, capfd, make):
    torch.manual_seed(1)
    model = Net(make().requires_grad_(False))
    told = run(out, model)
    assert [one["kind"] for one in told] == ["frozen_fresh"]
    frozen = [name for name, one in model.named_parameters() if not one.requires_grad]
    assert told[0]["count"] == len(frozen) and told[0]["names"] == frozen
    assert f"{len(frozen)} frozen parameters of Net have freshly initialised values" in capfd.readouterr().err


@pytest.mark.parametrize("make", BODIES)
def test_pretrained_weights_are_not_talked_of_however_short_their_training_was(out, make):
    torch.manual_seed(2)
    assert run(out, Net(pretrained(make()).requires_grad_(False))) == []


@pytest.mark.parametrize("make", BODIES)
def test_weights_that_are_loaded_behind_watch(out, make):
    torch.manual_seed(3)
    weights = pretrained(make()).state_dict()
    assert run(out, Net(make().requires_grad_(False)), before=lambda model: model.body.load_state_dict(weights)) == []


def test_a_part_that_is_trained_later_on(out):
    told = run(out, Net(layers().requires_grad_(False)), before=lambda model: model.body.requires_grad_(True))
    assert [one["kind"] for one in told] == ["no_optimizer"]


def test_one_pretrained_layer_says_that_the_others_are_meant(out):
    torch.manual_seed(4)
    body = layers()
    body[0] = pretrained(torch.nn.Sequential(torch.nn.Linear(16, 48)))[0]
    assert run(out, Net(body.requires_grad_(False))) == []


def test_a_small_frozen_part(out):
    torch.manual_seed(5)
    body = layers()
    body[0].requires_grad_(False)
    assert run(out, Net(body)) == []


def test_a_copy_that_follows_what_is_trained(out):
    class Student(Net):
        def __init__(self):
            super().__init__(layers())
            self.teacher = torch.nn.ModuleList(copy.deepcopy(self.body) for _ in range(1)).requires_grad_(False)

        def forward(self, x):
            return super().forward(x) + self.teacher[0](x).mean()

    torch.manual_seed(6)
    assert run(out, Student()) == []


def test_numbers_of_half_precision(out):
    torch.manual_seed(7)

    class Half(Net):
        def forward(self, x):
            return self.head(self.body(x.bfloat16()).float())

    told = run(out, Half(layers().bfloat16().requires_grad_(False)))
    assert [one["kind"] for one in told] == ["frozen_fresh"]


def test_a_model_without_storage_is_left_alone(out):
    model = Net(layers())
    model.spare = torch.nn.Linear(400, 400, device="meta").requires_grad_(False)
    assert run(out, model) == []


def test_a_negative_weight_decay(out, capfd):
    model = Net(layers())
    optimizer = torch.optim.AdamW(model.parameters(), weight_decay=0.01)
    optimizer.param_groups[0]["weight_decay"] = -0.01
    hook = tocsin.watch(model, optimizer, out=out)
    for _ in range(4):
        optimizer.zero_grad()
        loss = model(torch.randn(8, 16)).square().mean()
        loss.backward()
        hook.log(loss=loss)
        optimizer.step()
    hook.close()
    told = Telemetry(out).lifecycles("preflight")[0]["findings"]
    assert told == [{"kind": "decay_negative", "model": "Net", "count": 1, "names": ["-0.01"]}]
    assert "its weight decay is negative: -0.01" in capfd.readouterr().err


def test_rows_of_what_is_frozen_on_the_way_say_so(out):
    """It stays in the optimizer's list, and rules of updates leave it alone from then on."""
    model = torch.nn.Sequential(torch.nn.Linear(16, 8), torch.nn.Linear(8, 2))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    hook = tocsin.watch(model, optimizer, out=out, capture={"every": "1 step", "overhead": "100%", "collections": ["weights", "gradients"]})
    for step in range(6):
        model[0].weight.requires_grad_(step not in (2, 3))
        optimizer.zero_grad(set_to_none=True)
        model(torch.randn(4, 16)).square().mean().backward()
        optimizer.step()
    hook.close()
    told = Telemetry(out)
    frozen = [bool(told.summaries(step)["0.weight"]["meta"] & 1 << 21) for step in range(6)]
    assert frozen == [False, False, True, True, False, False]
    assert not any(told.summaries(step)["1.weight"]["meta"] & 1 << 21 for step in range(6))
