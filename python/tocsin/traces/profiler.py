"""A trace of PyTorch's profiler, ordered for steps to come: the same steps on all ranks, without a line in the script."""

import ctypes
import gzip
import json
import os
import socket
import sys
import tempfile
import threading
from typing import Any, Callable, Dict, Optional

from tocsin.library import abi
from tocsin.process.contain import Errors
from tocsin.tensors.arrays import describe
from .merge import ABOUT, MARK

NAME = "profiler/trace"  # of the tensor of bytes that it is sent as
MOST_STEPS = 10_000
MOST_BYTES = 1 << 30  # of the JSON


class Traces:
    """Of one hook. Ordered on its thread ``tocsin-stacks``; begun, ended and sent on the training thread, at ends of steps. While none
    is ordered nothing of this is called."""

    def __init__(self, client: abi.Client, errors: Errors, sink: Any) -> None:
        self._client, self._errors, self._sink = client, errors, sink
        self._trace: Optional[_Trace] = None
        self._lock = threading.Lock()  # of which trace it is, and that it begins

    def ordered(self, command: Dict[str, Any], args: Dict[str, Any], answer: Callable[..., None]) -> None:
        """``args``: ``from_step`` (the first train step of it), ``steps``."""
        del command
        torch = sys.modules.get("torch")
        first, steps = int(args.get("from_step", 0)), int(args.get("steps", 0))
        if torch is None or not hasattr(getattr(torch, "profiler", None), "profile"):
            return answer("refused", reason="unsupported: no PyTorch with a profiler in this process")
        if not 0 < steps <= MOST_STEPS:
            return answer("refused", reason=f"out_of_bounds: {steps} steps (1 to {MOST_STEPS})")
        if self._ended() > first:
            return answer("refused", reason=f"too_late: step {self._ended()} has begun")
        with self._lock:
            before = self._trace
            if before is not None and before.begun:
                return answer("refused", reason="busy: another trace goes on")
            self._trace = _Trace(torch, first, steps, answer, self._about())  # in the place of one that has not begun
            if before is None:
                self._install()
        if before is not None:
            before.refuse("replaced: another trace is ordered")
        return answer("applied", effective_step=first)

    def _about(self) -> Dict[str, Any]:
        """Whose it is, for who puts those of several ranks together (merge.py)."""
        told = self._client.counters()
        return {"run": told.get("run", ""), "worker": told.get("worker", ""), "rank": self._sink.rank, "host": socket.gethostname()}

    def _ended(self) -> int:
        """Train steps that have ended."""
        return int(self._client.counters()["steps"].get("train", 0)) + self._sink.clock.ended_ahead()

    def _install(self) -> None:
        sink = self._sink
        update, step = sink.end_update, sink.end_step

        def end_update(*args: Any, **kwargs: Any) -> None:
            update(*args, **kwargs)
            self._step_ended()

        def end_step(*args: Any, **kwargs: Any) -> None:
            step(*args, **kwargs)
            self._step_ended()

        sink.end_update, sink.end_step = end_update, end_step
        sink.clock.keep(True)

    def _take_out(self, trace: "_Trace") -> None:
        """Unless another has taken its place meanwhile, which needs what is installed."""
        clock = self._sink.clock
        with self._lock:
            if self._trace is not trace:
                return
            self._trace = None
            self._sink.end_update, self._sink.end_step = clock.end_update, clock.end_step
            clock.keep(False)

    def _step_ended(self) -> None:
        trace = self._trace
        if trace is None:
            return
        try:
            if trace.ready is not None:
                self._send(trace)
            elif not trace.stopped:
                ended = self._ended()
                with self._lock:
                    goes_on = trace is not self._trace or trace.at(ended)
                if not goes_on:
                    self._take_out(trace)
        except Exception as error:  # noqa: BLE001
            self._give_up(trace, error)

    def _send(self, trace: "_Trace") -> None:
        data, trace.ready = trace.ready, None
        if not isinstance(data, bytes):
            self._take_out(trace)
            return trace.refuse(str(data))
        torch, sink = trace.torch, self._sink
        value = torch.frombuffer(bytearray(data), dtype=torch.uint8)
        identity = sink.tensor(NAME, dtype=value.dtype, shape=value.shape, collection="default")
        described = describe(identity, value)
        described[0].flags |= abi.TENSOR_OFF_GRID | abi.TENSOR_RAW
        before = self._client.counters()
        sink.publish_lent(ctypes.byref(described[0]), 1)
        after = self._client.counters()
        self._take_out(trace)
        skipped = _skipped(before, after)
        if skipped:
            return trace.refuse(f"too_large: {skipped}, {len(data)} bytes (capture.raw: max_bytes, queue)")
        where = int(before["steps"].get("train", 0))
        return trace.answer("ended", reason=f"{NAME} at step {where} of {before.get('worker', 'this worker')}, {len(data)} bytes: python3 -m tocsin.trace "
                            f"{before['run']} {where} --worker {before.get('worker', '')}")

    def _give_up(self, trace: "_Trace", error: Exception) -> None:
        self._errors.add("trace", error)
        self._take_out(trace)
        trace.refuse(f"{type(error).__name__}: {error}"[:200])

    def stop(self) -> None:
        """The hook closes: what was recorded so far is sent."""
        trace = self._trace
        if trace is None:
            return
        try:
            if trace.begun and not trace.stopped:
                trace.stop()
            if trace.stopped:
                trace.wait()
                if trace.ready is not None:
                    self._send(trace)
            else:
                trace.refuse("ended: the loop ended before")
                self._take_out(trace)
        except Exception as error:  # noqa: BLE001
            self._give_up(trace, error)


