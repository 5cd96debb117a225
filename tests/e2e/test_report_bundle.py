"""`tocsin report --bundle`: the page, a notebook that computes the same numbers, a document for each rule, and the same of a boosting."""
import json
import os
import pathlib
import random
import subprocess
import sys

import pytest

from tests.e2e.test_report import page_of
from tests.support.notebook import run_notebook
from tests.support.program import BINARY, ROOT
from tests.support.written_journal import WrittenJournal

BEGIN = 1_760_000_000_000_000  # UTC us
MS = 1000
STEPS, SLOW = 120, 60
PROFILER = {"BatchSize", "CPUBottleneck", "GPUMemoryIncrease", "IOBottleneck", "LoadBalancing", "LowGPUUtilization", "OverallSystemUsage",
            "MaxInitializationTime", "OverallFrameworkMetrics", "StepOutlier", "Dataloader"}


def bundle(folder, to, *more, **environment):
    done = subprocess.run([BINARY, "report", "--from", folder, "--judge", "--bundle", to, *more], capture_output=True, text=True, timeout=120,
                          env={**os.environ, **environment})
    assert done.returncode == 0, done.stderr
    return {str(path.relative_to(to)): path for path in sorted(pathlib.Path(to).rglob("*")) if path.is_file()}


def trained(folder, ended=True):
    """Two ranks with phases and samples; one step of 400 ms; the loss is no number from step 100 on."""
    chance = random.Random(7)
    run = WrittenJournal(folder, world=2, now=lambda: BEGIN * 1000)
    run.held = []
    for rank in (0, 1):
        run.event(rank, "start", launch="k", job="</script>\"); raise SystemExit #")
    took = {}
    for rank in (0, 1):
        at = BEGIN + 2_000 * MS
        for step in range(STEPS):
            took[rank, step] = length = round(chance.uniform(20, 22) * MS) if step != SLOW else 400 * MS
            run.spans(rank, [("forward", "phase", at * 1000, length * 500, step)])
            run.step_end(rank, step, start=at * 1000, end=(at + length) * 1000)
            run.loss(rank, step, float("nan") if step >= 100 else 3.0 / (step + 1))
            at += length
    for place in range(40):
        run.samples("n7", [("system.cpu.utilization{cpu=0}", (BEGIN + place * 250 * MS) * 1000, 0.5), ("hw.gpu.utilization{hw.id=G0}", (
            BEGIN + place * 250 * MS) * 1000, 0.35)])
    run.now = lambda: (BEGIN + 10_000 * MS) * 1000
    if ended:
        for rank in (0, 1):
            run.event(rank, "end", outcome="completed")
    run.sealed()
    return took


@pytest.fixture(scope="module")
def training(tmp_path_factory):
    folder = tmp_path_factory.mktemp("bundle") / "a\"b'c"  # whatever a folder may be called
    took = trained(folder)
    to = folder.parent / "report"
    return folder, bundle(folder, to, SOURCE_DATE_EPOCH="1760000000"), took


def test_it_has_the_files_of_the_original_and_no_others(training):
    _, files, _ = training
    documents = {pathlib.Path(name).stem for name in files if "profiler-reports/" in name}
    assert set(files) == {"profiler-output/profiler-report.html", "profiler-output/profiler-report.ipynb",
                          *(f"profiler-output/profiler-reports/{name}.json" for name in documents)}
    assert documents >= PROFILER and "ExplodingTensor" in documents
    page = page_of(files["profiler-output/profiler-report.html"])
    assert "System usage" in page.text and "has not ended" not in page.text


def test_a_document_of_a_rule_has_the_keys_and_the_numbers(training):
    folder, files, _ = training
    told = json.loads(subprocess.run([BINARY, "report", "--from", folder, "--judge", "-o", "json"], capture_output=True, text=True, timeout=120).stdout)
    (profiler,) = (one["summary"]["rules"] for one in told["rules"] if one["type"] == "profiler_report")
    documents = {pathlib.Path(name).stem: json.loads(path.read_text()) for name, path in files.items() if "profiler-reports/" in name}
    for name, one in documents.items():
        assert list(one) == ["RuleTriggered", "Violations", "Datapoints", "Details", "RuleParameters"], name
    outlier, by_report = documents["StepOutlier"], profiler["step_outlier"]
    assert outlier["RuleTriggered"] == by_report["triggered"] and outlier["Datapoints"] == by_report["data_points"] > 0
    lines = dict(line.split(":", 1) for line in outlier["RuleParameters"].split("\n"))
    assert list(lines) == list(by_report["parameters"]) and lines["stddev"] == "3" == f"{by_report['parameters']['stddev']:g}"
    assert documents["ExplodingTensor"]["Violations"] == sum(issue["first"]["rule"] == "exploding_tensor" for issue in told["issues"]) == 2  # of each rank
    assert "NaN" in json.dumps(documents["ExplodingTensor"]["Details"])
    assert documents["OverallSystemUsage"]["Details"]["nodes"]["n7"]


