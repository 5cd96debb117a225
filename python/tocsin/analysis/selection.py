"""What a query asks for: ``metric("loss"){mode="train"}``, as rules select (docs/custom-rules.md)."""

import re
from typing import Any, Dict, List, NamedTuple, Optional, Pattern, Tuple

KINDS = ("metric", "tensor", "collection", "system", "span", "step")
_TEXT = re.compile(r'\s*(?P<kind>\w+)\(\s*(?:"(?P<name>(?:[^"\\]|\\.)*)")?\s*\)\s*(?:\{(?P<labels>.*)\})?\s*')
_LABEL = re.compile(r'\s*(\w+)\s*=\s*"([^"]*)"\s*(?:,|$)')


class Selection(NamedTuple):
    kind: str
    name: str  # a regular expression of the whole name; of a collection its name
    exact: bool  # ``name`` is no expression
    labels: Tuple[Tuple[str, str], ...] = ()

    def pattern(self) -> Pattern[str]:
        return re.compile(re.escape(self.name) if self.exact else self.name)


def parse(text: str) -> Selection:
    """Raises ValueError. A bare name is a metric of exactly this name."""
    if "(" not in text or text.split("(", 1)[0].strip() not in KINDS:
        if re.fullmatch(r"\s*\w+\(.*\)\s*(\{.*\})?\s*", text):
            raise ValueError(f"{text}: expected one of {', '.join(KINDS)} in front of the bracket")
        return Selection("metric", text, True)
    found = _TEXT.fullmatch(text)
    if not found or (found["name"] is None) != (found["kind"] == "step"):
        raise ValueError(f'{text}: expected for instance metric("loss"){{mode="train"}}, or step()')
    labels, rest = _labels(found["labels"] or "")
    if rest:
        raise ValueError(f'{text}: expected label="value" at {rest}')
    selection = Selection(found["kind"], re.sub(r"\\(.)", r"\1", found["name"] or "") if '\\"' in (found["name"] or "")
                          else found["name"] or "", found["kind"] == "collection", tuple(labels.items()))
    unknown = set(labels) - {"mode", "worker", "node"}
    if unknown:
        raise ValueError(f"{text}: no label {min(unknown)}; expected mode, worker or node")
    try:
        selection.pattern()
    except re.error as error:
        raise ValueError(f"{text}: no regular expression: {error}") from error
    return selection


def _labels(text: str) -> Tuple[Dict[str, str], str]:
    out: Dict[str, str] = {}
    at = 0
    while at < len(text):
        found = _LABEL.match(text, at)
        if not found:
            return out, text[at:]
        out[found[1]] = found[2]
        at = found.end()
    return out, ""


class Query(NamedTuple):
    """One question to a source. None: everything."""
    selection: Selection
    run: Optional[str] = None  # uid
    attempt: Optional[int] = None
    stat: Optional[Tuple[str, ...]] = None
    mode: Optional[str] = None
    workers: Optional[Tuple[str, ...]] = None
    steps: Optional[Tuple[Optional[int], Optional[int]]] = None  # from, up to without
    points: Optional[int] = None
    smooth: Optional[int] = None

    def takes_step(self, step: int) -> bool:
        if self.steps is None:
            return True
        low, high = self.steps
        return (low is None or step >= low) and (high is None or step < high)


def query_of(text: str, *, stat: Any = None, mode: Any = None, workers: Any = None, steps: Any = None, points: Optional[int] = None,
             smooth: Optional[int] = None) -> Query:
    """Arguments as ``series`` takes them, checked. Raises ValueError."""
    selection = parse(text)
    labels = dict(selection.labels)
    mode = getattr(mode, "name", mode) or labels.get("mode")
    mode = str(mode).lower() if mode is not None else None
    if mode not in (None, "global", "train", "eval", "predict"):
        raise ValueError(f"mode {mode}: expected global, train, eval or predict")
    mode = None if mode == "global" else mode  # all of them, as everywhere in a trial
    named: Optional[List[str]] = [workers] if isinstance(workers, str) else list(workers) if workers is not None else None
    one = labels.get("worker", labels.get("node"))
    if named is None and one is not None:
        named = [one]
    if points is not None and points < 1:
        raise ValueError("points: expected at least 1")
    if smooth is not None and points is None:
        raise ValueError("smooth needs points: it is a column of buckets")
    stats = (stat,) if isinstance(stat, str) else tuple(stat) if stat is not None else None
    low_high = (steps.start, steps.stop) if isinstance(steps, (slice, range)) else tuple(steps) if steps is not None else None
    return Query(selection, None, None, stats, mode, tuple(named) if named is not None else None, low_high, points, smooth)
