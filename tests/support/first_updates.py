"""A small model, and what the preflight of a hook told of its first updates."""
import torch
from torch import nn

from tests.support.hook_support import Telemetry

STEPS = 6


class Net(nn.Module):
    def __init__(self, norm=None):
        super().__init__()
        self.body, self.norm, self.head = nn.Linear(6, 4), norm or nn.Identity(), nn.Linear(4, 2)

    def forward(self, x):
        return self.head(self.norm(self.body(x)).relu())


def loss_of(net):
    return net(torch.randn(8, 6)).sub(1).square().mean()


def told(out, hook):
    """{kind: names}; no error of the hook, and nothing is left on the parameters."""
    hook.close()
    assert not hook.stats()["hook_errors_total"]
    return {one["kind"]: one["names"] for record in Telemetry(out).lifecycles("preflight") for one in record["findings"]}
