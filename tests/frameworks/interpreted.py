"""The Triton kernels, run by Triton's interpreter on tensors in host memory: `test_device.py` starts this with TRITON_INTERPRET=1."""
import os

import pytest

import torch

from tests.support import device_cases

from tocsin.adapters.torch.optimizers.scaling import Scaling
from tocsin.library import abi
from tocsin.tensors import torch_device, torch_kernels, torch_triton
from tocsin.tensors.device_counts import DeviceCounts

assert os.environ.get("TRITON_INTERPRET") == "1"


@pytest.fixture
def launches(monkeypatch):
    """(kernel, programs) of each launch."""
    made = []
    launch = torch_triton.launch

    def counted(kernel, programs, *arguments, **options):
        made.append((kernel.fn.__name__ if hasattr(kernel, "fn") else kernel.__name__, programs))
        launch(kernel, programs, *arguments, **options)

    monkeypatch.setattr(torch_triton, "launch", counted)
    return made


@pytest.mark.parametrize("which", sorted(device_cases.ALL))
def test_statistics_are_those_of_the_library(which, launches):
    counts = device_cases.check(device_cases.ALL[which]())
    assert counts.as_dict()["kernels"] == {"cpu": "triton"}, "nothing fell back"
    assert [kernel for kernel, _ in launches] == ["measure", "merge"]


@pytest.mark.parametrize("count", [1, 20, 200])
def test_any_number_of_tensors_of_any_types_are_two_launches(launches, count):
    torch.manual_seed(count)
    types = [torch.float32, torch.bfloat16, torch.float16, torch.float64, torch.int8, torch.int64]
    tensors = [torch.randn(5 + 7 * i).mul(9).to(types[i % len(types)]) for i in range(count)]
    counts = device_cases.check({str(i): tensor for i, tensor in enumerate(tensors)})
    assert len(launches) == 2 and launches[1] == ("merge", count)
    assert counts.launches == torch_triton.LAUNCHES <= 5, "with the copies there and back"


def test_one_tensor_of_many_chunks_beside_small_ones(launches):
    torch.manual_seed(7)
    large = torch.randn(40 * torch_triton.CHUNK + 17) + 2
    device_cases.check({"small": torch.ones(3), "large": large, "shifted": large[5:], "half": large.bfloat16(), "last": torch.zeros(1)})
    assert launches[0] == ("measure", 1 + 41 + 41 + 41 + 1)


def test_a_list_of_tensors_that_changes_is_told_apart():
    for sizes in ((5, 70_000), (70_000, 5), (5, 70_000), (40_000, 5)):
        device_cases.check({f"{i} of {sizes}": torch.randn(n) for i, n in enumerate(sizes)})


def test_the_loss_scale_is_read_in_the_same_launches(launches):
    gradient = torch.randn(100) * 1024
    named = [(1, gradient.bfloat16(), abi.FLAG_UNSCALED)]
    rows, _ = torch_device.device_rows(named, Scaling(torch.tensor([1024.0]), torch.tensor(1.0)), DeviceCounts())
    row = rows()[0]
    assert row.abs_sum == pytest.approx(float((gradient.bfloat16().double() / 1024).abs().sum()), rel=1e-5)
    assert row.meta & abi.FLAG_SKIPPED and len(launches) == 2


def test_a_chunk_is_read_twice_only_where_it_must_be(monkeypatch, launches):
    """What is read in binary64 of plain numbers would be slow on many devices."""
    wide = []
    chunk = torch_kernels._wide_chunk
    monkeypatch.setattr(torch_kernels, "_wide_chunk", lambda *arguments: (wide.append(1), chunk(*arguments)))
    device_cases.of_device([torch.randn(70_000), 1e-5 * torch.randn(5000), 1e6 + torch.randn(5000), torch.zeros(9), 1e15 * torch.randn(99)])
    assert wide == []
    device_cases.of_device([torch.tensor([1.0, float("nan")]), 1e-12 * torch.randn(9), 1e30 * torch.randn(9), torch.ones(3, dtype=torch.float64)])
    assert len(wide) == 4
