"""The run card of a small job: what `tocsin status RUN`, the report and `tocsin check` say of the questions."""
import json
import os
import re
import subprocess
import sys
import time

import pytest

from tests.support.program import BUILD, ROOT, Server, run_cli
from tests.support.telemetry import journal_events

torch = pytest.importorskip("torch")

JOB = """
import sys, torch, tocsin
out, shuffled = sys.argv[1], sys.argv[2] == "shuffled"
torch.manual_seed(3)
x = torch.randn(40000, 12)
y = (x @ torch.randn(12, 5)).argmax(1)
if shuffled:
    y = y[torch.randperm(len(y))]
model = torch.nn.Sequential(torch.nn.Linear(12, 32), torch.nn.ReLU(), torch.nn.Linear(32, 5))
optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
schedule = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, 600)
loss = torch.nn.CrossEntropyLoss()
hook = tocsin.watch(model, optimizer, out=out, job=sys.argv[2])
hook.plan(updates=600)
for step in range(600):
    i = torch.randint(0, len(x), (128,))
    optimizer.zero_grad()
    value = loss(model(x[i]), y[i])
    value.backward()
    hook.log(loss=value.item(), learning_rate=schedule.get_last_lr()[0])
    optimizer.step()
    schedule.step()
hook.close()
"""


@pytest.fixture(scope="module")
def judged(tmp_path_factory):
    """The journal of a healthy job and of one whose labels are shuffled, judged by the default group."""
    folder = tmp_path_factory.mktemp("cards")
    journal, config = folder / "data", folder / "t.yaml"
    config.write_text(json.dumps({"transport": {"journal": str(journal)}, "rule_groups": ["default"], "http": {"listen": "127.0.0.1:0"}}))
    (folder / "job.py").write_text(JOB)
    env = {key: value for key, value in os.environ.items() if not key.startswith("TOCSIN_") or key == "TOCSIN_LIBRARY"}
    env.setdefault("TOCSIN_LIBRARY", str(BUILD / "collectors/hook/libtocsin_client.so.0"))
    server = Server(config, role="evaluate")
    try:
        server.wait_for("ready", timeout=60)
        for name in ("healthy", "shuffled"):
            done = subprocess.run([sys.executable, folder / "job.py", journal, name], capture_output=True, text=True, check=False, timeout=120,
                                  env={**env, "PYTHONPATH": str(ROOT / "python")})
            assert done.returncode == 0, done.stderr
        end = time.monotonic() + 60
        while len({data["run"]["uid"] for _, data, _ in journal_events(journal, "issues") if data.get("phase") == "ended"}) < 2:
            assert time.monotonic() < end, "the runs did not end"
            time.sleep(0.3)
    finally:
        server.stop()
    return folder


def card(folder, job):
    code, out, err = run_cli("status", job, "--from", folder / "data", "-o", "json")
    assert code in (0, 1), err
    (run,) = json.loads(out)["runs"]
    return {one["question"]: one for one in run["card"]}


def test_a_healthy_run_ends_with_a_card_that_says_so(judged):
    told = card(judged, "healthy")
    assert len(told) == 12 and [one for one in told.values() if one["answer"] == "hit"] == []
    for name in ("targets", "course", "budget", "protocol"):
        assert told[name]["answer"] == "ok", told[name]
    assert "skill 0." in told["targets"]["lines"][0]["numbers"] and " to " in told["targets"]["lines"][0]["numbers"]
    assert told["budget"]["lines"][0]["numbers"].startswith("planned updates 600, schedule 600")
    assert told["ranks"]["why"] == "not a data-parallel job" and told["parity"]["why"] == "no evaluation so far"


def test_shuffled_labels_stand_first(judged):
    code, out, _ = run_cli("status", "shuffled", "--from", judged / "data")
    assert code in (0, 1)
    lines = out[out.index("questions\n"):].splitlines()
    assert re.match(r"  shuffled \w+ at step 599: [12] hit, ", lines[1]), lines[:3]
    assert re.match(r"  hit        (targets    cross_entropy train: nothing, |course     loss train: stuck, )", lines[2]), lines[:3]
    assert all(len(line) <= 80 for line in lines[: lines.index("")])
    # How many steps the ledger could measure depends on the machine.
    assert card(judged, "shuffled")["targets"]["answer"] in ("hit", "undecided")


def test_the_report_has_the_card(judged):
    code, out, _ = run_cli("report", "healthy", "--from", judged / "data")
    assert code == 0 and "Run card: " in out and "Do the outputs fit their targets better than chance?" in out and "sums up" not in out
    code, out, _ = run_cli("report", "healthy", "--from", judged / "data", "-o", "json")
    assert len(json.loads(out)["card"]) == 12


def test_check_says_what_each_question_needs(judged, tmp_path):
    code, out, _ = run_cli("check", judged / "t.yaml")
    assert code == 0
    assert "\n  precision  weights in 16 bits: 64 updates; a loss scaler: 200 updates\n" in out
    (tmp_path / "t.yaml").write_text(f"transport: {{journal: {tmp_path}}}\nrules: [{{use: budget}}]\ncapture: {{ledger: false}}\n")
    code, out, _ = run_cli("check", tmp_path / "t.yaml")
    assert "\n  budget     not asked: capture.ledger is off\n" in out and "\n  leak       not asked: the rule leak is not configured\n" in out


QUESTIONS = ["chance_level", "leak", "course", "budget", "parity", "ranks", "precision", "collapse", "movement", "left_out_class", "reward"]


@pytest.mark.parametrize("rule", QUESTIONS)
def test_the_description_of_a_question_fits_a_screen(rule):
    code, out, err = run_cli("rules", "describe", rule)
    assert code == 0 and "\nasks: " in out, err
    lines = out.splitlines()
    assert len(lines) <= 24 and max(map(len, lines)) <= 100, out
