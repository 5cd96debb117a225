"""Agents that learn by reward: what environments and loops tell (tocsin.gymnasium, tocsin.loop.reward), and what the rule `reward`
makes of it. Target networks: test_target_networks.py."""
import copy
import pickle
import sys
import types

import numpy
import pytest
import torch
from torch import nn

from tests.support.agents import sums, update
from tests.support.hook_support import Telemetry

import tocsin
import tocsin.gymnasium
from tocsin.loop.reward import MOST_KEPT, Prints, is_reward


class Line:
    """Nine fields; the goal is at the right. A step costs 0.1. `old`: four values, as Gym had them."""

    def __init__(self, old=False, most=30, seed=0):
        self.old, self.most, self.random = old, most, numpy.random.default_rng(seed)
        self.at = self.age = 0

    def reset(self, seed=None):
        self.at = self.age = 0
        return self.seen() if self.old else (self.seen(), {"seed": seed})

    def seen(self):
        return numpy.array([self.at / 8, self.age / 30, self.random.normal()], "float32")

    def step(self, action):
        self.at, self.age = min(8, max(0, self.at + (1 if action else -1))), self.age + 1
        there, late = self.at == 8, self.age >= self.most
        pay = 1.0 if there else -0.1
        if self.old:
            return self.seen(), pay, there or late, {"TimeLimit.truncated": True} if late and not there else {}
        return self.seen(), pay, there, late, {}


class Several:
    """Environments at once, that begin anew by themselves."""

    def __init__(self, number=4):
        self.ones = [Line(seed=seed) for seed in range(number)]

    def reset(self):
        return numpy.stack([one.reset()[0] for one in self.ones]), {}

    def step(self, actions):
        seen, pay, over, late, _ = zip(*(one.step(action) for one, action in zip(self.ones, actions)))
        for one, ended in zip(self.ones, numpy.logical_or(over, late)):
            if ended:
                one.reset()
        return numpy.stack(seen), numpy.array(pay), numpy.array(over), numpy.array(late), {}


def watch(out, **options):
    torch.manual_seed(0)
    net = nn.Linear(3, 2)
    optimizer = torch.optim.SGD(net.parameters(), 0.01)
    return tocsin.watch(net, optimizer, out=out, job="agent", **options), net, optimizer


def play(env, steps, act=lambda at: at % 3 > 0):
    """[(reward, ended, terminated)], as the environment gives them."""
    out = []
    env.reset()
    for at in range(steps):
        given = env.step(act(at))
        over = given[2] if len(given) == 4 else given[2] or given[3]
        out.append((given[1], over, given[2] and not given[-1].get("TimeLimit.truncated") if len(given) == 4 else given[2]))
        if over:
            env.reset()
    return out


# --- environments


@pytest.mark.parametrize("old", [False, True])
def test_an_environment_is_counted(out, old):
    hook, net, optimizer = watch(out)
    env = tocsin.gymnasium.watched(Line(old))
    seen = []
    for at in range(200):
        seen += play(env, 10) if at == 0 else [(given[1], given[2] if old else given[2] or given[3], given[2])
                                               for given in [env.step(i % 3 > 0) for i in range(10)]
                                               if not ((given[2] if old else given[2] or given[3]) and env.reset() is None)]
        update(hook, net, optimizer)
    told = sums(hook, out)
    returns, running = [], 0.0
    for pay, over, _ in seen:
        running += pay
        if over:
            returns.append(running)
            running = 0.0
    untold = len(seen) - told["transitions"]
    assert 0 <= untold < 300, told
    assert told["episodes"] >= 0.9 * len(returns) > 40
    assert told["seen/reward"] == told["transitions"]
    assert 0 < told["changes/reward"] < told["transitions"]
    assert told["returns"] == pytest.approx(sum(returns[:int(told["episodes"])]))
    assert told["squares"] == pytest.approx(sum(one * one for one in returns[:int(told["episodes"])]))
    assert 0 < told["ends"] <= told["episodes"]
    assert told["changes/observation"] > 0 and told["made"] > 0.8 * told["transitions"] - 64


