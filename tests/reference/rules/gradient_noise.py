"""gradient_noise: gradients of 128 elements or more that cannot be told from independent normal numbers around 0, in the latest saved
steps of a worker, three at least, that hold 20 000 elements (`elements`). Of n normal numbers the mean size by the root of the mean square is
√(2/π) with a deviation of √((1 − 3/π) / n), the sum by the root of the sum of squares has a deviation of 1, and the largest is about
√(2 ln n). Where all tensors have one deviation, in more than half of the steps, the noise is meant. Modes train and global, the first `steps` steps."""
import math

from tests.reference.judging import HIT, INSUFFICIENT, NOT_APPLICABLE, OK, TRAINING, Evaluation, selects, wants

DEFAULTS = {"steps": 1000, "elements": 20000, "same_deviation": 1.2}
TOCSIN = {}
UNIT = ("mode", "worker")
NEW = True  # no counterpart in the original


def tensor(c):
    """(elements, deviations of the size, of the sum, root of the mean square); the deviations are None where it is no noise."""
    n = c["count"]
    rms = math.sqrt(c["sumsq"] / n) if c["sumsq"] >= 0 else math.nan
    if not (rms > 0 and math.isfinite(rms)):
        return n, None, None, rms
    size = (c["abs_sum"] / n / rms - math.sqrt(2 / math.pi)) / math.sqrt((1 - 3 / math.pi) / n)
    total = c["sum"] / (rms * math.sqrt(n))
    largest = max(abs(c["min"]), abs(c["max"]))
    if not (abs(size) < 4 and abs(total) < 4.5 and largest < 1.6 * rms * math.sqrt(2 * math.log(n))):
        return n, None, None, rms
    return n, size, total, rms


def together(tensors):
    n = sum(one[0] for one in tensors)
    pooled = sum(size * math.sqrt(count) for count, size, _, _ in tensors) / math.sqrt(n)
    most = 4 * math.sqrt(2 * len(tensors))
    return abs(pooled) < 3 and all(abs(sum(one[at] ** 2 for one in tensors) - len(tensors)) < most for at in (1, 2))


def judge(p, saves):
    """`saves`: of a worker until now, those that brought two tensors."""
    if any(one[1] is None for one in saves[-1]):
        return OK
    window = []
    for save in reversed(saves[-64:]):
        if any(one[1] is None for one in save):
            break
        if len(window) >= 3 and sum(one[0] for part in window for one in part) >= p["elements"]:
            break
        window.append(save)
    tensors = [one for part in window for one in part]
    if len(window) < 3 or sum(one[0] for one in tensors) < p["elements"]:
        return INSUFFICIENT
    deviations = [[one[3] for one in save] for save in window]
    alike = sum(max(of_save) <= p["same_deviation"] * min(of_save) for of_save in deviations)
    return HIT if together(tensors) and not 2 * alike > len(window) else OK


def evaluate(p, history):
    steps, order, seen, out = {}, [], {}, []
    for row in history.rows:
        if row.scalar or not selects(p, row, roles={"gradient"}) or not wants(p, row, TRAINING) or row.step >= p["steps"]:
            continue
        key = (row.rank, row.mode, row.step)
        if key not in steps:
            order.append(key)
        steps.setdefault(key, []).append(row)
    for rank, mode, step in order:
        tensors = [tensor(row.columns) for row in steps[rank, mode, step] if row.columns["count"] >= 128]
        unit = (("mode", mode), ("worker", f"worker_{rank}"))
        if len(tensors) < 2:
            out.append(Evaluation(unit, NOT_APPLICABLE, step))
            continue
        saves = seen.setdefault((rank, mode), [])
        saves.append(tensors)
        out.append(Evaluation(unit, judge(p, saves), step))
    return out
