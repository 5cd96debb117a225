"""Environments of Gymnasium, of the older Gym, and agents of Stable-Baselines3::

    import tocsin.gymnasium
    env = tocsin.gymnasium.watched(gymnasium.make("CartPole-v1"))  # a hook of tocsin.watch() counts
    model.learn(100_000, callback=tocsin.gymnasium.stable_baselines3())

Rewards, ends of episodes and their returns are counted for the rule ``reward`` while the hook is in a mode of training. What ``step()`` and
``reset()`` return is returned as it is. Nothing of these libraries is imported here.
"""

import sys
from typing import Any, Callable, Dict, Optional

from tocsin.hook.watching import get_hook
from tocsin.loop.reward import EVERY, MODES, Rewards, rewards_of

__all__ = ["stable_baselines3", "watched"]

_REPORTED = ("train/", "rollout/")


def watched(env: Any, hook: Any = None) -> Any:
    """``env``, whose steps are counted. ``hook``: None: the one that :func:`tocsin.watch` gave last. An environment of Gymnasium or Gym
    becomes a wrapper of its library, also one of several environments at once; any other object an object that passes on everything."""
    for library, kinds in (("gymnasium", (("Env", "Wrapper"), ("vector.VectorEnv", "vector.VectorWrapper"))),
                           ("gym", (("Env", "Wrapper"), ("vector.VectorEnv", "vector.VectorEnvWrapper")))):
        for kind, wrapper in reversed(kinds):
            known, base = _found(library, kind), _found(library, wrapper)
            if known is not None and base is not None and isinstance(env, known):
                return _class_of(base)(env, hook)
    return _class_of(_Passing)(env, hook)


def stable_baselines3(hook: Any = None) -> Callable[[Dict[str, Any], Dict[str, Any]], bool]:
    """A ``callback=`` of ``model.learn()``. It counts steps, logs what the agent records of its training, and ends the training when a
    rule asks for it."""
    counts = _Agent(hook)
    return counts.learning


class _Counts:
    """Steps of one environment, or of several at once. Most steps cost a few additions; a word to the hook follows after about
    sixteen of them, and when an episode ends."""

    def __init__(self, hook: Any) -> None:
        self._given = hook
        self._rewards: Optional[Rewards] = None
        self._clock: Any = None
        self._until_asked = 0
        self._chance = 1
        self._begin()

    def _begin(self) -> None:
        self._steps = self._changes = 0  # since the last word
        self._unseen, self._due = 0, EVERY  # steps since the last observation that was looked at, and until the next
        self._last: Any = None  # reward
        self._running: Any = 0.0  # returns of the episodes that go on

    def reset(self) -> None:
        self._running = 0.0

    def stepped(self, observation: Any, reward: Any, terminated: Any, truncated: Any) -> None:
        rewards = self._rewards
        if rewards is None or not rewards.open or not (self._clock.mode in MODES or self._clock.follows):
            rewards = self._asked()
            if rewards is None:
                return
        try:
            if getattr(reward, "shape", ()):
                self._several(rewards, observation, reward, terminated, truncated)
                return
            self._steps += 1
            if reward != self._last:
                self._changes += self._last is not None
                self._last = reward
            self._running += reward
            if terminated or truncated:
                rewards.episode(float(self._running), bool(terminated))
                self._running = 0.0
                self._word(rewards, observation, 1)
            elif self._steps >= self._due:
                self._word(rewards, observation, 1)
        except Exception as error:  # noqa: BLE001 - guard() by hand: this is the call of every step
            rewards.failed(error)

    def _several(self, rewards: Rewards, observation: Any, reward: Any, terminated: Any, truncated: Any) -> None:
        import numpy

        if getattr(reward, "is_cuda", False):
            return  # to read it would wait for the device
        reward = numpy.array(reward, dtype="float64").reshape(-1)  # a copy: the array may be used again
        number = len(reward)
        self._steps += number
        if self._last is not None:
            self._changes += int((reward != self._last).sum())
        self._last = reward
        self._running = self._running + reward
        ended = numpy.asarray(terminated, dtype=bool).reshape(-1)
        over = ended | numpy.asarray(truncated, dtype=bool).reshape(-1)
        if over.any():
            for at in numpy.flatnonzero(over).tolist():
                rewards.episode(float(self._running[at]), bool(ended[at]))
            self._running[over] = 0.0
        if self._steps >= self._due * number:
            rewards.add("environments", number)
            self._word(rewards, observation, number)

    def _word(self, rewards: Rewards, observation: Any, number: int) -> None:
        steps, changes = self._steps, self._changes
        self._unseen += steps
        self._due -= steps // number
        if self._due <= 0:
            rewards.observed(observation, number, self._unseen)
            self._unseen = 0
            self._chance = self._chance * 69069 + 1 & 0xFFFFFFFF  # no fixed distance: observations may come in a round
            self._due = EVERY // 2 + (self._chance >> 16) % EVERY
        self._steps = self._changes = 0
        rewards.steps(steps)
        rewards.rewarded(steps, changes)
        rewards.tick()

    def _asked(self) -> Optional[Rewards]:
        """Whether a hook counts. If not, this is an evaluation, or nobody watches: what goes on is no episode of training."""
        self._until_asked -= 1
        if self._rewards is None and self._until_asked > 0:
            return None
        self._until_asked = EVERY
        hook = self._given or get_hook()
        rewards = rewards_of(hook.sink) if hook is not None and hook.enabled else None
        if rewards is not None:
            self._clock = hook.sink.clock
        if rewards is not self._rewards or rewards is None:
            self._begin()
        self._rewards = rewards
        return rewards


def _at(flag: Any, at: int) -> bool:
    return bool(flag[at]) if getattr(flag, "shape", ()) or isinstance(flag, (list, tuple)) else bool(flag)


