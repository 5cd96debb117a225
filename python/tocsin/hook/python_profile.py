"""A profile of Python functions over a part of the loop, sent with the run: ``with hook.python_profile(): …``."""

import ctypes
import gzip
import json
import time
from contextlib import contextmanager
from typing import Any, Callable, Dict, Iterator, List, Optional

from tocsin.library import abi
from tocsin.tensors.arrays import describe

NAME = "profiler/python/"  # and a number: of the tensor of bytes that a profile is sent as
PROFILERS = ("cprofile", "pyinstrument")
_TIMERS: Dict[str, Optional[Callable[[], float]]] = {"total": None, "cpu": time.thread_time, "off_cpu": lambda: time.perf_counter() - time.thread_time()}
_MOST_PROFILES = 1000  # of a process
_MOST_FUNCTIONS = 5000  # of a profile, those with most time


class ProfilesPython:
    """Of a :class:`tocsin.Hook`."""

    _profiles = 0

    @contextmanager
    def python_profile(self, profiler: str = "cprofile", timer: str = "total", phase: str = "") -> Iterator[None]:
        """Profile the Python functions of a block, and send the result: ``with hook.python_profile(): …``.

        ``tocsin.analysis.cProfileAnalysis`` reads it. Needs NumPy. A profile that cannot be made is counted in ``stats()``, and the loop
        goes on.

        ``profiler``: ``cprofile``, or ``pyinstrument`` if it is installed, which samples.
        ``timer``: of cprofile: ``total``, ``cpu`` or ``off_cpu``.
        ``phase``: a word to find the profile by.
        """
        run = None
        begin: Dict[str, Any] = {}
        try:
            begin = self._moment()
            run = _started(profiler, timer) if self.enabled else None  # type: ignore[attr-defined]
        except Exception as error:  # noqa: BLE001
            self.errors.add("python_profile", error)  # type: ignore[attr-defined]
        try:
            yield
        finally:
            if run is not None:
                try:
                    told = run()
                    self._send_profile({"profiler": profiler, "timer": timer, "phase": phase, "start": begin, "end": self._moment(), **told})
                except Exception as error:  # noqa: BLE001
                    self.errors.add("python_profile", error)  # type: ignore[attr-defined]

    def _moment(self) -> Dict[str, Any]:
        out: Dict[str, Any] = {"time_us": time.time_ns() // 1000}
        if self.enabled:  # type: ignore[attr-defined]
            counters = self._client.counters()  # type: ignore[attr-defined]
            steps = counters.get("steps", {})
            mode = str(counters.get("mode") or self.sink.clock.mode)  # type: ignore[attr-defined]
            out.update(mode=mode, step=int(steps.get(mode, 0)), steps=sum(int(one) for one in steps.values()))
        return out

    def _send_profile(self, profile: Dict[str, Any]) -> None:
        import numpy
        if self._profiles == _MOST_PROFILES:
            raise ValueError(f"{_MOST_PROFILES} profiles were sent: further ones are left out")
        data = numpy.frombuffer(gzip.compress(json.dumps(profile).encode("utf-8"), 6), dtype=numpy.uint8)
        identity = self.sink.tensor(f"{NAME}{self._profiles}", dtype=data.dtype, shape=data.shape, collection="default")  # type: ignore[attr-defined]
        self._profiles += 1
        described = describe(identity, data)
        described[0].flags |= abi.TENSOR_OFF_GRID | abi.TENSOR_RAW
        self.sink.publish_lent(ctypes.byref(described[0]), 1)  # type: ignore[attr-defined]


def _started(profiler: str, timer: str) -> Callable[[], Dict[str, Any]]:
    """Begins; what it gives ends it and tells."""
    if profiler not in PROFILERS:
        raise ValueError(f"profiler is {profiler!r}: expected {' or '.join(PROFILERS)}")
    if timer not in _TIMERS:
        raise ValueError(f"timer is {timer!r}: expected {', '.join(_TIMERS)}")
    if profiler == "pyinstrument":
        return _sampled()
    import cProfile
    clock = _TIMERS[timer]
    profile = cProfile.Profile() if clock is None else cProfile.Profile(clock)
    profile.enable()

    def ended() -> Dict[str, Any]:
        profile.disable()
        return {"functions": _functions(profile)}
    return ended


def _sampled() -> Callable[[], Dict[str, Any]]:
    try:
        from pyinstrument import Profiler
        from pyinstrument.renderers import JSONRenderer
    except ImportError:
        raise ImportError("python_profile(\"pyinstrument\") needs pyinstrument: pip install pyinstrument") from None
    sampler = Profiler(interval=0.001)
    sampler.start()

    def ended() -> Dict[str, Any]:
        session = sampler.stop()
        return {"session": json.loads(JSONRenderer().render(session))}
    return ended


def _functions(profile: Any) -> List[Dict[str, Any]]:
    """Of ``pstats``: file, line, name, calls, seconds, and who called."""
    import pstats
    stats = pstats.Stats(profile).stats  # type: ignore[attr-defined]
    most = sorted(stats.items(), key=lambda one: -one[1][2])[:_MOST_FUNCTIONS]
    return [{"file": file, "line": line, "name": name, "primitive_calls": primitive, "calls": calls, "own": own, "cumulative": cumulative,
             "callers": [[*caller, told[1] if isinstance(told, tuple) else told] for caller, told in list(callers.items())[:50]]}
            for (file, line, name), (primitive, calls, own, cumulative, callers) in most]
