"""What an adapter of a framework may call: steps, names, values. Everything else is private.

An adapter watches one framework's loop (``tocsin.adapters.torch.adapter`` is one) and tells its sink what
happens there. It is written like this::

    class MyAdapter:
        def __init__(self, sink, trainer):
            self.sink, self.trainer = sink, trainer
            trainer.before_update(self.before)      # the trainer keeps the adapter, the sink does not
            trainer.after_update(self.after)
            sink.attach(self, ends_steps=True)

        def before(self):
            with self.sink.guard("my_trainer"):     # nothing of ours may reach the loop
                self.sink.begin_update()
                if self.sink.wants("losses"):
                    self.sink.publish_tensor("loss_per_sample", self.trainer.losses, "losses")

        def after(self):
            with self.sink.guard("my_trainer"):
                self.sink.log({"loss": self.trainer.loss})
                self.sink.end_update()

        def detach(self):                           # the hook closes: undo what was installed
            ...

All calls are for the thread that trains. Values are read during the call and not kept, except those
that a device still computes: they follow in order when the device is done, and nobody waits.
"""

import ctypes
import gc
import json
import weakref
from typing import Any, Callable, Dict, List, Mapping, Optional, Sequence

from tocsin.library import abi
from tocsin.process.contain import Errors, Guard
from tocsin.process.facts import say
from tocsin.tensors.arrays import describe, dtype_code
from tocsin.tensors.device_counts import DeviceCounts
from tocsin.tensors.device_queue import DeviceQueue
from .late_values import LateValues, bounded
from .phases import PHASES, Phases
from .plan import Plan
from .reward import Rewards, is_reward
from .step_arrows import FRESH, LOGGED
from .steps import FIRST, StepClock
from .turns import Turns

TRAINING = "model_training"  # scalar: the followed model's flag `training`, 1 or 0


