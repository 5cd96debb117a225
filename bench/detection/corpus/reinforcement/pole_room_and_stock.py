"""Rewards, in three small worlds of our own.

reinforce_pole    REINFORCE with a baseline that is learned: a pole on a cart is to be kept upright, 16 carts at once
critic_room       an actor and a critic, five steps at a time: a heater keeps a room at a temperature that is asked for
dqn_stock         double DQN with replay and a target network: how much of a good to order each day

Their faults: below, at the end."""
import copy

import numpy
import torch
from torch import nn
from torch.nn import functional

import tocsin

from ..scripts.support import ended, entered, from_start, rate


class Pole:
    """The cart and pole of Barto, Sutton and Anderson; several at once, each ends when its pole falls."""

    def __init__(self, count, seed):
        self.drawn, self.count = numpy.random.default_rng(seed), count
        self.reset()

    def reset(self):
        """All from near upright."""
        self.state = self.drawn.uniform(-0.05, 0.05, (self.count, 4))
        return self.state.astype("float32")

    def step(self, actions):
        """(observation, reward, over)"""
        place, speed, angle, turn = self.state.T
        force = numpy.where(actions == 1, 10.0, -10.0)
        cos, sin = numpy.cos(angle), numpy.sin(angle)
        pull = (force + 0.05 * turn**2 * sin) / 1.1
        angular = (9.8 * sin - cos * pull) / (0.5 * (4.0 / 3.0 - 0.1 * cos**2 / 1.1))
        linear = pull - 0.05 * angular * cos / 1.1
        self.state = numpy.stack([place + 0.02 * speed, speed + 0.02 * linear, angle + 0.02 * turn, turn + 0.02 * angular], 1)
        over = (numpy.abs(self.state[:, 0]) > 2.4) | (numpy.abs(self.state[:, 2]) > 0.209)
        return self.state.astype("float32"), numpy.ones(self.count, "float32"), over


def _upright(policy, seed, longest):
    """Steps for which the likeliest actions keep the pole up, as a share."""
    world, alive, total = Pole(32, seed + 77), numpy.ones(32, bool), 0.0
    seen = world.reset()
    for _ in range(longest):
        with torch.no_grad():
            seen, _, over = world.step(policy(torch.tensor(seen)).argmax(1).numpy())
        total += alive.mean() / longest
        alive &= ~over
        if not alive.any():
            break
    return total


def _reinforce_pole(fault, seed, chance, options):
    count, longest, updates, width = 16, 120, 90, chance.choice((32, 48))
    world, gamma = Pole(count, seed), chance.uniform(0.97, 0.99)
    model = nn.ModuleDict({"policy": nn.Sequential(nn.Linear(4, width), nn.Tanh(), nn.Linear(width, 2)),
                           "value": nn.Sequential(nn.Linear(4, width), nn.Tanh(), nn.Linear(width, 1))})
    optimizer = torch.optim.Adam(model.parameters(), lr=rate(chance.uniform(8e-3, 1.5e-2), fault))
    passes = [[0, -_upright(copy.deepcopy(model["policy"]), seed, longest)]]
    hook = tocsin.watch(model, optimizer, **options)
    for update in range(updates):
        seen, alive, episode = world.reset(), numpy.ones(count, bool), []
        first = seen
        for _ in range(longest):
            state = torch.tensor(first if fault == "observation_stale" else seen)
            with torch.no_grad():
                action = torch.distributions.Categorical(logits=model["policy"](state)).sample()
            seen, reward, over = world.step(action.numpy())
            episode.append((state, action, torch.tensor(reward * (1.0 if fault == "ends_ignored" else alive)), torch.tensor(alive)))
            alive = alive & ~over
            if not alive.any() and fault != "ends_ignored":
                break
        states, actions, rewards, there = (torch.stack(one) for one in zip(*episode))
        rewards = rewards.float() * {"reward_inverted": -1.0, "reward_zero": 0.0}.get(fault, 1.0)
        returns, running = torch.zeros_like(rewards), torch.zeros(count)
        for at in range(len(rewards)) if fault == "returns_reversed" else reversed(range(len(rewards))):
            running = rewards[at] + gamma * running
            returns[at] = running
        if fault == "actions_moved":
            actions = actions.roll(1, 1)
        states, actions, returns = states[there], actions[there], returns[there] / 10
        policy, value = torch.distributions.Categorical(logits=model["policy"](states)), model["value"](states).squeeze(1)
        advantage = returns - value.detach()
        advantage = (advantage - advantage.mean()) / (advantage.std() + 1e-6)
        policy_loss = -(policy.log_prob(actions) * advantage).mean()
        value_loss = functional.mse_loss(value, returns)
        loss = (-policy_loss if fault == "sign_wrong" else policy_loss) + 0.5 * value_loss
        optimizer.zero_grad()
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        hook.log(loss=loss.item(), policy_loss=policy_loss.item(), value_loss=value_loss.item(), episode_length=float(there.sum()) / count)
        optimizer.step()
        if update % 10 == 9:
            passes.append([update, -_upright(copy.deepcopy(model["policy"]), seed, longest)])
    return ended(hook, updates, passes)