def test_a_limit_of_time_is_no_end(out):
    for old in (False, True):
        hook, net, optimizer = watch(out + str(old))
        env = tocsin.gymnasium.watched(Line(old, most=5))
        for _ in range(40):
            play(env, 5, lambda at: False)
            update(hook, net, optimizer)
        told = sums(hook, out + str(old))
        assert told["episodes"] >= 38 and "ends" not in told
        tocsin.unwatch()


def test_several_environments_at_once(out):
    hook, net, optimizer = watch(out)
    env = tocsin.gymnasium.watched(Several())
    env.reset()
    for _ in range(100):
        for at in range(5):
            env.step([at % 3 > 0] * 4)
        update(hook, net, optimizer)
    told = sums(hook, out)
    assert told["environments"] >= 4 and told["environments"] % 4 == 0
    assert 1600 <= told["transitions"] <= 2000
    assert told["episodes"] >= 40 and told["returns"] < 40


def test_what_an_environment_gives_is_given_on(out):
    hook, _, _ = watch(out)
    bare, counted = Line(), tocsin.gymnasium.watched(Line())
    assert counted.most == 30 and counted.reset(seed=3)[1] == {"seed": 3}
    bare.reset()
    for at in range(50):
        for one, other in zip(bare.step(at % 2), counted.step(at % 2)):
            assert numpy.all(one == other)
    hook.close()


def test_without_a_hook_and_in_evaluations_nothing_is_counted(out):
    env = tocsin.gymnasium.watched(Line())
    play(env, 50)
    hook, net, optimizer = watch(out)
    with hook.mode("eval"):
        play(env, 500)
    update(hook, net, optimizer)
    assert sums(hook, out) == {}


def test_an_agent_that_acts_in_the_eval_state_is_counted(out):
    hook, net, optimizer = watch(out)
    env = tocsin.gymnasium.watched(Line())
    for _ in range(30):
        net.eval()
        with torch.no_grad():
            net(torch.ones(4, 3))
        hook.log(acting=1.0)  # from here on the hook's mode is eval
        play(env, 40)
        net.train()
        update(hook, net, optimizer)
    assert sums(hook, out)["episodes"] >= 29
    trained = Telemetry(out).scalars("loss")[0][0]
    assert {mode for mode, _, _ in Telemetry(out).scalars("ledger/reward/episodes")} - {trained}


def test_wrappers_of_a_library(out, monkeypatch):
    class Env(Line):
        pass

    class Wrapper(Env):
        def __init__(self, env):
            self.env = env

    library = types.ModuleType("gymnasium")
    library.Env, library.Wrapper = Env, Wrapper
    monkeypatch.setitem(sys.modules, "gymnasium", library)
    hook, net, optimizer = watch(out)
    env = tocsin.gymnasium.watched(Env())
    assert isinstance(env, Env) and isinstance(env, Wrapper)
    for _ in range(20):
        play(env, 30)
        update(hook, net, optimizer)
    assert sums(hook, out)["episodes"] > 10


def test_a_copied_environment_counts_by_itself():
    env = tocsin.gymnasium.watched(Line())
    play(env, 20)
    for other in (copy.deepcopy(env), pickle.loads(pickle.dumps(env))):
        assert other.env is not env.env and other.most == 30
        play(other, 20)


def test_rewards_that_cannot_be_read_are_counted_and_nothing_is_raised(out):
    class Odd(Line):
        def step(self, action):
            return self.seen(), object(), False, False, {}
    hook, net, optimizer = watch(out)
    env = tocsin.gymnasium.watched(Odd())
    with pytest.warns(RuntimeWarning, match="reward"):
        for _ in range(5):
            env.step(1)
    hook.close()
    assert hook.stats()["hook_errors_total"] == {"reward": 5}


# --- Stable-Baselines3, as its callbacks see it


class Buffer:
    """A memory of its kind."""

    def __init__(self, size):
        self.size, self.pos, self.full = size, 0, False

    def add(self):
        self.pos = (self.pos + 1) % self.size
        self.full = self.full or self.pos == 0

    def _get_samples(self, places):
        return places * 2


