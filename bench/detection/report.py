"""Figures of the corpus, per rule, per fault and per job: the tables of the reports in docs/reports."""
import json
import math
import pathlib
import statistics

from bench.detection.harm import harmless, turned
from bench.detection.record import NOTES, is_tuning, job_names, onset_of

ORIGINAL = "@original"
# Their findings come from the machine that recorded: on healthy runs they count, as catches they do not.
TIMES = {"step_outlier", "straggler", "data_wait", "host_memory_growth", "max_initialization_time", "stalled_training_rule",
         "operator_latency", "dataloader", "telemetry_gap", "clock_skew"}


class Run:
    """What is known of one run, and what was said of it."""

    def __init__(self, note, issues):
        self.__dict__.update(note)
        self.issues = issues
        if self.job in job_names():
            self.tuning = is_tuning(self.job)  # it may have been looked at since
            share, slow = onset_of(self.job, self.fault)
            if self.slow and not slow:  # a rule sees it at once since
                self.slow, self.onset = False, int(share * self.steps)

    @property
    def came_about(self):
        """Whether the fault could be seen. A slow one never was if the best evaluation stands in the last tenth of the run."""
        return not self.slow or self.onset < 0.9 * self.steps

    def fired(self, preset, chosen):
        """Issues of a preset, of chosen rules (None: all). Repetitions count once."""
        seen, out = set(), []
        for one in self.issues:
            original = one["rule"].endswith(ORIGINAL)
            name = one["rule"].removesuffix(ORIGINAL)
            key = (name, one["kind"], one["id"], one["mode"])
            if original == (preset == "original") and (chosen is None or name in chosen) and key not in seen:
                seen.add(key)
                out.append({**one, "rule": name})
        return out


def load(folder, verdicts):
    """Runs of all jobs below a folder; ``verdicts``: {job: {uid: issues}}."""
    out = []
    for path in sorted(pathlib.Path(folder).glob(f"*/{NOTES}")):
        if path.parent.name not in verdicts:
            continue  # recorded, but not judged yet
        for line in path.read_text().splitlines():
            note = json.loads(line)
            out.append(Run(note, verdicts[path.parent.name].get(note["run"], [])))
    return out


def at_most(bad, total):
    """Upper end of the one-sided 95 % interval of a share (Clopper and Pearson)."""
    if total == 0 or bad >= total:
        return 1.0
    low, high = bad / total, 1.0
    ways = [math.lgamma(total + 1) - math.lgamma(k + 1) - math.lgamma(total - k + 1) for k in range(bad + 1)]
    for _ in range(60):
        middle = (low + high) / 2
        chance = sum(math.exp(ways[k] + k * math.log(middle) + (total - k) * math.log1p(-middle)) for k in range(bad + 1))
        low, high = (middle, high) if chance > 0.05 else (low, middle)
    return high


def wilson(bad, total, deviations=1.96):
    """Both ends of the 95 % interval of a share (Wilson)."""
    if total == 0:
        return 0.0, 1.0
    share, square = bad / total, deviations**2 / total
    middle = (share + square / 2) / (1 + square)
    half = deviations * math.sqrt(share * (1 - share) / total + square / total / 4) / (1 + square)
    return max(middle - half, 0.0), min(middle + half, 1.0)


def beyond(run, twin, preset, chosen):
    """Issues of a faulty run since its fault, by rules that its twin does not hear of."""
    spoken = {one["rule"] for one in twin.fired(preset, chosen)}
    return [one for one in run.fired(preset, chosen)
            if one["rule"] not in spoken | TIMES and (one["step"] is None or one["step"] >= run.onset)]


def delay(run, issues):
    """Saved steps between the fault and the first of these issues."""
    steps = [one["step"] for one in issues if one["step"] is not None]
    return (min(steps) - run.onset) / run.every if steps else 0.0


class Figures:
    """Of some runs, judged by some rules of a preset."""

    def __init__(self, runs, preset, chosen):
        twins = {(run.job, run.seed): run for run in runs if run.fault is None and not turned(run)}
        self.healthy = list(twins.values())
        self.false = [one for run in self.healthy for one in run.fired(preset, chosen)]
        self.alarmed = [run for run in self.healthy if run.fired(preset, chosen)]
        self.faulty, self.recalled, self.caught, self.missed, self.delays, self.quick = [], 0, [], [], [], 0
        for run in runs:
            if run.fault is None or (run.job, run.seed) not in twins or not run.came_about:
                continue
            if harmless(run, twins[run.job, run.seed]):
                continue
            self.faulty.append(run)
            self.recalled += bool(run.fired(preset, chosen))
            found = beyond(run, twins[run.job, run.seed], preset, chosen)
            (self.caught if found else self.missed).append(run)
            if found:
                self.delays.append(delay(run, found))
                limit = max(5, 0.1 * run.steps / run.every) if run.slow else 5
                self.quick += self.delays[-1] <= limit

    def line(self):
        """Recall, beyond the twin, within five saved steps, delay, false issues, runs alarmed and its bound."""
        total, healthy = max(len(self.faulty), 1), max(len(self.healthy), 1)
        return [f"{100 * self.recalled / total:.0f} %", f"{100 * len(self.caught) / total:.0f} %",
                f"{100 * self.quick / total:.0f} %", f"{statistics.median(self.delays):.0f}" if self.delays else "–",
                f"{100 * len(self.false) / healthy:.1f}",
                f"{len(self.alarmed)} of {len(self.healthy)} (≤ {100 * at_most(len(self.alarmed), len(self.healthy)):.1f} %)",
                " … ".join(f"{100 * end:.1f}" for end in wilson(len(self.alarmed), len(self.healthy))) + " %"]