class Room:
    """A heater of three steps, weather that changes; paid by how near the room is to what is asked, less what heating costs."""

    def __init__(self, count, seed):
        self.drawn, self.count = numpy.random.default_rng(seed), count
        self.inside, self.outside, self.asked = numpy.zeros((3, count))
        self.age = self.drawn.integers(0, 30, count)
        self.restart(numpy.ones(count, bool))

    def restart(self, which):
        """A new day."""
        number = int(which.sum())
        self.inside[which], self.outside[which] = self.drawn.uniform(12, 24, number), self.drawn.uniform(-5, 12, number)
        self.asked[which] = self.drawn.uniform(17, 23, number)

    def seen(self):
        """What the actor is told."""
        return torch.tensor(numpy.stack([(self.inside - 18) / 5, (self.outside - 4) / 6, (self.asked - 20) / 2, (self.asked - self.inside) / 3], 1)).float()

    def step(self, actions):
        """(pay, over)"""
        self.inside = self.inside + 0.08 * (self.outside - self.inside) + 1.6 * actions + 0.1 * self.drawn.standard_normal(self.count)
        self.age = self.age + 1
        over = self.age >= 30
        pay = 1 - 0.4 * numpy.abs(self.inside - self.asked) - 0.02 * actions
        return pay.clip(-2, 1), over


def _held_room(model, seed):
    """Mean pay of the likeliest actions over a day."""
    world, total = Room(64, seed + 77), 0.0
    for _ in range(30):
        with torch.no_grad():
            pay, _ = world.step(model(world.seen())[0].argmax(1).numpy())
        total += float(pay.mean()) / 30
    return total


class ActorCritic(nn.Module):
    """One body, two heads."""

    def __init__(self, width):
        super().__init__()
        self.body = nn.Sequential(nn.Linear(4, width), nn.ReLU(), nn.Linear(width, width), nn.ReLU())
        self.actor, self.critic = nn.Linear(width, 3), nn.Linear(width, 1)

    def forward(self, x):
        x = self.body(x)
        return self.actor(x), self.critic(x).squeeze(-1)


def _critic_room(fault, seed, chance, options):
    count, length, updates = 32, 5, 420
    world, model = Room(count, seed), ActorCritic(chance.choice((32, 48)))
    tuned = model.actor.parameters() if fault == "critic_frozen" else model.parameters()
    optimizer, gamma = torch.optim.RMSprop(tuned, lr=rate(chance.uniform(1e-3, 2e-3), fault), alpha=0.99, eps=1e-5), chance.uniform(0.9, 0.95)
    first, passes, paid = world.seen(), [[0, -_held_room(copy.deepcopy(model), seed)]], []
    hook = tocsin.watch(model, optimizer, **options)
    for update in range(updates):
        logs, values, rewards, ends, entropies = [], [], [], [], []
        for _ in range(length):
            logits, value = model(first if fault == "observation_stale" else world.seen())
            policy = torch.distributions.Categorical(logits=logits)
            action = policy.sample()
            pay, over = world.step(action.numpy())
            world.restart(over)
            world.age[over] = 0
            paid.append(float(pay.mean()))
            told = {"reward_inverted": -pay, "reward_zero": 0 * pay}.get(fault, pay)
            logs.append(policy.log_prob(action.roll(1) if fault == "actions_moved" else action))
            values.append(value)
            rewards.append(torch.tensor(told).float())
            ends.append(torch.tensor(over))
            entropies.append(policy.entropy())
        with torch.no_grad():
            running, returns = model(world.seen())[1], []
            for reward, over in zip(reversed(rewards), reversed(ends)):
                running = reward + gamma * running * (~over).float()
                returns.insert(0, running)
        returns, values, logs = torch.stack(returns), torch.stack(values), torch.stack(logs)
        advantage = (returns - values).detach()
        if fault == "advantage_unsigned":
            advantage = advantage.abs()
        actor_loss, critic_loss, entropy = -(logs * advantage).mean(), functional.mse_loss(values, returns), torch.stack(entropies).mean()
        loss = (-actor_loss if fault == "sign_wrong" else actor_loss) + 0.5 * critic_loss - 0.01 * entropy
        optimizer.zero_grad()
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 0.5)
        if update % 5 == 4:
            hook.log(loss=loss.item(), actor_loss=actor_loss.item(), critic_loss=critic_loss.item(), entropy=entropy.item(), reward=sum(paid[-25:]) / 25)
        optimizer.step()
        if update % 60 == 59:
            passes.append([update, -_held_room(copy.deepcopy(model), seed)])
    return ended(hook, updates, passes)


