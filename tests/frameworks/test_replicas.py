"""Ranks that train on the same samples: fingerprints of the hook, judged by the rule `ranks`."""
import json
import pathlib
import subprocess
import sys

import pytest

from tests.support.hook_support import Telemetry, closed_port
from tests.support.program import BINARY

JOB = pathlib.Path(__file__).with_name("replicas.py")


def train(folder, kind, world):
    port = closed_port()
    ranks = [subprocess.Popen([sys.executable, str(JOB), str(rank), str(world), str(port), str(folder), kind], stderr=subprocess.PIPE, text=True)
             for rank in range(world)]
    for rank in ranks:
        _, error = rank.communicate(timeout=120)
        assert rank.returncode == 0, error


def judged(folder):
    told = subprocess.run([BINARY, "evaluate", "--from", str(folder), "--rules", "ranks", "--format", "json"], capture_output=True, text=True,
                          check=False)
    assert told.returncode in (0, 1), told.stderr
    return {issue["rule"] for issue in json.loads(told.stdout)["issues"]}


@pytest.mark.parametrize("kind, world, expected", [("same", 2, {"ranks"}), ("alone", 2, {"ranks"}), ("sharded", 2, set()),
                                                   ("halves", 4, set()), ("constant", 2, set())])
def test_ranks_on_the_same_batches_are_told(tmp_path, kind, world, expected):
    folder = tmp_path / "journal"
    train(folder, kind, world)
    batches = Telemetry(str(folder)).scalars("ledger/ranks/batch")
    assert len(batches) == (0 if kind == "halves" else world * 7), "of the first step the hook knows no wrapper yet"
    assert judged(folder) == expected
