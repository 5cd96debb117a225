"""Profiler frames, their statistics and charts: each number is computed again by NumPy from what was written (tocsin.analysis)."""
import csv
import json
import random
import xml.etree.ElementTree

import numpy
import pytest

from tests.support.written_run import RUN, WrittenRun
from tocsin.analysis import (Heatmap, MergedTimeline, MetricsHistogram, NoProfilerData, PandasFrame, PandasFrameAnalysis, Profile, Resource, StatsBy,
                             StepHistogram, StepTimelineChart, TimelineCharts, TrainingJob, create_trial, export)
from tocsin.exceptions import NoMoreProfilerData

BEGIN = 1_760_000_000_000_000  # UTC us
MS = 1000
STEPS, BUSY = 200, 0.35


@pytest.fixture(scope="module")
def written(tmp_path_factory):
    """(folder, what was written)."""
    chance = random.Random(7)
    folder = tmp_path_factory.mktemp("profile")
    run = WrittenRun(folder, world=2, now=lambda: BEGIN * 1000)
    run.held = []
    for rank in (0, 1):
        run.event(rank, "start", launch="k", job="digits")
    durations, phases = {}, {}
    for rank in (0, 1):
        at = BEGIN + 2_000 * MS  # 2 s of initialization
        for step in range(STEPS):
            took = round(chance.uniform(20, 30) * MS) if step != 50 else 400 * MS
            parts = [("data_wait", 0, took // 4), ("forward", took // 4, took // 4), ("backward", took // 2, took // 3)]
            run.spans(rank, [(name, "phase", (at + begin) * 1000, length * 1000, step) for name, begin, length in parts])
            run.step_end(rank, step, start=at * 1000, end=(at + took) * 1000)
            durations[rank, step] = (at, took)
            for name, begin, length in parts:
                phases.setdefault(name, []).append((at + begin, at + begin + length))
            at += took
        run.loss(rank, STEPS - 1, 1.0)
    end = BEGIN + 10_000 * MS
    samples = {}
    for place in range(40):
        time = BEGIN + place * 250 * MS
        rows = [(f"system.cpu.utilization{{cpu={core}}}", time * 1000, chance.random()) for core in (0, 1)]
        rows += [("hw.gpu.utilization{hw.id=G0}", time * 1000, BUSY if place % 4 else 0.95), ("system.memory.utilization", time * 1000, 0.5),
                 ("system.network.io{direction=receive}", time * 1000, 0.0 if place == 20 else 1000.0 * place, True)]
        run.samples("n7", rows)
        for name, _, value, *_ in rows:
            samples.setdefault(name, []).append((time, value))
    run.samples("n7", [("hw.gpu.utilization{hw.id=G0}", (BEGIN - 60_000 * MS) * 1000, 0.0)])  # before the run
    for rank in (0, 1):
        run.now = lambda: end * 1000
        run.event(rank, "end", outcome="completed")
    run.release()
    return folder, {"durations": durations, "phases": phases, "samples": samples, "end": end}


def of(rows, **fields):
    return [row for row in rows if all(row[name] == value for name, value in fields.items())]


def test_samples_by_the_originals_names(written):
    folder, truth = written
    rows = PandasFrame(folder).system_rows()
    cpu = of(rows, dimension="CPUUtilization", system_metric="1")
    assert [(row["timestamp_us"], row["value"], row["nodeID"], row["type"]) for row in cpu] == \
        [(time, value * 100, "n7", "cpu") for time, value in truth["samples"]["system.cpu.utilization{cpu=1}"]]
    assert len(of(rows, type="gpu")) == 40  # the sample of before the run is another's
    assert [row["value"] for row in Profile(folder, ratio=True).system(["GPU"])][:2] == [0.95, BUSY]
    network = of(rows, type="network")
    counter = truth["samples"]["system.network.io{direction=receive}"]
    expected = [(time, (value - before) / 0.25) for (_, before), (time, value) in zip(counter, counter[1:]) if value >= before]
    assert [(row["timestamp_us"], row["value"]) for row in network] == expected and len(expected) == 38  # it began anew once


def test_job_statistics(written):
    folder, truth = written
    found = PandasFrameAnalysis.of(folder).get_job_statistics()
    last = max(at + took for at, took in truth["durations"].values())
    assert found["start_time"] == BEGIN and found["end_time"] == truth["end"] and found["job_duration"] == 10.0
    assert found["initialization"] == 2.0 and found["training_loop_start"] == BEGIN + 2_000 * MS and found["training_loop_end"] == last
    assert found["training_loop_duration"] == pytest.approx((last - BEGIN) / 1e6 - 2.0) and found["finalization"] == pytest.approx((truth["end"] - last) / 1e6)
    assert found["initialization_%"] == 20.0 and sum(found[f"{part}_%"] for part in ("initialization", "training_loop", "finalization")) == pytest.approx(100)


def test_step_statistics(written):
    folder, truth = written
    analysis = PandasFrameAnalysis.of(folder)
    (all_steps,) = analysis.get_step_statistics()
    taken = numpy.array([took for _, took in truth["durations"].values()])
    assert all_steps == {"training_phase": "Step:ModeKeys.TRAIN", "duration_mean_in_us": pytest.approx(taken.mean()), "duration_min_in_us": taken.min(),
                         "duration_max_in_us": 400 * MS, "duration_p50_in_us": pytest.approx(numpy.percentile(taken, 50)),
                         "duration_p95_in_us": pytest.approx(numpy.percentile(taken, 95)), "duration_p99_in_us": pytest.approx(numpy.percentile(taken, 99))}
    by_rank = analysis.get_step_statistics(StatsBy.PROCESS)
    for rank, row in enumerate(by_rank):
        assert row["process"] == f"worker_{rank}" and row["duration_mean_in_us"] == pytest.approx(
            numpy.mean([took for (one, _), (_, took) in truth["durations"].items() if one == rank]))
    metrics = {row["framework_metric"]: row for row in analysis.get_step_statistics("framework_metric")}
    assert set(metrics) == {"Step:ModeKeys.TRAIN", "data_wait", "forward", "backward"}
    assert metrics["forward"]["duration_p95_in_us"] == pytest.approx(numpy.percentile([end - start for start, end in truth["phases"]["forward"]], 95))


def test_utilization_and_device_usage(written):
    folder, truth = written
    analysis = PandasFrameAnalysis.of(folder)
    (gpu,) = analysis.get_utilization_stats(Resource.GPU)
    values = numpy.array([value * 100 for _, value in truth["samples"]["hw.gpu.utilization{hw.id=G0}"]])
    for name, expected in (("max", values.max()), ("p99", numpy.percentile(values, 99)), ("p95", numpy.percentile(values, 95)),
                           ("p50", numpy.percentile(values, 50)), ("min", values.min()), ("mean", values.mean())):
        assert gpu[name] == pytest.approx(expected), name
    assert {row["type"] for row in analysis.get_utilization_stats()} == {"cpu", "gpu", "memory", "network"}
    inside = [value * 100 for time, value in truth["samples"]["hw.gpu.utilization{hw.id=G0}"]
              if any(start <= time <= end for start, end in truth["phases"]["forward"])]
    (forward,) = analysis.get_utilization_stats("gpu", by="training_phase", phase=["forward"])
    assert forward["count"] == len(inside) and 0 < len(inside) < 40 and forward["mean"] == pytest.approx(numpy.mean(inside))
    (usage,) = analysis.get_device_usage_stats(Resource.GPU)
    assert usage == {"nodeID": "n7", "type": "gpu", "90-100": 10, "10-90": 30, "0-10": 0}
    (usage,) = analysis.get_device_usage_stats("gpu", [(0, 35), (35, 100)])
    assert usage["0-35"] == 30 and usage["35-100"] == 10


def test_intervals_of_phases(written):
    folder, truth = written
    analysis = PandasFrameAnalysis(PandasFrame(folder).system_rows(), [row for row in PandasFrame(folder).framework_rows() if row["pid"] == 0])
    forward = analysis.get_training_phase_intervals("forward")
    assert forward == sorted(truth["phases"]["forward"][:STEPS])
    between = analysis.get_training_phase_intervals(("backward", "data_wait"))
    ends = [end for _, end in truth["phases"]["backward"][:STEPS]]
    starts = [start for start, _ in truth["phases"]["data_wait"][:STEPS]]
    assert between == list(zip(ends[:-1], starts[1:]))


def test_by_time_and_by_step(written):
    pandas = pytest.importorskip("pandas", reason="PyPI's pandas is not here")
    folder, truth = written
    frames = PandasFrame(folder)
    system, framework = frames.get_profiler_data_by_time(BEGIN + 1000 * MS, BEGIN + 3000 * MS)
    assert isinstance(system, pandas.DataFrame) and len(system[system.type == "gpu"]) == 8 and (framework.end_time_us > BEGIN + 1000 * MS).all()
    _, steps = frames.get_profiler_data_by_step(10, 12, selected_framework_metrics=["Step:ModeKeys.TRAIN"])
    assert {10, 11} <= set(steps.step) and len(frames.get_dataloader_metrics()) == 2 * STEPS
    assert list(frames.get_all_system_metrics().columns) == ["timestamp", "timestamp_us", "value", "system_metric", "dimension", "nodeID", "type"]
    assert PandasFrameAnalysis(frames.get_all_system_metrics(), frames.get_all_framework_metrics()).get_device_usage_stats("gpu")[0]["90-100"] == 10


def test_what_was_not_captured_says_how_it_is(tmp_path):
    WrittenRun(tmp_path).loss(0, 0, 1.0)
    frames = PandasFrame(tmp_path)
    for ask, how in ((frames.system_rows, "tocsin collect"), (frames.framework_rows, "hook.span"), (frames.dataloader_rows, "docs/hook/phases.md"),
                     (lambda: MetricsHistogram(tmp_path).plot(), "tocsin collect"), (PandasFrameAnalysis.of(tmp_path).get_job_statistics, "tocsin collect")):
        with pytest.raises(NoProfilerData, match=how):
            ask()
    with pytest.raises(NoMoreProfilerData):
        TrainingJob(str(tmp_path)).wait_for_sys_profiling_data_to_be_available(timeout=0.2)
    with pytest.raises(ValueError, match="PandasFrame"):
        create_trial(tmp_path, profiler=True)


def test_histograms(written):
    folder, truth = written
    chart = MetricsHistogram(folder).plot(select_dimensions=["CPU", "GPU"])
    for core in (0, 1):
        values = [value * 100 for _, value in truth["samples"][f"system.cpu.utilization{{cpu={core}}}"]]
        assert chart.data["n7", "CPUUtilization", str(core)] == numpy.histogram(values, 50, (0, 100))[0].tolist()
    total = numpy.mean([[value * 100 for _, value in truth["samples"][f"system.cpu.utilization{{cpu={core}}}"]] for core in (0, 1)], axis=0)
    assert chart.data["n7", "CPUUtilization", "total"] == numpy.histogram(total, 50, (0, 100))[0].tolist()
    assert sum(chart.data["n7", "GPUUtilization", "G0"]) == 40 and "busiest is n7" in chart.sentence
    steps = StepHistogram(folder).plot()
    one = steps.data["Step:ModeKeys.TRAIN worker_0"]
    taken = numpy.array([took / 1e3 for (rank, _), (_, took) in truth["durations"].items() if rank == 0])[:-1]
    assert one["durations"] == taken.tolist() and one["edges"][0] == taken.min()
    assert one["edges"][-1] == pytest.approx(numpy.median(taken) + 2 * taken.std())
    assert sum(one["counts"]) == (taken <= one["edges"][-1] + 1e-9).sum() < len(taken)  # its tail is cut
    assert "longest 400 ms" in steps.sentence


def test_time_lines_and_the_heat_map(written):
    folder, truth = written
    steps = StepTimelineChart(folder).plot()
    assert "longest step is 50" in steps.sentence and len(steps.data["Step:ModeKeys.TRAIN worker_1"]) == STEPS
    charts = TimelineCharts(folder).plot(select_dimensions=["GPU"])
    assert charts.data["n7", "GPUUtilization", "G0"][1] == (250.0, BUSY * 100)
    selected = {row["framework_metric"]: row["cumulative_ms"] for row in charts.select(2000, 4000)}
    inside = sum(max(0, min(end, BEGIN + 4000 * MS) - max(start, BEGIN + 2000 * MS)) for start, end in truth["phases"]["forward"]) / 1e3
    assert selected["forward"] == pytest.approx(inside) and max(selected, key=selected.get) == "Step:ModeKeys.TRAIN"
    heat = Heatmap(folder).plot()
    assert heat.data["MemoryUsedPercent_system.memory.utilization_n7"] == [50.0] * 40
    assert max(value for value in heat.data["NetworkBytesPerSecond_receive_n7"] if value is not None) == 100.0
    assert heat.data["NetworkBytesPerSecond_receive_n7"][0] is None and "CPUUtilization_total_n7" in heat.data


def test_findings_about_a_data_loader(written):
    def row(name, start, took, step, tid="phase", process="worker_0"):
        return {"framework_metric": name, "start_time_us": start, "end_time_us": start + took, "tid": tid, "process": process, "step": step}
    rows = [row("data_wait", 1000 * step, 500 if step == 7 else 100 if step != 3 else 200, step) for step in range(10)]
    rows += [row("load", 1000 * step + 300, 50, step, f"dataloader/{step % 2}") for step in range(10)]
    first, second, wait = sorted(PandasFrameAnalysis([], rows).get_dataloader_findings(), key=lambda one: one["track"] == "data_wait")
    assert (wait["count"], wait["duration_p50_in_us"], wait["duration_max_in_us"], wait["batch_p50_in_us"], wait["outliers"]) == (10, 100, 500, 1000, 2)
    assert [(one["step"], one["start_time_us"], one["duration_in_us"]) for one in wait["longest"]] == [(7, 7000, 500), (3, 3000, 200)]
    assert (first["track"], first["count"], first["batch_max_in_us"], first["outliers"], first["loading_processes"]) == ("dataloader/0", 5, 2000, 0, 2)
    assert second["track"] == "dataloader/1" and PandasFrameAnalysis([], rows).get_dataloader_findings(6)[-1]["outliers"] == 0
    with pytest.raises(NoProfilerData, match="data loader"):
        PandasFrameAnalysis([], []).get_dataloader_findings()
    assert PandasFrameAnalysis.of(written[0]).get_dataloader_findings()[0]["outliers"] == 1  # of step 50


@pytest.mark.parametrize("kind", [MetricsHistogram, StepHistogram, StepTimelineChart, TimelineCharts, Heatmap])
def test_a_chart_is_a_picture_and_a_sentence(written, tmp_path, kind):
    chart = kind(TrainingJob("digits", source=written[0]).get_systems_metrics_reader())
    assert "plot()" in chart._repr_mimebundle_()["text/plain"]
    bundle = chart.plot()._repr_mimebundle_()
    picture = xml.etree.ElementTree.fromstring(bundle["image/svg+xml"])
    marks = [one.tag.split("}")[1] for one in picture.iter()]
    assert bundle["text/plain"] == chart.sentence and len([mark for mark in marks if mark in ("rect", "path", "circle")]) > 5
    for name in ("x.svg", "x.html"):
        chart.save(tmp_path / name)
        assert chart.svg() in (tmp_path / name).read_text()
    with pytest.raises(ValueError, match=".svg, .html or .png"):
        chart.save(tmp_path / "x.gif")


def test_a_merged_time_line(written, tmp_path):
    folder, truth = written
    events = json.load(open(MergedTimeline(folder, output_directory=str(tmp_path)).merge_timeline()))["traceEvents"]
    spans = of([event for event in events if event["ph"] == "X"], name="forward")
    assert sorted((event["ts"], event["ts"] + event["dur"]) for event in spans) == sorted(truth["phases"]["forward"])
    threads = [event["args"]["name"] for event in events if event["ph"] == "M" and event["name"] == "thread_name" and event["pid"] == 0]
    assert threads == ["Step:ModeKeys.TRAIN", "forward", "backward", "data_wait"]
    assert len([event for event in events if event["ph"] == "i"]) == 30 and {event["pid"] for event in events if event["ph"] == "X"} == {0, 1}
    path = MergedTimeline(folder, output_directory=str(tmp_path)).merge_timeline(5, 7, unit="step", sys_metrics_filter=["GPU"])
    some = json.load(open(path))["traceEvents"]
    assert {5, 6} <= {event["args"]["step"] for event in some if event["ph"] == "X"} and all(
        event["name"].startswith("GPU") for event in some if event["ph"] == "C")


def test_a_training_job(written):
    folder, truth = written
    job = TrainingJob("digits", "eu-west-1", source=folder)
    job.wait_for_sys_profiling_data_to_be_available()
    told = job.describe_training_job()
    assert told["TrainingJobStatus"] == "Completed" and told["run"].startswith(str(RUN)) and told["TrainingEndTime"] == truth["end"]
    assert len(job.get_systems_metrics_reader().get_events((BEGIN + 1000 * MS) / 1e6, (BEGIN + 2000 * MS) / 1e6, unit="s")) == 20
    assert {row["step"] for row in job.get_framework_metrics_reader().get_events_by_step(3, 5)} == {3, 4}
    assert job.describe() == told and create_trial(job.latest_job_debugger_artifacts_path()).run == told["run"]
    assert job.latest_job_profiler_artifacts_path() == str(folder)
    with pytest.raises(ValueError, match=r'export\(".*", to="tensorboard"'):
        job.latest_job_tensorboard_artifacts_path()
    with pytest.raises(ValueError, match="no job mnist in .*digits"):
        TrainingJob("mnist", source=folder)
    with pytest.raises(ValueError, match="source: expected the directory that the job writes to, or kafka://host:9092, got http://127.0.0.1:1"):
        TrainingJob("mnist", source="http://127.0.0.1:1")


def test_exports(written, tmp_path):
    folder, truth = written
    files = export(folder, "csv", str(tmp_path))
    assert [file.replace(str(tmp_path), "") for file in files] == [f"/run={RUN}/kind={kind}/{kind}.csv" for kind in ("scalars", "steps", "spans", "samples")]
    rows = list(csv.DictReader(open(files[1])))
    assert len(rows) == 2 * STEPS and float(rows[0]["seconds"]) == truth["durations"][0, 0][1] / 1e6
    assert export(create_trial(folder), "chrome", str(tmp_path / "trace")) == [str(tmp_path / "trace" / "merged_timeline.json")]
    with pytest.raises(ValueError, match="expected parquet, csv, chrome or tensorboard"):
        export(folder, "xml", str(tmp_path))
    polars = pytest.importorskip("polars", reason="PyPI's polars is not here")
    again = [polars.read_parquet(file) for file in export(folder, "parquet", str(tmp_path / "p"))]
    assert [len(frame) for frame in again] == [2, 2 * STEPS, 6 * STEPS, 201]


def test_the_originals_paths():
    from tocsin.smdebug.profiler.analysis.notebook_utils.heatmap import Heatmap as one
    from tocsin.smdebug.profiler.analysis.notebook_utils.training_job import TrainingJob as other
    from tocsin.smdebug.profiler.analysis.utils.pandas_data_analysis import PandasFrameAnalysis as third
    assert (one, other, third) == (Heatmap, TrainingJob, PandasFrameAnalysis)
