"""A thread that says where this process stands: when its loop has stood still for long, and when it is asked.

It sleeps; once a second it looks at a few numbers. Nothing of the training thread is touched, which may be blocked in a
collective operation: PyTorch lets go of the interpreter there. Of code that does not, see :class:`_Watchdog`.
"""

import faulthandler
import os
import sys
import threading
import time
from typing import Any, Callable, Dict, Optional, Tuple

from tocsin.adapters.torch.surroundings import left_out, replaced, workers as torch_workers
from tocsin.library import abi
from tocsin.process.contain import Errors
from tocsin.process.facts import say
from tocsin.traces.profiler import Traces
from . import stacks

PERIOD = 1.0  # seconds
# Seconds of standstill, and how many times the longest pause so far, unless TOCSIN_STACKS_AFTER gives seconds.
AFTER, SLOWER = 300.0, 20
SLOT = "profile"

Answer = Callable[..., None]


class Standing:
    """Of one hook, whose loop ``sink`` follows. ``taken()``: the script answers the commands of the slot itself."""

    def __init__(self, client: abi.Client, errors: Errors, sink: Any, taken: Callable[[], bool],
                 each: Callable[[], None] = lambda: None) -> None:
        """``each()``: called once a second too."""
        self._client = client
        self._errors = errors
        self._sink, self._taken, self._each = sink, taken, each
        self._main = threading.get_ident()
        self._end = threading.Event()
        self._promised = 0.0
        self._traces = Traces(client, errors, sink)
        self._left_out, self._replaced = left_out.LeftOut(sink), replaced.Replaced(sink)
        # By ``args.kind``: called with the command, its args, and ``answer(phase, **more)``.
        self._jobs: Dict[str, Callable[[Dict[str, Any], Dict[str, Any], Answer], None]] = {
            "stacks": self._asked, "trace": self._traces.ordered}
        # In a notebook nothing moves while its reader thinks.
        self._after, self._slower = (0.0, 0) if "ipykernel" in sys.modules else _after()
        self._watchdog = _Watchdog(self._after) if self._after else None
        client.name(abi.NAME_COMMAND, SLOT)
        self._first = time.monotonic(), self._moved()
        self._thread = threading.Thread(target=self._run, name="tocsin-stacks", daemon=True)
        self._thread.start()

    def promised(self, seconds: float) -> None:
        """The loop will be heard of again within so many seconds: until then it does not stand still."""
        self._promised = time.monotonic() + seconds if seconds else 0.0

    def stop(self) -> None:
        """Before the client closes: from here on it is not used. Waits for what is being said."""
        self._end.set()
        if self._thread is not threading.current_thread():
            self._thread.join(5.0)
        if self._watchdog is not None:
            self._watchdog.stop()
        self._traces.stop()

    # ---- the thread

    def _moved(self) -> Any:
        """Something else than before whenever the loop has moved."""
        clock, client = self._sink.clock, self._client
        return (*clock.peek(), clock.mode, client.held(),
                [one.moved() for one in self._sink.adapters() if hasattr(one, "moved")])

    def _run(self) -> None:
        longest, told, (since, moved) = 0.0, False, self._first
        while not self._end.wait(PERIOD):
            try:
                now = time.monotonic()
                self._look_for_commands()
                self.look_at_updates()
                if self._sink.lag is not None:
                    self._sink.lag.wake()
                self._each()
                if self._watchdog is not None:
                    self._watchdog.look(self)
                newest = self._moved()
                if newest != moved:
                    longest, since, moved = max(longest, now - since), now, newest
                    if told:
                        told = False
                        self._say({"kind": "goes_on"})
                elif self._after and not told and now > self._promised and now - since >= max(self._after, self._slower * longest):
                    told = True
                    self.tell(int(now - since))
            except Exception as error:  # noqa: BLE001
                self._errors.add("stacks", error)

    def look_at_updates(self) -> None:
        """Says, once each, that updates are left out or reach parameters that the model no longer has, or that workers of a loader draw the
        same random numbers: an issue ``training_preflight``, and a line on stderr."""
        counters = self._client.counters()
        workers = [(one, torch_workers.sentence) for one in self._sink.adapters() if isinstance(one, torch_workers.Workers)]
        for part, sentence in ((self._left_out, left_out.sentence), (self._replaced, replaced.sentence), *workers):
            finding = part.look(counters)
            if finding is not None:
                self._say(finding)
                say(sentence(finding))

    def tell(self, seconds: int, threads: Optional[Any] = None) -> None:
        """As a record of the run: an issue ``worker_stands_still``."""
        self._say({"kind": "stands_still", "count": seconds, "threads": threads or stacks.stacks(self._main),
                   "collectives": stacks.collectives()})

    def _say(self, finding: Dict[str, Any]) -> None:
        self._client.report({"event": "preflight", "findings": [finding]})

    # ---- commands

    def _look_for_commands(self) -> None:
        if self._taken() or SLOT not in (self._client.command(None) or ()):
            return
        command = self._client.command(SLOT.encode("ascii"))
        if command is None:
            return
        identity, args = command.get("command_id", ""), command.get("args") or {}

        def answer(phase: str, **more: Any) -> None:
            self._client.ack({"command_id": identity, "action": SLOT, "phase": phase, **more})

        job = self._jobs.get(str(args.get("kind")))
        if job is None:
            answer("refused", reason=f"unsupported: {args.get('kind')} (this hook has {', '.join(sorted(self._jobs))})")
            return
        try:
            if args.get("tell"):  # an issue has asked: to be read beside it
                self._say({"kind": "place", "asked_by": str((command.get("reason") or {}).get("rule", ""))[:200], "command_id": identity,
                           "threads": stacks.stacks(self._main), "collectives": stacks.collectives()})
            job(command, args, answer)
        except Exception as error:  # noqa: BLE001
            answer("refused", reason=f"{type(error).__name__}: {error}"[:200])

    def _asked(self, command: Dict[str, Any], args: Dict[str, Any], answer: Answer) -> None:
        del command, args
        answer("applied", reason=stacks.text(stacks.stacks(self._main), stacks.collectives()))


