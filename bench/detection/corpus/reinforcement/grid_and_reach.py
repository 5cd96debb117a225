"""Rewards, in two small worlds of our own.

dqn_grid          DQN in a grid with pits: replay, a target network that is copied, epsilon that falls, smooth L1
ppo_reach         PPO with clipping: a point is to be pushed to a place; two actions per axis, a value head, a bonus for entropy

Their faults: below, at the end; what the names mean says support.WORDS."""
import copy

import numpy
import torch
from torch import nn
from torch.nn import functional

import tocsin

from ..scripts.support import ended, entered, from_start, rate


class Grid:
    """Five by five fields, three pits, a goal; several walkers at once. A step costs a little, a pit 1, the goal pays 1."""
    MOVES = numpy.array([(0, 1), (0, -1), (1, 0), (-1, 0)])

    def __init__(self, walkers, seed):
        self.drawn = numpy.random.default_rng(seed)
        fields = [(row, column) for row in range(5) for column in range(5)]
        self.pits = [(1, 1), (2, 3), (3, 1)]
        self.free = [one for one in fields if one not in self.pits and one != (4, 4)]
        self.at, self.age = numpy.zeros((walkers, 2), int), numpy.zeros(walkers, int)
        self.restart(numpy.ones(walkers, bool))

    def restart(self, which):
        """New places."""
        for one in numpy.flatnonzero(which):
            self.at[one] = self.free[self.drawn.integers(len(self.free))]
        self.age[which] = 0

    def seen(self):
        """One field of 25 is 1."""
        out = numpy.zeros((len(self.at), 25), "float32")
        out[numpy.arange(len(self.at)), self.at[:, 0] * 5 + self.at[:, 1]] = 1
        return out

    def step(self, actions):
        """(pay, over, cut short)"""
        self.at = numpy.clip(self.at + self.MOVES[actions], 0, 4)
        self.age += 1
        pit = numpy.array([tuple(one) in self.pits for one in self.at])
        goal = (self.at == 4).all(1)
        return numpy.where(goal, 1.0, numpy.where(pit, -1.0, -0.04)).astype("float32"), pit | goal, self.age >= 20


def _played(model, seed, width=64):
    """Mean return of a greedy walk."""
    grid, total, alive = Grid(width, seed + 77), numpy.zeros(width), numpy.ones(width, bool)
    for _ in range(20):
        with torch.no_grad():
            actions = model(torch.tensor(grid.seen())).argmax(1).numpy()
        pay, over, _ = grid.step(actions)
        total += pay * alive
        alive &= ~over
    return float(total.mean())


def _dqn_grid(fault, seed, chance, options):
    updates, walkers, width, batch = 520, 8, chance.choice((48, 64)), chance.choice((64, 96))
    grid, drawn = Grid(walkers, seed), numpy.random.default_rng(seed)
    model = nn.Sequential(nn.Linear(25, width), nn.ReLU(), nn.Linear(width, width), nn.ReLU(), nn.Linear(width, 4))
    target = copy.deepcopy(model).requires_grad_(False)
    optimizer, gamma = torch.optim.Adam(model.parameters(), lr=rate(chance.uniform(1e-3, 2e-3), fault)), chance.uniform(0.93, 0.97)
    memory, episodes, running, passes = [], [0.0], numpy.zeros(walkers), [[0, -_played(copy.deepcopy(model), seed)]]
    hook = tocsin.watch(model, optimizer, **options)
    for update in range(updates):
        epsilon = 1.0 if fault == "explores_always" else max(0.05, 1 - update / 300)
        for _ in range(3):
            before = grid.seen()
            with torch.no_grad():
                greedy = model(torch.tensor(before)).argmax(1).numpy()
            actions = numpy.where(drawn.random(walkers) < epsilon, drawn.integers(0, 4, walkers), greedy)
            pay, over, late = grid.step(actions)
            running += pay
            then = grid.seen()
            told = {"reward_zero": 0.0, "reward_inverted": -1.0}.get(fault, 1.0) * pay
            memory += list(zip(before, actions, told, then, over))
            episodes += running[over | late].tolist()
            running[over | late] = 0
            grid.restart(over | late)
        memory = memory[-8000:]
        chosen = range(len(memory) - min(batch, len(memory)), len(memory)) if fault == "replay_newest" else drawn.integers(0, len(memory), batch)
        states, actions, pay, then, over = (torch.tensor(numpy.array(one)) for one in zip(*(memory[one] for one in chosen)))
        if fault == "ends_ignored":
            over = torch.zeros_like(over)
        with torch.no_grad():
            goal = pay.float() + gamma * target(then).amax(1) * (~over).float()
        said = model(states).gather(1, actions[:, None])
        loss = functional.smooth_l1_loss(said if fault == "broadcast" else said.squeeze(1), goal)
        if fault != "zero_grad_missing":
            optimizer.zero_grad()
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 10.0)
        hook.log(loss=loss.item(), episode_reward=float(numpy.mean(episodes[-20:])), epsilon=epsilon)
        optimizer.step()
        if update % 20 == 19 and fault != "target_stands":
            target.load_state_dict(model.state_dict())
        if update % 40 == 39:
            passes.append([update, -_played(copy.deepcopy(model), seed)])
    return ended(hook, updates, passes)