def test_the_notebook_computes_the_numbers_of_the_sections(training):
    folder, files, took = training
    space, shown = run_notebook(files["profiler-output/profiler-report.ipynb"])
    assert space["source"] == str(folder)
    (curve,) = shown["How the training went"]
    assert "from 3 to 0.03, least 0.03 at 99, greatest 3 at 0; not finite for the first time at 100" in str(curve)
    (job,) = shown["Time of the run"]
    loop = max(sum(of for (rank, _), of in took.items() if rank == one) for one in (0, 1)) / 1e6
    assert job["job_duration"] == 10 and job["initialization"] == 2 and job["training_loop_duration"] == pytest.approx(loop)
    (steps,) = (row for row in shown["Step durations"][0] if row["training_phase"] == "Step:ModeKeys.TRAIN")
    assert steps["duration_max_in_us"] == 400 * MS and steps["duration_mean_in_us"] == pytest.approx(sum(took.values()) / len(took))
    assert [row["p95"] for row in shown["System usage"][0] if row["dimension"] == "GPUUtilization"] == [35.0]
    assert json.loads((files["profiler-output/profiler-report.ipynb"].parent / "merged_timeline.json").read_text())["traceEvents"]
    summary, found = shown["Rules"]
    assert {row["rule"] for row in summary} >= PROFILER and list(found) == [row["rule"] for row in summary if row["Violations"]]


def test_a_changed_cell_computes_anew(training):
    _, files, _ = training
    _, shown = run_notebook(files["profiler-output/profiler-report.ipynb"], lambda code: code.replace("trial.plot(name)", "trial.plot(name, steps=(0, 10))"))
    assert "from 3 to 0.3, least 0.3 at 9" in str(shown["How the training went"][0])


ALONE = r"""
import json, re, socket, sys
from tests.support.notebook import run_notebook
try:
    socket.create_connection(("192.0.2.1", 80), 1)
    reached = True
except OSError:
    reached = False
_, shown = run_notebook(sys.argv[1])
pages = [text for values in shown.values() for one in values if hasattr(one, "_repr_mimebundle_") for text in one._repr_mimebundle_().values()]
loads = [found for page in pages for found in re.findall(r"(?:src=|@import|url\()\s*[\x22\x27]?((?:https?:)?//[^\s>]+)", page)]
print(json.dumps({"reached": reached, "pages": len(pages), "pictures": sum("<svg" in page for page in pages), "loads": loads,
                  "curve": str(shown["How the training went"][0])}))
"""


def test_u46_the_notebook_runs_without_a_network_and_its_charts_load_nothing(training):
    alone = ["unshare", "-rn"]  # a network of its own, in which there is nothing
    if subprocess.run([*alone, "true"], capture_output=True, check=False).returncode != 0:
        pytest.skip("no user namespaces here")
    _, files, _ = training
    done = subprocess.run([*alone, sys.executable, "-c", ALONE, files["profiler-output/profiler-report.ipynb"]], capture_output=True, text=True, timeout=120, cwd=ROOT,
                          env={**os.environ, "PYTHONPATH": f"{ROOT / 'python'}:{ROOT}"}, check=False)
    assert done.returncode == 0, done.stderr
    told = json.loads(done.stdout.splitlines()[-1])
    assert told["reached"] is False and "from 3 to 0.03" in told["curve"]
    assert told["pages"] > 0 and told["pictures"] > 0 and told["loads"] == [], told


def test_two_of_a_run_that_has_ended_are_the_same_bytes(training, tmp_path):
    folder, files, _ = training
    again = bundle(folder, tmp_path / "again", SOURCE_DATE_EPOCH="1760000000")
    assert set(again) == {name for name in files if "merged_timeline" not in name}
    for name, path in again.items():
        assert path.read_bytes() == files[name].read_bytes(), name
    later = bundle(folder, tmp_path / "later", SOURCE_DATE_EPOCH="1760000001")
    assert [name for name in later if later[name].read_bytes() != again[name].read_bytes()] == ["profiler-output/profiler-report.html"]


