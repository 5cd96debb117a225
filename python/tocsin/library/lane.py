"""What a loop says of its present step before the step ends: kept, and handed over in one call.

A call into the library, or another one of Python, is dear in a loop: it is the first in milliseconds, and what it touches
comes from memory, not from a cache. Where the library finds CPython's stable ABI, the calls of every step are functions of
its own (collectors/hook/abi/abi_python.cc); elsewhere they are those of :class:`Lane`, by ctypes. Both do the same.
"""

import ctypes
import struct
from time import time_ns
from typing import Any, Callable, Dict, List, Optional

# Nanoseconds, and how many: what may be held back until the step ends.
SHORT_TIME, MOST_TIMES = 20_000_000, 32
OK, NOT_DUE = 0, 2
_COUNTS = [ctypes.c_size_t(count) for count in range(MOST_TIMES + 1)]
_PACKED_TIMES = [struct.Struct("=" + "Qqq" * count) for count in range(MOST_TIMES + 1)]
_PACKED_VALUES = [struct.Struct("=" + "Qd" * count) for count in range(MOST_TIMES + 1)]

Functions = Dict[str, Callable[..., Any]]
NAMES = ("scalar", "phase", "tell_held", "tell_values", "step_end", "stop_requested", "due", "held", "set_short", "close")


def functions(library: Any, handle: int) -> Functions:
    """By name, all of NAMES."""
    found = native(library, handle)
    if found is None or not all(name in found for name in NAMES):  # of a library that has fewer
        lane = Lane(library, handle)
        found = {name: getattr(lane, name) for name in NAMES}
    return found


def native(library: Any, handle: int) -> Optional[Functions]:
    """None: this interpreter's functions cannot be seen from the library."""
    try:
        make = library.fast["tocsin_python"]
        make.argtypes, make.restype = [ctypes.c_void_p], ctypes.py_object
        return make(handle)
    except (AttributeError, ValueError):  # a library without it; NULL
        return None


class Lane:
    """The functions in Python. Not for several threads at a time, but none loses what another adds."""

    def __init__(self, library: Any, handle: int) -> None:
        fast, ready = library.fast, ctypes.c_void_p(handle)
        # They take ctypes objects that were made before: nothing is looked up to convert them.
        self._ready = ready
        self._scalars, self._step_next = fast["tocsin_scalars"], fast["tocsin_step_next"]
        self._span, self._stop_requested = fast["tocsin_span"], fast["tocsin_stop_requested_at"]
        self._due = fast["tocsin_due"]
        self._due.argtypes = [ctypes.c_void_p, ctypes.c_uint64]
        self._span.argtypes = [ctypes.c_void_p] + [ctypes.c_uint64] * 2 + [ctypes.c_int64] * 2 + [ctypes.c_uint64]
        self._short = SHORT_TIME
        # Times of phases (name, start, duration, and again), scalars (name, value, and again).
        self._times: List[int] = []
        self._values: List[Any] = []
        self._first_value = 0  # when the step had its first scalar; 0: it had none
        self._prompt = False  # the last step that had some ended soon after the first
        self._one_id, self._one_value = (ctypes.c_uint64 * 1)(), (ctypes.c_double * 1)()
        self._one = (*(ctypes.c_void_p(ctypes.addressof(one)) for one in (self._one_id, self._one_value)), _COUNTS[1])

    def scalar(self, name: int, value: float, quiet: bool) -> None:
        """A scalar of the present step. It goes out with the step's end where nothing else is captured at this step
        (``quiet``) and the step before ended within SHORT_TIME of its first one; else at once."""
        if not self._first_value:
            self._first_value = time_ns()
        if quiet and self._prompt and len(self._values) < 2 * MOST_TIMES:
            self._values += (name, float(value))
        else:
            if self._values:
                self.tell_held()
            self._one_id[0], self._one_value[0] = name, value
            self._scalars(self._ready, *self._one)

    def phase(self, name: int) -> Functions:
        """By name: ``enter`` and ``leave``, around a phase; ``depth``, how often it was entered and not left; ``add(start,
        duration)`` of one that somebody timed himself; ``ended``, when it was left last (0: never)."""
        began: List[int] = []
        ended = [0]

        def add(start: int, duration: int) -> None:
            self._time(name, start, duration)

        def enter() -> None:
            began.append(time_ns())

        def leave(*_: Any) -> None:
            if began:
                start = began.pop()
                ended[0] = time_ns()
                self._time(name, start, ended[0] - start)

        return {"enter": enter, "leave": leave, "depth": lambda: len(began), "add": add, "ended": lambda: ended[0]}

    def _time(self, name: int, start: int, duration: int) -> None:
        """A span of the track ``phase``: a short one goes out with the end of the step, others at once."""
        times = self._times
        if duration < self._short and len(times) < 3 * MOST_TIMES:
            times += (name, int(start), int(duration))
        else:
            self.tell_held()
            self._span(self._ready, name, 0, start, duration, 0)

    def tell_held(self) -> None:
        """What waits for the end of the step goes out now."""
        values, times = self._values[:], self._times[:]  # another thread may add to them
        del self._values[:len(values)], self._times[:len(times)]
        for at in range(0, len(values), 2):
            self._one_id[0], self._one_value[0] = values[at], values[at + 1]
            self._scalars(self._ready, *self._one)
        for at in range(0, len(times), 3):
            self._span(self._ready, times[at], 0, times[at + 1], times[at + 2], 0)

    def tell_values(self) -> None:
        """The same, but only if a scalar is among it: whoever judges a row on arrival sees the loss before what it comes
        from."""
        if self._values:
            self.tell_held()

    def step_end(self, flags: int) -> bool:
        """Ends the step, with what was timed and logged in it. True: nothing is due at the one that begins."""
        if self._first_value:
            self._prompt = time_ns() - self._first_value < self._short
            self._first_value = 0
        values, times = self._values[:], self._times[:]
        packed_values = packed_times = None
        if values:
            del self._values[:len(values)]
            packed_values = _PACKED_VALUES[len(values) // 2].pack(*values)
        if times:
            del self._times[:len(times)]
            packed_times = _PACKED_TIMES[len(times) // 3].pack(*times)
        return bool(self._step_next(self._ready, flags, packed_values, _COUNTS[len(values) // 2],
                                    packed_times, _COUNTS[len(times) // 3]) == NOT_DUE)

    def due(self, collection: int) -> bool:
        """Whether the collection (0: any) is captured at the present step."""
        return bool(self._due(self._ready, collection) == OK)

    def stop_requested(self, ahead: int) -> int:
        return int(self._stop_requested(self._ready, ahead))

    def held(self) -> Any:
        """How many scalars and how many times wait."""
        return len(self._values) // 2, len(self._times) // 3

    def set_short(self, nanoseconds: int) -> None:
        """What counts as short: SHORT_TIME unless set."""
        self._short = nanoseconds

    def close(self) -> None:
        """Nothing is done any more."""
        self._ready = ctypes.c_void_p(None)
        self._values.clear()
        self._times.clear()
