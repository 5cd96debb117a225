"""Frames of a recording: every number is what NumPy computes from the frames as the reference codec decodes them (tocsin.analysis)."""
import csv
import importlib
import math
import random
import subprocess
import sys

import numpy
import pytest

from tests.support.written_run import RUN, WrittenRun
from tocsin import wire
from tocsin.analysis import create_trial
from tocsin.analysis.arrow import kept
from tocsin.modes import ModeKeys

BEGIN = 1_760_000_000_000_000_000
NAMES = ("loss", "accuracy", "gradient/a", "gradient/b", "weight/a")


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """Two ranks, two modes, many rows a frame, numbers that are none, a statistic that only some rows have, and another run."""
    chance = random.Random(5)
    folder = tmp_path_factory.mktemp("frames")
    run = WrittenRun(folder, world=2, names=NAMES, now=lambda: BEGIN)
    other = WrittenRun(folder, run=wire.run_uid("digits", "other"), names=("loss",), now=lambda: BEGIN)
    run.held, other.held = [], []
    other.loss(0, 0, -1.0)
    for rank in (0, 1):
        for first in range(0, 3000, 100):
            rows = []
            for step in range(first, first + 100):
                loss = math.nan if step == 300 else math.inf if step == 301 else chance.gauss(3, 1)
                rows += [("loss", step, loss, BEGIN + step * 1_000_000), ("accuracy", step, chance.random(), BEGIN + step * 1_000_000)]
            run.scalars(rank, rows)
        run.scalars(rank, [("loss", step, 0.5, BEGIN) for step in range(10)], wire.EVAL)
        for step in range(0, 200, 5):
            run.summary(rank, step, {name: {"count": 4 if step else 0, "sum": chance.gauss(0, 1), "sumsq": chance.random() + 1, "m2": chance.random(),
                                            "abs_sum": 2.0, "min": -1.0, "max": 1.5, "zero": 1} for name in NAMES[2:]},
                        extensions=[(1, wire.sparse_column(1, {0: 0.25 + step, 2: 0.75}))] if step % 10 == 0 else ())
            run.step_end(rank, step, start=BEGIN + step, end=BEGIN + step + 5_000_000)
    run.loss(0, 3000, 3.0)
    run.release()
    other.held = None
    return folder


@pytest.fixture(scope="module")
def trial(folder):
    return create_trial(folder, run=str(RUN))


def truth(folder, kind):
    """(frame, row) as the reference codec reads them."""
    import sqlite3
    frames = [wire.decode_frame(value) for (value,) in sqlite3.connect(folder / "telemetry.db").execute("SELECT value FROM telemetry ORDER BY id")]
    return [(frame, row) for frame in frames if frame.kind == kind and frame.header["run"] == RUN for row in frame.rows]


def test_a_metric_is_what_the_frames_hold(folder, trial):
    frame = trial.series('metric("loss")')
    rows = [(one, row) for one, row in truth(folder, wire.SCALAR) if row["name"] == wire.xxh64("loss")]
    assert frame.columns == ["run", "attempt", "worker", "rank", "mode", "step", "time", "name", "value"]
    assert len(frame) == len(rows) == 6021
    assert numpy.array_equal(frame["value"], [row["value"] for _, row in rows], equal_nan=True)
    assert frame["step"].tolist() == [row["step"] for _, row in rows]
    assert frame["rank"].tolist() == [one.header["rank"] for one, _ in rows]
    assert set(frame["run"]) == {str(RUN)} and set(frame["name"]) == {"loss"} and set(frame["worker"]) == {"worker_0", "worker_1"}
    assert frame["time"][100] == numpy.datetime64(BEGIN + 100_000_000, "ns").astype("datetime64[us]")
    assert len(trial.series("loss", mode=ModeKeys.GLOBAL)) == len(trial.series("loss")) == 6021  # all modes
    modes = trial.series("loss", mode=ModeKeys.EVAL)
    assert len(modes) == 20 and set(modes["mode"]) == {"eval"} and set(modes["value"]) == {0.5}


