"""The real engine, behind the program reference_driver: one process judges thousands of cases."""
import json
import math
import os
import pathlib
import re
import subprocess

from tests.reference.judging import Episode
from tocsin import wire

_NOT_JSON = re.compile(r'(?<=[\[ ])(NaN|-?Infinity)(?=[,\]}])')


def driver():
    """The program's path; TOCSIN_BUILD names the build."""
    build = pathlib.Path(os.environ.get("TOCSIN_BUILD", "build/release"))
    return build / "tests" / "reference" / "reference_driver"


# Nobody is given up because of silence: the reference knows nothing of that.
PATIENT = {"lost_after": "1000h", "idle_after": "1000h", "forget_after": "2000h"}


def config(rules):
    """A configuration as text: JSON is YAML."""
    return json.dumps({"rules": rules, "engine": PATIENT})


class Engine:
    """Judges cases one after another: {"config": text, "records": [...]}."""

    def __init__(self, program=None):
        program = pathlib.Path(program or driver())
        assert program.exists(), f"{program} is not built: tools/build release reference_driver"
        self._process = subprocess.Popen([str(program)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()

    def close(self):
        self._process.stdin.close()
        self._process.wait(timeout=30)
        self._process.stdout.close()

    def answer(self, case):
        """What the driver says: {issues, statuses}, or {refused} for a configuration with errors."""
        text = _NOT_JSON.sub(r'"\1"', json.dumps(case))
        try:
            self._process.stdin.write(text + "\n")
            self._process.stdin.flush()
            line = self._process.stdout.readline()
        except BrokenPipeError:
            line = ""
        if not line:
            raise AssertionError(f"the engine is gone, exit code {self._process.wait(timeout=30)}")
        answer = json.loads(line)
        if "error" in answer:
            raise AssertionError(f"the driver refuses the case: {answer['error']}")
        return answer

    def judge(self, rules, records, live=False):
        """The same, of rules as maps."""
        return self.answer({"config": config(rules), "records": records, "live": live})


UNIT = ("device", "metric", "mode", "node", "tensor", "worker")


CASE = str(wire.run_uid("reference", "case"))  # the run that is judged


def episodes(answer, rule, clock=False):
    """Issues of one rule from their first report to their end, in the order of the reports."""
    out, firing = [], {}
    for issue in answer["issues"]:
        if issue["rule"] != rule or issue["labels"].get("run_uid", CASE) != CASE:
            continue
        unit = tuple((name, issue["labels"][name]) for name in UNIT if name in issue["labels"])
        where = issue["time"] if clock else (issue.get("ending") or issue).get("step")
        if issue["status"] == "firing":
            if (unit, issue["kind"]) not in firing:
                firing[unit, issue["kind"]] = Episode(rule, issue["kind"], unit, where)
                out.append(firing[unit, issue["kind"]])
        else:
            ended = firing.pop((unit, issue["kind"]))
            ended.resolved = where if issue["resolution"] == "recovered" else None
    return out


def newest(answer, rule):
    """What a rule said last of the run that is judged; {}: nothing."""
    return next((one for one in reversed(answer["statuses"]) if (one["rule"], one["run"]) == (rule, CASE)), {})


def status(answer, rule):
    """The newest status of a rule; before its first it has no data."""
    return newest(answer, rule).get("status", "NoData")


def summary(answer, rule):
    """What a rule that sums up tells at the end, with its last status."""
    return newest(answer, rule).get("summary", {})


def same(left, right):
    """Whether two summaries tell the same, numbers to nine digits."""
    if isinstance(left, dict) and isinstance(right, dict):
        return list(left) == list(right) and all(same(left[name], right[name]) for name in left)
    if isinstance(left, list) and isinstance(right, list):
        return len(left) == len(right) and all(same(one, other) for one, other in zip(left, right))
    left, right = (float(one) if one in ("NaN", "Infinity", "-Infinity") else one for one in (left, right))
    if isinstance(left, float) and isinstance(right, float) and math.isnan(left) and math.isnan(right):
        return True
    if isinstance(left, (int, float)) and isinstance(right, (int, float)) and not isinstance(left, bool):
        return math.isclose(left, right, rel_tol=1e-9, abs_tol=1e-12)
    return left == right


def holds(part, whole):
    """Whether a summary tells at least this."""
    if isinstance(part, dict) and isinstance(whole, dict):
        return all(name in whole and holds(part[name], whole[name]) for name in part)
    return same(part, whole)


def ids(answer):
    """Event ids of all issues, in order."""
    return [issue["id"] for issue in answer["issues"]]
