"""6.1 MaxInitializationTime: no step of any mode although `threshold` minutes have passed since the start of the run. Fires
once. When it is found depends on what arrives, so that is not compared."""
from tests.reference.judging import Episode

DEFAULTS = {"threshold": 20, "scan_interval_us": 60_000_000}
TOCSIN = {}
CLOCK = True
TIMED = False


def episodes(rule, p, history):
    begin = history.records[0].get("at", history.records[0]["time"])
    steps = [arrival for arrival, _, _ in history.progress]
    newest = max(record.get("at", record["time"]) for record in history.records)
    until = min(steps, default=newest)
    late = until - begin > p["threshold"] * 60 * 10**9
    return [Episode(rule, "", (), None, None)] if late else []
