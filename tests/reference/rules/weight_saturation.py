"""8.5 WeightSaturation: 100 · |{|w| ≥ bound}| / n > threshold_percent. Without a bound: 0.95 of the type's largest finite
value. One step; train and global."""
from tests.reference import bounds
from tests.reference.judging import HIT, INSUFFICIENT, NOT_APPLICABLE, OK, TRAINING, Evaluation, row_unit, selects, wants

DEFAULTS = {"bound": None, "threshold_percent": 1.0}
TOCSIN = {}
LARGEST = {"f16": 65504.0, "bf16": 3.3895313892515355e38, "f8_e4m3": 448.0, "f8_e5m2": 57344.0,
           "f32": 3.4028234663852886e38, "f64": 1.7976931348623157e308,
           "i8": 127.0, "u8": 255.0, "i16": 32767.0, "u16": 65535.0}


def judge(p, row):
    if row.columns["count"] == 0 or (p["bound"] is None and row.dtype not in LARGEST):
        return NOT_APPLICABLE
    bound = p["bound"] if p["bound"] is not None else 0.95 * LARGEST[row.dtype]
    count = row.statistics.get(("abs_ge_count", (bound,)))
    c, n = row.columns, row.columns["count"]
    if count is not None:
        low = high = count / n
    elif c["nan"]:
        low, high = (c["posinf"] + c["neginf"]) / n, (n - c["nan"]) / n  # NaN does not count
    else:
        low, high = bounds.outside(row, -bound, bound)
    if 100 * low > p["threshold_percent"]:
        return HIT
    return OK if 100 * high <= p["threshold_percent"] else INSUFFICIENT


def evaluate(p, history):
    return [Evaluation(row_unit(row), judge(p, row), row.step) for row in history.rows
            if not row.scalar and selects(p, row, roles={"weight"}) and wants(p, row, TRAINING)]
