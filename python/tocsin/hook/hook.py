"""The hook object: what a training script talks to.

No method raises and none blocks beyond its stated bound. A value that cannot be logged is skipped,
counted, and said once; the hook stays on.
"""

import os
import threading
import time
import warnings
from contextlib import contextmanager
from typing import Any, Callable, ContextManager, Dict, Iterable, Iterator, List, Mapping, Optional, Union

from tocsin.library import abi
from tocsin.loop.phases import NOTHING, PHASES
from tocsin.loop.plan import Planning
from tocsin.loop.reward import TellsRewards
from tocsin.loop.sink import Sink
from tocsin.loop.step_arrows import HELD
from tocsin.loop.steps import FIRST
from tocsin.process import lifetime
from tocsin.process.contain import Errors, contained
from tocsin.process.facts import say
from tocsin.settings.collections import Collections
from tocsin.settings.options import client_options
from tocsin.standing.standing import Standing
from .alerts import Alerts
from .commands import Commands, StopRequest
from .emit import emit, reach
from .ending import Ends
from .generated import TellsGenerated
from .judge import Judge
from .judged import Judged
from .once import Once
from .original_names import OriginalNames
from .python_profile import ProfilesPython
from .reading_back import ReadsBack
from .spans import Spans
from .steering import Steering
from .step_calls import calls_of
from .task import TellsTask

EXIT_STOPPED = lifetime.EXIT_STOPPED

Capture = Any  # a section `capture`, names, or what tocsin.hook_config has
Rules = Union[str, "os.PathLike[str]", Iterable[Any], Mapping[str, Any], bool, None]
Stop = Union[str, Iterable[str], bool, None]


