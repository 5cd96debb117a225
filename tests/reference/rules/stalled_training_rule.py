"""2.7 StalledTrainingRule, in record time: a timer at t_last + threshold, which progress at exactly that time does not
prevent; until the announced end or, without one, the newest record of any kind. One issue per silence; new data resolves it.
What the loop promised (a heartbeat with expect_next_in) is progress, and moves the limit.
"""
from tests.reference.judging import Episode

DEFAULTS = {"threshold": 1800, "grace": 100, "scope": "run", "stop_training_on_fire": False, "training_job_name_prefix": ""}
TOCSIN = {}
CLOCK = True  # where an episode begins and ends is a time
SECOND = 10**9


def long_enough(last, threshold, grace, promises):
    """When a silence that began at `last` has lasted long enough. `promises`: (when, seconds) in the order of arrival."""
    made = [(when, seconds) for when, seconds in promises if when <= last]
    when, seconds = made[-1] if made else (0, 0)
    if not seconds:
        return last + threshold
    kept = round(seconds * SECOND) + grace
    return max(when + kept, last + min(kept, threshold))


def silences(arrivals, until, threshold, grace, promises):
    """[(when it was long enough, when it ended; None: never)]"""
    out = []
    for last, following in zip(arrivals, arrivals[1:] + [None]):
        limit = long_enough(last, threshold, grace, promises)
        if limit <= (until if following is None else following):
            out.append((limit, following))
    return out


def episodes(rule, p, history):
    """Each check is an evaluation and not yet stalled is `ok`: a run of which anything is heard has one."""
    threshold, grace = p["threshold"] * SECOND, p["grace"] * SECOND
    begin = history.records[0].get("at", history.records[0]["time"])  # the rule is active from the run's first record on
    newest = history.records[-1].get("at", history.records[-1]["time"])
    until = history.ended_at if history.ended_at is not None else newest
    promises = [one for one in history.promises if one[0] <= until]
    progress = sorted([(arrival, rank) for arrival, rank, _ in history.progress if arrival <= until]
                      + [(arrival, rank) for arrival, rank, _ in promises])
    out = []
    if p["scope"] == "run":
        for first, ended in silences(sorted({begin} | {arrival for arrival, _ in progress}), until, threshold, grace,
                                     [(arrival, seconds) for arrival, _, seconds in promises]):
            out.append(Episode(rule, "", (), first, ended))
    for rank in sorted(history.present) if p["scope"] == "worker" else ():
        own = sorted({begin} | {arrival for arrival, one in progress if one == rank})
        gone = history.left.get(rank, until)
        kept = [(arrival, seconds) for arrival, one, seconds in promises if one == rank]
        for first, ended in silences(own, min(until, gone), threshold, grace, kept):
            # Where nobody makes progress it is the run that is silent, not the worker: until another goes on again.
            end = min(until, gone) if ended is None else ended
            if any(first - threshold < arrival <= end for arrival, one in progress if one != rank):
                out.append(Episode(rule, "", (("worker", f"worker_{rank}"),), first, ended))
    return out
