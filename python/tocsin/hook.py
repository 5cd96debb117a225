"""The hook object: what a training script talks to.

No method raises and none blocks beyond its stated bound. A value that cannot be logged is skipped,
counted, and said once; the hook stays on.
"""

import atexit
import ctypes
import json
import os
import sys
import threading
import time
import warnings
from contextlib import contextmanager
from typing import Any, Callable, Dict, Iterator, List, Mapping, Optional, Union

from . import _abi
from ._commands import Commands
from ._contain import contained
from ._process import distributed, framework

EXIT_STOPPED = 77
MAX_SPAN_ARGS = 1000  # distinct ones; each is a name that every reader keeps

_hook: Optional["Hook"] = None
_registered = False


def _say(text: str) -> None:
    """One line on stderr for the person at the terminal; nothing with TOCSIN_QUIET=1."""
    if os.environ.get("TOCSIN_QUIET", "0") not in ("", "0"):
        return
    try:
        print(f"tocsin: {text}", file=sys.stderr, flush=True)
    except Exception:  # noqa: BLE001 - stderr may be closed
        pass


def _text(value: Optional[str]) -> Optional[bytes]:
    return None if value is None else str(value).encode("utf-8")


class Hook(Commands):
    """Made by :func:`watch`. A context manager: leaving it closes the hook."""

    def __init__(self, *, run: Optional[str] = None, job: Optional[str] = None,
                 labels: Optional[Mapping[str, str]] = None, out: Optional[str] = None,
                 capture: Union[Mapping[str, Any], str, None] = None,
                 config: Optional[str] = None) -> None:
        super().__init__()
        self.enabled = False
        self.run: Optional[str] = None
        self.attempt = 0
        self.rank = 0
        self._handle: Optional[int] = None
        self._errors: Dict[str, int] = {}
        self._last_error = ""
        self._adapters: List[Any] = []
        self._scalar_ids: Dict[str, int] = {}
        self._names: Dict[Any, int] = {}
        self._mode = "train"
        self._train_like = True
        self._logged = False       # a log() since the last step ended
        self._open_after = False   # the optimizer stepped, and the step waits for its log()
        self._later: List[Any] = []  # (event, function, arguments): values that a device still computes
        self._ahead = 0            # steps ended here and not yet in the library
        self._lock = threading.RLock()
        self._model: Any = None
        self._final: Dict[str, Any] = {}
        self._span_args_known = 0
        if os.environ.get("TOCSIN_DISABLED", "0") not in ("", "0"):
            self._last_error = "disabled by TOCSIN_DISABLED"
            return
        try:
            self._open(run, job, labels, out, capture, config)
        except Exception as error:  # noqa: BLE001
            self._last_error = str(error)
            warnings.warn(f"tocsin is off: {error}", RuntimeWarning, stacklevel=3)

    # ---- opening

    def _open(self, run: Any, job: Any, labels: Any, out: Any, capture: Any, config: Any) -> None:
        self._lib = _abi.library()
        self._fast, self._slow = self._lib.fast, self._lib.slow
        options = _abi.Options()
        options.size = ctypes.sizeof(options)
        options.run, options.job, options.out = _text(run), _text(job), _text(out)
        options.config = _text(config)
        if isinstance(capture, (list, tuple)):
            capture = {"collections": list(capture)}
        if capture is not None:
            options.capture = _text(capture if isinstance(capture, str) else json.dumps(capture))
        if labels:
            options.labels = _text(json.dumps({str(k): str(v) for k, v in labels.items()}))
        options.framework = _text(framework())
        options.script = _text(getattr(sys.modules.get("__main__"), "__file__", None))
        options.rank, options.world_size = distributed()
        handle = ctypes.c_void_p()
        result = self._fast.tocsin_open(ctypes.byref(options), ctypes.byref(handle))
        if result == _abi.DISABLED:
            return
        if result < 0:
            raise RuntimeError(self._lib.last_error())
        self._handle = handle.value
        self.enabled = True
        counters = self._counters()
        self.run, self.attempt, self.rank = counters["run"], counters["attempt"], counters["rank"]
        self._workers = counters.get("workers", "auto")
        if self.rank == 0:  # a line per launch, not one per rank
            _say(f"watching run {self.run} (job {counters.get('job', '')}), writing to {counters.get('out', '')}")
        self._due = self._fast.tocsin_due
        self._value1 = (ctypes.c_double * 1)()
        self._id1 = (ctypes.c_uint64 * 1)()

    def _attach(self, model: Any, optimizer: Any, loss: Any) -> None:
        if model is None and optimizer is None and loss is None:
            return
        if "torch" not in sys.modules:
            return
        from .torch_adapter import TorchAdapter

        for adapter in self._adapters:
            if adapter.model is model and adapter.optimizer is optimizer:
                return
        adapter = TorchAdapter(self, model, optimizer, loss)
        self._adapters.append(adapter)
        if self._model is None:
            self._model = model

    # ---- names

    def _name(self, kind: int, text: str, *, dtype: int = 0, role: int = -1,
              dims: Optional[List[int]] = None, collection: Optional[str] = None,
              attrs: Optional[str] = None) -> int:
        info = _abi.NameInfo()
        info.size = ctypes.sizeof(info)
        info.dtype, info.role = dtype, role
        if dims:
            array = _abi.int64_array(dims)
            info.dims = ctypes.cast(array, ctypes.POINTER(ctypes.c_int64))
            info.ndim = len(dims)
        info.attrs, info.collection = _text(attrs), _text(collection)
        name, out = text.encode("utf-8"), ctypes.c_uint64()
        if self._fast.tocsin_name(self._handle, kind, name, len(name), ctypes.byref(info),
                                  ctypes.byref(out)) < 0:
            raise RuntimeError(self._lib.last_error())
        return out.value

    def _named(self, kind: int, text: str) -> int:
        key = (kind, text)
        found = self._names.get(key)
        if found is None:
            found = self._names[key] = self._name(kind, text)
        return found

    # ---- values

    @contained()
    def log(self, _values: Optional[Mapping[str, Any]] = None, /, *, step: Optional[int] = None,
            **scalars: Any) -> None:
        """Scalars of the present step: numbers, numpy scalars, tensors of one element.

        A tensor on a device is not waited for: its value follows when the device has it. ``step`` is
        accepted for scripts that pass one and not used: the hook counts steps itself.
        """
        del step
        self._follow_model()
        if self._later:
            self._drain()
        if _values:
            scalars = {**_values, **scalars}
        for name, value in scalars.items():
            try:
                self._log_one(name, value)
            except Exception as error:  # noqa: BLE001 - the others are logged all the same
                self._failed("log", error)
        self._logged = True
        if self._open_after and self._mode == "train":
            self._end_step(0)

    def _log_one(self, name: str, value: Any) -> None:
        scalar = self._scalar_ids.get(name)
        if type(value) is float and scalar is not None:
            self._scalar(scalar, value)
            return
        if not isinstance(name, str):
            raise TypeError(f"the name of a scalar is a text, not {type(name).__name__}")
        on_device = getattr(value, "is_cuda", False)
        number = value if on_device else float(value.detach() if hasattr(value, "detach") else value)
        if scalar is None:  # only now: what is not logged needs no name
            scalar = self._scalar_ids[name] = self._name(_abi.NAME_SCALAR, name)
        if on_device:
            self._log_later(scalar, value)
        else:
            self._scalar(scalar, number)

    def _scalar(self, scalar: int, value: float) -> None:
        if self._later:
            self._later.append((None, self._scalar_now, (scalar, value)))
            return
        self._id1[0], self._value1[0] = scalar, value
        self._fast.tocsin_scalars(self._handle, self._id1, self._value1, 1)

    def _scalar_now(self, scalar: int, value: Any) -> None:
        self._id1[0], self._value1[0] = scalar, float(value)
        self._fast.tocsin_scalars(self._handle, self._id1, self._value1, 1)

    def _log_later(self, scalar: int, tensor: Any) -> None:
        torch = sys.modules["torch"]
        kept = torch.empty((), dtype=tensor.dtype, pin_memory=True)
        kept.copy_(tensor.detach().reshape(()), non_blocking=True)
        event = torch.cuda.Event()
        event.record(torch.cuda.current_stream(tensor.device))
        self._later.append((event, self._scalar_now, (scalar, kept)))

    @contained()
    def save_tensor(self, name: str, value: Any, collection: str = "default") -> None:
        """Statistics of any array or tensor, when its collection is due at this step."""
        self._follow_model()
        if self._later:
            self._drain()
        key = ("tensor", name)
        detached = value.detach() if hasattr(value, "detach") else value
        if key not in self._names:
            dtype = _abi.DTYPES.get(str(detached.dtype).rsplit(".", 1)[-1], 0)
            self._names[key] = self._name(_abi.NAME_TENSOR, name, dtype=dtype,
                                          dims=list(detached.shape), collection=collection)
        from .arrays import describe

        if getattr(detached, "is_cuda", False):
            from .torch_adapter import device_rows

            rows, event = device_rows([(self._names[key], detached)])
            self._publish_rows(rows, event)
            return
        described = describe(self._names[key], detached)
        if described is None:
            return
        tensor, keep = described
        if self._later:  # the library's step lags behind: keep the order, copy nothing away
            self._drain(wait=True)
        self._slow.tocsin_tensors(self._handle, ctypes.byref(tensor), 1)
        del keep

    def _publish_rows(self, rows: Callable[[], Any], event: Any) -> None:
        """``rows()`` gives an array of ``_abi.Row`` once the device event is done."""

        def publish() -> None:
            array = rows()
            self._fast.tocsin_statistics(self._handle, array, len(array))

        self._later.append((event, publish, ()))

    def _drain(self, wait: bool = False) -> None:
        """Runs what waited for a device, in order, as far as the device is."""
        later = self._later
        while later:
            event, function, arguments = later[0]
            if event is not None and not event.query():
                if not wait:
                    return
                event.synchronize()
            later.pop(0)
            function(*arguments)

    # ---- steps and modes

    @contained()
    def step(self, skipped: bool = False) -> None:
        """Ends a step where no optimizer does: evaluation batches, loops of their own.

        ``skipped``: an optimizer update that mixed precision left out.
        """
        self._follow_model()
        if self._later:
            self._drain()
        # Beside a watched optimizer, which ends its own steps, this must not count one more.
        if (self._mode == "train" and not skipped and not self._open_after and not self._logged
                and any(adapter.optimizer is not None for adapter in self._adapters)):
            return
        self._end_step(_abi.STEP_OPTIMIZER_SKIPPED if skipped else 0)

    def _end_step(self, flags: int) -> None:
        self._logged = False
        self._open_after = False
        if self._later:
            self._ahead += 1
            self._later.append((None, self._end_step_now, (flags,)))
            return
        self._fast.tocsin_step_end(self._handle, flags)

    def _end_step_now(self, flags: int) -> None:
        self._ahead -= 1
        self._fast.tocsin_step_end(self._handle, flags)

    def _before_optimizer(self) -> None:
        if self._later:
            self._drain()
        if self._open_after:
            self._end_step(0)
        # A model that is trained in its eval state (no dropout, frozen statistics) says nothing
        # about modes.
        if self._train_like and self._model is not None and not self._model.training:
            self._train_like = False
        if self._mode != "train":
            self._set_mode("train")

    def _after_optimizer(self) -> None:
        # A script that logs before optimizer.step() has said everything; one that logs after it gets
        # the step held open for that.
        if self._logged:
            self._end_step(0)
        else:
            self._open_after = True

    def _is_due(self) -> bool:
        if self._ahead:
            return self._fast.tocsin_due_at(self._handle, 0, self._ahead) == 0
        return self._due(self._handle, 0) == 0

    def _follow_model(self) -> None:
        """model.eval() and model.train() set the mode unless the script did."""
        model = self._model
        if model is None or not self._train_like:
            return
        mode = "train" if model.training else "eval"
        if mode != self._mode:
            self._set_mode(mode)

    def _set_mode(self, mode: str) -> None:
        if self._open_after:
            self._end_step(0)
        self._mode = mode
        self._logged = False
        code = _abi.MODES[mode]
        if self._later:
            self._later.append((None, self._fast.tocsin_set_mode, (self._handle, code)))
            return
        self._fast.tocsin_set_mode(self._handle, code)

    @contained()
    def set_mode(self, mode: str) -> None:
        """``train``, ``eval``, ``predict`` or ``global``; from now on the model's own flag is not
        looked at."""
        self._train_like = False
        if self._later:
            self._drain()
        if mode not in _abi.MODES:
            raise ValueError(f"unknown mode {mode!r}")
        if mode != self._mode:
            self._set_mode(mode)

    @contextmanager
    def mode(self, name: str) -> Iterator["Hook"]:
        """``with hook.mode("eval"): …``; the mode before comes back."""
        before, followed = self._mode, self._train_like
        self.set_mode(name)
        try:
            yield self
        finally:
            self.set_mode(before)
            self._train_like = followed

    # ---- spans

    @contextmanager
    def span(self, name: str, **args: Any) -> Iterator[None]:
        """Time of a phase: ``with hook.span("data"): …``."""
        start = time.time_ns()
        try:
            yield
        finally:
            self._span(name, start, time.time_ns() - start, args)

    def event(self, name: str, **args: Any) -> None:
        """An instant on the track ``phase``."""
        self._span(name, time.time_ns(), -1, args)

    @contained()
    def _span(self, name: str, start: int, duration: int, args: Mapping[str, Any]) -> None:
        arguments = self._span_args(args) if args else 0
        self._fast.tocsin_span(self._handle, self._named(_abi.NAME_SPAN, name), 0, start, duration,
                               arguments)

    def _span_args(self, args: Mapping[str, Any]) -> int:
        text = json.dumps(args, default=str)
        if (_abi.NAME_SPAN_ARGS, text) not in self._names:
            if self._span_args_known >= MAX_SPAN_ARGS:
                return 0
            self._span_args_known += 1
        return self._named(_abi.NAME_SPAN_ARGS, text)

    # ---- state

    @property
    def step_number(self) -> int:
        return int(self.stats().get("step", 0))

    @contained({})
    def state_dict(self) -> Dict[str, Any]:
        """Step counters, for the script's own checkpoint."""
        self._drain(wait=True)
        counters = self._counters()
        return {"version": 1, "steps": counters["steps"], "global_step": counters["global_step"]}

    @contained()
    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Goes on counting where the checkpoint was; tells the engine that the run continues."""
        if not state:
            return
        steps = dict(state["steps"])
        text = json.dumps({"event": "start", "steps": steps, "global_step": state["global_step"],
                           "continues_from": int(steps.get("train", 0))}).encode("utf-8")
        self._fast.tocsin_lifecycle(self._handle, text, len(text))

    def _counters(self) -> Dict[str, Any]:
        return self._text_of(lambda *place: self._fast.tocsin_counters(self._handle, *place))

    def _text_of(self, call: Callable[..., int]) -> Dict[str, Any]:
        size = 8192
        while True:
            buffer, length = ctypes.create_string_buffer(size), ctypes.c_size_t()
            result = call(buffer, size, ctypes.byref(length))
            if result == _abi.TOO_SMALL:
                size = length.value + 1
                continue
            return json.loads(buffer.value) if result == _abi.OK else {}

    def stats(self) -> Dict[str, Any]:
        """What the client counted: rows, drops, errors, where telemetry goes, the last problem."""
        out: Dict[str, Any] = dict(self._final)
        if self.enabled:
            try:
                out = self._counters()
            except Exception as error:  # noqa: BLE001
                out = {"error": str(error)}
        out["enabled"] = self.enabled
        out["hook_errors_total"] = dict(self._errors)
        if self._last_error:
            out["last_hook_error"] = self._last_error
        return out

    # ---- ending

    @contained(False)
    def flush(self, timeout: float = 5.0) -> bool:
        """True when everything so far is delivered; waits at most ``timeout`` seconds."""
        self._drain()
        return self._slow.tocsin_flush(self._handle, max(int(timeout * 1000), 0)) == _abi.OK

    def close(self, outcome: str = "completed", timeout: float = 5.0, *,
              error: Optional[str] = None, exit_code: Optional[int] = None) -> None:
        """Ends the run's record and delivers what it can within ``timeout`` seconds. Idempotent.

        What could not be delivered stands in ``stats()`` and in one line on stderr (not with
        ``TOCSIN_QUIET=1``).
        """
        handle = self._finish()
        if handle is None:
            return
        end = self._ending(outcome, error, exit_code)
        self._slow.tocsin_close(handle, end, max(int(timeout * 1000), 0))
        try:
            self._final = self._text_of(self._fast.tocsin_closed)
        except Exception as problem:  # noqa: BLE001
            self._failed("close", problem)
        if self._final.get("loss"):
            _say(self._final["loss"])

    def _close_at_exit(self, timeout: float = 5.0) -> None:
        """The interpreter ends, and does not say with which status: the library asks ``exit()``."""
        handle = self._finish()
        if handle is not None:
            self._fast.tocsin_close_at_exit(handle, self._ending("completed", None, None),
                                            int(timeout * 1000))

    def _finish(self) -> Optional[int]:
        """Says what is left to say; the handle if there is something to close. The hook is off."""
        global _hook
        if _hook is self:
            _hook = None
        with self._lock:
            handle, self._handle = self._handle, None
        if handle is None or not self.enabled:
            self.enabled = False
            return None
        self._handle = handle
        try:
            for adapter in self._adapters:
                adapter.detach()
            self._drain(wait=True)
            if self._open_after:
                self._end_step(0)
            self._checkpoint_done()
            self._final = self._counters()
        except Exception as problem:  # noqa: BLE001
            self._failed("close", problem)
        return handle

    def _ending(self, outcome: str, error: Optional[str], exit_code: Optional[int]) -> bytes:
        """The last record as JSON; from here on the hook is off."""
        if outcome == "completed" and self._stop_acknowledged:
            outcome = "stopped_by_rule"
        end: Dict[str, Any] = {"outcome": outcome}
        if error is not None:
            end["error"] = error
        if exit_code is not None:
            end["exit_code"] = exit_code
        if self._stop_acknowledged:
            self._phase("stopped", **({} if exit_code is None else {"exit_code": exit_code}))
        self.enabled = False
        self._handle = None
        self._adapters = []
        self._model = None
        return json.dumps(end).encode("utf-8")

    def __enter__(self) -> "Hook":
        return self

    def __exit__(self, kind: Any, error: Any, traceback: Any) -> None:
        if kind is None:
            self.close()
        elif issubclass(kind, SystemExit):
            code = error.code if isinstance(error.code, int) else (0 if error.code is None else 1)
            outcome = {0: "completed", EXIT_STOPPED: "stopped_by_rule"}.get(code, "failed")
            self.close(outcome, exit_code=code)
        elif issubclass(kind, KeyboardInterrupt):
            self.close("interrupted")
        else:
            self.close("failed", error=f"{kind.__name__}: {error}"[:500])

    # ---- errors and forks

    def _failed(self, where: str, error: BaseException) -> None:
        first = not self._errors
        self._errors[where] = self._errors.get(where, 0) + 1
        self._last_error = f"{where}: {type(error).__name__}: {error}"
        if first:
            warnings.warn(f"tocsin skips what it cannot use, first in {self._last_error} "
                          "(counted in stats())", RuntimeWarning, stacklevel=4)

    def _forked(self) -> None:
        """In a child process: this hook is the parent's. Nothing is freed, nothing is sent."""
        self.enabled = False
        self._handle = None
        self._later = []
        self._last_error = "disabled after fork"


