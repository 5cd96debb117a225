"""What the base columns prove about the share of elements, or units, where the statistic that counts them was not sent."""
import math

SUM_ERROR = 4e-5  # what hangs on sums: they are within 1e-5 of the truth


def outside(row, lo, hi):
    """(at least, at most): the share of elements that are not inside (lo, hi). None of them is NaN."""
    c, n = row.columns, row.columns["count"]
    if c["min"] > lo and c["max"] < hi:
        return 0.0, 0.0
    if c["max"] <= lo or c["min"] >= hi:
        return 1.0, 1.0
    low, high = ((c["min"] <= lo) + (c["max"] >= hi)) / n, 1.0
    low = max(low, (c["posinf"] + c["neginf"]) / n)
    if not lo < 0 < hi:
        return low, high
    near, far = min(-lo, hi), max(-lo, hi)
    size, square, largest = c["abs_sum"] / n, c["sumsq"] / n, max(-c["min"], c["max"])
    # Markov: what is outside has at least this magnitude, this square.
    if math.isfinite(size):
        high = min(high, size / near * (1 + SUM_ERROR))
    if math.isfinite(square):
        high = min(high, square / near ** 2 * (1 + SUM_ERROR))
    # The mean magnitude cannot be had with fewer beyond `far`, none of which exceeds the largest.
    if math.isfinite(size) and math.isfinite(largest) and largest > far:
        low = max(low, (size * (1 - SUM_ERROR) - far) / (largest - far))
    return min(low, high), high


def units_below(low, high, percent, units, samples):
    """(at least, at most): the share of units with less than `percent` of their samples active, when of all samples a share
    between `low` and `high` is."""
    limit = percent / 100
    if percent > 0 and units > 0 and samples == 1:
        return 1 - high, 1 - low
    if units == 1 and low == high:
        return (1.0, 1.0) if 100 * low < percent else (0.0, 0.0)
    if limit <= 0:
        return 0.0, 0.0
    most = min(max((1 - low) / (1 - limit), 0.0), 1.0) if limit < 1 else 1.0
    if low >= 1:
        most = 0.0
    return min(min(max(1 - high / limit, 0.0), 1.0), most), most


def units_of(row, axis):
    """Units of the shape: channels (axis 1, unless the producer says which) of three dimensions or more, else positions behind the batch; 0: not known, or not
    the shape of so many elements."""
    shape = row.known.shape or ()
    if len(shape) < 2:
        return len(shape)
    channel = axis == "channel" or (axis == "auto" and len(shape) > 2)
    stated = row.known.axis + (len(shape) if row.known.axis < 0 else 0)
    units = shape[stated if 0 < stated < len(shape) else 1] if channel else math.prod(shape[1:])
    return units if units and row.columns["count"] % units == 0 else 0


class Window:
    """Saved steps of one tensor, added up until each unit has enough samples; judged, and begun anew."""

    def __init__(self):
        self.steps = []

    def add(self, units, count, low, high, least):
        """(steps, samples of a unit, active at least, at most) of this step and those before; None: they are too few.
        `low`, `high`: the share of this step's values that are active."""
        if self.steps and self.steps[-1][0] != units:
            self.steps = []  # another number of units
        self.steps.append((units, count, low, high))
        values = sum(count for _, count, _, _ in self.steps)
        samples = values / units if units else 1
        if samples < least:
            return None
        steps, self.steps = self.steps, []
        return (len(steps), samples, *(sum(count * share[i] for _, count, *share in steps) / values for i in (0, 1)))
