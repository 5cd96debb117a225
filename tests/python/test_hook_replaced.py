"""Parameters that are replaced while their optimizer goes on with the old ones (tocsin.adapters.torch.surroundings.replaced)."""
import pytest
import torch
from torch.nn.utils import prune

import tocsin
from tocsin.adapters.torch.surroundings.replaced import Replaced, sentence


class Job:
    def __init__(self, out):
        torch.manual_seed(0)
        self.net = torch.nn.Sequential(torch.nn.Linear(4, 8), torch.nn.ReLU(), torch.nn.Linear(8, 1))
        self.optimizer = torch.optim.Adam(self.net.parameters(), 1e-3)
        self.hook = tocsin.watch(self.net, self.optimizer, out=out, job="replaced")
        self.part, self.now = Replaced(self.hook.sink), 1000.0

    def train(self, updates=6):
        for _ in range(updates):
            self.optimizer.zero_grad()
            self.net(torch.randn(8, 4)).pow(2).mean().backward()
            self.optimizer.step()
            self.hook.step()

    def looks(self, times):
        """What is told in so many looks, training in between."""
        found = []
        for _ in range(times):
            self.train()
            self.now *= 2
            found.append(self.part.look(self.hook.stats() | {"mode": "train"}, self.now))
        self.hook.sink.catch_up()
        return [one for one in found if one is not None]


def test_a_new_head_that_no_optimizer_holds_is_told_once(out):
    job = Job(out)
    assert job.looks(2) == []
    job.net[2] = torch.nn.Linear(8, 1)
    [finding] = job.looks(4)
    assert finding == {"kind": "no_optimizer", "model": "Sequential", "count": 2, "names": ["2.weight", "2.bias"]}
    assert "still holds the old ones, and these do not change: 2.weight, 2.bias" in sentence(finding)


def a_new_optimizer(job):
    job.net[2] = torch.nn.Linear(8, 1)
    job.optimizer.add_param_group({"params": job.net[2].parameters()})


def another_optimizer(job):
    job.net[2] = torch.nn.Linear(8, 1)
    job.other = torch.optim.SGD(job.net[2].parameters(), 0.1)  # not watched, and it updates them
    job.optimizer.register_step_post_hook(lambda *_: job.other.step()) if hasattr(job.optimizer, "register_step_post_hook") else \
        job.net.register_forward_pre_hook(lambda *_: job.other.step())


@pytest.mark.parametrize("change", [
    lambda job: job.net.load_state_dict({name: value + 1 for name, value in job.net.state_dict().items()}),
    lambda job: job.net.double().float(), lambda job: prune.l1_unstructured(job.net[0], "weight", 0.5),
    lambda job: job.net[2].requires_grad_(False), lambda job: setattr(job.net[2].weight, "data", torch.zeros(1, 8)),
    a_new_optimizer, another_optimizer])
def test_changes_that_the_optimizer_follows_are_healthy(out, change):
    job = Job(out)
    assert job.looks(2) == []
    change(job)
    assert job.looks(4) == []


def test_what_was_so_from_the_first_updates_is_not_told_again(out):
    job = Job(out)
    job.net[2] = torch.nn.Linear(8, 1)
    assert job.looks(4) == []
