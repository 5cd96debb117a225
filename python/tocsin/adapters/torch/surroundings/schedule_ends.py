"""When a scheduler of PyTorch ends by its own settings, and how low. Nothing of a script is called for it."""

import sys
from typing import Any, Optional, Tuple

End = Tuple[float, float]  # (its steps until the end, the rate there as a share of the largest)

_PURE = ("transformers.", "diffusers.")  # whose functions of the step have no side effects


def follows_metric(scheduler: Any) -> bool:
    return _is(scheduler, "ReduceLROnPlateau")


def end_of(scheduler: Any) -> Optional[End]:
    """None: it has no end (restarts, steps, exponentials, what follows a metric), or nobody can say."""
    if _is(scheduler, "OneCycleLR"):
        group = scheduler.optimizer.param_groups[0]
        return float(scheduler.total_steps), _share(group["min_lr"], group["max_lr"])
    if _is(scheduler, "CosineAnnealingLR"):
        return float(scheduler.T_max), _share(scheduler.eta_min, scheduler.base_lrs[0])
    if _is(scheduler, "LinearLR"):
        start, end = scheduler.start_factor, scheduler.end_factor
        return float(scheduler.total_iters), _share(end, max(start, end))
    if _is(scheduler, "ConstantLR"):
        return float(scheduler.total_iters), _share(1.0, max(scheduler.factor, 1.0))
    if _is(scheduler, "PolynomialLR"):
        return float(scheduler.total_iters), 0.0
    if _is(scheduler, "SequentialLR"):
        last = end_of(scheduler._schedulers[-1])
        return None if last is None else (scheduler._milestones[-1] + last[0], last[1])
    if _is(scheduler, "ChainedScheduler"):
        return _chained([end_of(one) for one in scheduler._schedulers])
    if _is(scheduler, "LambdaLR"):
        ends = {_of_function(one) for one in scheduler.lr_lambdas}
        return ends.pop() if len(ends) == 1 else None
    return None


def _chained(ends: Any) -> Optional[End]:
    """Factors that are multiplied."""
    if not ends or any(one is None for one in ends):
        return None
    lowest = 1.0
    for _, share in ends:
        lowest *= share
    return max(length for length, _ in ends), lowest


def _of_function(function: Any) -> Optional[End]:
    """Of the ``get_*_schedule`` of Transformers and their like: a partial (or a closure) that knows ``num_training_steps``."""
    known = dict(getattr(function, "keywords", None) or {})
    inner = getattr(function, "func", function)
    code, cells = getattr(inner, "__code__", None), getattr(inner, "__closure__", None)
    if code is not None and cells:
        for name, cell in zip(code.co_freevars, cells):
            try:
                known.setdefault(name, cell.cell_contents)
            except ValueError:  # not set yet
                pass
    length = known.get("num_training_steps")
    if not _is_count(length):
        parts = [known.get(f"num_{part}_steps") for part in ("warmup", "stable", "decay")]
        if not all(_is_count(one) for one in parts):
            return None
        length = sum(parts)
    if str(getattr(inner, "__module__", "")).startswith(_PURE):
        return float(length), max(0.0, float(function(length)))
    return float(length), 1.0


def _is_count(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and value >= 0


def _share(rate: Any, largest: Any) -> float:
    largest = abs(float(largest))
    return abs(float(rate)) / largest if largest > 0 else 1.0


def _is(scheduler: Any, name: str) -> bool:
    kind = getattr(sys.modules.get("torch.optim.lr_scheduler"), name, None)
    return isinstance(kind, type) and isinstance(scheduler, kind)