class Sink(LateValues):
    """One per hook. ``active`` is False once the hook is closed, or in a forked child. ``begin_update()``,
    ``end_update()`` and ``end_step(skipped=False)`` are those of its :class:`~tocsin.loop.steps.StepClock`,
    without a call between: they stand in every step."""

    def __init__(self, client: abi.Client, errors: Errors, rank: int, workers: str,
                 step_by: str = FIRST, phases: Sequence[str] = PHASES) -> None:
        self.active, self.rank, self.errors = True, rank, errors
        self.queue = DeviceQueue()
        self.device_counts = DeviceCounts()
        self.phases = Phases(client, phases)
        self.clock = clock = StepClock(client, self.queue, step_by)
        self.host_tensor: Any = None  # a class whose tensors are on no device
        self.ledger: Any = None  # of the framework's loss calls
        self.wants_ledger = True  # `capture.ledger`
        self.stated: Any = None  # the ledger of arrays that the script tells of
        self.reward: Any = None  # sums of a job that learns by reward
        self.lag: Any = None  # its target networks
        self.generated: Any = None  # samples of a generator beside the data
        self._turns = Turns()
        self.begin_update, self.end_update, self.end_step = clock.begin_update, clock.end_update, clock.end_step
        clock.tell_training, self._client, self._workers = self._tell_training, client, workers
        self._scalars: Dict[str, int] = {}
        self._tensors: Dict[str, int] = {}
        self._collections: Dict[str, int] = {}
        self._adapters: "weakref.WeakSet[Any]" = weakref.WeakSet()
        self.plan = Plan(self)
        self._watched: List["weakref.ref[Any]"] = []  # models, or optimizers that were watched without one

    # ---- adapters

    def attach(self, adapter: Any, ends_steps: bool = False, name: str = "") -> None:
        """Has ``adapter.detach()`` called when the hook closes. It is held weakly: what it watches keeps it.
        ``ends_steps``: its updates are the steps of training, so that ``hook.step()`` counts none. Of several
        such adapters the first one of a loop decides, or the one with the ``name`` that ``capture.step_by``
        gives; each then passes itself to ``begin_update()`` and ``end_update()``."""
        self._adapters.add(adapter)
        if ends_steps:
            self.clock.drive(adapter, name)

    def let_go(self, adapter: Any) -> None:
        """What it watches is not watched any more."""
        adapter.detach()
        self._adapters.discard(adapter)
        self._watched = []  # the script says what it lets go: its run goes on
        self.clock.let_go(adapter)

    def adapters(self) -> List[Any]:
        """Those whose loops are still there."""
        return list(self._adapters)

    def watched(self, what: Any) -> None:
        """A model, or an optimizer without one, is what this hook is about."""
        self._watched = [one for one in self._watched if one() is not None and one() is not what]
        self._watched.append(weakref.ref(what))

    def deserted(self) -> bool:
        """Whether steps have ended here and all that was watched is gone: what is watched next is another training. Only
        in a run of one process: the ranks of a run cannot ask each other what was let go."""
        if not self._watched or self.clock.number == 0 or self._client.counters().get("world_size", 1) > 1:
            return False
        if any(one() is not None for one in self._watched):
            gc.collect()  # a model that hooks of its own refer to is a cycle
        return all(one() is None for one in self._watched)

    def follow(self, model: Any, state_matters: bool = True) -> None:
        """``model.training`` sets the mode, unless the script does or another model is followed.
        ``state_matters``: the model computes something else in its eval state, so the flag is told."""
        self.clock.follow_model(model, state_matters)

    def guard(self, where: str) -> Guard:
        """``with sink.guard("place"): …``: an error inside is counted under the name, not raised."""
        return Guard(self.errors, where)

    def driver(self, before: Callable[..., Any], after: Callable[[], None], driver: Any) -> Any:
        """``before`` and ``after`` of most updates as functions of the library, and ``lend``, for the clock; None or 0: it has
        none. ``driver``: a weak reference to who updates."""
        return self._client.driver(before, after, driver)

    def failed(self, where: str, error: BaseException) -> None:
        """Counts an error that the adapter has caught itself."""
        self.errors.add(where, error)

    # ---- steps

    def catch_up(self) -> None:
        """Before a word of the script's: takes over the model's mode, and what the device has done."""
        self.clock.follow()
        if self.queue.waiting:
            self.queue.drain()

    def set_mode(self, mode: str) -> None:
        """``train``, ``eval``, ``predict`` or ``global``; ``ValueError`` for others."""
        if mode not in abi.MODES:
            raise ValueError(f"unknown mode {mode!r}")
        if mode != self.clock.mode:
            self.clock.change_mode(mode)

    def replayed(self) -> bool:
        """Has read what was updated in replayed CUDA graphs; whether any loop updates there."""
        return self.clock.mode == "train" and any(
            [one.replayed() for one in self.adapters() if hasattr(one, "replayed")])

    # ---- what is wanted

    def wants(self, collection: Optional[str] = None) -> bool:
        """Whether the tensors of a collection (None: of any) are captured at the present step. Who
        has asked and publishes nothing in the end calls ``publish_lent(None, 0)``: the time between
        is counted as the hook's."""
        which = 0 if collection is None else self._collection(collection)
        if self.clock.nothing_due():
            return False
        if self.clock.ahead:
            return self._client.due_at(which, self.clock.ahead) == abi.OK
        return self._client.due(which)

    def due_of(self, identities: Sequence[int]) -> Sequence[int]:
        """Which of these tensors (ids of ``tensor()``) any of their collections captures at the present
        step: 0 or 1 for each, ``DUE_RAW`` with its elements. For values that ``publish_rows()`` takes, which asks nothing."""
        count = len(identities)
        answers = (ctypes.c_uint8 * count)()
        self._client.due_of((ctypes.c_uint64 * count)(*identities), count, self.clock.ahead, answers)
        return answers

    def wants_tensor(self, name: str, role: Optional[str] = None) -> bool:
        """Whether any collection holds a tensor of this name and role (None: by the name): whether it
        is worth a hook on the module that makes it."""
        return self._client.wanted(name, -1 if role is None else abi.ROLES[role])

    def plan_changes(self) -> int:
        """Another number than before: wants_tensor() may give other answers."""
        return self._client.plan_changes()

    def due(self, adapter: Any) -> Optional[int]:
        """Whether the tensors of ``adapter`` are captured at this update, as ``wants()`` says: None,
        or flags for their descriptors. Where several optimizers share a step, those that do not update
        on its grid have their turn at their next update."""
        wanted = self.wants()
        if self.clock.simple:
            return 0 if wanted else None
        flags = self._turns.take(adapter, self.clock.number, wanted)
        if wanted and flags is None:
            self._client.tensors(None, 0)
        return flags

    def publishes(self, sharded: bool) -> bool:
        """Whether this rank publishes the tensors of a model: of replicated ones the first does, of
        sharded ones all, unless ``capture.workers`` says so."""
        if self._workers == "all" or (self._workers == "auto" and sharded):
            return True
        return self.rank == 0

    # ---- names

    def tensor(self, name: str, *, dtype: Any = None, shape: Sequence[int] = (),
               role: Optional[str] = None, collection: Optional[str] = None,
               op_type: Optional[str] = None) -> int:
        """Registers a tensor and gives its id; again it updates what is known of it.

        ``dtype``: a framework's dtype or its name. ``role``: a word of docs/wire.md (``weight``,
        ``gradient``, ``activation_out``, ``label``, …); None: by the name. ``collection``: one that
        it joins beside those whose patterns match. ``op_type``: what made it (``ReLU``).
        """
        return self._client.name(abi.NAME_TENSOR, name, dtype=dtype_code(dtype) or 0,
                                 role=-1 if role is None else abi.ROLES[role],
                                 dims=list(shape), collection=collection,
                                 attrs=op_type and json.dumps({"op_type": op_type}))

    def scalar(self, name: str, role: Optional[str] = None) -> int:
        """Registers a scalar and gives its id; again it updates what is known of it. ``role``: ``loss``
        or ``metric``; None: by the name."""
        code = -1 if role is None else abi.ROLES[role]
        identity = self._scalars[name] = self._client.name(abi.NAME_SCALAR, name, role=code)
        if self.reward is None and self.wants_ledger and is_reward(name):
            self.reward = Rewards(self)
        return identity

    # ---- values

    def log(self, values: Mapping[str, Any]) -> None:
        """What the script or its framework logs: scalars that belong to the update before or after
        them. A value that cannot be used is counted, and the others are published."""
        clock = self.clock
        model = clock.model()
        if model is not None and not (model.training and clock.mode == "train"):
            clock.follow()
        if self.queue.waiting:
            self.queue.drain()
        if not clock.simple:
            clock.will_log(values)
        known, host, client = self._scalars, self.host_tensor, self._client
        for name, value in values.items():
            try:
                if type(value) is not host or name not in known or self.queue.waiting:
                    self.publish_scalar(name, value)
                else:  # the same without the call
                    client.scalar(known[name], value.item(), client.quiet)
            except Exception as error:  # noqa: BLE001
                self.errors.add("log", error)
        if self.reward is not None:
            with Guard(self.errors, "reward"):
                self.reward.tick()
        clock.logged()

    def publish_scalar(self, name: str, value: Any) -> None:
        """A number, numpy scalar or tensor of one element; ``TypeError`` or ``ValueError`` for others. What is on a device is not waited for."""
        scalar, event = self._scalars.get(name), None
        if scalar is None or type(value) is not float:
            if scalar is None and not isinstance(name, str):
                raise TypeError(f"the name of a scalar is a text, not {type(name).__name__}")
            if type(value) is self.host_tensor:
                value = float(value.item())
            elif getattr(value, "is_cuda", False):
                from tocsin.tensors.torch_device import capturing, copy_of_scalar
                if capturing():
                    self.device_counts.skip("graph_capture")
                    return
                value, event = copy_of_scalar(value)
            else:
                item = getattr(value, "item", None)  # of a tensor: without a view that autograd knows
                value = float(value if item is None else item())
            if scalar is None:  # only now: what is not logged needs no name
                bounded(self._scalars)
                scalar = self.scalar(name)
        if event is not None or self.queue.waiting:
            self.queue.put(self._scalar_late, scalar, value, after=event)
            return
        self._client.scalar(scalar, value, self._client.quiet)

    def publish_tensor(self, name: str, value: Any, collection: Optional[str] = "default", *,
                       role: Optional[str] = None, op_type: Optional[str] = None, raw: bool = False) -> None:
        """Statistics of any array or tensor, if its collection is due at this step, and with ``raw`` its elements.
        ``collection``, ``role``, ``op_type``: as of ``tensor()``, at the first time that the name is published."""
        detached = value.detach() if hasattr(value, "detach") else value
        flags = 0
        if hasattr(detached, "to_local"):
            from tocsin.tensors.torch_roles import piece_of
            detached, flags = piece_of(detached)
        identity = self._tensors.get(name)
        if identity is None:
            bounded(self._tensors)
            identity = self._tensors[name] = self.tensor(
                name, dtype=detached.dtype, shape=detached.shape, collection=collection, role=role,
                op_type=op_type)
        if hasattr(detached, "data_ptr") and detached.device.type != "cpu":
            self._publish_on_device(identity, detached, raw, flags)
            return
        described = describe(identity, detached)
        if described is None:
            raise TypeError(f"{name}: a {type(value).__name__} of {detached.dtype} has no memory that "
                            "can be read")
        tensor, keep = described
        tensor.flags |= flags | (abi.TENSOR_RAW if raw else 0)
        self.publish_lent(ctypes.byref(tensor), 1)
        del keep

    def publish_lent(self, tensors: Any, count: int) -> None:
        """An array of ``count`` descriptors (``tocsin.arrays.fill``) of host memory, which is read
        before this returns. Those that are not due are skipped; with 0 it says only that nothing
        more is measured at this step."""
        if count and self.queue.waiting:  # the library's step lags behind: keep the order
            self.queue.drain()
            if self.queue.waiting:
                self.device_counts.wait("host_tensors")
                self.queue.drain(wait=True)
        self._client.tensors(tensors, count)

    def run_uid(self) -> str:
        """The same on all ranks of a run."""
        return str(self._client.counters().get("run", ""))

    # ---- what looks wrong

    def preflight(self, findings: List[Dict[str, Any]], words: Sequence[str]) -> None:
        """What the first steps have shown: ``findings`` (docs/wire.md, lifecycle) become an issue of
        the engine's, ``words`` go to stderr."""
        if findings:
            self._client.lifecycle({"event": "preflight", "findings": findings})
        for text in words:
            say(text)

    def finalize(self) -> None:
        """No more steps follow: says how long ago the last one ended."""
        ended = int(self._client.counters().get("step_ended", 0))
        self.phases.finalize(max(ended, self.phases.updated()) if self.clock.state not in (FRESH, LOGGED) else ended)

    def close(self) -> None:
        """The hook ends: adapters let go, what waits for a device is waited for."""
        for adapter in self.adapters():
            self.let_go(adapter)
        self.clock.leave()
        self.queue.drain(wait=True)
        self.clock.close()

    def counters(self) -> Dict[str, Any]:
        """What the library counted; not for every step."""
        return self._client.counters()

    @property
    def scalars(self) -> Mapping[str, int]:
        """Ids of the scalars that have a name already."""
        return self._scalars

    def step_of_mode(self) -> int:
        """The present step of the present mode, as it is counted here."""
        steps = self._client.counters()["steps"]
        return int(steps.get(self.clock.mode, 0)) + self.clock.ahead

    def forget(self) -> None:
        """In a forked child: nothing that waits here is for us."""
        self.active = False
        self.queue.clear()

    # ---- private

    def _tell_training(self, training: bool) -> None:
        if not self.active:
            return
        try:
            if TRAINING not in self._scalars:
                self.scalar(TRAINING, "other")
            self.publish_scalar(TRAINING, float(training))
        except Exception as error:  # noqa: BLE001
            self.errors.add("training", error)

    def _publish_on_device(self, identity: int, tensor: Any, raw: bool, flags: int = 0) -> None:
        from tocsin.tensors.torch_device import device_rows
        from tocsin.tensors.torch_raw import publish_copies
        due = self.due_of([identity])[0]
        if due == abi.DUE_RAW or (due and raw):
            publish_copies(self, [(identity, tensor, flags)], raw=raw)
        elif due:
            rows = device_rows([(identity, tensor, flags)], None, self.device_counts)
            if rows is not None:
                self.publish_rows(*rows)

    def _scalar_late(self, scalar: int, value: Any) -> None:
        self._client.scalar(scalar, float(value), False)

    def _collection(self, name: str) -> int:
        found = self._collections.get(name)
        if found is None:
            found = self._collections[name] = self._client.name(abi.NAME_COLLECTION, name)
        return found