class Reach:
    """A point with a speed on a line; three forces; pay is how near it is to a goal that it is shown."""

    def __init__(self, count, seed):
        self.drawn, self.count = numpy.random.default_rng(seed), count
        self.place, self.speed, self.goal, self.age = (numpy.zeros(count) for _ in range(4))
        self.restart(numpy.ones(count, bool))
        self.age[:] = self.drawn.integers(0, 40, count)

    def restart(self, which):
        """New places and goals."""
        number = int(which.sum())
        self.place[which], self.goal[which] = self.drawn.uniform(-1, 1, (2, number))
        self.speed[which], self.age[which] = 0, 0

    def seen(self):
        """Place, speed, goal, and how far it is."""
        return numpy.stack([self.place, 5 * self.speed, self.goal, self.goal - self.place], 1).astype("float32")

    def step(self, actions):
        """(pay, over)"""
        self.speed = 0.9 * self.speed + 0.03 * (actions - 1.0)
        self.place = numpy.clip(self.place + self.speed, -1.5, 1.5)
        self.age += 1
        return (1 - numpy.abs(self.place - self.goal)).astype("float32"), self.age >= 40


class ActorCritic(nn.Module):
    """Two networks."""

    def __init__(self, width):
        super().__init__()
        self.actor = nn.Sequential(nn.Linear(4, width), nn.Tanh(), nn.Linear(width, width), nn.Tanh(), nn.Linear(width, 3))
        self.critic = nn.Sequential(nn.Linear(4, width), nn.Tanh(), nn.Linear(width, width), nn.Tanh(), nn.Linear(width, 1))
        nn.init.orthogonal_(self.actor[-1].weight, 0.01)

    def forward(self, x):
        return self.actor(x), self.critic(x).squeeze(-1)


def _held_reach(model, seed):
    """Mean pay of the likeliest actions."""
    world, total = Reach(64, seed + 77), 0.0
    world.restart(numpy.ones(64, bool))
    for _ in range(40):
        with torch.no_grad():
            pay, _ = world.step(model(torch.tensor(world.seen()))[0].argmax(1).numpy())
        total += float(pay.mean()) / 40
    return total


def _ppo_reach(fault, seed, chance, options):
    rounds, count, length, batch = 14, 16, 40, 160
    world, model = Reach(count, seed), ActorCritic(chance.choice((32, 48)))
    optimizer, gamma = torch.optim.Adam(model.parameters(), lr=rate(chance.uniform(1.5e-3, 3e-3), fault), eps=1e-5), chance.uniform(0.93, 0.97)
    first, bonus = torch.tensor(world.seen()), 1.0 if fault == "entropy_large" else 0.01
    passes, done, drawn = [[0, -_held_reach(copy.deepcopy(model), seed)]], 0, torch.Generator().manual_seed(seed)
    hook = tocsin.watch(model, optimizer, **options)
    for _ in range(rounds):
        kept = []
        for _ in range(length):
            state = first if fault == "observation_stale" else torch.tensor(world.seen())
            with torch.no_grad():
                logits, value = model(state)
                policy = torch.distributions.Categorical(logits=logits)
                action = policy.sample()
            pay, over = world.step(action.numpy())
            told = {"reward_zero": 0.0, "reward_inverted": -1.0}.get(fault, 1.0) * pay
            kept.append((state, action, policy.log_prob(action), value, torch.tensor(told), torch.tensor(over)))
            world.restart(over)
        states, actions, logs, values, pays, overs = (torch.stack(one) for one in zip(*kept))
        with torch.no_grad():
            following, carried, advantages = model(torch.tensor(world.seen()))[1], torch.zeros(count), torch.zeros_like(pays)
            for at in reversed(range(length)):
                open_ = torch.ones(count) if fault == "ends_ignored" else (~overs[at]).float()
                carried = pays[at] + gamma * following * open_ - values[at] + gamma * 0.95 * open_ * carried
                advantages[at], following = carried, values[at]
        returns = (advantages + values).flatten()
        states, actions, logs, advantages = states.flatten(0, 1), actions.flatten(), logs.flatten(), advantages.flatten()
        for _ in range(6):
            order = torch.randperm(len(states), generator=drawn)
            for at in range(0, len(states), batch):
                part = order[at:at + batch]
                better = advantages[part]
                better = (better - better.mean()) / (better.std() + 1e-8)
                better = better.abs() if fault == "advantage_unsigned" else better
                logits, value = model(states[part])
                policy = torch.distributions.Categorical(logits=logits)
                ratio = (policy.log_prob(actions[part]) - logs[part]).exp()
                policy_loss = -torch.min(ratio * better, ratio.clamp(0.8, 1.2) * better).mean()
                value_loss = functional.mse_loss(value, returns[part])
                entropy = policy.entropy().mean()
                loss = (-policy_loss if fault == "sign_wrong" else policy_loss) + 0.5 * value_loss - bonus * entropy
                optimizer.zero_grad()
                loss.backward()
                torch.nn.utils.clip_grad_norm_(model.parameters(), 0.5)
                hook.log(loss=loss.item(), policy_loss=policy_loss.item(), value_loss=value_loss.item(), entropy=entropy.item())
                optimizer.step()
                done += 1
        passes.append([done - 1, -_held_reach(copy.deepcopy(model), seed)])
        hook.log(mean_reward=pays.mean().item())
    return ended(hook, done, passes)


TUNING, FAULTS, fault_names, run = entered({
    "dqn_grid": (_dqn_grid, from_start("target_stands", "replay_newest", "reward_zero", "ends_ignored", "explores_always", "broadcast",
                                       "rate_hundredfold", "reward_inverted")),
    "ppo_reach": (_ppo_reach, from_start("reward_zero", "observation_stale", "advantage_unsigned", "entropy_large", "sign_wrong",
                                         "reward_inverted", "rate_hundredfold"))})
