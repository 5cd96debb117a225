"""What tests of agents share: one update of a network, and what the hook told of it."""
import torch

from tests.support.hook_support import Telemetry


def update(hook, net, optimizer, **logged):
    optimizer.zero_grad()
    net(torch.ones(4, 3)).pow(2).mean().backward()
    hook.log(loss=1.0, **logged)
    optimizer.step()


def sums(hook, out, room="ledger/reward/"):
    hook.close()
    assert not hook.stats()["hook_errors_total"], hook.stats()
    told = Telemetry(out)
    return {name[len(room):]: sum(value for _, _, value in told.scalars(name)) for name in told.names.values() if name.startswith(room)}
