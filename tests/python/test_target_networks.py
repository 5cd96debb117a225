"""Target networks of agents: what the hook tells of them (tocsin.adapters.torch.first_updates.lag), and what the rule `reward` makes of it."""
import copy
import time

import pytest
import torch
from torch import nn

from tests.support.agents import sums, update

import tocsin


def learn(out, updates=200, pause=0.0, follow=lambda update, net, target: None, make=copy.deepcopy, **options):
    """What is told of `target_net`, and the issues."""
    torch.manual_seed(0)
    net = nn.Sequential(nn.Linear(3, 32), nn.ReLU(), nn.Linear(32, 2))
    target_net = make(net)
    optimizer = torch.optim.SGD(net.parameters(), 0.01)
    hook = tocsin.watch(net, optimizer, out=out, job="agent", **options)
    for number in range(updates):
        update(hook, net, optimizer, episode_return=float(number % 7))
        time.sleep(pause)
        follow(number, net, target_net)
    hook.close()
    assert not hook.stats()["hook_errors_total"], hook.stats()
    found = [(one["kind"], one["labels"].get("metric")) for one in hook.issues() if one["rule"] == "reward" and one["status"] == "firing"]
    return sums(hook, out, "ledger/target/target_net/"), found


def copied(every):
    return lambda number, net, target: target.load_state_dict(net.state_dict()) if number % every == every - 1 else None


def mixed(number, net, target):
    with torch.no_grad():
        for old, new in zip(target.parameters(), net.parameters()):
            old.data.mul_(0.95).add_(0.05 * new.data)


def test_a_target_network_that_is_copied(out):
    told, found = learn(out, follow=copied(10), rules="default")
    assert told["updates"] >= 80 and told["looks"] >= 80
    assert told["changes"] == pytest.approx(told["looks"] / 10, abs=3)
    assert told["equal"] == pytest.approx(told["looks"] / 10, abs=3)
    assert told["moves"] >= told["looks"] - 2
    assert not found


def test_a_target_network_that_is_mixed(out):
    told, found = learn(out, follow=mixed, rules="default")
    assert told["changes"] >= told["looks"] - 2 and told["equal"] <= 2 and not found


def test_a_target_network_that_stands(out):
    told, found = learn(out, updates=1200, pause=0.004, rules="default")
    assert told["updates"] > 256
    assert told["changes"] == 0 and told["equal"] >= 1 and told["moves"] > 60
    assert found == [("lag", "target_net")]


def test_a_target_network_that_is_the_trained_one(out):
    told, found = learn(out, make=lambda net: net, rules="default")
    assert told["equal"] == told["looks"] >= 64
    assert found == [("lag", "target_net")]


def test_a_network_of_another_shape_is_none(out):
    assert learn(out, make=lambda net: nn.Linear(3, 2)) == ({}, [])


def test_without_rewards_no_target_network_is_looked_at(out):
    net = nn.Linear(3, 2)
    target_net = copy.deepcopy(net)
    optimizer = torch.optim.SGD(net.parameters(), 0.01)
    hook = tocsin.watch(net, optimizer, out=out, job="agent")
    for _ in range(100):
        update(hook, net, optimizer)
    assert sums(hook, out, "ledger/target/") == {}
    assert target_net is not None


class Agent:
    """Networks as attributes of an object, made after the hook."""

    def __init__(self, out):
        self.actor = nn.Linear(3, 2)
        self.optimizer = torch.optim.SGD(self.actor.parameters(), 0.01)
        self.hook = tocsin.watch(self.actor, self.optimizer, out=out, job="agent")
        self.actor_target = copy.deepcopy(self.actor)

    def learn(self):
        for number in range(200):
            update(self.hook, self.actor, self.optimizer, reward=float(number))


def test_attributes_are_found(out):
    agent = Agent(out)
    agent.learn()
    assert sums(agent.hook, out, "ledger/target/actor_target/")["changes"] == 0


def test_what_the_loop_lets_go_is_not_kept(out):
    """Reading the variables of a function makes a copy of them, which would live on."""
    import weakref

    class Large:
        pass

    torch.manual_seed(0)
    net = nn.Linear(3, 2)
    target_net = copy.deepcopy(net)
    optimizer = torch.optim.SGD(net.parameters(), 0.01)
    batch = Large()
    gone = weakref.ref(batch)
    hook = tocsin.watch(net, optimizer, out=out, job="agent")
    update(hook, net, optimizer, reward=1.0)
    del batch
    assert gone() is None and target_net is not None
    hook.close()


def test_variables_that_the_script_has_asked_for_stay(out):
    net = nn.Linear(3, 2)
    target_net = copy.deepcopy(net)
    optimizer = torch.optim.SGD(net.parameters(), 0.01)
    mine = locals()
    hook = tocsin.watch(net, optimizer, out=out, job="agent")
    update(hook, net, optimizer, reward=1.0)
    assert mine["target_net"] is target_net
    hook.close()