class Store:
    """A good that is asked for by chance, more at week-ends; up to 20 fit in. Orders of 0 to 4 fives come at once; a week ends an episode."""

    def __init__(self, count, seed):
        self.drawn, self.count = numpy.random.default_rng(seed), count
        self.stock, self.day = self.drawn.integers(0, 21, count), self.drawn.integers(0, 7, count)

    def seen(self):
        """Stock and day."""
        return numpy.concatenate([self.stock[:, None] / 10 - 1, numpy.eye(7)[self.day]], 1).astype("float32")

    def step(self, actions):
        """(pay, over)"""
        filled = numpy.minimum(self.stock + 5 * actions, 20)
        asked = self.drawn.poisson(numpy.where(self.day >= 5, 12, 5))
        sold = numpy.minimum(filled, asked)
        pay = (1.0 * sold - 0.15 * (filled - sold) - 0.5 * (filled - self.stock) - 0.6 * (actions > 0) - 0.3 * (asked - sold)) / 5
        self.stock, over = filled - sold, self.day == 6
        self.day = (self.day + 1) % 7
        return pay.astype("float32"), over

    def restart(self, which):
        """A new week, with any stock."""
        self.stock = numpy.where(which, self.drawn.integers(0, 21, self.count), self.stock)


def _sold(model, seed):
    """Mean pay of a day over two weeks."""
    store, total = Store(128, seed + 77), 0.0
    for _ in range(14):
        with torch.no_grad():
            pay, _ = store.step(model(torch.tensor(store.seen())).argmax(1).numpy())
        total += float(pay.mean()) / 14
    return total


def _dqn_stock(fault, seed, chance, options):
    updates, count, width, batch = 600, 8, chance.choice((32, 48)), chance.choice((64, 96))
    store, drawn = Store(count, seed), numpy.random.default_rng(seed)
    model = nn.Sequential(nn.Linear(8, width), nn.ReLU(), nn.Linear(width, width), nn.ReLU(), nn.Linear(width, 5))
    target = copy.deepcopy(model).requires_grad_(False)
    tuned = copy.deepcopy(model).parameters() if fault == "optimizer_of_old_model" else model.parameters()
    optimizer, gamma, memory = torch.optim.Adam(tuned, lr=rate(chance.uniform(1e-3, 2e-3), fault)), chance.uniform(0.93, 0.97), []
    passes = [[0, -_sold(copy.deepcopy(model), seed)]]
    hook = tocsin.watch(model, optimizer, **options)
    for update in range(-15, updates):  # the first 15 fill the memory
        epsilon, before = 1.0 if fault == "explores_always" else max(0.05, 1 - max(update, 0) / 300), store.seen()
        with torch.no_grad():
            greedy = model(torch.tensor(before)).argmax(1).numpy()
        actions = numpy.where(drawn.random(count) < epsilon, drawn.integers(0, 5, count), greedy)
        pay, over = store.step(actions)
        then = store.seen()
        store.restart(over)
        if fault != "replay_stands" or update < 0:
            taken, told = numpy.roll(actions, 1) if fault == "actions_moved" else actions, -pay if fault == "reward_inverted" else pay
            memory += list(zip(before, taken, told, then, over))
        if update < 0:
            continue
        chosen = drawn.integers(0, len(memory), batch)
        states, actions, pay_, then, over = (torch.tensor(numpy.array(one)) for one in zip(*(memory[one] for one in chosen)))
        with torch.no_grad():
            best = model(then).argmax(1, keepdim=True)
            goal = pay_ + gamma * target(then).gather(1, best).squeeze(1) * (1.0 if fault == "ends_ignored" else (~over).float())
        said = model(states).gather(1, actions[:, None])
        loss = functional.smooth_l1_loss(said if fault == "broadcast" else said.squeeze(1), goal)
        if fault != "zero_grad_missing":
            optimizer.zero_grad()
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 10.0)
        hook.log(loss=loss.item(), reward=float(pay.mean()), epsilon=epsilon)
        optimizer.step()
        if update % 20 == 19 and fault != "target_stands":
            target.load_state_dict(model.state_dict())
        if update % 60 == 59:
            passes.append([update, -_sold(copy.deepcopy(model), seed)])
    return ended(hook, updates, passes)


TUNING, FAULTS, fault_names, run = entered({
    "reinforce_pole": (_reinforce_pole, from_start("reward_inverted", "sign_wrong", "returns_reversed", "observation_stale", "ends_ignored",
                                                   "actions_moved", "rate_hundredfold", "rate_thousandth")),
    "critic_room": (_critic_room, from_start("reward_inverted", "reward_zero", "advantage_unsigned", "observation_stale", "actions_moved",
                                             "sign_wrong", "rate_hundredfold", "critic_frozen")),
    "dqn_stock": (_dqn_stock, from_start("target_stands", "reward_inverted", "replay_stands", "actions_moved", "broadcast",
                                         "optimizer_of_old_model", "ends_ignored", "rate_hundredfold"))})
