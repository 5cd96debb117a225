"""The canonical columns of a tensor, from its values (wire and API, section 5). No tricks: one plain sum after the other."""
import math

NAMES = ("count", "sum", "sumsq", "m2", "abs_sum", "min", "max", "nan", "posinf", "neginf", "zero", "negative")


def of(values):
    """{column: number} of a list of numbers. Empty: sums 0, least and largest 0, which nobody may look at."""
    n = len(values)
    total = sum(values)
    mean = total / n if n else 0.0
    has_nan = any(math.isnan(x) for x in values)
    return {
        "count": n,
        "sum": float(total),
        "sumsq": float(sum(x * x for x in values)),
        "m2": float(sum((x - mean) * (x - mean) for x in values)) if not math.isinf(mean) else math.nan,
        "abs_sum": float(sum(abs(x) for x in values)),
        "min": math.nan if has_nan else float(min(values, default=0)),
        "max": math.nan if has_nan else float(max(values, default=0)),
        "nan": sum(math.isnan(x) for x in values),
        "posinf": sum(x == math.inf for x in values),
        "neginf": sum(x == -math.inf for x in values),
        "zero": sum(x == 0 for x in values),
        "negative": sum(x < 0 for x in values),
    }


def l2(columns):
    """√Σx²."""
    return math.sqrt(columns["sumsq"]) if not math.isnan(columns["sumsq"]) else math.nan


def variance(columns):
    """Of the population."""
    return columns["m2"] / columns["count"]


def abs_max(columns):
    """NaN when any element is."""
    if math.isnan(columns["min"]) or math.isnan(columns["max"]):
        return math.nan
    return max(abs(columns["min"]), abs(columns["max"]))
