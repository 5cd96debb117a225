"""What the deployed engine says of recorded runs: every built-in rule in both presets, in one pass."""
import json
import pathlib
import tempfile

from bench.detection.record import known
from tests.support.program import ROOT, run_cli

ORIGINAL = "@original"  # behind a rule's name: judged with the original's thresholds
# They refuse to start without a selection, which nobody can make for the user, or judge no training.
LEFT_OUT = {"all_zero", "tensor_variance", "unchanged_tensor", "similar_across_runs", "declared"}
ALWAYS = {"training_preflight", "job_failed", "job_lost", "telemetry_gap", "run_unwatched", "clock_skew", "state_incomplete",
          "worker_stands_still", "worker_place"}
PATIENCE = {"lost_after": "1000h", "idle_after": "1000h", "forget_after": "2000h", "max_runs": 20000}


def rules():
    """Items of the configuration: each built-in rule twice."""
    code, out, error = run_cli("rules", "list")
    if code != 0:
        raise RuntimeError(error)
    names = [line.split()[0] for line in out.splitlines() if line.strip()]
    return [item for name in names if name not in LEFT_OUT
            for item in ({"use": name}, {"use": name, "name": name + ORIGINAL, "preset": "original"})]


def default_group():
    """The rules of the group `default`, and what is always said."""
    return {file.stem for file in (ROOT / "rules" / "builtin").rglob("*.cc") if "group::kDefault" in file.read_text()} | ALWAYS


def _place(data):
    """Step of training at which it was said. A step of an evaluation counts in a clock of its own."""
    if data.get("mode") in ("eval", "predict") and data.get("global_step") is not None and data.get("step") is not None:
        return data["global_step"] - data["step"] - 1
    return data.get("step")


def _evaluate(folder, config_of, timeout):
    """What the deployed engine says of a job's folder under a configuration."""
    with tempfile.NamedTemporaryFile("w", suffix=".yaml") as config:
        json.dump({**config_of, "engine": PATIENCE}, config)
        config.flush()
        code, out, error = run_cli("evaluate", "--from", pathlib.Path(folder) / "journal", "-c", config.name, "--format", "json",
                                   timeout=timeout)
    if code not in (0, 1):
        raise RuntimeError(f"{folder} was not judged: {error or out[:500]}")
    return json.loads(out)


def signs(folder, timeout=600):
    """{run uid: [reports of the group `default`, those that came of no other, rules of these]}: what a person hears who has this group only."""
    told = {note["run"]: [] for note in known(folder)}
    for data in _evaluate(folder, {"rules": [], "rule_groups": ["default"]}, timeout)["issues"]:
        if data["status"] == "firing" and data["run"]["uid"] in told:
            told[data["run"]["uid"]].append((data["rule"], not data.get("caused_by")))
    return {uid: [len(issues), sum(first for _, first in issues), len({rule for rule, first in issues if first})] for uid, issues in told.items()}


def judge(folder, timeout=600):
    """{run uid: [issue, …]} of a job's folder, by `tocsin evaluate --from`, which leaves it as it was."""
    answer = _evaluate(folder, {"rules": rules()}, timeout)
    ended = {run["run"] for run in answer["runs"] if run["outcome"] is not None}
    told = {note["run"]: [] for note in known(folder)}  # a recording that was cut off has a run that is not noted
    if set(told) - ended:
        raise RuntimeError(f"runs of {folder} have no end: {sorted(set(told) - ended)}")
    for data in answer["issues"]:
        if data["status"] == "firing" and data["run"]["uid"] in told:
            told[data["run"]["uid"]].append({
                "rule": data["rule"], "kind": data.get("kind") or "", "step": _place(data), "mode": data.get("mode"),
                "id": data["labels"].get("tensor") or data["labels"].get("metric") or "",
                "severity": data["labels"]["severity"], "text": data["annotations"]["summary"]})
    return told