def test_what_narrows_a_query(trial):
    frame = trial.series('metric("loss|accuracy"){mode="train"}', workers="worker_1", steps=(100, 103))
    assert [(row["name"], row["step"]) for row in frame] == [(name, step) for step in (100, 101, 102) for name in ("loss", "accuracy")]
    assert len(trial.series("loss").filter(step=(2990, None), mode="train", workers=["worker_0"])) == 11
    assert len(trial.series('metric("loss|accuracy")', mode="eval")) == 20  # frames that hold only one of the names
    assert len(trial.series("nothing")) == 0 and trial.series("nothing")["value"].tolist() == []
    assert len(trial.series('tensor("gradient/.*")', steps=(10, 21))) == 2 * 3 * 2
    assert set(trial.series('collection("gradients")')["name"]) == set(NAMES[2:4])  # what the role says
    limited = create_trial(trial._directory, run=str(RUN), range_steps=(5, 8))
    assert sorted(set(limited.series("loss")["step"])) == [5, 6, 7] == limited.steps(mode="train")[:3]


def test_statistics_of_tensors(folder, trial):
    frame = trial.series('tensor("gradient/a")', stat=["count", "mean", "std", "l2", "median"])
    rows = [row for _, row in truth(folder, wire.SUMMARY) if row["name"] == wire.xxh64("gradient/a")]
    count = numpy.array([row["count"] for row in rows], float)
    with numpy.errstate(all="ignore"):
        mean = numpy.where(count > 0, numpy.array([row["sum"] for row in rows]) / count, numpy.nan)
        std = numpy.sqrt(numpy.where(count > 0, numpy.array([row["m2"] for row in rows]) / count, numpy.nan))
    assert numpy.array_equal(frame["mean"], mean, equal_nan=True) and numpy.array_equal(frame["std"], std, equal_nan=True)
    assert numpy.array_equal(frame["l2"], numpy.sqrt([row["sumsq"] for row in rows])) and frame["count"].dtype == numpy.int64
    median = [row["median"] for row in frame]
    assert median[:3] == [0.25, None, 10.25] and median.count(None) == len(rows) // 2  # absent is not NaN
    assert [row["median"] for row in trial.series('tensor("gradient/b")', stat="median")] == [None] * len(rows)
    assert [row["median"] for row in trial.series('tensor("weight/a")', stat="median")][:2] == [0.75, None]


