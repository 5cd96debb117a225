"""Small jobs that people met, judged in the process by the default rules: healthy ones are left alone, harmful ones are told."""

import pytest
import torch
from torch import nn

import tocsin


class Residual(nn.Module):
    """A branch that begins at zero, as in diffusion models, ViTs and adapters."""

    def __init__(self, width):
        super().__init__()
        self.norm, self.first, self.last = nn.LayerNorm(width), nn.Linear(width, 2 * width), nn.Linear(2 * width, width)
        zero(self.last)

    def forward(self, x):
        return x + self.last(nn.functional.silu(self.first(self.norm(x))))


def zero(layer):
    nn.init.zeros_(layer.weight)
    nn.init.zeros_(layer.bias)


def told(hook):
    hook.close()
    assert not hook.stats()["hook_errors_total"]
    return [(one["rule"], one.get("text", "")) for one in hook.issues()]


@pytest.mark.parametrize("first, depth", [(1, 2), (0, 2), (0, 4)], ids=["plain", "a warm-up from a rate of 0", "four branches behind each other"])
def test_what_begins_at_zero_and_learns_is_left_alone(out, first, depth):
    torch.manual_seed(0)
    net = nn.Sequential(nn.Linear(64, 48), *(Residual(48) for _ in range(depth)), nn.LayerNorm(48), nn.Linear(48, 64))
    zero(net[-1])
    optimizer = torch.optim.AdamW(net.parameters(), 2e-3)
    schedule = torch.optim.lr_scheduler.LambdaLR(optimizer, lambda at: min(1.0, (at + first) / 25) * max(0.0, 1 - at / 300))
    hook = tocsin.watch(net, optimizer, out=out, rules="default")
    base, losses = torch.randn(8, 64), []
    for _ in range(300):
        x = torch.randn(64, 8) @ base / 3
        noise = 0.5 * torch.randn_like(x)
        loss = nn.functional.mse_loss(net(x + noise), noise)
        optimizer.zero_grad()
        loss.backward()
        hook.log(loss=loss)
        optimizer.step()
        schedule.step()
        losses.append(float(loss.detach()))
    assert losses[-1] < 0.5 * losses[0]
    assert told(hook) == []


def test_a_head_that_stays_at_zero_is_told(out):
    """Both layers of an adapter begin at zero: neither ever gets a gradient."""
    torch.manual_seed(0)
    down, up = nn.Linear(16, 16), nn.Linear(16, 16)
    zero(down)
    zero(up)
    net = nn.Sequential(down, nn.ReLU(), up)
    optimizer = torch.optim.SGD(net.parameters(), 0.01)
    hook = tocsin.watch(net, optimizer, out=out, rules=["identical_parameters"], capture={"every": "1 step", "overhead": "100%"})
    for _ in range(30):
        optimizer.zero_grad()
        loss = net(torch.randn(8, 16)).sub(1).pow(2).mean()
        loss.backward()
        hook.log(loss=loss)
        optimizer.step()
    assert {rule for rule, _ in told(hook)} == {"identical_parameters"}


@pytest.mark.parametrize("length, expected", [(15, True), (200, False)], ids=["of epochs, stepped per update", "of updates"])
def test_a_schedule_that_ends_before_the_training_is_told(out, length, expected):
    torch.manual_seed(0)
    net = nn.Sequential(nn.Linear(16, 32), nn.ReLU(), nn.Linear(32, 4))
    optimizer = torch.optim.AdamW(net.parameters(), 1e-3)
    schedule = torch.optim.lr_scheduler.LambdaLR(optimizer, lambda at: min(1.0, at / 2) * max(0.0, 1 - at / length))
    hook = tocsin.watch(net, optimizer, out=out, rules="default")
    for _ in range(200):
        x = torch.randn(64, 16)
        loss = nn.functional.cross_entropy(net(x), (x[:, 0] > 0).long() + 2 * (x[:, 1] > 0).long())
        optimizer.zero_grad()
        loss.backward()
        hook.log(loss=loss)
        optimizer.step()
        schedule.step()
    issues = told(hook)
    texts = [text for rule, text in issues if rule == "budget"]
    assert not [text for rule, text in issues if rule == "learning_rate_decay"], "of one cause one issue"
    assert any("is 0 since step 15" in text for text in texts) is expected and bool(texts) is expected