def _by_limit(infos: Any, at: int, number: int) -> bool:
    """Of the older API, whether a limit of time ended the episode."""
    if isinstance(infos, (list, tuple)):
        infos = infos[at] if at < len(infos) else {}
    said = infos.get("TimeLimit.truncated", False) if isinstance(infos, dict) else False
    return _at(said, at) if number > 1 and not isinstance(said, bool) else bool(said)


class _Steps:
    """What such a class adds to its wrapper."""

    def step(self, action: Any) -> Any:
        out = self.env.step(action)  # type: ignore[attr-defined]
        _count(self.__dict__["_tocsin"], out)
        return out

    def reset(self, *args: Any, **kwargs: Any) -> Any:
        self.__dict__["_tocsin"].reset()
        return self.env.reset(*args, **kwargs)  # type: ignore[attr-defined]


def _count(counts: _Counts, out: Any) -> None:
    if not isinstance(out, tuple) or len(out) not in (3, 4, 5):
        return
    if len(out) == 3:  # a world of the script's own, without a word about it
        out = (*out, {})
    observation, reward, terminated = out[:3]
    if len(out) == 5:
        counts.stepped(observation, reward, terminated, out[3])
        return
    size = getattr(reward, "shape", ())
    if not size:
        late = bool(terminated) and _by_limit(out[3], 0, 1)
        counts.stepped(observation, reward, terminated and not late, late)
        return
    number = int(size[0])
    limits = [_by_limit(out[3], at, number) for at in range(number)]
    ended = [_at(terminated, at) for at in range(number)]
    counts.stepped(observation, reward, [over and not limit for over, limit in zip(ended, limits)],
                   [over and limit for over, limit in zip(ended, limits)])


class _Passing:
    """Around an environment of no library."""

    def __init__(self, env: Any) -> None:
        self.env = env

    def __getattr__(self, name: str) -> Any:
        if name in ("env", "_tocsin"):
            raise AttributeError(name)  # not made yet: it is being copied
        return getattr(self.env, name)


_classes: Dict[type, type] = {}


def _class_of(base: type) -> type:
    made = _classes.get(base)
    if made is None:
        def init(self: Any, env: Any, hook: Any = None) -> None:
            base.__init__(self, env)  # type: ignore[misc]
            self.__dict__["_tocsin"] = _Counts(hook)

        def reduced(self: Any, protocol: Any) -> Any:
            del protocol
            return watched, (self.env,)  # to another process goes the environment, and counts there if there is a hook

        made = _classes[base] = type("Watched", (_Steps, base), {"__init__": init, "__reduce_ex__": reduced})
    return made


def _found(library: str, path: str) -> Any:
    found = sys.modules.get(library)
    for part in path.split("."):
        found = getattr(found, part, None)
    return found


class _Agent(_Counts):
    """What ``model.learn()`` of Stable-Baselines3 tells of itself: its local variables at each step."""

    def __init__(self, hook: Any) -> None:
        super().__init__(hook)
        self._updates: Any = None
        self._begun = False

    def learning(self, known: Dict[str, Any], names: Dict[str, Any]) -> bool:
        del names
        hook = self._given or get_hook()
        if hook is None or not hook.enabled:
            return True
        with hook.sink.guard("stable_baselines3"):
            model, infos = known.get("self"), known.get("infos")
            done, reward = known.get("dones"), known.get("rewards")
            if done is not None and reward is not None:
                if not self._begun and self._asked() is not None:
                    self._begun = True
                    hook.set_mode("train")  # its model acts in the eval state, and that is no evaluation
                    self._began(rewards_of(hook.sink), model)
                limits = [_by_limit(infos, at, len(done)) for at in range(len(done))]
                self.stepped(known.get("new_obs"), reward, [bool(over) and not limit for over, limit in zip(done, limits)],
                             [bool(over) and limit for over, limit in zip(done, limits)])
            self._log(hook, model)
        return hook.should_stop() is None

    def _began(self, rewards: Any, model: Any) -> None:
        planned = getattr(model, "_total_timesteps", None)
        if planned:
            rewards.add("planned", float(planned))
        buffer = getattr(model, "replay_buffer", None)
        if hasattr(buffer, "_get_samples") and hasattr(buffer, "pos"):
            buffer._get_samples = _Draws(rewards, buffer)

    def _log(self, hook: Any, model: Any) -> None:
        """What the agent has recorded, once for each of its trainings."""
        recorded = getattr(getattr(model, "logger", None), "name_to_value", None)
        updates = getattr(model, "_n_updates", None)
        if not recorded or updates == self._updates or not any(str(name).startswith("train/") for name in recorded):
            return
        self._updates = updates
        hook.log({name: value for name, value in recorded.items()
                  if str(name).startswith(_REPORTED) and (isinstance(value, (int, float)) or hasattr(value, "item"))})


class _Draws:
    """In the place of a replay buffer's function: counts which places are drawn, and in which round of its being filled."""

    def __init__(self, rewards: Rewards, buffer: Any) -> None:
        self._rewards, self._buffer = rewards, buffer
        self._take = buffer._get_samples
        self._rounds, self._newest = 0, int(buffer.pos)

    def __call__(self, places: Any, *args: Any, **kwargs: Any) -> Any:
        with self._rewards.guard():
            at = int(self._buffer.pos)
            self._rounds, self._newest = self._rounds + (at < self._newest), at
            self._rewards.keyed(b"%d %d" % (place, self._rounds - (place >= at)) for place in places.tolist())
        return self._take(places, *args, **kwargs)

    def __reduce__(self) -> Any:  # a saved buffer, or a copy, has its own function
        return getattr, (self._buffer, "_get_samples")
