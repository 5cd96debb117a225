"""Rewards, in two small worlds of our own. Both log what their episodes return.

ppo_hover         PPO with a normal distribution of thrusts: a drone is to hover at a height in gusts; generalised advantages, four passes, clipping
dqn_catch         DQN in a world of pictures: a falling ball is to be caught; replay, a target network that follows slowly, epsilon by a line

Their faults: below, at the end."""
import copy

import numpy
import torch
from torch import nn
from torch.nn import functional

import tocsin

from ..scripts.shapes import ended, entered, from_start, rate


class Hover:
    """Drones that are to stay at a height; 40 moves are an episode. Who leaves has no further pay."""

    def __init__(self, count, seed):
        self.drawn, self.count, self.age = numpy.random.default_rng(seed), count, numpy.zeros(count, int)
        self.height, self.speed, self.gust = numpy.zeros((3, count))
        self.restart(numpy.ones(count, bool))

    def restart(self, which):
        """From anywhere."""
        number = int(which.sum())
        self.height[which], self.speed[which] = self.drawn.uniform(-1.5, 1.5, number), self.drawn.uniform(-0.5, 0.5, number)
        self.gust[which], self.age[which] = self.drawn.normal(0, 0.3, number), 0

    def seen(self):
        """What the policy is told."""
        return torch.tensor(numpy.stack([self.height, self.speed, self.gust, numpy.abs(self.height)], 1)).float()

    def step(self, thrust):
        """(pay, over)"""
        self.gust = 0.9 * self.gust + 0.1 * self.drawn.standard_normal(self.count)
        self.speed = 0.95 * self.speed + 0.25 * (numpy.clip(thrust, -1, 1) + self.gust)
        self.height, self.age = self.height + 0.25 * self.speed, self.age + 1
        gone = numpy.abs(self.height) > 2.5
        return numpy.where(gone, -3.0, 1 - numpy.abs(self.height) - 0.1 * thrust**2).clip(-3, 1), gone | (self.age >= 40)


class Policy(nn.Module):
    """Means of thrusts, their spread, values."""

    def __init__(self, width):
        super().__init__()
        self.actor = nn.Sequential(nn.Linear(4, width), nn.Tanh(), nn.Linear(width, width), nn.Tanh(), nn.Linear(width, 1))
        self.critic = nn.Sequential(nn.Linear(4, width), nn.Tanh(), nn.Linear(width, width), nn.Tanh(), nn.Linear(width, 1))
        self.log_std = nn.Parameter(torch.full((1,), -0.5))
        with torch.no_grad():
            self.actor[-1].weight.mul_(0.1)

    def forward(self, x):
        return torch.distributions.Normal(self.actor(x).squeeze(-1), self.log_std.clamp(-3, 1).exp()), self.critic(x).squeeze(-1)


def _hovered(model, seed):
    """Mean pay of the most likely thrusts for 40 moves."""
    world, total, alive = Hover(64, seed + 77), 0.0, numpy.ones(64, bool)
    for _ in range(40):
        with torch.no_grad():
            pay, over = world.step(model(world.seen())[0].mean.numpy())
        total += float((pay * alive).mean()) / 40
        alive &= ~over
    return total


