"""The analysis API on a live server: its numbers are those of the journal, waiting follows the stream, an issue brings its curve."""
import importlib.util
import re
import subprocess
import sys
import time

import numpy
import pytest

from tests.e2e.test_curves import CONFIG, environment, run_with, train
from tests.support.hook_support import wait_for
from tests.support.program import ROOT
from tocsin.analysis import ServerError, create_trial, issues, runs
from tocsin.exceptions import NoMoreData
from tocsin.modes import ModeKeys


def address(server):
    return f"http://{server.wait_for('started')['http']}"


@pytest.fixture
def trained(server, tmp_path):
    one = server(CONFIG.format(journal=tmp_path / "journal"))
    one.wait_for("ready")
    assert train(tmp_path, tmp_path / "journal", 3000).wait(60) == 0
    uid = run_with(one, 3000)
    assert uid and wait_for(lambda: runs(address(one))[0].state == "ended", 20)
    return one, uid, tmp_path / "journal"


def same(one, other, column):
    left, right = one[column], other[column]
    return list(left) == list(right) if left.dtype == object else numpy.array_equal(left, right, equal_nan=left.dtype.kind == "f")


def test_a_server_and_its_journal_give_the_same(trained, monkeypatch):
    one, uid, journal = trained
    served, recorded = create_trial(address(one), run=uid[:6]), create_trial(journal)
    for query in ("loss", 'metric("lo.*|lr")'):
        left, right = served.series(query, steps=(290, 900)), recorded.series(query, steps=(290, 900))
        if query == "loss":
            assert len(left) == 610 and numpy.isnan(left["value"]).sum() == 2
        order = [numpy.lexsort((frame["step"], frame["name"].astype(str))) for frame in (left, right)]
        for column in ("run", "attempt", "worker", "rank", "mode", "step", "name", "value"):
            one_, other = left[column][order[0]], right[column][order[1]]
            assert (list(one_) == list(other)) if one_.dtype == object else numpy.array_equal(one_, other, equal_nan=one_.dtype.kind == "f"), column
        late = abs(left["time"][order[0]] - right["time"][order[1]])
        assert late.max() <= numpy.timedelta64(1, "ms")
    for points in (10, 700, 10_000):
        left, right = served.series("loss", points=points), recorded.series("loss", points=points)
        for column in ("step", "width", "n", "min", "max", "first", "last", "nan", "bad_step"):
            assert same(left, right, column), (points, column)
        assert numpy.allclose(left["mean"], right["mean"], rtol=1e-12, equal_nan=True)
    soft = [trial.series("loss", points=50, smooth=40)["smooth"] for trial in (served, recorded)]
    assert numpy.nanmax(abs(soft[0] - soft[1])) < 0.2  # the server smooths means of up to 4 steps
    clock = served.series("step()")
    assert numpy.allclose(clock["seconds"], recorded.series("step()")["seconds"], atol=1e-9) and len(clock) == 3000
    from tocsin.analysis import served as module
    monkeypatch.setattr(module, "_POINTS", 700)  # several windows give the same as one
    assert same(create_trial(address(one)).series("loss"), recorded.series("loss"), "value")


def test_trial_methods_over_http(trained):
    one, uid, _ = trained
    trial = create_trial(f"{address(one)}/runs/{uid}")
    assert trial.run == uid and trial.job == "curves" and trial.workers() == ["worker_0"]
    assert wait_for(lambda: trial.maybe_refresh() or trial.loaded_all_steps, 10)
    assert trial.tensor_names() == ["grad_norm", "loss", "lr"] and trial.tensor_names(collection="losses") == ["loss"]
    assert trial.steps(mode=ModeKeys.TRAIN) == list(range(3000)) and trial.tensor("loss").value(700) == 50.0
    assert numpy.isnan(trial.tensor("scalar/loss").value(300, mode=ModeKeys.TRAIN))
    with pytest.raises(NoMoreData):
        trial.wait_for_steps([3000])
    with pytest.raises(ValueError, match="open the directory"):
        trial.series('tensor("x")')


def test_runs_and_issues(trained):
    one, uid, _ = trained
    source = address(one)
    assert [run.uid for run in runs(source, filter='job == "curves" and step > 100 and not state == "running"')] == [uid]
    assert runs(source, filter='job == "digits" or labels["team"] == "nlp"') == [] and runs(source, filter='rule == "exploding_tensor"')
    for wrong in ("jobb == 1", "job = 'x'", "__import__('os')", "job.x == 1"):
        with pytest.raises(ValueError, match="expected"):
            runs(source, filter=wrong)
    found = issues(create_trial(source, run=uid))
    assert [issue.rule for issue in found] == ["exploding_tensor"] * 2 and found[0].labels["metric"] == "loss" == issues(uid, source=source)[0].labels["metric"]
    evidence = found[0].evidence(around=5)
    assert list(evidence["step"]) == list(range(295, 306)) and numpy.flatnonzero(numpy.isnan(evidence["value"])).tolist() == [5, 6]
    assert found[0].details().issue["key"] == found[0].key
    with pytest.raises(ValueError, match="no run ffffff"):
        create_trial(source, run="ffffff")
    with pytest.raises(ServerError, match="does not answer"):
        create_trial("http://127.0.0.1:1")


