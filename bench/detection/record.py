"""Trains the corpus: one journal per job, and beside it a line per run that says what it is.

    bench/detection/run record --out DIR --jobs mlp_adam,gan --seeds 5 --healthy 20
"""
import argparse
import functools
import json
import os
import pathlib
import time
import warnings

import torch

from bench.detection.corpus import sets
from bench.detection.corpus.boosting import few_rounds
from bench.detection.corpus.recipes import faults, jobs, training

NOTES = "runs.jsonl"
LOOPS, DRAWN, ROUNDS = sets.load()
OTHERS = {**{name: part for part in LOOPS for name in part.TUNING}, **{name: few_rounds for name in few_rounds.job_names()}}


def job_names():
    """All jobs, in the order of the table."""
    return [*jobs.JOBS, *OTHERS]


def jobs_of(set_name):
    """The jobs of one set of sets.py."""
    return sets.job_names(set_name, jobs.JOBS, few_rounds)


def is_tuning(name):
    """Whether thresholds were chosen with this job in view."""
    if name in jobs.JOBS:
        return jobs.JOBS[name].tuning
    return OTHERS[name].TUNING[name]


def fault_names(name):
    """The faults that make sense for a job."""
    if name in OTHERS and name not in few_rounds.TUNING:
        return getattr(OTHERS[name], "fault_names", lambda _: list(OTHERS[name].FAULTS))(name)
    if name in OTHERS:
        return [fault for fault in few_rounds.FAULTS if few_rounds.applies(fault, name)]
    fitting = [one.name for one in faults.FAULTS.values() if one.fits(jobs.JOBS[name])]
    for of_set, drawn in DRAWN:
        if of_set in jobs.JOBS[name].traits:
            return drawn(name, fitting)
    return fitting


def onset_of(name, fault):
    """(share of the run before the fault can be seen, whether it is a slow one)."""
    if fault is None:
        return 0.0, False
    if name in OTHERS:
        return OTHERS[name].FAULTS[fault], fault in getattr(OTHERS[name], "SLOW", ())
    return faults.FAULTS[fault].onset, faults.FAULTS[fault].slow


def record(name, fault, seed, out):
    """One run; what is noted of it, or None where the fault cannot be made."""
    title = f"{name}-{fault or 'healthy'}-{seed}-{time.time_ns()}"
    start = time.monotonic()
    every = 1 if any(name in part.TUNING for part in ROUNDS) else 10  # rounds, or steps between saves
    if name in OTHERS:
        try:
            uid, steps, best, *passes = OTHERS[name].run(fault, seed, out, name, title)
        except LookupError:
            return None
    else:
        made = jobs.recipe(name, seed)
        if fault is not None:
            try:
                faults.FAULTS[fault].change(made, torch.Generator().manual_seed(seed + 1))
            except LookupError:
                return None
        every = max(every, made.log_every)
        loop = getattr(made, "run", None) or functools.partial(training.run, made)  # a recipe of its own loop
        (uid, best, *passes), steps = loop(seed, out, name, title), made.steps
    share, slow = onset_of(name, fault)
    told = {"passes": passes[0]} if passes else {}  # what harm is measured by
    return {**told, "run": uid, "job": name, "fault": fault, "seed": seed, "steps": steps, "every": every, "onset": best if slow else int(share * steps),
            "slow": slow, "tuning": is_tuning(name), "seconds": round(time.monotonic() - start, 2)}


def known(folder):
    """The runs that are there already."""
    path = pathlib.Path(folder) / NOTES
    return [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []


def wanted(name, seeds, healthy):
    """(fault, seed) in order: twins first."""
    out = [(None, seed) for seed in range(max(seeds, healthy))]
    return out + [(fault, seed) for fault in fault_names(name) for seed in range(seeds)]


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out", required=True)
    parser.add_argument("--jobs", default="")
    parser.add_argument("--faults", default="", help="only these; none = healthy runs alone")
    parser.add_argument("--seeds", type=int, default=5, help="faulty runs per fault and job, each with its twin")
    parser.add_argument("--healthy", type=int, default=0, help="healthy runs per job, where more than twins are wanted")
    chosen = parser.parse_args()
    torch.set_num_threads(1)
    warnings.simplefilter("ignore")
    os.environ["TOCSIN_QUIET"] = "1"
    for name in chosen.jobs.split(",") if chosen.jobs else job_names():
        if name not in job_names():
            parser.error(f"there is no job {name}; there are {', '.join(job_names())}")
        folder = pathlib.Path(chosen.out) / name
        folder.mkdir(parents=True, exist_ok=True)
        there = {(one["fault"], one["seed"]) for one in known(folder)}
        only = chosen.faults.split(",") if chosen.faults else None
        with open(folder / NOTES, "a", encoding="utf-8") as notes:
            for fault, seed in wanted(name, chosen.seeds, chosen.healthy):
                if (fault, seed) in there or (only and fault is not None and fault not in only):
                    continue
                note = record(name, fault, seed, str(folder / "journal"))
                if note:
                    notes.write(json.dumps(note) + "\n")
                    notes.flush()


if __name__ == "__main__":
    main()
