"""What is kept of a training is what was trained (tocsin.adapters.torch.surroundings.checkpoints)."""
import argparse
import copy
import io

import pytest
import torch
from torch import nn

from tests.support.hook_support import Telemetry

import tocsin


class Job:
    def __init__(self, out, margin=True):
        torch.manual_seed(0)
        self.net, self.criterion = nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Linear(8, 3)), nn.Linear(3, 5, bias=False)
        self.whole = nn.ModuleList([self.net, self.criterion])
        self.optimizer = torch.optim.Adam((self.whole if margin else self.net).parameters())
        self.out = out
        self.hook = tocsin.watch(self.whole if margin else self.net, self.optimizer, out=out, job="kept")
        self.train()

    def train(self, updates=4):
        for _ in range(updates):
            self.optimizer.zero_grad()
            self.criterion(self.net(torch.randn(8, 4))).square().mean().backward()
            self.optimizer.step()

    def saves(self, **content):
        into = io.BytesIO()
        torch.save(content, into)
        assert len(into.getvalue()) > 100

    def told(self):
        self.hook.close()
        assert not self.hook.stats()["hook_errors_total"]
        return [(one["kind"], one["names"]) for record in Telemetry(self.out).lifecycles("preflight") for one in record["findings"]]


def test_a_checkpoint_without_a_part_that_is_trained_is_told_once(out, capfd):
    """Class centres of a margin loss, say: the training cannot go on from it."""
    save, load = torch.save, nn.Module.load_state_dict
    job = Job(out)
    for _ in range(2):
        job.saves(epoch=1, model=job.net.state_dict(), optimizer=job.optimizer.state_dict(), arguments=argparse.Namespace(rate=0.1))
    assert job.told() == [("checkpoint_lacks", ["1.weight"])]
    assert "a checkpoint has the state of the optimizer of ModuleList, but not 1 of the parameters that it trains" in capfd.readouterr().err
    assert torch.save is save and nn.Module.load_state_dict is load


@pytest.mark.parametrize("content", [
    lambda job: {"model": job.whole.state_dict(), "optimizer": job.optimizer.state_dict(), "epoch": 3},
    lambda job: {"net": job.net.state_dict(), "criterion": job.criterion.state_dict(), "optimizer": job.optimizer.state_dict()},
    lambda job: {"state_dict": {f"module.{name}": value.half() for name, value in job.whole.state_dict().items()},
                 "optimizer_states": [job.optimizer.state_dict()], "rng": torch.get_rng_state()},
    lambda job: {"model": job.whole, "optimizer": job.optimizer},
    lambda job: {"model": job.net.state_dict()}, lambda job: {"optimizer": job.optimizer.state_dict(), "rng": torch.get_rng_state()},
    lambda job: {"averaged": [one.clone() for one in job.whole.parameters()], "optimizer": job.optimizer.state_dict()},
    lambda job: {"model": job.net.state_dict(), "optimizer": torch.optim.SGD(job.net.parameters(), 0.1).state_dict()},
    lambda job: {"model": job.net.state_dict(), "optimizer": job.optimizer.state_dict(), "more": job},
    lambda job: {"model": job.net.state_dict(), "optimizer": job.optimizer.state_dict(), "rows": list(range(100_000))}],
    ids=["all", "by parts", "wrapped and in 16 bits", "as objects", "for inference", "weights in another file", "averages", "another optimizer",
         "something unknown", "a data set, which is not gone through"])
def test_checkpoints_that_hold_what_they_should_are_healthy(out, content):
    job = Job(out)
    Job.__reduce__ = lambda self: (dict, ())
    try:
        job.saves(**content(job))
    finally:
        del Job.__reduce__
    assert job.told() == []


def test_a_best_state_that_is_a_reference_is_told(out, capfd):
    job = Job(out, margin=False)
    best = job.net.state_dict()
    job.train()
    job.net.load_state_dict(best)
    job.net.load_state_dict(best)
    assert job.told() == [("best_not_copied", [])]
    assert "was given the tensors of the model itself and changes nothing" in capfd.readouterr().err


@pytest.mark.parametrize("keep", [copy.deepcopy, lambda state: {name: value.clone() for name, value in state.items()},
                                  lambda state: {name: value.numpy().copy() for name, value in state.items()}],
                         ids=["deepcopy", "clone", "numpy"])
def test_a_best_state_that_was_copied_is_healthy(out, keep):
    job = Job(out, margin=False)
    best = keep(job.net.state_dict())
    job.train()
    job.net.load_state_dict({name: torch.as_tensor(value) for name, value in best.items()})
    assert job.told() == []


def test_other_modules_may_be_given_what_they_are(out):
    """A target network takes the weights of the one that is trained; a part of it is loaded before it trains."""
    job = Job(out, margin=False)
    target = copy.deepcopy(job.net)
    for _ in range(3):
        job.train()
        target.load_state_dict(job.net.state_dict())
        target.load_state_dict(target.state_dict())
    assert job.told() == []
