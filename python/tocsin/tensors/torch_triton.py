"""Statistics of any number of tensors in two launches: builds the tables for the kernels of ``torch_kernels``."""

import importlib
import importlib.util
import os
import sys
from array import array
from typing import Any, Dict, List, Optional, Tuple

from .torch_layout import COLUMNS, WIDE_FROM
from .torch_staging import Flight

CHUNK = 1 << 15  # elements that one program reads: 32 blocks
BLOCK, WIDE_BLOCK, MERGE_BLOCK = 1024, 512, 512
_F32 = 1  # is compiled for always: a gradient scaler's numbers are of it
_KEPT = 64  # maps of chunks, of different lists of tensors

# A multiplication and an addition as one operation: said, because Triton 3.9 warns of who does not say it.
OPTIONS = {"num_warps": 4, "enable_fp_fusion": True}

LAUNCHES = 4  # of a batch: a copy to the device, two kernels, a copy back; the first time another copy


def why_not(device: Any) -> Optional[str]:
    """None: Triton can be used on this device; else the reason. Imports nothing."""
    torch = sys.modules["torch"]
    wanted = os.environ.get("TOCSIN_DEVICE_KERNEL", "")
    if wanted not in ("", "auto", "triton"):
        return "TOCSIN_DEVICE_KERNEL=" + wanted
    if device.type == "cpu":
        interpreted = os.environ.get("TRITON_INTERPRET", "0") not in ("", "0")
        return None if wanted == "triton" and interpreted else "not a GPU"
    if device.type != "cuda":
        return "not a CUDA device"
    if torch.version.hip is None and torch.cuda.get_device_capability(device) < (7, 0):
        return "compute capability below 7.0"
    if "triton" not in sys.modules:
        if "tensorflow" in sys.modules:
            return "TensorFlow is loaded: its LLVM and Triton's end the process together"
        if importlib.util.find_spec("triton") is None:
            return "Triton is not installed"
    return None


class TritonStatistics:
    """Of one device. Imports Triton."""

    name = "triton"

    def __init__(self, device: Any) -> None:
        self._device = device
        self._kernels = importlib.import_module(".torch_kernels", __package__)
        major = str(sys.modules["triton"].__version__).split(".", maxsplit=1)[0]
        self._options = OPTIONS if int(major) >= 3 else {"num_warps": 4}
        self._owners: Dict[Tuple[Any, ...], Any] = {}

    def __call__(self, runs: List[Tuple[Any, int]], flight: Flight) -> Any:
        """``runs``: (contiguous tensor with at least one element, kind). A binary64 tensor with a row of
        COLUMNS per tensor, on the device, not waited for."""
        torch = sys.modules["torch"]
        if self._device.type != "cuda":
            return self._launch(torch, runs, flight)
        with torch.cuda.device(self._device):
            return self._launch(torch, runs, flight)

    def _launch(self, torch: Any, runs: List[Tuple[Any, int]], flight: Flight) -> Any:
        tensors = len(runs)
        rows: List[List[int]] = [[], [], [], [], [], []]
        addresses, heads, ends, kinds, firsts, counts = rows
        chunks, used = 0, _F32
        for tensor, kind in runs:
            address, head = tensor.data_ptr(), 0
            if kind < WIDE_FROM:  # is read 16 bytes at a time, from such an address on
                off = address & 15
                if off:
                    address -= off
                    head = off // tensor.element_size()
            end = head + tensor.numel()
            count = -(-end // CHUNK)
            addresses.append(address)
            heads.append(head)
            ends.append(end)
            kinds.append(kind)
            firsts.append(chunks)
            counts.append(count)
            chunks += count
            used |= 1 << kind
        table = flight.upload(torch.frombuffer(array("q", [number for row in rows for number in row]),
                                               dtype=torch.int64))
        partials = torch.empty(self._kernels.COLUMNS * chunks, dtype=torch.float64, device=self._device)
        out = torch.empty((tensors, len(COLUMNS)), dtype=torch.float64, device=self._device)
        launch(self._kernels.measure, chunks, table, self._owner(torch, counts, flight), partials, tensors, chunks,
               KINDS=used, CHUNK=CHUNK, BLOCK=BLOCK, WIDE=WIDE_BLOCK, **self._options)
        launch(self._kernels.merge, tensors, table, partials, out, tensors, chunks,
               BLOCK=MERGE_BLOCK, **self._options)
        return out

    def _owner(self, torch: Any, counts: List[int], flight: Flight) -> Any:
        """Which tensor each chunk is of: the same at every sampled step, so it stays on the device."""
        stream = torch.cuda.current_stream(self._device).cuda_stream if self._device.type == "cuda" else 0
        key = (stream, *counts)
        owner = self._owners.get(key)
        if owner is None:
            if len(self._owners) >= _KEPT:
                del self._owners[next(iter(self._owners))]
            owner = torch.repeat_interleave(torch.arange(len(counts)), torch.tensor(counts))
            self._owners[key] = owner = flight.upload(owner)
        return owner


def launch(kernel: Any, programs: int, *arguments: Any, **options: Any) -> None:
    """The one place where a kernel is launched."""
    kernel[(programs,)](*arguments, **options)
