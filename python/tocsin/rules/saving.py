"""Plain data as JSON and back: what a rule remembers over a restart. No pickle: text from outside never runs."""

import collections
import json
import math
from typing import Any, Dict, FrozenSet, List, Tuple

try:
    import numpy
except ImportError:
    numpy = None  # type: ignore[assignment]

_TAG = "~"


class NotPlain(TypeError):
    pass


def packed(value: Any, depth: int = 0) -> Any:
    """As JSON can hold it. NotPlain: it cannot."""
    if depth > 20:
        raise NotPlain("nested too deep")
    if value is None or isinstance(value, (bool, str)):
        return value
    if numpy is not None and isinstance(value, numpy.ndarray):
        if value.dtype.kind not in "biuf":
            raise NotPlain(f"an array of {value.dtype}")
        return {_TAG: "array", "dtype": str(value.dtype), "shape": list(value.shape), "of": value.ravel().tolist()}
    if numpy is not None and isinstance(value, numpy.generic) and value.dtype.kind in "biuf":
        return {_TAG: "number", "dtype": str(value.dtype), "of": value.item()}
    if type(value) in (int, float):
        return value
    if type(value) is list:
        return [packed(item, depth + 1) for item in value]
    if type(value) is tuple:
        return {_TAG: "tuple", "of": [packed(item, depth + 1) for item in value]}
    if type(value) in (set, frozenset):
        items = sorted((packed(item, depth + 1) for item in value), key=lambda item: json.dumps(item, sort_keys=True))
        return {_TAG: type(value).__name__, "of": items}
    if isinstance(value, collections.deque):
        return {_TAG: "deque", "most": value.maxlen, "of": [packed(item, depth + 1) for item in value]}
    if isinstance(value, dict):
        if all(type(key) is str for key in value) and _TAG not in value:
            return {key: packed(item, depth + 1) for key, item in value.items()}
        return {_TAG: "map", "of": [[packed(key, depth + 1), packed(item, depth + 1)] for key, item in value.items()]}
    raise NotPlain(type(value).__name__)


def unpacked(value: Any) -> Any:
    if isinstance(value, list):
        return [unpacked(item) for item in value]
    if not isinstance(value, dict):
        return value
    kind = value.get(_TAG)
    if kind is None:
        return {key: unpacked(item) for key, item in value.items()}
    if kind == "array":
        return numpy.array(value["of"], dtype=value["dtype"]).reshape(value["shape"])
    if kind == "number":
        return numpy.dtype(value["dtype"]).type(value["of"])
    items = value["of"]
    if kind == "map":
        return {unpacked(key): unpacked(item) for key, item in items}
    items = [unpacked(item) for item in items]
    if kind == "deque":
        return collections.deque(items, maxlen=value["most"])
    return {"tuple": tuple, "set": set, "frozenset": frozenset}[kind](items)


def merged(present: Any, saved: Any) -> Any:
    """What was saved; into the present map, where that makes missing keys by itself."""
    if isinstance(present, dict) and isinstance(saved, dict) and type(present) is not dict:
        present.clear()
        present.update(saved)
        return present
    return saved


def attributes_of(rule: Any, without: FrozenSet[str]) -> Tuple[Dict[str, Any], List[str]]:
    """Attributes that are plain data, and the names of the others."""
    kept, left = {}, []
    for name, value in vars(rule).items():
        if name in without or name in ("_issues", "_unsaved"):
            continue
        try:
            packed(value)
            kept[name] = value
        except NotPlain:
            left.append(name)
    return kept, left


def text_of(value: Any) -> str:
    return json.dumps(packed(value), separators=(",", ":"))


def value_of(text: str) -> Any:
    return unpacked(json.loads(text))


def presentable(value: Any) -> Any:
    """For evidence: JSON as every reader has it, numbers that are not finite as texts."""
    if numpy is not None and isinstance(value, (numpy.generic, numpy.ndarray)):
        value = value.tolist()
    if isinstance(value, float) and not math.isfinite(value):
        return "NaN" if math.isnan(value) else "Infinity" if value > 0 else "-Infinity"
    if value is None or isinstance(value, (bool, int, float, str)):
        return value
    if isinstance(value, dict):
        return {str(key): presentable(item) for key, item in value.items()}
    if isinstance(value, (list, tuple, set, frozenset, collections.deque)):
        return [presentable(item) for item in value]
    return str(value)