class _Trace:
    """One that was ordered."""

    def __init__(self, torch: Any, first: int, steps: int, answer: Callable[..., None], about: Dict[str, Any]) -> None:
        self._about = about
        self.torch, self.first, self.steps, self.answer = torch, first, steps, answer
        self.begun = self.stopped = False
        self.ready: Any = None  # the compressed trace, or why there is none
        self._profiler: Any = None
        self._thread: Optional[threading.Thread] = None

    def refuse(self, reason: str) -> None:
        self.answer("refused", reason=reason)

    def at(self, ended: int) -> bool:
        """So many train steps have ended: begins or ends. False: it is refused."""
        if not self.begun and ended > self.first:
            self.refuse(f"too_late: step {ended} has begun")
            return False
        if not self.begun and ended == self.first:
            if self.torch.autograd._profiler_enabled():  # of this thread: nobody else can ask
                self.refuse("busy: another profiler is active")
                return False
            activity = self.torch.profiler.ProfilerActivity
            on_gpu = self.torch.cuda.is_available() and self.torch.cuda.is_initialized()
            self._profiler = self.torch.profiler.profile(activities=[activity.CPU] + ([activity.CUDA] if on_gpu else []))
            self._profiler.start()
            self.begun = True
        if self.begun:  # the clocks of several ranks are told apart by it
            with self.torch.profiler.record_function(f"{MARK}{ended}"):
                pass
        if self.begun and ended >= self.first + self.steps:
            self.stop()
        return True

    def stop(self) -> None:
        """On the training thread, as the profiler wants it; writing it takes longer, and has a thread of its own."""
        self.stopped = True
        self._profiler.stop()
        self._thread = threading.Thread(target=self._write, name="tocsin-trace", daemon=True)
        self._thread.start()

    def wait(self) -> None:
        if self._thread is not None:
            self._thread.join(30.0)

    def _write(self) -> None:
        try:
            with tempfile.TemporaryDirectory(prefix="tocsin-trace-") as folder:
                file = os.path.join(folder, "trace.json")
                self._profiler.export_chrome_trace(file)
                size = os.path.getsize(file)
                if size > MOST_BYTES:
                    self.ready = f"too_large: {size} bytes of JSON (at most {MOST_BYTES})"
                    return
                with open(file, "rb") as opened:
                    self.ready = gzip.compress(_with_about(opened.read(), self._about), 5)
        except Exception as error:  # noqa: BLE001
            self.ready = f"{type(error).__name__}: {error}"[:200]
        finally:
            self._profiler = None


def _with_about(trace: bytes, about: Dict[str, Any]) -> bytes:
    """As the profiler's own metadata, which PyTorch before 2.0 may not be built with: then the trace is a bare list of events.
    Not parsed for it: it may be long."""
    said, trace = f'"{ABOUT}": {json.dumps(about)}'.encode("utf-8"), trace.strip()
    if trace.startswith(b"{"):
        return b"{" + said + (b"" if trace[1:].lstrip().startswith(b"}") else b", ") + trace[1:]
    return b"{" + said + b', "traceEvents": ' + trace + b"}"


def _skipped(before: Dict[str, Any], after: Dict[str, Any]) -> str:
    """Why elements were skipped in between; empty: they were not."""
    was = (before.get("raw") or {}).get("skipped_total") or {}
    now = (after.get("raw") or {}).get("skipped_total") or {}
    return ", ".join(reason for reason, count in now.items() if count > was.get(reason, 0))