def test_a_server_that_wants_a_token(server, tmp_path):
    (tmp_path / "token").write_text("a-token-of-enough-letters\n")
    auth = f"auth: {{read: token, tokens: [{{name: me, role: viewer, token_file: {tmp_path / 'token'}}}]}}"
    one = server(CONFIG.format(journal=tmp_path / "journal").replace("http: {listen: '127.0.0.1:0'}", f"http: {{listen: '127.0.0.1:0', {auth}}}"))
    one.wait_for("ready")
    assert runs(address(one), token="a-token-of-enough-letters") == []
    for token in (None, "another-token-of-enough-letters"):
        with pytest.raises(ServerError) as error:
            runs(address(one), token=token)
        assert error.value.status == 401


def test_a_step_is_waited_for_by_the_stream(server, tmp_path):
    one = server(CONFIG.format(journal=tmp_path / "journal"))
    one.wait_for("ready")
    job = train(tmp_path, tmp_path / "journal", 250, 0.02)
    try:
        assert run_with(one, 5)
        trial = create_trial(address(one))
        assert not trial.loaded_all_steps
        trial.wait_for_steps([200], mode=ModeKeys.TRAIN, timeout=60)
        assert trial.tensor("loss").value(200, mode=ModeKeys.TRAIN) == pytest.approx(3.0 / 5 + 0.1 * ((200 * 7919) % 13) / 13)
        assert max(trial.steps(mode=ModeKeys.TRAIN)) < 249  # while it runs
    finally:
        job.wait(60)
    began = time.monotonic()
    with pytest.raises(NoMoreData):
        trial.wait_for_steps([5000], mode=ModeKeys.TRAIN, timeout=60)
    assert time.monotonic() - began < 20


PROFILED = """
import contextlib, sys, time, torch, tocsin
torch.manual_seed(1)
model = torch.nn.Linear(8, 1)
optimizer = torch.optim.SGD(model.parameters(), 0.01)
hook = tocsin.watch(model, optimizer, run="r", job="curves")
for step in range(60):
    with hook.python_profile() if step == 40 else contextlib.nullcontext():
        optimizer.zero_grad()
        loss = model(torch.randn(4, 8)).square().mean()
        loss.backward()
        hook.log(loss=float("nan") if step == 30 else float(loss))
        optimizer.step()
    time.sleep(0.05)
hook.close()
"""
BLOCK = re.compile(r"^```python\n(.*?)^```", re.MULTILINE | re.DOTALL)


@pytest.fixture
def profiled(server, tmp_path):
    """A real training beside a real server and a real node agent; all write to run1."""
    pytest.importorskip("torch", reason="torch is not here")
    config = CONFIG.format(journal=tmp_path / "run1")
    one = server(config)
    one.wait_for("ready")
    server(config + "collect: {interval: 100ms, collectors: [cpu, memory, network], node: n7}\n", role="collect").wait_for("ready")
    path = tmp_path / "profiled.py"
    path.write_text(PROFILED)
    subprocess.run([sys.executable, path], env=environment(tmp_path / "run1"), cwd=tmp_path, timeout=120, check=True)
    assert wait_for(lambda: runs(address(one))[0].state == "ended" and issues(runs(address(one))[0].uid, source=address(one)), 20)
    return one, tmp_path


def test_every_block_of_the_page_runs(profiled, monkeypatch, capsys):
    one, folder = profiled
    monkeypatch.chdir(folder)
    seen, ran = {}, 0
    for block in BLOCK.findall((ROOT / "docs" / "analysis.md").read_text()):
        if any(re.search(rf"import .*{name}", block) and not importlib.util.find_spec(name) for name in ("duckdb", "pandas", "polars", "pyarrow")):
            continue
        exec(compile(block.replace("http://127.0.0.1:9760", address(one)), "docs/analysis.md", "exec"), seen)  # noqa: S102
        ran += 1
    assert ran >= 8
    assert "of worker_0" not in str(seen["curve"]) and str(seen["curve"]).startswith("loss, steps 0 to ") and "polygon" not in (folder / "loss.svg").read_text()
    assert set(seen["profiles"].fetch_profile_stats_by_job_phase()) == {"training_loop"} and "backward" in capsys.readouterr().out
    assert (folder / "logs" / "train").is_dir()
    assert (folder / "steps.svg").read_text().startswith("<svg") and (folder / "exported" / "merged_timeline.json").exists()
    assert seen["trial"].tensor_names(collection="losses") == ["loss"] and len(seen["loss"]) == 50
    statistics = seen["analysis"].get_job_statistics()
    assert statistics["training_loop_duration"] > 2.0 and statistics["job_duration"] >= statistics["training_loop_duration"]
    (cpu, *_) = seen["analysis"].get_utilization_stats("cpu")
    assert cpu["nodeID"] == "n7" and cpu["count"] >= 5 and 0 <= cpu["min"] <= cpu["max"] <= 100
    metrics = {row["framework_metric"] for row in seen["analysis"].get_step_statistics("framework_metric")}
    assert {"Step:ModeKeys.TRAIN", "forward", "backward", "optimizer"} <= metrics