class _Watchdog:
    """For code that never lets go of the interpreter, so that no thread of Python runs: the interpreter's own watchdog writes
    the stacks into the file that ``TOCSIN_STACKS_FILE`` names. A process has one such watchdog, so it is taken only then.
    What was written is told when the interpreter is free again; until then it is in the file alone."""

    PERIOD = 10.0

    def __init__(self, after: float) -> None:
        name = os.environ.get("TOCSIN_STACKS_FILE", "")
        self._file: Optional[Any] = None
        if name:
            self._file = open(f"{name}.{os.getpid()}", "w+", encoding="utf-8", errors="replace")
        self._after, self._armed, self._read = after, 0.0, 0

    def look(self, standing: Standing) -> None:
        if self._file is None:
            return
        self._file.seek(self._read)
        written = self._file.read(stacks.MOST_TEXT)
        now = time.monotonic()
        if written:
            self._read = self._file.seek(0, os.SEEK_END)
            lines = [line.strip()[:200] for line in written.splitlines() if line.strip()]
            standing.tell(int(now - self._armed), [{"name": "while nothing else of Python could run", "frames": lines}])
        if written or now - self._armed >= min(self.PERIOD, self._after / 2):
            self._armed = now
            faulthandler.dump_traceback_later(self._after, file=self._file)

    def stop(self) -> None:
        if self._file is not None:
            faulthandler.cancel_dump_traceback_later()
            self._file.close()
            self._file = None


def _after() -> Tuple[float, int]:
    """(seconds, times the longest pause); 0 seconds: never unasked."""
    given = os.environ.get("TOCSIN_STACKS_AFTER", "")
    if given.lower() in ("off", "0"):
        return 0.0, 0
    try:
        return (max(float(given), 1.0), 0) if given else (AFTER, SLOWER)
    except ValueError:
        return AFTER, SLOWER