def _after_fork() -> None:
    global _hook
    hook, _hook = _hook, None
    if hook is not None:
        hook._forked()


def _at_exit() -> None:
    hook = _hook
    if hook is None:
        return
    kind = getattr(sys, "last_type", None)
    if kind is None:
        hook._close_at_exit()
    elif issubclass(kind, KeyboardInterrupt):
        hook.close("interrupted")
    else:
        value = getattr(sys, "last_value", None)
        hook.close("failed", error=f"{kind.__name__}: {value}"[:500], exit_code=1)


def watch(model: Any = None, optimizer: Any = None, *, run: Optional[str] = None,
          job: Optional[str] = None, labels: Optional[Mapping[str, str]] = None,
          out: Optional[str] = None, capture: Union[Mapping[str, Any], str, None] = None,
          config: Optional[str] = None, loss: Any = None) -> Hook:
    """Starts watching; called again it gives the same hook and attaches what is new.

    ``out``: ``"kafka://host:9092"``, a directory, or None: TOCSIN_BROKERS, TOCSIN_OUT, the
    configuration file, then ``./tocsin-data``. ``loss``: a loss module whose output is logged as
    ``loss``. Never raises: what is wrong is one warning, and the hook is off (``hook.enabled``).
    """
    global _hook, _registered
    if not _registered:
        _registered = True
        atexit.register(_at_exit)
        if hasattr(os, "register_at_fork"):
            os.register_at_fork(after_in_child=_after_fork)
    if _hook is None or not _hook.enabled:
        hook = Hook(run=run, job=job, labels=labels, out=out, capture=capture, config=config)
        _hook = hook if hook.enabled else None
    else:
        hook = _hook
    if hook.enabled:
        try:
            hook._attach(model, optimizer, loss)
        except Exception as error:  # noqa: BLE001
            hook._failed("watch", error)
            warnings.warn(f"tocsin cannot watch this: {error}", RuntimeWarning, stacklevel=2)
    return hook


def get_hook() -> Optional[Hook]:
    """The open hook of this process, or None."""
    return _hook
