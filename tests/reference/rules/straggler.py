"""42 straggler (detection quality, section 3): a worker's median training step of the last 50 takes more than 1.5 times the
median over the workers. Judged at each completed step with 50 steps of every worker."""
import statistics

from tests.reference.judging import HIT, INSUFFICIENT, NOT_APPLICABLE, OK, Evaluation

DEFAULTS = {}
TOCSIN = {}
NEW = True
UNIT = ("worker",)
WINDOW, FACTOR = 50, 1.5


def evaluate(p, history):
    durations = {}
    for rank, mode, step, _, start, end, _ in history.ends:
        if mode in ("train", "global"):
            durations.setdefault(mode, {}).setdefault(rank, {})[step] = (end - start) / 1e9
    out = []
    for mode, by_rank in durations.items():
        for step in sorted({step for steps in by_rank.values() for step in steps}):
            last = {rank: [steps[one] for one in sorted(steps) if one <= step][-WINDOW:] for rank, steps in by_rank.items()}
            medians = {rank: statistics.median(one) for rank, one in last.items() if len(one) == WINDOW}
            for rank in by_rank:
                if len(by_rank) < 2:
                    outcome = NOT_APPLICABLE
                elif len(medians) < len(by_rank):
                    outcome = INSUFFICIENT
                else:
                    outcome = HIT if medians[rank] > FACTOR * statistics.median(medians.values()) else OK
                out.append(Evaluation((("mode", mode), ("worker", f"worker_{rank}")), outcome, step))
    return out