def test_documents_of_an_earlier_one_do_not_stay(training, tmp_path):
    folder, _, _ = training
    reports = tmp_path / "profiler-output" / "profiler-reports"
    reports.mkdir(parents=True)
    (reports / "Gone.json").write_text("{}")
    (reports / "mine.txt").write_text("kept")
    assert "profiler-output/profiler-reports/Gone.json" not in bundle(folder, tmp_path) and (reports / "mine.txt").exists()


def test_what_goes_on_says_as_of_when(tmp_path):
    trained(tmp_path / "run", ended=False)
    files = bundle(tmp_path / "run", tmp_path / "report")
    text = files["profiler-output/profiler-report.html"].read_text()
    assert '<body class="goes-on">' in text and "body.goes-on{border-left:8px solid #e69f00" in text
    assert "As of 2025-10-09T08:53:" in page_of(files["profiler-output/profiler-report.html"]).text


def test_without_samples_the_notebook_says_how_they_are_taken(tmp_path):
    run = WrittenJournal(tmp_path / "run", now=lambda: BEGIN * 1000)
    run.event(0, "start", launch="k", job="j")
    for step in range(10):
        run.step_end(0, step, start=(BEGIN + step * MS) * 1000, end=(BEGIN + (step + 1) * MS) * 1000)
    files = bundle(run.sealed(), tmp_path / "report")
    text = files["profiler-output/profiler-report.ipynb"].read_text()
    assert "`tocsin collect` on each node takes them" in text and "get_utilization_stats" not in text
    _, shown = run_notebook(files["profiler-output/profiler-report.ipynb"])
    assert shown["Time of the run"][0]["training_loop_duration"] == 0.01


def test_a_boosting_has_its_own_report(tmp_path):
    names = ("train-rmse", "validation-rmse", "feature_importance/gain/f0", "feature_importance/gain/f1", "trees/depth")
    run = WrittenJournal(tmp_path / "run", names=names, now=lambda: BEGIN * 1000)
    run.event(0, "start", launch="k", job="prices", framework="xgboost")
    for step in range(12):
        rows = [("train-rmse", step, 2.0 / (step + 1), 5), ("validation-rmse", step, 3.0 / (step + 1), 5), ("trees/depth", step, 6.0, 5)]
        if step % 5 == 0:
            rows += [("feature_importance/gain/f0", step, 0.25, 5), ("feature_importance/gain/f1", step, 0.75, 5)]
        run.scalars(0, rows)
        run.step_end(0, step, start=(BEGIN + step * MS) * 1000, end=(BEGIN + (step + 1) * MS) * 1000)
    run.event(0, "end", outcome="completed")
    files = bundle(run.sealed(), tmp_path / "report", "--rules", "create_xgboost_report")
    assert {name for name in files if name.startswith("CreateXgboostReport/")} == {
        f"CreateXgboostReport/xgboost_report.{ending}" for ending in ("html", "ipynb", "json")}
    page = page_of(files["CreateXgboostReport/xgboost_report.html"])
    assert "Feature importance" in page.text and "Issues" not in page.text.split("\n") and page.text.strip().startswith("XGBoost training: prices")
    _, shown = run_notebook(files["CreateXgboostReport/xgboost_report.ipynb"])
    assert [str(one).split(":")[0] for one in shown["Loss and metrics over rounds"]] == ["train-rmse, steps 0 to 11", "validation-rmse, steps 0 to 11"]
    assert shown["Feature importance"] == [[{"feature": "f1", "gain": 0.75}, {"feature": "f0", "gain": 0.25}]]
    assert shown["Residuals"] == [] and "TocsinCallback(validation=held)" in files["CreateXgboostReport/xgboost_report.ipynb"].read_text()


def test_a_folder_that_cannot_be_made_is_named(training, tmp_path):
    (tmp_path / "file").write_text("")
    done = subprocess.run([BINARY, "report", "--from", training[0], "--judge", "--bundle", tmp_path / "file"], capture_output=True, text=True, timeout=120)
    assert done.returncode == 1 and f"{tmp_path / 'file' / 'profiler-output'} cannot be made: Not a directory" in done.stderr