def table(head, rows):
    """Markdown."""
    return "\n".join(["| " + " | ".join(head) + " |", "|" + "---|" * len(head)] + ["| " + " | ".join(map(str, row)) + " |" for row in rows])


HEAD = ["recall", "beyond twin", "within 5 saved steps", "median delay", "false issues per 100 healthy runs", "healthy runs alarmed (95 % at most)", "Wilson, 95 %"]


def summary(runs, default):
    """One line per preset, choice of rules and part of the jobs."""
    rows = []
    for part, chosen_runs in (("tuning jobs", [r for r in runs if r.tuning]), ("other jobs", [r for r in runs if not r.tuning])):
        if not chosen_runs:
            continue
        for preset in ("tocsin", "original"):
            for name, chosen in (("group `default`", default), ("all rules", None)):
                figures = Figures(chosen_runs, preset, chosen)
                rows.append([part, f"`{preset}`", name, len(figures.faulty), *figures.line()])
    return table(["Jobs", "Preset", "Rules", "faulty runs", *HEAD], rows)


def first_signs(runs, signs):
    """How many reports a faulty run makes, and how many are first signs. ``signs``: {uid: [reports, first signs, rules of these]}."""
    rows = []
    for part in ("tuning", "other"):
        counts = [signs[run.run] for run in runs if run.fault and run.tuning == (part == "tuning") and signs.get(run.run, [0])[0] > 0]
        if not counts:
            continue
        reports, first, rules = zip(*counts)
        rows.append([f"{part} jobs", len(counts), f"{statistics.median(reports):.0f}", f"{statistics.fmean(reports):.1f}", max(reports),
                     f"{statistics.median(first):.0f}", f"{statistics.fmean(first):.1f}", f"{statistics.fmean(rules):.2f}",
                     f"{100 * sum(one == 1 for one in rules) / len(rules):.0f} %"])
    return table(["Jobs", "faulty runs with an issue", "reports, median", "mean", "most", "first signs, median", "mean", "rules of first signs, mean",
                  "runs with first signs of one rule"], rows)


def per_rule(runs):
    """How each rule does alone: false issues on healthy runs, faults it separates from their twins."""
    names = sorted({one["rule"].removesuffix(ORIGINAL) for run in runs for one in run.issues})
    rows = []
    for name in names:
        row = [f"`{name}`"]
        for preset in ("tocsin", "original"):
            figures = Figures(runs, preset, {name})
            row += [f"{len(figures.alarmed)}", f"{len(figures.caught)}",
                    f"{statistics.median(figures.delays):.0f}" if figures.delays else "–"]
        rows.append(row)
    return table(["Rule", "`tocsin`: healthy runs alarmed", "faulty runs beyond twin", "delay",
                  "`original`: healthy runs alarmed", "faulty runs beyond twin", "delay"], rows)


def per_fault(runs, default):
    """Caught beyond the twin per fault, and what was first."""
    rows = []
    for fault in sorted({run.fault for run in runs if run.fault}):
        part = [run for run in runs if run.fault in (fault, None)]
        row = [f"`{fault}`"]
        for preset, chosen in (("tocsin", default), ("tocsin", None), ("original", None)):
            figures = Figures(part, preset, chosen)
            row.append(f"{len(figures.caught)} of {len(figures.faulty)}")
        figures = Figures(part, "tocsin", default)
        row.append(figures.quick)
        row.append(f"{statistics.median(figures.delays):.0f}" if figures.delays else "–")
        row.append(", ".join(sorted({run.job for run in Figures(part, "tocsin", None).missed})) or "–")
        rows.append(row)
    return table(["Fault", "group `default`", "all rules", "`original`, all", "in time (default)", "median delay (default)", "jobs where all rules miss it"], rows)


def per_job(runs, default):
    """Healthy runs per job and what was said of them."""
    rows = []
    for job in sorted({run.job for run in runs}):
        part = [run for run in runs if run.job == job]
        figures, whole = Figures(part, "tocsin", default), Figures(part, "tocsin", None)
        told = sorted({f"{one['rule']} {one['kind']}".strip() for one in whole.false})
        rows.append([job, "tuning" if part[0].tuning else "other", len(figures.healthy), len(figures.alarmed), len(whole.alarmed),
                     f"{len(figures.caught)} of {len(figures.faulty)}", f"{len(whole.caught)} of {len(whole.faulty)}", ", ".join(told) or "–"])
    return table(["Job", "", "healthy runs", "alarmed, default", "alarmed, all rules", "beyond twin, default", "all rules", "said of healthy runs"], rows)