class Hook(OriginalNames, ProfilesPython, ReadsBack, Steering, Planning, TellsTask, TellsRewards, TellsGenerated, Ends):
    """Made by :func:`watch`. A context manager: leaving it closes the hook. ``sink`` is what
    adapters of frameworks are written against."""

    def __init__(self, *, run: Optional[str] = None, job: Optional[str] = None,
                 labels: Optional[Mapping[str, str]] = None, out: Optional[str] = None,
                 capture: Capture = None, config: Optional[str] = None, rules: Rules = None,
                 stop: Stop = None) -> None:
        self.enabled = False
        self.run: Optional[str] = None
        self.job: Optional[str] = None
        self.attempt = 0
        self.rank = 0
        self.errors = Errors()
        self._commands = Commands(None, self.errors)
        self._collections = Collections(None, self.errors)
        self._final: Dict[str, Any] = {}
        self.said: Dict[str, Any] = {}  # to the watch() that opened it
        self._lock = threading.Lock()
        self.judge: Optional[Judge] = None
        self._once = Once()
        for switch in ("TOCSIN_DISABLED", "TOCSIN_DISABLE"):
            if os.environ.get(switch, "0") not in ("", "0"):
                self.errors.last = f"disabled by {switch}"
                return
        try:
            options = client_options(run, job, labels, out, capture, config, rules, stop)
            self._place = {key: None if value is None else os.fsdecode(value) for key, value in (
                ("out", options.out), ("config", options.config), ("capture", options.capture))}
            self._open(options)
        except Exception as error:  # noqa: BLE001
            self.errors.last = str(error)
            warnings.warn(f"tocsin is off: {error}", RuntimeWarning, stacklevel=4)

    def _open(self, options: abi.Options) -> None:
        client = abi.Client(options)
        if not client.open:
            return
        self._client = client
        client.on_cut = self._once.cut
        counters = client.counters()
        self.run, self.job = counters["run"], counters["job"]
        self.attempt, self.rank = counters["attempt"], counters["rank"]
        self.sink = Sink(client, self.errors, self.rank, counters.get("workers", "auto"),
                         counters.get("step_by", FIRST), counters.get("phases", PHASES))
        self.sink.wants_ledger = bool(counters.get("ledger_on", True))
        self._commands = Commands(client, self.errors)
        self._spans = Spans(client, self.errors)
        self._alerts = Alerts(client, self.errors)
        self._collections = Collections(client, self.errors, self.sink.adapters)
        self._judged = Judged(client, self.rank)
        self.standing = Standing(client, self.errors, self.sink, self._commands.takes_profile, self._judged.look)
        self._out = str(counters.get("out", ""))
        self.enabled = True
        if type(self).log is Hook.log and type(self).should_stop is Hook.should_stop:
            vars(self).update(calls_of(self, client, self.sink.scalars))
        self._once.settings(counters)
        judge = counters.get("judge", {})
        if judge.get("error"):
            self.errors.add("rules", ValueError(judge["error"]))
        elif judge:
            self.judge = Judge(client, str(judge.get("without_receivers", "")) if self.rank == 0 else "")
        if self.rank == 0:  # a line per launch, not one per rank
            say(f"watching run {self.run} (job {self.job}), "
                f"writing to {counters.get('out', '')}"
                + (f", {judge['rules']} rules judge here" if self.judge else ""))

    # ---- values

    def log(self, _values: Optional[Mapping[str, Any]] = None, /, *, step: Optional[int] = None,
            **scalars: Any) -> None:
        """Log scalars of the current step: numbers, numpy scalars, or tensors of one element.

        A tensor on a device does not block: its value follows once the device has it. ``step`` is accepted for scripts
        that pass one, and ignored: the hook counts steps itself.
        """
        del step
        if not self.enabled:
            return
        try:  # contained() by hand: this is the call of every step
            self.sink.log({**_values, **scalars} if _values else scalars)
        except Exception as error:  # noqa: BLE001
            self.errors.add("log", error)

    @property
    def collections(self) -> Collections:
        """The collections by name: what each holds and how it is captured (docs/collections.md).

        Use ``add()`` and ``change()`` before the first step.
        """
        return self._collections

    @contained()
    def save_tensor(self, name: str, value: Any, collection: Optional[str] = "default", *, raw: bool = False) -> None:
        """Capture statistics of any array or tensor, when its collection is due at this step.

        ``collection=None``: capture it when a collection whose patterns match the name is due. ``raw``: send its elements
        too (docs/raw-tensors.md).
        """
        self.sink.catch_up()
        self.sink.publish_tensor(name, value, collection, raw=raw)

    @contained()
    def emit(self, name: str, value: Any = None, *,
             statistics: Optional[Mapping[str, Any]] = None, role: Optional[str] = None,
             mode: Optional[str] = None, step: Optional[int] = None, raw: bool = False) -> None:
        """Publish a number or an array from any framework.

        ``value``: a number, or an array whose statistics are taken here when its collection is due.
        ``statistics``: statistics that you computed elsewhere, instead of a value: ``count``, ``sum``, ``sumsq``, ``m2``,
        ``abs_sum``, ``min``, ``max``, and where they are not 0 ``nan``, ``posinf``, ``neginf``, ``zero``, ``negative``
        (docs/statistics.md).
        ``role``: what the array is to the model (``label``, ``prediction``, ``activation_out``, …: docs/wire.md). The
        collections of that role then hold it.
        ``mode``: the mode from now on. ``step``: the step number of a loop that counts its own; earlier steps end.
        ``raw``: send the elements too.
        """
        if mode is not None:
            self.sink.clock.leave_for(mode)
            self.set_mode(mode)
        if step is not None:
            reach(self.sink, step)
        emit(self.sink, name, value, statistics, role, raw)

    @contained()
    def save_model_inputs(self, *inputs: Any) -> None:
        """Capture the model's inputs as ``model_input_<i>``, when the collection ``inputs`` is captured and due.

        The hook sees the inputs of a watched PyTorch model by itself.
        """
        self.sink.catch_up()
        for number, value in enumerate(inputs):
            name = f"model_input_{number}"
            if self.sink.wants_tensor(name, "input"):
                self.sink.publish_tensor(name, value, None, role="input")

    def _reading(self) -> Any:
        """None where nothing of this run lies in a directory."""
        from tocsin.reading.tensors import Tensors  # seldom needed, and not small

        return None if self.run is None or not os.path.isdir(self._out) else Tensors(self._out)

    def issues(self) -> List[Dict[str, Any]]:
        """Return the issues that rules in this process have found, in that order. Needs ``watch(rules=…)``.

        Each is a dictionary with ``id``, ``text``, ``severity``, ``summary`` and the data of the event (docs/events.md).
        Waits up to a second until the rules have judged everything measured so far.
        """
        if self.enabled and self.judge is not None:
            self.flush(1.0)
        elif self.run is not None and self.judge is None and not self.said.get("rules"):
            self._once.no_rules()
        return self._found() or []

    @contained([], when_closed=True)
    def _found(self) -> List[Dict[str, Any]]:
        return [] if self.judge is None else self.judge.issues()

    # ---- steps and modes

    @contained()
    def step(self, skipped: bool = False) -> None:
        """End a step that no optimizer ends: an evaluation batch, a replay of a CUDA graph that contains the
        update, a step of your own loop.

        ``skipped``: mixed precision skipped this update.
        """
        self.sink.catch_up()
        if skipped or not self.sink.replayed():
            self.sink.end_step(skipped)
        else:
            self.sink.clock.next_step()

    @contained()
    def set_mode(self, mode: str) -> None:
        """Set the mode: ``train``, ``eval``, ``predict``, ``global``, or one of ``tocsin.modes``.

        From now on the hook ignores the model's training flag.
        """
        self.sink.clock.follows = False
        self.sink.set_mode(str(getattr(mode, "name", mode)).lower())

    @contextmanager
    def mode(self, name: str) -> Iterator["Hook"]:
        """Set the mode within a block: ``with hook.mode("eval"): …``. Afterwards the former mode returns."""
        if not self.enabled:
            yield self
            return
        clock = self.sink.clock
        before, followed = clock.mode, clock.follows
        self.set_mode(name)
        try:
            yield self
        finally:
            self.set_mode(before)
            clock.follows = followed

    # ---- spans

    @contextmanager
    def span(self, name: str, *, track: Optional[str] = None, **args: Any) -> Iterator[None]:
        """Time a block: ``with hook.span("data"): …``.

        ``track``: a track other than ``phase``. Rules look there for operator calls (``op.cpu``, ``op.gpu/0``) and loader
        processes (``dataloader/0``): docs/wire.md.
        """
        start = time.time_ns()
        try:
            yield
        finally:
            self._span(name, start, time.time_ns() - start, args, track)

    def phase(self, name: str) -> ContextManager[None]:
        """Time a phase of each step: ``with hook.phase("forward"): …``.

        Names: ``data_wait``, ``forward``, ``backward``, ``optimizer``, ``communication``, ``evaluation``, ``checkpoint``,
        ``initialization``, ``finalization``. See docs/hook/phases.md, and docs/hook/costs.md for the cost.
        """
        if not self.enabled:
            return NOTHING
        try:
            return self.sink.phases.get(name).manager
        except Exception as error:  # noqa: BLE001
            self.errors.add("phase", error)
            return NOTHING

    def batches(self, loader: Iterable[Any]) -> Iterable[Any]:
        """Time how long the loop waits for data: ``for batch in hook.batches(loader): …``."""
        return self.sink.phases.waiting_for(loader) if self.enabled else loader

    def event(self, name: str, **args: Any) -> None:
        """Record an instant on the track ``phase``."""
        self._span(name, time.time_ns(), -1, args)

    @contained()
    def _span(self, name: str, start: int, duration: int, args: Mapping[str, Any], track: Optional[str] = None) -> None:
        self._spans.add(name, start, duration, args, track)

    # ---- stopping

    def should_stop(self) -> Optional[StopRequest]:
        """Return a ``StopRequest`` if the loop should stop, else None. Costs a few atomic operations.

        The request has ``mode``, ``rule``, ``reason``, ``deadline``, ``command_id`` and ``not_before_step``. The first
        request returned sends the acknowledgement ``accepted``.

        A stop of several ranks names the step after which all of them leave. Ask at the same place of the loop on every
        rank, after the update: then all ranks see the request in the same step.
        """
        if not self.enabled:
            return None
        clock = self.sink.clock
        wanted = self._client.stop_requested(clock.ahead if clock.state is not HELD else clock.ended_ahead())
        return None if wanted == 0 else self._answer(wanted)

    @contained()
    def _answer(self, wanted: int) -> Optional[StopRequest]:
        return self._commands.answer(wanted)

    @contained()
    def on_command(self, action_or_name: str, function: Callable[[Any], Any],
                   bounds: Optional[Any] = None) -> None:
        """Opt in to the command ``adjust/<name>``, or to an action of your own.

        A bare name means ``adjust/<name>``. ``function(value)`` runs inside ``should_stop()``, on the training thread.
        ``bounds`` is (low, high): a value outside is refused. The action ``adjust`` sends such commands because of an
        issue (docs/actions/adjust.md); your own program may write them to the topic ``commands`` (docs/events.md).
        """
        self._commands.on_command(action_or_name, function, bounds)

    def checkpointing(self) -> ContextManager[None]:
        """Mark the writing of a checkpoint: ``with hook.checkpointing(): …``.

        The hook times it as the phase ``checkpoint``. After an accepted stop it also reports that the checkpoint has
        begun, and how it went.
        """
        return self._checkpointing()

    @contextmanager
    def _checkpointing(self) -> Iterator[None]:
        phase = self.phase("checkpoint")
        with NOTHING if getattr(phase, "goes_on", False) else phase, self._commands.checkpointing():
            yield

    @contained()
    def acknowledge_stop(self, checkpoint: Optional[str] = None,
                         error: Optional[str] = None) -> None:
        """Report that the loop ends now: ``checkpoint_done`` if you give a path, then ``stopping``."""
        self._commands.acknowledge(checkpoint, error)

    # ---- state

    @property
    def step_number(self) -> int:
        """The current step of the current mode."""
        return int(self.stats().get("step", 0))

    @contained({})
    def state_dict(self) -> Dict[str, Any]:
        """Return the step counters, for your own checkpoint."""
        self.sink.queue.drain(wait=True)
        counters = self._client.counters()
        return {"version": 1, "steps": counters["steps"], "global_step": counters["global_step"]}

    @contained()
    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Continue counting where the checkpoint was, and tell the engine that the run continues."""
        if state:
            steps = dict(state["steps"])
            self._client.lifecycle({"event": "start", "steps": steps,
                                    "global_step": state["global_step"],
                                    "continues_from": int(steps.get("train", 0))})

    def stats(self) -> Dict[str, Any]:
        """Return the client's counters: rows, drops, errors, the destination, and the last problem."""
        out: Dict[str, Any] = dict(self._final)
        if self.enabled:
            try:
                out = self._client.counters()
            except Exception as error:  # noqa: BLE001
                out = {"error": str(error)}
        out["enabled"] = self.enabled
        if hasattr(self, "sink") and self.sink.device_counts.as_dict():
            out["device"] = self.sink.device_counts.as_dict()
        if hasattr(self, "sink") and self.sink.ledger is not None:
            out["ledger"] = self.sink.ledger.counts()
            if self.sink.stated is not None and self.sink.stated.book is not self.sink.ledger:
                out["ledger"]["arrays"] = self.sink.stated.book.counts()
        if hasattr(self, "_alerts") and self._alerts.counts:
            out["alerts"] = dict(self._alerts.counts)
        out["hook_errors_total"] = dict(self.errors.counts)
        if self.errors.last:
            out["last_hook_error"] = self.errors.last
        return out

    # ---- delivery

    @contained(False)
    def flush(self, timeout: float = 5.0) -> bool:
        """Wait until everything so far is delivered, at most ``timeout`` seconds. True if it is."""
        self.sink.queue.drain()
        return self._client.flush(int(timeout * 1000))