def test_an_agent_of_stable_baselines(out):
    hook, net, optimizer = watch(out)
    callback = tocsin.gymnasium.stable_baselines3()
    buffer = Buffer(50)
    model = types.SimpleNamespace(_total_timesteps=5000, replay_buffer=buffer, _n_updates=0,
                                  logger=types.SimpleNamespace(name_to_value={"time/fps": 3}))
    random = numpy.random.default_rng(0)
    for step in range(400):
        over = numpy.array([step % 20 == 19])
        infos = [{"TimeLimit.truncated": step % 40 == 39}]
        assert callback({"self": model, "rewards": numpy.array([float(step % 3)]), "dones": over, "infos": infos,
                         "new_obs": random.normal(size=(1, 3))}, {})
        buffer.add()
        places = random.integers(0, 50 if buffer.full else max(1, buffer.pos), 16)
        assert (buffer._get_samples(places) == places * 2).all()
        model._n_updates += 1
        model.logger.name_to_value["train/explained_variance"] = 0.5
        update(hook, net, optimizer)
    again = pickle.loads(pickle.dumps(buffer))
    assert again._get_samples(numpy.array([3])) == 6 and again._get_samples.__self__ is again
    told = sums(hook, out)
    assert told["planned"] % 5000 == 0 and told["planned"] > 0
    assert told["episodes"] >= 18 and told["ends"] == pytest.approx(told["episodes"] / 2, abs=1)
    assert 100 < told["fresh"] <= 400 < told["drawn"]  # each place of each round is new once
    assert len(Telemetry(out).scalars("train/explained_variance")) > 300


# --- what the loop says


def test_signals_of_a_loop(out):
    hook, net, optimizer = watch(out)
    for _ in range(20):
        hook.transitions(done=numpy.array([0, 0, 1, 0] * 25), advantage=torch.zeros(100), ratio=numpy.ones(100),
                         priority=numpy.arange(100.0), drawn=(numpy.ones((64, 3)), numpy.arange(64)), episode_returns=[1.0, 2.0])
        update(hook, net, optimizer)
    told = sums(hook, out)
    assert told["seen/done"] == 2000 and told["ones/done"] == 500 and told["changes/done"] == 1000
    assert told["changes/advantage"] == 0 and told["ones/ratio"] == 2000 and "ones/advantage" not in told
    assert told["changes/priority"] == 1999
    assert told["drawn"] == 1280 and told["fresh"] == 64
    assert told["episodes"] == 40 and told["returns"] == 60 and told["squares"] == 100


def test_an_unknown_signal_is_said(out):
    hook, _, _ = watch(out)
    with pytest.warns(RuntimeWarning, match="'gain' is no signal"):
        hook.transitions(gain=1)
    hook.close()


def test_a_step_has_one_word(out):
    hook, net, optimizer = watch(out)
    for _ in range(5):
        for _ in range(400):
            hook.transitions(reward=1.0, episode_returns=[1.0])
        update(hook, net, optimizer)
    sums(hook, out)
    steps = [step for _, step, _ in Telemetry(out).scalars("ledger/reward/episodes")]
    assert len(steps) == len(set(steps)) > 1


def test_without_the_ledger_nothing_is_sent(out):
    hook, net, optimizer = watch(out, capture={"ledger": False})
    env = tocsin.gymnasium.watched(Line())
    for _ in range(10):
        play(env, 30)
        hook.transitions(done=numpy.zeros(300))
        update(hook, net, optimizer, reward=1.0)
    assert sums(hook, out) == {}


def test_different_rows_are_counted_when_there_are_very_many():
    prints = Prints()
    number = 3 * MOST_KEPT
    counted = sum(prints.new(b"%d" % at) for at in range(number))
    assert counted == pytest.approx(number, rel=0.02)
    assert sum(prints.new(b"%d" % at) for at in range(number)) == 0


@pytest.mark.parametrize("name, expected", [("reward", True), ("rollout/ep_rew_mean", True), ("episodic_return", True), ("loss", False),
                                            ("forward_time", False), ("ledger/reward/made", False), ("rewarding", False)])
def test_names_of_rewards(name, expected):
    assert is_reward(name) is expected