def _ppo_hover(fault, seed, chance, options):
    count, length, rounds, gamma, lam = 16, 40, 26, 0.97, 0.95
    world, model = Hover(count, seed), Policy(chance.choice((32, 48)))
    tuned = model.critic.parameters() if fault == "optimizer_without_head" else model.parameters()
    optimizer = torch.optim.Adam(tuned, lr=rate(chance.uniform(1.5e-3, 2.5e-3), fault), eps=1e-5)
    clip, bonus, stale, returned = 0.2, 0.003, None, []
    running, passes, updates, first = numpy.zeros(count), [[0, -_hovered(copy.deepcopy(model), seed)]], 0, world.seen()
    hook = tocsin.watch(model, optimizer, **options)
    for _ in range(rounds):
        kept = []
        for _ in range(length):
            state = first if fault == "observation_stale" else world.seen()
            with torch.no_grad():
                policy, value = model(state)
                thrust = policy.sample()
            pay, over = world.step(thrust.numpy())
            running += pay
            returned += running[over].tolist()
            running[over] = 0
            world.restart(over)
            told = {"reward_inverted": -pay, "reward_zero": 0 * pay}.get(fault, pay)
            kept.append((state, thrust, policy.log_prob(thrust), value, torch.tensor(told).float(), torch.tensor(over).float()))
        states, thrusts, before, values, pays, ends = (torch.stack(one) for one in zip(*kept))
        with torch.no_grad():
            following, advantage, advantages = model(world.seen())[1], torch.zeros(count), []
            for at in reversed(range(length)):
                left = 1.0 if fault == "ends_ignored" else 1 - ends[at]
                advantage = pays[at] + gamma * following * left - values[at] + gamma * lam * left * advantage
                following = values[at]
                advantages.insert(0, advantage)
        advantages = torch.stack(advantages)
        if fault == "advantage_stale":
            stale = advantages if stale is None else stale
            advantages = stale
        goals = advantages + values
        flat = [one.flatten(0, 1) for one in (states, thrusts, before, advantages, goals)]
        for part in (part for _ in range(4) for part in torch.randperm(count * length).split(160)):
            state, thrust, old, advantage, goal = (one[part] for one in flat)
            policy, value = model(state)
            advantage = (advantage - advantage.mean()) / (advantage.std() + 1e-8)
            new = policy.log_prob(thrust.roll(1) if fault == "actions_moved" else thrust)
            ratio = (old - new if fault == "ratio_inverted" else new - old).clamp(-20, 20).exp()
            actor_loss = -torch.minimum(ratio * advantage, ratio.clamp(1 - clip, 1 + clip) * advantage).mean()
            critic_loss, entropy = functional.mse_loss(value, goal), policy.entropy().mean()
            loss = actor_loss + 0.5 * critic_loss - bonus * entropy
            optimizer.zero_grad()
            loss.backward()
            nn.utils.clip_grad_norm_(model.parameters(), 0.5)
            scalars = {"policy_loss": actor_loss.item(), "value_loss": critic_loss.item(), "entropy": entropy.item()}
            if returned:
                scalars["episode_return"], returned = float(numpy.mean(returned)), []
            hook.log(**scalars)
            optimizer.step()
            updates += 1
        passes.append([updates - 1, -_hovered(copy.deepcopy(model), seed)])
    return ended(hook, updates, passes)


class Catch:
    """A ball falls through seven rows of seven places, sideways at times; a paddle of one place below moves by one. 1 for a catch, −1 for a miss."""

    def __init__(self, count, seed):
        self.drawn, self.count = numpy.random.default_rng(seed), count
        self.row, self.ball, self.paddle = numpy.zeros(count, int), self.drawn.integers(0, 7, count), self.drawn.integers(0, 7, count)

    def seen(self):
        """Pictures of two channels."""
        picture, each = numpy.zeros((self.count, 2, 7, 7), "float32"), numpy.arange(self.count)
        picture[each, 0, numpy.minimum(self.row, 6), self.ball] = 1
        picture[each, 1, 6, self.paddle] = 1
        return picture

    def step(self, actions):
        """(pay, over)"""
        self.paddle = numpy.clip(self.paddle + actions - 1, 0, 6)
        drift = numpy.where(self.drawn.random(self.count) < 0.15, self.drawn.integers(-1, 2, self.count), 0)
        self.row, self.ball = self.row + 1, numpy.clip(self.ball + drift, 0, 6)
        over = self.row >= 6
        return numpy.where(over, numpy.where(self.ball == self.paddle, 1.0, -1.0), 0.0).astype("float32"), over

    def restart(self, which):
        """Another ball."""
        self.row = numpy.where(which, 0, self.row)
        self.ball = numpy.where(which, self.drawn.integers(0, 7, self.count), self.ball)