def test_steps(folder, trial):
    frame = trial.series("step()")
    rows = [row for _, row in truth(folder, wire.STEP_END)]
    assert frame["seconds"].tolist() == [(row["end"] - row["start"]) / 1e9 for row in rows] and frame["step"].tolist() == [row["step"] for row in rows]
    assert frame["start"][1] == numpy.datetime64(BEGIN // 1000, "us")


@pytest.mark.parametrize("points", [1, 10, 100, 1000, 5000])
def test_points_are_aligned_buckets(folder, trial, points):
    frame = trial.series("loss", mode="train", workers="worker_0", points=points)
    rows = {row["step"]: row["value"] for one, row in truth(folder, wire.SCALAR)
            if row["name"] == wire.xxh64("loss") and one.header["rank"] == 0 and one.header["mode"] == wire.TRAIN}
    steps, values = numpy.array(sorted(rows)), numpy.array([rows[step] for step in sorted(rows)])
    assert len(frame) <= points + 1 and sum(frame["n"]) == numpy.isfinite(values).sum()
    for bucket in frame:
        inside = values[(steps >= bucket["step"]) & (steps < bucket["step"] + bucket["width"])]
        finite = inside[numpy.isfinite(inside)]
        assert bucket["step"] % bucket["width"] == 0 and bucket["nan"] == numpy.isnan(inside).sum() and bucket["posinf"] == numpy.isposinf(inside).sum()
        if not len(finite):
            assert bucket["mean"] is None and bucket["bad_step"] in (300, 301)
            continue
        assert (bucket["min"], bucket["max"], bucket["first"], bucket["last"]) == (finite.min(), finite.max(), finite[0], finite[-1])
        assert bucket["mean"] == pytest.approx(finite.mean(), rel=1e-12)
    assert min(bad for bad in (bucket["bad_step"] for bucket in frame) if bad is not None) == 300


def test_smoothing_does_not_depend_on_the_points(trial):
    fine = {row["step"]: row["smooth"] for row in trial.series("loss", mode="train", workers="worker_0", points=4000, smooth=50)}
    assert fine[0] == trial.series("loss", mode="train", workers="worker_0", steps=(0, 1))["value"][0]
    coarse = [row for row in trial.series("loss", mode="train", workers="worker_0", points=100, smooth=50)]
    assert all(row["smooth"] == fine[min(row["step"] + row["width"] - 1, 3000)] for row in coarse)


@pytest.mark.parametrize("query,more,told", [
    ("metrik(\"loss\")", {}, "metric"), ('metric("loss"', {}, "expected"), ('metric("lo(")', {}, "regular expression"),
    ('metric("x"){rank="1"}', {}, "no label rank"),
    ('tensor("x")', {"stat": "medan"}, "no statistic medan"), ("loss", {"stat": "mean"}, "stat is of tensors"), ("loss", {"mode": "trian"}, "trian"),
    ("loss", {"points": 0}, "points"), ("loss", {"smooth": 5}, "points")])
def test_what_is_asked_wrongly_is_named(trial, query, more, told):
    with pytest.raises(ValueError, match=told):
        trial.series(query, **more)


def test_csv(trial, tmp_path):
    trial.series('tensor("gradient/a")', stat=["mean", "median"], steps=(0, 11)).to_csv(tmp_path / "a.csv")
    rows = list(csv.DictReader(open(tmp_path / "a.csv")))
    assert [row["median"] for row in rows[:3]] == ["0.25", "", "10.25"] and rows[0]["mean"] == "nan" and rows[0]["time"] == "2025-10-09T08:53:20.000000Z"


def test_damaged_frames_are_left_out_and_counted(folder, tmp_path):
    run = WrittenRun(tmp_path)
    run.loss(0, 0, 1.0)
    frame = wire.encode_frame(run.head(), wire.SCALAR, [{"name": wire.xxh64("loss"), "value": 2.0}])
    for damaged in (frame[:-8], frame[:12] + b"\xff\xff\xff\x7f" + frame[16:], frame[:10] + b"\x08\x00" + frame[12:], b"TCSN\x01", frame[:50], b'{"name": "loss"}'):
        run.put(damaged)
    source = create_trial(tmp_path).source
    assert len(create_trial(tmp_path).series("loss")) == 1 and source.index.unreadable == 3


def test_the_newest_run_is_the_same_for_frames_and_tensors(tmp_path):
    first, second = (WrittenRun(tmp_path, run=wire.run_uid("digits", name)) for name in "ab")
    for run, key in ((first, "1"), (second, "1"), (first, "2")):  # the first one again, at last
        run.event(0, "start", launch=f"{run.run}{key}", job="digits")
        run.loss(0, 0, float(key))
        run.event(0, "end", outcome="completed")
        run.now = lambda: BEGIN + 1
        head, number = run.head, int(key) + 1
        run.head = lambda rank=0, head=head, number=number, **more: head(rank, **{"attempt": number, "incarnation": 7 + number, **more})
    trial = create_trial(tmp_path)
    (row,) = trial.series("loss")
    assert (row["run"], row["attempt"]) == (str(first.run), 2) == (trial.run.split("/")[0], int(trial.run.split("/")[1]))
    assert trial.tensor("loss").value(0) == row["value"] == 2.0


def test_a_frame_is_read_when_it_is_looked_at_and_once(folder):
    run = create_trial(folder, run=str(RUN))
    read = []
    original = run.source.table
    run.source.table = lambda query: read.append(query) or original(query)
    frame = run.series("loss")
    assert read == [] and "not read" in repr(frame)
    assert len(frame) == len(list(frame)) == 6021 and len(read) == 1
    assert run._next == 0  # nothing was decoded by the slow way


def test_without_numpy_the_rows_are_the_same(folder, trial):
    code = f"""
import sys
sys.modules["numpy"] = None
from tocsin.analysis import create_trial
trial = create_trial({str(folder)!r}, run={str(RUN)!r})
for frame in (trial.series("loss", steps=(295, 305)), trial.series('tensor("gradient/.*")', steps=(0, 11)), trial.series("step()", steps=(0, 6)),
              trial.series("loss", points=7, mode="train")):
    print([tuple(row.values()) for row in frame])
print(len(bytes(len(trial.series("loss")))), "numpy" in sys.modules and sys.modules["numpy"] is not None)
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=120).stdout.splitlines()
    frames = (trial.series("loss", steps=(295, 305)), trial.series('tensor("gradient/.*")', steps=(0, 11)), trial.series("step()", steps=(0, 6)),
              trial.series("loss", points=7, mode="train"))
    assert done == [*(str([tuple(row.values()) for row in frame]) for frame in frames), "6021 False"]


# ---- other libraries read a frame by __arrow_c_stream__

def library(name):
    return pytest.importorskip(name, reason=f"PyPI's {name} is not here")


def as_pandas(frame):
    pandas = library("pandas")
    if not hasattr(pandas.DataFrame, "from_arrow"):
        pytest.skip("this pandas has no DataFrame.from_arrow")
    library("pyarrow")
    found = pandas.DataFrame.from_arrow(frame)
    return {name: [None if one is pandas.NA or (name == "median" and one != one) else one for one in found[name]] for name in found}


READERS = {
    "polars": lambda frame: library("polars").DataFrame(frame).to_dict(as_series=False),
    "pyarrow": lambda frame: library("pyarrow").table(frame).to_pydict(),
    "duckdb": lambda frame: dict(zip(frame.columns, map(list, zip(*library("duckdb").sql("select * from frame").fetchall())))),
    "pandas": as_pandas,
}


@pytest.mark.parametrize("name", sorted(READERS))
def test_a_library_reads_a_frame_without_a_line_of_ours(trial, name):
    frame = trial.series('tensor("gradient/.*|weight/.*")', stat=["count", "mean", "median"])
    found = READERS[name](frame)
    assert list(found) == frame.columns
    for column in frame.columns:
        for one, expected in zip(found[column], [row[column] for row in frame]):
            if column == "time":
                assert one.timestamp() == expected.timestamp()
            else:
                assert one == expected or (one != one and expected != expected), (column, one, expected)
    empty = READERS[name](trial.series("nothing"))
    assert all(not len(values) for values in empty.values())


def test_parquet_and_conversions(trial, tmp_path):
    polars, pyarrow = library("polars"), library("pyarrow")
    frame = trial.series("loss", steps=(299, 303), mode="train", workers="worker_0")
    frame.to_parquet(tmp_path / "loss.parquet")
    again = polars.read_parquet(tmp_path / "loss.parquet")
    assert again["step"].to_list() == [299, 300, 301, 302] and math.isnan(again["value"][1]) and again["value"][2] == math.inf
    assert frame.to_polars().equals(again, null_equal=True) and frame.to_arrow().schema.field("time").type == pyarrow.timestamp("us", "UTC")
    assert importlib.import_module("pandas").api.types.is_datetime64_any_dtype(frame.to_pandas()["time"])


def test_what_was_taken_is_given_back(trial):
    pyarrow = library("pyarrow")
    before = kept()
    table = pyarrow.table(trial.series("loss"))
    column = table.column("value").combine_chunks()
    assert kept() > before
    del table  # a column lives on alone
    assert column[5].as_py() == trial.series("loss")["value"][5]
    del column
    unread = trial.series("loss").__arrow_c_stream__()
    del unread
    assert kept() == before


def test_a_missing_library_is_named(trial):
    if importlib.util.find_spec("polars"):
        pytest.skip("polars is here")
    with pytest.raises(ImportError, match="pip install polars"):
        trial.series("loss").to_polars()
