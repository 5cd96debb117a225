"""4.7 Does evaluation see the same world? Boosters (docs/rules/parity.md, docs/ledger.md). Of several workers the first that sends a number."""
import math

from tests.reference.judging import HIT, INSUFFICIENT, NOT_APPLICABLE, OK, Evaluation, selects, wants

DEFAULTS = {"margin": 0.05}
TOCSIN = {}
UNIT = ("metric", "mode")
MODES = ("global", "train")


def unlike(p, distance, drift, n, m, cases, log_noise):
    """Whether two samples of n and m lie further apart than allowed, at 0.0005 for so many cases."""
    if n <= 0 or m <= 0:
        return False
    noise = math.sqrt((log_noise + math.log(20)) / (2 * 0.16 * n))
    beyond = distance - p["margin"] - 2 * max(0.0, drift - noise)
    return beyond > 0 and cases - 2 * beyond ** 2 * n * m / (n + m) <= math.log(0.0005)


def judge(p, name, data):
    training = name == "train" or data.get("same", 0) > 0
    columns = data.get("column_distance", {})
    kinds = []
    if training:
        if "stops" not in data:
            return NOT_APPLICABLE, ()
        return (HIT, ("stops_on_training",)) if data["stops"] > 0 else (OK, ())
    if "target_distance" in data:
        classes = data.get("target_classes", 0)
        cases = classes * math.log(2) if classes > 0 else 1
        if unlike(p, data["target_distance"], data.get("target_drift", 0), data.get("target_train", 0), data.get("target_read", 0), cases, cases):
            kinds.append("targets")
    if columns:
        worst = min(columns, key=lambda column: (-columns[column], column))
        if unlike(p, columns[worst], data.get("column_drift", {}).get(worst, 0), data.get("column_train", 0), data.get("column_read", 0),
                  1 + math.log(max(data.get("columns", 0), 1)), 1):
            kinds.append("inputs")
    if "target_distance" not in data and not columns:
        return INSUFFICIENT, ()
    return (HIT, tuple(kinds)) if kinds else (OK, ())


def evaluate(p, history):
    out = []
    for point in history.points():
        sets = {}
        for name, by_rank in point.values.items():
            numbers = [row.columns["sum"] for _, row in by_rank if row.scalar and math.isfinite(row.columns["sum"]) and wants(p, row, MODES)
                       and (name.startswith("ledger/data/") if not p["collection_names"] and not p["tensor_regex"] else selects(p, row))]
            parts = name.split("/")
            if not numbers or parts[:2] != ["ledger", "data"] or len(parts) < 4:
                continue
            data = sets.setdefault(parts[2], {})
            if len(parts) == 4:
                data[parts[3]] = numbers[0]
            else:
                data.setdefault(parts[3], {})["/".join(parts[4:])] = numbers[0]
        for name, data in sorted(sets.items()):
            outcome, kinds = judge(p, name, data)
            out.append(Evaluation((("metric", f"ledger/data/{name}"), ("mode", point.mode)), outcome, point.step, kinds or ("",)))
    return out
