"""Event files of TensorBoard read back by their format, a trial of a past moment, curves and figures, and sources that cannot be opened."""
import builtins
import datetime
import math
import struct
import xml.etree.ElementTree

import pytest

from tests.support.written_run import WrittenRun
from tocsin.analysis import NotInstalled, StepHistogram, create_trial, export
from tocsin.wire import EVAL

BEGIN = 1_760_000_000_000_000_000  # UTC ns
SECOND = 1_000_000_000


@pytest.fixture
def run(tmp_path):
    """Two ranks: a loss in ten steps a second apart, NaN in step 7, one evaluation, and gradients; then the end."""
    clock = [BEGIN]
    out = WrittenRun(tmp_path / "run1", world=2, names=("loss", "gradient/fc"), now=lambda: clock[0])
    for rank in (0, 1):
        out.event(rank, "start", launch="k", job="digits")
    for step in range(10):
        for rank in (0, 1):
            out.scalars(rank, [("loss", step, math.nan if step == 7 else 2.0 - 0.1 * step + rank, 5)])
            out.step_end(rank, step, start=clock[0] - SECOND // 2, end=clock[0])
        out.summary(0, step, {"gradient/fc": {"count": 4, "sum": 8.0, "sumsq": 36.0, "m2": 20.0, "min": -1.0, "max": 5.0, "abs_sum": 10.0}})
        clock[0] += SECOND
    out.scalars(0, [("loss", 0, 0.25, 5)], mode=EVAL)
    for rank in (0, 1):
        out.event(rank, "end", outcome="completed")
    return str(tmp_path / "run1")


def crc32c(data):
    """Bit by bit, apart from the package's table."""
    crc = 0xFFFFFFFF
    for byte in data:
        crc ^= byte
        for _ in range(8):
            crc = crc >> 1 ^ (0x82F63B78 if crc & 1 else 0)
    return crc ^ 0xFFFFFFFF


def records(path):
    """Of a TFRecord file; both checksums hold."""
    data, at = open(path, "rb").read(), 0
    while at < len(data):
        (length,) = struct.unpack_from("<Q", data, at)
        for begin, end in ((at, at + 8), (at + 12, at + 12 + length)):
            crc = crc32c(data[begin:end])
            assert struct.unpack_from("<I", data, end)[0] == ((crc >> 15 | crc << 17 & 0xFFFFFFFF) + 0xA282EAD8) & 0xFFFFFFFF
        yield data[at + 12:at + 12 + length]
        at += 16 + length


def message(data):
    """[(field, value)] of a message of protocol buffers."""
    out, at = [], 0

    def varint():
        nonlocal at
        value = shift = 0
        while True:
            byte = data[at]
            at += 1
            value |= (byte & 0x7F) << shift
            shift += 7
            if byte < 0x80:
                return value
    while at < len(data):
        key = varint()
        if key & 7 == 0:
            out.append((key >> 3, varint()))
        elif key & 7 == 1:
            out.append((key >> 3, struct.unpack_from("<d", data, at)[0]))
            at += 8
        elif key & 7 == 5:
            out.append((key >> 3, struct.unpack_from("<f", data, at)[0]))
            at += 4
        else:
            length = varint()
            out.append((key >> 3, data[at:at + length]))
            at += length
    return out


def values(path):
    """[(time, step, tag, value)]; the first record is the version."""
    events = [dict(message(one)) for one in records(path)]
    assert events[0][3] == b"brain.Event:2"
    return [(event[1], event[2], dict(message(one))[1].decode(), dict(message(one))[2]) for event in events[1:] for _, one in message(event[5])]


def test_event_files_of_tensorboard(run, tmp_path):
    names = export(run, to="tensorboard", path=str(tmp_path / "logs"))
    assert [name[len(str(tmp_path / "logs")):].split("/events")[0] for name in names] == ["/eval", "/train", "/train/rank_1"]
    first = values(names[1])
    loss = [(step, value) for _, step, tag, value in first if tag == "loss"]
    assert loss[:7] == [(step, pytest.approx(2.0 - 0.1 * step)) for step in range(7)] and loss[7][0] == 7 and math.isnan(loss[7][1])
    assert [value for _, _, tag, value in first if tag == "step/seconds"] == [0.5] * 10
    assert {tag: value for _, step, tag, value in first if step == 3 and tag.startswith("gradient")} == {
        "gradient/fc/mean": 2.0, "gradient/fc/l2": 6.0, "gradient/fc/min": -1.0, "gradient/fc/max": 5.0, "gradient/fc/abs_max": 5.0,
        "gradient/fc/std": pytest.approx(math.sqrt(5))}
    assert [time for time, _, tag, _ in first if tag == "step/seconds"] == [pytest.approx((BEGIN + step * SECOND) / 1e9, abs=1e-3) for step in range(10)]
    assert [(step, value) for _, step, tag, value in values(names[0]) if tag == "loss"] == [(0, 0.25)]


def test_tensorboard_itself_reads_them(run, tmp_path):
    accumulator = pytest.importorskip("tensorboard.backend.event_processing.event_accumulator", reason="TensorBoard is not installed")
    names = export(run, to="tensorboard", path=str(tmp_path / "logs"))
    reader = accumulator.EventAccumulator(names[1]).Reload()
    assert [(one.step, one.value) for one in reader.Scalars("loss")][:3] == [(0, 2.0), (1, pytest.approx(1.9)), (2, pytest.approx(1.8))]


def test_a_value_beyond_32_bits_is_infinite(tmp_path):
    written = WrittenRun(tmp_path / "run1")
    written.event(0, "start", launch="k", job="j")
    written.scalars(0, [("loss", 0, 1e300, 5), ("loss", 1, -1e300, 5)])
    (name,) = export(str(tmp_path / "run1"), to="tensorboard", path=str(tmp_path / "logs"))
    assert [value for *_, value in values(name)] == [math.inf, -math.inf]


@pytest.mark.parametrize("at", [(BEGIN + 3 * SECOND) / 1e9, "2025-10-09T08:53:23Z", datetime.datetime(2025, 10, 9, 8, 53, 23)])
def test_a_trial_of_a_past_moment(run, at):
    trial = create_trial(run, at=at)
    assert trial.steps(mode="train", show_incomplete_steps=True) == [0, 1, 2, 3] and not trial.loaded_all_steps
    assert sorted({row["step"] for row in trial.series("loss")}) == [0, 1, 2, 3]
    trial.refresh()
    assert trial.steps(mode="eval") == [] and create_trial(run).steps(mode="eval") == [0] and create_trial(run).loaded_all_steps


def test_moments_that_are_none_are_named(run):
    for at in ("yesterday", True, math.nan, object()):
        with pytest.raises(ValueError, match="at=.*2026-11-27T18:58:30Z"):
            create_trial(run, at=at)
    with pytest.raises(ValueError, match="at=.*2026-11-27T18:58:30Z"):
        create_trial("http://127.0.0.1:9", at="yesterday")  # before the server is asked


def test_a_place_that_cannot_be_opened_is_told_what_can():
    with pytest.raises(ValueError, match="expected a directory, http://host:port of a server, kafka://host:9092, or s3://bucket/prefix"):
        create_trial("gs://bucket/run1")
    with pytest.raises(ConnectionError, match="127.0.0.1:1"):
        create_trial("kafka://127.0.0.1:1", run="0" * 32)


def test_a_curve_is_lines_with_bands_and_marks(run):
    chart = create_trial(run).plot("loss", mode="train", points=4)
    assert set(chart.data) == {"loss worker_0", "loss worker_1"}
    first = chart.data["loss worker_0"]
    assert [(row["step"], row["min"], row["max"], row["bad_step"]) for row in first] == \
        [(0, pytest.approx(1.7), 2.0, None), (4, pytest.approx(1.4), pytest.approx(1.6), 7), (8, pytest.approx(1.1), pytest.approx(1.2), None)]
    assert str(chart).startswith("loss worker_0, steps 0 to 11: from 1.85 to 1.15, least 1.1 at 8, greatest 2 at 0; not finite for the first time at 7. loss worker_1")
    picture = [one.tag.split("}")[1] for one in xml.etree.ElementTree.fromstring(chart.svg()).iter()]
    assert picture.count("polygon") == 2 and picture.count("rect") == 1 + 2  # the ground, and a mark for each line
    assert "not finite" in create_trial(run).plot("loss", mode="train").svg()  # a point that has no finite number at all
    gradient = create_trial(run).plot("tensor(\"gradient/.*\")")
    assert [row["mean"] for row in gradient.data["gradient/fc"]] == [6.0] * 10
    assert str(create_trial(run).plot("step()", workers=["worker_1"])).startswith("step, steps 0 to 9: from 0.5 to 0.5")
    assert str(create_trial(run).plot("nothing")) == "Nothing of nothing."
    with pytest.raises(ValueError, match="TimelineCharts"):
        create_trial(run).plot("system(\".*\")")


def test_many_lines_are_said_to_be_left_out(tmp_path):
    written = WrittenRun(tmp_path / "run1", names=[f"m{number}" for number in range(20)])
    written.event(0, "start", launch="k", job="j")
    written.scalars(0, [(f"m{number}", 0, 1.0, 5) for number in range(20)])
    chart = create_trial(str(tmp_path / "run1")).plot('metric("m.*")')
    assert len(chart.data) == 16 and str(chart).endswith("4 more lines are not drawn.")


def test_a_figure_of_matplotlib(run, tmp_path):
    pytest.importorskip("matplotlib", reason="matplotlib is not installed")
    trial = create_trial(run)
    figure = trial.plot("loss", mode="train").figure()
    lines = figure.axes[0].get_lines()
    assert list(lines[0].get_xdata())[:3] == [0, 1, 2] and list(lines[0].get_ydata())[:2] == [2.0, pytest.approx(1.9)]
    histogram = StepHistogram(trial).plot()
    assert sum(bar.get_height() for bar in histogram.figure().axes[0].patches) == 9
    histogram.save(str(tmp_path / "x.png"))
    assert (tmp_path / "x.png").read_bytes()[:4] == b"\x89PNG"


def test_without_matplotlib_the_extra_is_named(run, monkeypatch):
    real = builtins.__import__

    def without(name, *rest, **more):
        if name.startswith("matplotlib"):
            raise ImportError(name)
        return real(name, *rest, **more)
    monkeypatch.setattr(builtins, "__import__", without)
    with pytest.raises(NotInstalled, match=r"pip install \"tocsin\[plot\]\""):
        create_trial(run).plot("loss").figure()

