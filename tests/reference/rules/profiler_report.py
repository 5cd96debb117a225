"""7.1 ProfilerReport: never hits itself. Brings rules 21 to 31, each with its own issues; sums up at the end of the run. Told here:
of the rules whose evaluations the reference counts one by one, how they stand, how often they hit, and their data points; of steps
the exact numbers."""
from tests.reference import judging

BRINGS = ("batch_size", "cpu_bottleneck", "gpu_memory_increase", "io_bottleneck", "load_balancing", "low_gpu_utilization",
          "overall_system_usage", "max_initialization_time", "overall_framework_metrics", "step_outlier", "dataloader")
COUNTED = ("batch_size", "cpu_bottleneck", "io_bottleneck", "low_gpu_utilization")
DEFAULTS = {"scan_interval_us": 60_000_000, "opt_out_telemetry": False}
TOCSIN = {}
CLOCK = True


def plain(text):
    return text.replace("_", "").lower()


def given(p, rule):
    """{parameter: value} of the keys <RuleName>_<parameter> of one rule, whose name may be written with underscores."""
    out = {}
    for key, value in p.items():
        parts = key.split("_")
        for at in range(1, len(parts)):
            if plain("_".join(parts[:at])) == plain(rule):
                out["_".join(parts[at:])] = value
    return out


def verdict(p, rule, history):
    """(episodes, status) of one of its rules."""
    return judging.judge({"use": rule, "preset": p["preset"], "with": given(p, rule)}, history)


def as_a_whole(p, history):
    seen = [one for one in history.ends] or any(series.startswith(("hw.gpu", "system.cpu", "system.memory", "process."))
                                                 for _, series, _, _, _ in history.samples)
    if not seen:
        return [], "NoData"
    if history.ended_at is None:
        return [], "InProgress"
    found = any(verdict(p, rule, history)[1] == "IssuesFound" for rule in BRINGS)
    return [], "IssuesFound" if found else "NoIssuesFound"


def tells(p, history):
    rules = {}
    for rule in BRINGS:
        rules[rule] = {"status": verdict(p, rule, history)[1]}
        if rule not in COUNTED:
            continue
        module = judging.module(rule)
        outcomes = [one.outcome for one in module.evaluate(judging.parameters(module, given(p, rule), p["preset"]), history)]
        rules[rule].update(triggered=outcomes.count("hit"), data_points=outcomes.count("hit") + outcomes.count("ok"))
    out, steps = {"rules": rules}, {}
    for _, mode, _, _, start, end, _ in history.ends:
        if end > start:
            steps.setdefault(mode, []).append((end - start) / 1e9)
    if steps:
        out["step_seconds"] = {mode: {"count": len(took), "min": min(took), "max": max(took)} for mode, took in steps.items()}
    return out
