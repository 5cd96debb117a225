"""The table of public programs: told, told beyond the corrected version, corrected versions alarmed."""
import json

from bench.detection import judge, report

LEAST = 10  # updates: what made fewer within its limit is not judged


def _figures(runs, preset, default):
    pairs = {}
    for run in runs:
        pairs.setdefault(run.job, {})["corrected" if run.fault is None else "faulty"] = run
    chosen = default if preset == "tocsin" else None
    faulty = [pair["faulty"] for pair in pairs.values() if "faulty" in pair]
    corrected = [pair["corrected"] for pair in pairs.values() if "corrected" in pair]
    both = [(pair["faulty"], pair["corrected"]) for pair in pairs.values() if len(pair) == 2]
    return [f"{sum(bool(run.fired(preset, chosen)) for run in faulty)} of {len(faulty)}",
            f"{sum(bool(report.beyond(run, twin, preset, chosen)) for run, twin in both)} of {len(both)}",
            f"{sum(bool(run.fired(preset, chosen)) for run in corrected)} of {len(corrected)}"]


def _names(run, default):
    return ", ".join(sorted({f"`{one['rule']}`" for one in run.fired("tocsin", default)})) if run else "not run"


def of(out, programs, repositories):
    """Markdown: the figures per repository, a row per program, and what did not run with its reason."""
    verdicts = json.loads((out / "verdicts.json").read_text())
    default, names = judge.default_group(), {one["name"] for one in programs}
    loaded = [run for run in report.load(out, verdicts) if run.job in names]
    runs = [run for run in loaded if run.steps >= LEAST]
    of_name = {one["name"]: one for one in programs}
    rows = []
    for source in [*repositories, "faults we can see"]:
        part = [run for run in runs if of_name[run.job]["repository"] == source
                or (source not in repositories and of_name[run.job]["question"] != "none")]
        for preset, rules in (("tocsin", "group `default`"), ("original", "all rules")):
            if part:
                rows.append([source, f"`{preset}`", rules, *_figures(part, preset, default)])
    each, missing = [], []
    for one in programs:
        own = {run.fault is None: run for run in runs if run.job == one["name"]}
        if own:
            each.append([one["name"], one["question"], _names(own.get(False), default), _names(own.get(True), default)])
        path = out / one["name"] / "failed.json"
        missing += [[run.job, "corrected" if run.fault is None else "faulty", f"{run.steps} updates within the limit"] for run in loaded
                    if run.job == one["name"] and run.steps < LEAST]
        missing += [[one["name"], version, why] for version, why in (json.loads(path.read_text()) if path.exists() else {}).items()]
    return "\n\n".join([report.table(["Programs", "Preset", "Rules", "faulty reported", "beyond the corrected version", "corrected alarmed"], rows),
                        report.table(["Program", "Question", "issues of the faulty version", "issues of the corrected version"], each),
                        report.table(["Program", "Version", "why it did not run"], missing)])
