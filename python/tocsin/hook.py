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

from . import _client, _lifetime
from ._alerts import Alerts
from ._collections import Collections
from ._commands import Commands, StopRequest
from ._contain import Errors, contained
from ._emit import emit, reach
from ._judge import Judge
from ._judged import Judged
from ._once import Once
from ._options import client_options
from ._original import OriginalNames
from ._phases import NOTHING, PHASES
from ._plan import Planning
from ._process import say
from ._reading_back import ReadsBack
from ._reward import TellsRewards
from ._generated import TellsGenerated
from ._spans import Spans
from ._standing import Standing
from ._steering import Steering
from ._step_calls import calls_of
from ._steps import FIRST, HELD
from ._task import TellsTask
from .sink import Sink

EXIT_STOPPED = _lifetime.EXIT_STOPPED

Capture = Any  # a section `capture`, names, or what tocsin.hook_config has
Rules = Union[str, "os.PathLike[str]", Iterable[Any], Mapping[str, Any], bool, None]
Stop = Union[str, Iterable[str], bool, None]


class Hook(OriginalNames, ReadsBack, Steering, Planning, TellsTask, TellsRewards, TellsGenerated):
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
            warnings.warn(f"tocsin is off: {error}", RuntimeWarning, stacklevel=3)

    def _open(self, options: _client.Options) -> None:
        client = _client.Client(options)
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
        """Scalars of the present step: numbers, numpy scalars, tensors of one element.
        A tensor on a device is not waited for: its value follows when the device has it. ``step`` is
        accepted for scripts that pass one and not used: the hook counts steps itself.
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
        """By name: what each holds and how it is captured; ``add()`` and ``change()`` before the first step
        (docs/collections.md)."""
        return self._collections

    @contained()
    def save_tensor(self, name: str, value: Any, collection: Optional[str] = "default", *, raw: bool = False) -> None:
        """Statistics of any array or tensor, when its collection is due at this step; None: when one of those
        whose patterns find it is. ``raw``: its elements, too (docs/raw-tensors.md)."""
        self.sink.catch_up()
        self.sink.publish_tensor(name, value, collection, raw=raw)

    @contained()
    def emit(self, name: str, value: Any = None, *,
             statistics: Optional[Mapping[str, Any]] = None, role: Optional[str] = None,
             mode: Optional[str] = None, step: Optional[int] = None, raw: bool = False) -> None:
        """Anything else, from any framework: a number, or an array whose statistics are taken here
        when its collection is due, or ``statistics`` that were computed elsewhere: ``count``,
        ``sum``, ``sumsq``, ``m2``, ``abs_sum``, ``min``, ``max``, and as far as they are not 0
        ``nan``, ``posinf``, ``neginf``, ``zero``, ``negative`` (docs/statistics.md).

        ``role``: what it is to the model (``label``, ``prediction``, ``activation_out``, … :
        docs/wire.md); with it the collections of that role hold it. ``mode``: from here on.
        ``step``: of a loop that counts its own; the steps before it end. ``raw``: elements, too.
        """
        if mode is not None:
            self.sink.clock.leave_for(mode)
            self.set_mode(mode)
        if step is not None:
            reach(self.sink, step)
        emit(self.sink, name, value, statistics, role, raw)

    @contained()
    def save_model_inputs(self, *inputs: Any) -> None:
        """What the model is applied to, as ``model_input_<i>`` with the role ``input``: when the
        collection ``inputs`` is captured and due. Of a watched PyTorch model the hook has them
        itself."""
        self.sink.catch_up()
        for number, value in enumerate(inputs):
            name = f"model_input_{number}"
            if self.sink.wants_tensor(name, "input"):
                self.sink.publish_tensor(name, value, None, role="input")

    def _reading(self) -> Any:
        """None where nothing of this run lies in a directory."""
        from .reading import Tensors  # seldom needed, and not small

        return None if self.run is None or not os.path.isdir(self._out) else Tensors(self._out)

    def issues(self) -> List[Dict[str, Any]]:
        """What the rules that judge in this process (``watch(rules=…)``) have found, in the order in
        which they did: ``id``, ``text``, ``severity``, ``summary`` and the data of the event (docs/events.md). Waits at most a
        second until what was measured so far is judged."""
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
        """Ends a step where no optimizer does: evaluation batches, replays of a CUDA graph that has the
        update in it, loops of their own. ``skipped``: an update that mixed precision left out."""
        self.sink.catch_up()
        if skipped or not self.sink.replayed():
            self.sink.end_step(skipped)
        else:
            self.sink.clock.next_step()

    @contained()
    def set_mode(self, mode: str) -> None:
        """``train``, ``eval``, ``predict`` or ``global``, or one of ``tocsin.modes``; the model's own flag counts no more."""
        self.sink.clock.follows = False
        self.sink.set_mode(str(getattr(mode, "name", mode)).lower())

    @contextmanager
    def mode(self, name: str) -> Iterator["Hook"]:
        """``with hook.mode("eval"): …``; the mode before comes back."""
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
        """Time of a phase: ``with hook.span("data"): …``. ``track``: another than ``phase``, where rules look for calls of
        operators (``op.cpu``, ``op.gpu/0``) or loading processes (``dataloader/0``): docs/wire.md."""
        start = time.time_ns()
        try:
            yield
        finally:
            self._span(name, start, time.time_ns() - start, args, track)

    def phase(self, name: str) -> ContextManager[None]:
        """``with hook.phase("forward"): …``, for every step: ``data_wait``, ``forward``, ``backward``,
        ``optimizer``, ``communication``, ``evaluation``, ``checkpoint``, ``initialization``,
        ``finalization``. What it costs: docs/hook.md."""
        if not self.enabled:
            return NOTHING
        try:
            return self.sink.phases.get(name).manager
        except Exception as error:  # noqa: BLE001
            self.errors.add("phase", error)
            return NOTHING

    def batches(self, loader: Iterable[Any]) -> Iterable[Any]:
        """``for batch in hook.batches(loader): …``: how long the loop waits for data."""
        return self.sink.phases.waiting_for(loader) if self.enabled else loader

    def event(self, name: str, **args: Any) -> None:
        """An instant on the track ``phase``."""
        self._span(name, time.time_ns(), -1, args)

    @contained()
    def _span(self, name: str, start: int, duration: int, args: Mapping[str, Any], track: Optional[str] = None) -> None:
        self._spans.add(name, start, duration, args, track)

    # ---- stopping

    def should_stop(self) -> Optional[StopRequest]:
        """A few atomic operations. The first true answer sends the acknowledgement ``accepted``.

        A stop of several ranks names the step after which all of them leave: ask at the same place
        of the loop on every rank, after the update. It is then true on all of them at once.
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
        """Opts in to ``adjust/<name>`` (a bare name means that) or an action of the script's own.
        ``function`` runs inside ``should_stop()``, on the training thread; ``bounds`` is (low, high).
        """
        self._commands.on_command(action_or_name, function, bounds)

    def checkpointing(self) -> ContextManager[None]:
        """Around writing a checkpoint: its time is the phase ``checkpoint``, and a stop that was accepted hears
        that it has begun, and how it went."""
        return self._checkpointing()

    @contextmanager
    def _checkpointing(self) -> Iterator[None]:
        phase = self.phase("checkpoint")
        with NOTHING if getattr(phase, "goes_on", False) else phase, self._commands.checkpointing():
            yield

    @contained()
    def acknowledge_stop(self, checkpoint: Optional[str] = None,
                         error: Optional[str] = None) -> None:
        """The loop ends now: ``checkpoint_done`` if a path is given, then ``stopping``."""
        self._commands.acknowledge(checkpoint, error)

    # ---- state

    @property
    def step_number(self) -> int:
        return int(self.stats().get("step", 0))

    @contained({})
    def state_dict(self) -> Dict[str, Any]:
        """Step counters, for the script's own checkpoint."""
        self.sink.queue.drain(wait=True)
        counters = self._client.counters()
        return {"version": 1, "steps": counters["steps"], "global_step": counters["global_step"]}

    @contained()
    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Goes on counting where the checkpoint was; tells the engine that the run continues."""
        if state:
            steps = dict(state["steps"])
            self._client.lifecycle({"event": "start", "steps": steps,
                                    "global_step": state["global_step"],
                                    "continues_from": int(steps.get("train", 0))})

    def stats(self) -> Dict[str, Any]:
        """What the client counted: rows, drops, errors, where telemetry goes, the last problem."""
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

    # ---- ending

    @contained(False)
    def flush(self, timeout: float = 5.0) -> bool:
        """True when everything so far is delivered; waits at most ``timeout`` seconds."""
        self.sink.queue.drain()
        return self._client.flush(int(timeout * 1000))

    def close(self, outcome: str = "completed", timeout: float = 5.0, *,
              error: Optional[str] = None, exit_code: Optional[int] = None) -> None:
        """Ends the run's record and delivers what it can within ``timeout`` seconds. Idempotent.
        What it cannot stands in ``stats()`` and in one line on stderr (not with ``TOCSIN_QUIET=1``).
        """
        ending = self._end(outcome, error, exit_code)
        if ending is None:
            return
        self._client.close(ending, int(timeout * 1000))
        try:
            self._final = self._client.closed()
            self._judged.tell(self._final)
            if self.judge is not None:
                self.judge.end()
        except Exception as problem:  # noqa: BLE001
            self.errors.add("close", problem)
        if self._final.get("loss"):
            say(self._final["loss"])

    def close_at_exit(self, timeout: float = 5.0) -> None:
        """The interpreter ends, and does not say with which status: the library asks ``exit()``."""
        ending = self._end("completed", None, None)
        if ending is not None:
            if self.judge is not None:
                ending["issues_told"] = self.judge.tell_all()
            self._client.close_at_exit(ending, int(timeout * 1000))

    def closing(self) -> bool:
        """``close()`` goes on, on this or another thread."""
        return self._lock.locked()

    @property
    def acknowledged(self) -> bool:
        """The script has said that it ends because it was asked to stop."""
        return bool(self._commands.acknowledged)

    def _end(self, outcome: str, error: Optional[str],
             exit_code: Optional[int]) -> Optional[Dict[str, Any]]:
        """Says what is left to say, and switches off. The last record, if there is one to send."""
        _lifetime.forget(self)
        with self._lock:
            if not self.enabled or not self.sink.active:
                return None
            self.sink.active = False  # of two threads that close, one does
        commands = self._commands
        try:
            self.standing.stop()
            self.standing.look_at_updates()
            self.sink.finalize()
            self.sink.close()
            commands.checkpoint_done()
            self._final = self._client.counters()
            self.say_wrong_calls(self._final)
            for text in self._collections.told(self._final.get("dry_run", False)) if self.rank == 0 else ():
                say(text)
        except Exception as problem:  # noqa: BLE001
            self.errors.add("close", problem)
        if outcome == "completed" and commands.acknowledged:
            outcome = "stopped_by_rule"
        status = {} if exit_code is None else {"exit_code": exit_code}
        if commands.acknowledged:
            commands.phase("stopped", **status)
        self.enabled = False
        return {"outcome": outcome, **({} if error is None else {"error": error}), **status}

    def __enter__(self) -> "Hook":
        return self

    def __exit__(self, kind: Any, error: Any, traceback: Any) -> None:
        self.close(**_lifetime.ending_of(kind, error))

    def forked(self) -> None:
        """In a child process this hook is the parent's: nothing is freed, nothing is sent."""
        self.enabled = False
        self.sink.forget()
        self._client.forget()
        self.errors.last = "disabled after fork"

