"""Rules in Python that look at elements: over a directory, and live, where the rule's need switches them on at the hook."""
import json
import os
import subprocess
import sys
import textwrap
import time
import uuid

import pytest

from tests.support.program import BUILD, ROOT, run_cli
from tests.support.telemetry import journal_events, journal_records

RULE = """
from tocsin.rules import Rule

class TwinRows(Rule):
    def invoke_at_step(self, step):
        for name in self.base_trial.tensor_names(step=step, collection="weights"):
            value = self.base_trial.tensor(name).value(step)
            if value.ndim == 2 and (value[0] == value[1]).all():
                self.issue("two rows are the same", key=name, observed=("norm", float((value * value).sum())))
                return True
        return False
"""

JOB = """
import os, sys, time, torch, tocsin
torch.manual_seed(0)
model = torch.nn.Linear(6, 4)
with torch.no_grad():
    model.weight[1] = model.weight[0]
optimizer = torch.optim.SGD(model.parameters(), lr=0.0)
raw = {"raw": True} if sys.argv[1] == "raw" else {}
hook = tocsin.watch(model, optimizer, capture={"every": "1 step", "overhead": 1.0,
                    "collections": {"weights": raw, "losses": None}, "raw": {"on_request": sys.argv[1] != "refuse"}})
stop = sys.argv[2]
for step in range(4000 if stop else 6):
    loss = model(torch.ones(2, 6)).sum()
    optimizer.zero_grad()
    loss.backward()
    hook.log(loss=float(loss))
    optimizer.step()
    if stop:
        time.sleep(0.02)
        if os.path.exists(stop):
            break
hook.close()
"""


@pytest.fixture(autouse=True)
def package(monkeypatch):
    monkeypatch.setenv("PYTHONPATH", str(ROOT / "python"))
    monkeypatch.setenv("PYTHONDONTWRITEBYTECODE", "1")
    monkeypatch.setenv("TOCSIN_LIBRARY", os.environ.get("TOCSIN_LIBRARY", str(BUILD / "collectors/hook/libtocsin_client.so.0")))


def job(tmp_path, out, *arguments):
    (tmp_path / "job.py").write_text(JOB)
    return subprocess.Popen([sys.executable, str(tmp_path / "job.py"), *arguments], stderr=subprocess.PIPE, text=True,
                            env={**os.environ, "TOCSIN_OUT": str(out), "TOCSIN_RUN": uuid.uuid4().hex})


def rule(tmp_path, **more):
    (tmp_path / "twins.py").write_text(textwrap.dedent(RULE))
    return {"name": "twins", "type": "python", "source": "twins.py", "severity": "error", "collections_to_save": ["weights"],
            "options": {"collection_names": ["weights"]}, **more}


@pytest.mark.parametrize("captured", ["raw", "plain"])
def test_over_a_directory(tmp_path, captured):
    training = job(tmp_path, tmp_path / "run", captured, "")
    assert training.wait(60) == 0, training.stderr.read()
    (tmp_path / "rules.yaml").write_text(json.dumps({"rules": [rule(tmp_path)], "plugins": {"python": sys.executable}}))
    code, told, said = run_cli("evaluate", "--from", tmp_path / "run", "--rules", tmp_path / "rules.yaml", "--format", "json")
    answer = json.loads(told)
    [run] = answer["runs"]
    [judged] = run["rules"]
    if captured == "raw":
        assert code == 1 and [issue["step"] for issue in answer["issues"] if issue["status"] == "firing"] == [0], said
    else:
        assert code == 0 and not answer["issues"] and judged["evaluations"]["insufficient_data"] == 6, (judged, said)


def wait_for(condition, what):
    end = time.monotonic() + 90
    while not condition():
        assert time.monotonic() < end, what
        time.sleep(0.1)


@pytest.mark.parametrize("answer", ["applied", "refused"])
def test_live_the_rules_need_switches_them_on(server, tmp_path, answer):
    folder, stop = tmp_path / "data", tmp_path / "stop"
    engine = server(json.dumps({"transport": {"journal": str(folder)}, "http": {"listen": "127.0.0.1:0"},
                                "rules": [rule(tmp_path, raw=["weights"])], "plugins": {"python": sys.executable}}))
    engine.wait_for("ready")
    training = job(tmp_path, folder, "refuse" if answer == "refused" else "plain", str(stop))

    def answers():
        return [data for _, data, _ in journal_events(folder, "acks") if data["phase"] in ("applied", "refused")]

    def issues():
        return [data for _, data, _ in journal_events(folder, "issues") if data.get("rule") == "twins" and "evidence" in data]

    wait_for(answers, "the hook did not answer")
    [told] = answers()
    assert told["phase"] == answer, told
    if answer == "applied":
        wait_for(issues, "the rule did not see the elements")
        assert issues()[0]["labels"]["tensor"] == "weight"
        stop.touch()
    else:
        assert "weights/raw" in told["reason"]
        stop.touch()
        assert training.wait(60) == 0
        assert not issues() and journal_records(folder, "tensors") == []
    assert training.wait(60) == 0, training.stderr.read()
