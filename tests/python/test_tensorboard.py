"""What event files of a recording hold; TensorBoard reads them back in tests/frameworks/test_tensorboard.py."""
import builtins

import pytest
from tests.support.recorded import record

import tocsin.tensorboard as exporting


def test_a_histogram_counts_every_value_where_it_belongs(out):
    hook, seen = record(out)
    for row in hook.get_tensors("weight"):
        histogram = exporting.histogram_of(row)
        limits, counts = histogram["bucket_limit"], histogram["bucket"]
        assert limits == sorted(set(limits)) and len(limits) == len(counts)
        values = sorted(seen[row["step"]][1].flatten().tolist())
        assert histogram["num"] == sum(counts) == len(values)
        assert histogram["min"] == pytest.approx(values[0]) and histogram["max"] == pytest.approx(values[-1])
        below = 0.0  # up to each end there are as many values as the buckets say; the ends are theirs to a rounding
        for limit, count in zip(limits, counts):
            below += count
            assert below == sum(value <= limit + 1e-12 for value in values), (limit, values, histogram)


def test_rows_have_times_and_tags(out):
    hook, seen = record(out)
    tags = {tag: value for row in hook.get_tensors(step=1) for tag, value in exporting.scalars_of(row)}
    assert tags["loss"] == pytest.approx(seen[1][0]) and tags["weight/l2"] == pytest.approx(float(seen[1][1].norm()), rel=1e-5)
    assert "weight/count" not in tags and "weight/time" not in tags
    times = [row["time"] for row in hook.get_tensors("loss")]
    assert times == sorted(times) and 1.6e9 < times[0] < 4e9


def test_without_the_package_it_says_what_is_missing(out, tmp_path, monkeypatch, capsys):
    record(out)
    real = builtins.__import__

    def without(name, *rest, **more):
        if name.split(".")[0] == "tensorboard" and not more.get("level") and (len(rest) < 4 or rest[3] == 0):
            raise ImportError(name)
        return real(name, *rest, **more)
    monkeypatch.setattr(builtins, "__import__", without)
    with pytest.raises(exporting.NoTensorBoard, match="pip install tensorboard"):
        exporting.export(out, str(tmp_path / "logs"))
    assert exporting.main([out, str(tmp_path / "logs")]) == 1
    assert "pip install tensorboard" in capsys.readouterr().err and not (tmp_path / "logs").exists()