def _caught(model, seed):
    """Mean pay of an episode."""
    world, total = Catch(200, seed + 77), 0.0
    for _ in range(6):
        with torch.no_grad():
            pay, _ = world.step(model(torch.tensor(world.seen())).argmax(1).numpy())
        total += float(pay.mean())
    return total


def _dqn_catch(fault, seed, chance, options):
    updates, count, batch, gamma = 800, 12, chance.choice((48, 64)), chance.uniform(0.9, 0.95)
    world, drawn, width = Catch(count, seed), numpy.random.default_rng(seed), chance.choice((64, 96))
    model = nn.Sequential(nn.Flatten(), nn.Linear(98, width), nn.ReLU(), nn.Linear(width, width), nn.ReLU(), nn.Linear(width, 3))
    target_net = copy.deepcopy(model).requires_grad_(False)
    optimizer = torch.optim.AdamW(model.parameters(), lr=rate(chance.uniform(1.5e-3, 2.5e-3), fault), amsgrad=True)
    memory, returned, last = [], [], numpy.zeros(count, "float32")
    passes = [[0, -_caught(copy.deepcopy(model), seed)]]
    hook = tocsin.watch(model, optimizer, **options)
    for update in range(-20, updates):
        epsilon = 1.0 if fault == "explores_always" else max(0.05, 1 - max(update, 0) / 400)
        before = world.seen()
        with torch.no_grad():
            best = model(torch.tensor(before)).argmax(1).numpy()
        actions = numpy.where(drawn.random(count) < epsilon, drawn.integers(0, 3, count), best)
        pay, over = world.step(actions)
        then = world.seen()
        world.restart(over)
        returned += pay[over].tolist()
        told = {"reward_inverted": -pay, "reward_zero": 0 * pay, "rewards_late": last}.get(fault, pay)
        last = pay
        if fault != "replay_stands" or update < 0:
            memory += list(zip(before, numpy.roll(actions, 1) if fault == "actions_moved" else actions, told, then, over))
        if update < 0:
            continue
        chosen = drawn.integers(max(0, len(memory) - 5000), len(memory), batch)
        states, acted, paid, then, over = (torch.tensor(numpy.array(one)) for one in zip(*(memory[one] for one in chosen)))
        with torch.no_grad():
            goal = paid + gamma * target_net(then).amax(1) * (1.0 if fault == "ends_ignored" else (~over).float())
        loss = functional.smooth_l1_loss(model(states).gather(1, acted[:, None]).squeeze(1), goal)
        optimizer.zero_grad()
        loss.backward()
        nn.utils.clip_grad_value_(model.parameters(), 100)
        if returned:
            hook.log(loss=loss.item(), epsilon=epsilon, episode_return=float(numpy.mean(returned)))
            returned = []
        else:
            hook.log(loss=loss.item(), epsilon=epsilon)
        optimizer.step()
        if fault != "target_stands":
            with torch.no_grad():
                for slow, fast in zip(target_net.parameters(), model.parameters()):
                    slow.lerp_(fast, 0.05)
        if update % 80 == 79:
            passes.append([update, -_caught(copy.deepcopy(model), seed)])
    return ended(hook, updates, passes)


TUNING, FAULTS, fault_names, run = entered({
    "ppo_hover": (_ppo_hover, from_start("reward_inverted", "reward_zero", "observation_stale", "actions_moved", "advantage_stale", "ratio_inverted",
                                         "rate_thousandth", "rate_hundredfold")),
    "dqn_catch": (_dqn_catch, from_start("target_stands", "replay_stands", "ends_ignored", "reward_inverted", "reward_zero", "actions_moved",
                                         "explores_always", "rate_hundredfold"))})
