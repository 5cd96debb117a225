"""Anything else: values, arrays and statistics that a script computed itself, from any framework."""

from typing import Any, Mapping, Optional

from tocsin.library import abi
from tocsin.loop.sink import Sink

_SUMS = ("sum", "sumsq", "m2", "abs_sum", "min", "max")
_COUNTS = ("nan", "posinf", "neginf", "zero", "negative")
MAX_AHEAD = 1_000_000  # steps that one call may end


def emit(sink: Sink, name: str, value: Any, statistics: Optional[Mapping[str, Any]],
         role: Optional[str], raw: bool = False) -> None:
    """See :meth:`tocsin.Hook.emit`; ``TypeError`` or ``ValueError`` for what cannot be used."""
    if role is not None and role not in abi.ROLES:
        raise ValueError(f"unknown role {role!r}, one of {', '.join(abi.ROLES)}")
    if (value is None) == (statistics is None):
        raise TypeError(f"{name}: give a value, or statistics of one")
    sink.catch_up()
    if statistics is not None:
        sink.publish_rows_now([row(sink.tensor(name, role=role), name, statistics)])
    elif _is_number(value):
        if role is not None and name not in sink.scalars:
            sink.scalar(name, role)
        sink.log({name: value})
    else:
        sink.publish_tensor(name, value, "default" if role is None else None, role=role, raw=raw)


def reach(sink: Sink, step: int) -> None:
    """Ends the steps before ``step``, of a loop that counts its own. ``ValueError`` for an earlier one:
    what has ended cannot be added to."""
    ahead = int(step) - sink.step_of_mode()
    if ahead < 0 or ahead > MAX_AHEAD:
        raise ValueError(f"step {step}: the present one is {sink.step_of_mode()}")
    for _ in range(ahead):
        sink.clock.next_step()


def row(identity: int, name: str, statistics: Mapping[str, Any]) -> abi.Row:
    """A row of the columns of docs/statistics.md. All sums are wanted: a missing one would look like a
    value. Counts that are not given are 0."""
    unknown = sorted(set(statistics) - {"count", *_SUMS, *_COUNTS})
    missing = [column for column in ("count", *_SUMS) if column not in statistics]
    if unknown or missing:
        raise ValueError(f"{name}: statistics " + " and ".join(
            part for part in (missing and f"without {', '.join(missing)}",
                              unknown and f"with unknown {', '.join(unknown)}") if part))
    out = abi.Row()
    out.name, out.count = identity, int(statistics["count"])
    for column in _SUMS:
        setattr(out, column, float(statistics[column]))
    for column in _COUNTS:
        setattr(out, column, int(statistics.get(column, 0)))
    return out


def _is_number(value: Any) -> bool:
    if isinstance(value, (int, float)):
        return True
    shape = getattr(value, "shape", None)
    return shape is not None and len(shape) == 0
