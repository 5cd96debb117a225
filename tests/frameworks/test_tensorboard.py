"""TensorBoard reads back what tocsin.tensorboard.export() writes."""
import os
import subprocess
import sys

import pytest
from tensorboard.backend.event_processing.event_accumulator import EventAccumulator
from tests.support.recorded import record

import tocsin.tensorboard as exporting


def test_what_tensorboard_reads(out, tmp_path):
    hook, seen = record(out)
    logs = str(tmp_path / "logs")
    said = subprocess.run([sys.executable, "-m", "tocsin.tensorboard", out, logs], capture_output=True, text=True, check=True).stdout
    assert "histograms in" in said and not said.startswith("0 "), said
    assert sorted(os.listdir(logs)) == ["eval", "train"]
    train = EventAccumulator(os.path.join(logs, "train"), size_guidance={"histograms": 0, "scalars": 0}).Reload()
    losses = train.Scalars("loss")
    assert [(one.step, one.value) for one in losses] == [(step, pytest.approx(loss)) for step, (loss, _) in seen.items()]
    assert [one.wall_time for one in losses] == pytest.approx([row["time"] for row in hook.get_tensors("loss")])
    assert [one.value for one in train.Scalars("weight/max")] == pytest.approx([float(w.max()) for _, w in seen.values()])
    shapes = train.Histograms("weight")
    assert [one.step for one in shapes] == [0, 1, 2] and all(one.histogram_value.num == 8 for one in shapes)
    held = EventAccumulator(os.path.join(logs, "eval")).Reload()
    assert [(one.step, one.value) for one in held.Scalars("accuracy")] == [(0, 0.5)]


def test_what_cannot_be_exported(out, tmp_path):
    with pytest.raises(FileNotFoundError, match="no telemetry.db"):
        exporting.export(str(tmp_path / "nothing"), str(tmp_path / "logs"))
    record(out)
    with pytest.raises(ValueError, match="of run nobody"):
        exporting.export(out, str(tmp_path / "logs"), run="nobody")
