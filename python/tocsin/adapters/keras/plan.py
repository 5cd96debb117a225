"""What ``fit()`` of Keras has planned, and when a ``LearningRateSchedule`` ends."""

from typing import Any, Dict, Optional, Tuple

from tocsin.process.callers import any_named, locals_of


def planned(optimizer: Any, params: Any, before: int, every: int) -> Dict[str, float]:
    """Fields of the plan (docs/ledger.md). ``before``: updates before this ``fit()``; ``every``: batches per update. A ``fit()`` of one
    epoch is most often a part of a training, whose length nobody knows."""
    callbacks = getattr(locals_of("keras.", ("fit",)).get("callbacks"), "callbacks", ())
    out: Dict[str, float] = {"accumulation": float(every),
                             "early_stopping": float(any_named(callbacks, "EarlyStopping")),
                             "follows_metric": float(any_named(callbacks, "ReduceLROnPlateau"))}
    epochs, steps = (params or {}).get("epochs"), (params or {}).get("steps")
    if isinstance(epochs, int) and epochs > 1:
        out["epochs"] = float(epochs)
        if isinstance(steps, int) and steps > 0:
            out["updates"] = float(max(before, 0) + epochs * steps // every)
    end = _end_of(getattr(getattr(optimizer, "inner_optimizer", optimizer), "_learning_rate", None))
    if end is not None and not any_named(callbacks, "LearningRateScheduler", "ReduceLROnPlateau"):
        out.update(length=end[0], lowest=end[1], stride=1 / every, schedule=float(round(end[0] / every)))
    return out


def _end_of(schedule: Any) -> Optional[Tuple[float, float]]:
    """(its steps, which are batches, the rate at its end as a share of the largest); None: it has no end."""
    kind = type(schedule).__name__
    if not type(schedule).__module__.startswith("keras."):
        return None
    if kind == "CosineDecay":
        warm_up = 0.0 if schedule.warmup_target is None else float(schedule.warmup_steps)
        return float(schedule.decay_steps) + warm_up, float(schedule.alpha)
    if kind == "PolynomialDecay" and not schedule.cycle:
        first = float(schedule.initial_learning_rate)
        return float(schedule.decay_steps), float(schedule.end_learning_rate) / first if first > 0 else 1.0
    return None


def rate_of(optimizer: Any, batches: int) -> Optional[float]:
    """Its learning rate; of a schedule that after so many batches: with JAX its own count is elsewhere in the middle of an epoch."""
    inner = getattr(optimizer, "inner_optimizer", optimizer)
    held = getattr(inner, "_learning_rate", None)
    if hasattr(held, "get_config") and callable(held):
        return float(held(batches))
    rate = getattr(inner, "learning_rate", None)
    return None if rate is None else float(rate)
