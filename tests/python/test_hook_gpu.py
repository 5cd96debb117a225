"""What only a GPU does, with PyTorch's part of it recorded; and the benchmark for one, where there is none."""
import subprocess
import sys

import pytest

import torch

from tests.support.device_events import Event
from tests.support.hook_support import ROOT

from tocsin.tensors import torch_device, torch_staging
from tocsin.tensors.device_counts import DeviceCounts


class Recorded:
    """Stands in for `torch.cuda`: what is called, in order."""

    def __init__(self):
        self.calls, self.capture = [], False

    def Event(self, enable_timing=False):
        event, calls = Event(), self.calls
        event.record = lambda stream: calls.append(("record", stream, enable_timing))
        return event

    def current_stream(self, device=None):
        return f"stream of {device}"

    def is_initialized(self):
        return True

    def is_current_stream_capturing(self):
        return self.capture


@pytest.fixture
def cuda(monkeypatch):
    """`torch.cuda` is recorded, pinned memory is ordinary memory, tensors in host memory are on a GPU."""
    recorded, empty = Recorded(), torch.empty
    torch_device._devices.clear()
    known = torch_device._device_of(torch.device("cpu"))
    known.staging.pinned = True
    monkeypatch.setattr(torch, "cuda", recorded)
    monkeypatch.setattr(torch, "empty", lambda *sizes, pin_memory=False, **options: (pin_memory and recorded.calls.append(("pin", sizes[0])),
                                                                                    empty(*sizes, **options))[1])
    yield recorded
    torch_device._devices.clear()


def test_events_are_recorded_on_the_stream_of_the_tensors_and_pinned_memory_goes_round(cuda):
    counts = DeviceCounts()
    for repeat in range(3):
        cuda.calls.clear()
        rows, ready = torch_device.device_rows([(1, torch.full((5,), float(repeat)), 0)], None, counts)
        pinned = [call for call in cuda.calls if call[0] == "pin"]
        assert [call for call in cuda.calls if call[0] == "record"] == [("record", "stream of cpu", True)] * 2
        assert bool(pinned) == (repeat == 0), "allocating it may wait for the device"
        assert not ready.query()
        ready.synchronize()
        assert ready.query() and rows()[0].sum == 5 * repeat
    assert counts.seconds == pytest.approx(3 * 2e-3)


def test_a_scalar_comes_back_like_that_too(cuda):
    kept, ready = torch_device.copy_of_scalar(torch.tensor(3.5))
    assert float(kept) == 3.5 and not ready.query()
    cuda.capture = True
    assert torch_staging.capturing() and not ready.query()
    with pytest.raises(RuntimeError, match="graph"):
        ready.synchronize()
    cuda.capture = False
    ready.synchronize()
    assert ready.query()


def test_a_graph_that_is_captured_is_asked_of_torch(cuda, capsys):
    cuda.capture = True
    counts = DeviceCounts()
    assert torch_device.device_rows([(1, torch.ones(2), 0), (2, torch.ones(3), 0)], None, counts) is None
    assert counts.skipped == {"graph_capture": 2} and cuda.calls == []
    assert capsys.readouterr().err.count("a CUDA graph was being captured") == 1


def test_the_benchmark_runs_without_a_gpu_and_says_so(tmp_path):
    def bench(*arguments):
        return subprocess.run([sys.executable, str(ROOT / "bench/gpu_bench.py"), *arguments], text=True, capture_output=True, check=True,
                              timeout=600).stdout.splitlines()

    said = bench("--device", "cpu", "--tiny", "--out", str(tmp_path / "journal"))
    figures = {line.split()[0]: line.split() for line in said if line.startswith("gpu_")}
    assert len(figures) == 6 + 1 + 4 + 8 and all(figure[-1] == "-" for figure in figures.values()), "nothing is judged"
    assert all(len(figure) == 7 and float(figure[1]) >= 0 for figure in figures.values())
    if not torch.cuda.is_available():
        assert [line for line in bench() if "no GPU here" in line]
