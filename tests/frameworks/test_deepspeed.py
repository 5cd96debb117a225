"""DeepSpeed: what each rank's part of ZeRO says, put together, is the whole; nothing is called missing that ZeRO shares out."""
import json
import os
import subprocess
import sys
import types

import pytest
import torch

from tests.frameworks.test_statistics import summaries
from tests.support.hook_support import ROOT, Telemetry

from tocsin.adapters.torch.optimizers import zero


@pytest.mark.parametrize("stage", [0, 1, 2, 3])
def test_the_parts_of_all_ranks_make_the_whole(tmp_path, stage):
    environment = {**os.environ, "OMP_NUM_THREADS": "1", "DS_ACCELERATOR": "cpu"}
    done = subprocess.run([sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node", "2",
                           str(ROOT / "tests/frameworks/zero.py"), str(tmp_path), str(stage)], text=True, capture_output=True, check=False,
                          timeout=300, env=environment)
    assert done.returncode == 0, done.stderr
    said = [line for line in done.stderr.splitlines() if line.startswith("tocsin: ") and "nobody judges" not in line]
    assert len(said) == 1 and said[0].startswith("tocsin: watching"), "no parameter is without an optimizer, none foreign"
    telemetry = Telemetry(tmp_path / "data")
    assert sorted(set(telemetry.steps())) == [0, 1, 2], "micro-batches are no steps"
    with open(tmp_path / "whole.json", encoding="utf-8") as file:
        whole = json.load(file)
    rows = [summaries(telemetry, 2, rank) for rank in range(2 if stage else 1)]
    for name, values in whole.items():
        mine = [row[name] for row in rows if name in row]
        assert len(mine) == len(rows) or name.startswith("gradient/"), name
        assert sum(row["count"] for row in mine) == len(values), name
        assert sum(row["sum"] for row in mine) == pytest.approx(sum(values), rel=1e-5, abs=1e-7), name
        assert sum(row["sumsq"] for row in mine) == pytest.approx(sum(value * value for value in values), rel=1e-5), name
    assert "2.bias" not in whole and all("2.bias" not in row for row in rows), "it is not trained"


class Piece:
    def __init__(self, *values):
        self.grad = torch.tensor(values)


def test_a_loss_scale_is_divided_by_and_an_overflow_is_left_out():
    """As DeepSpeed does inside of step(): by then the rows are out."""
    optimizer = types.SimpleNamespace(loss_scale=1024.0, dynamic_loss_scale=True, overflow=False,
                                      param_groups=[{"params": [torch.zeros(1)]}])
    scaling = zero.scaling(optimizer, lambda: [("a", Piece(1.0, 2.0)), ("b", Piece(3.0))])
    assert scaling.divisor() == 1024.0 and not scaling.skipped()
    scaling = zero.scaling(optimizer, lambda: [("a", Piece(1.0, 2.0)), ("b", Piece(float("inf")))])
    assert scaling.skipped()
    optimizer.overflow = True  # what step() found of all ranks
    assert scaling.skipped_later()[0]()
    assert zero.scaling(types.SimpleNamespace(loss_scale=1.0, dynamic_loss_scale=False), list) is None
