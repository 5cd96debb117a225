"""Elements of tensors on a device, when they are asked for: a copy in pinned memory that nobody waits for.

What is measured of such a tensor is measured of the copy.
"""

import sys
from typing import Any, List, Optional, Tuple

from tocsin.library import abi
from .torch_names import local
from .torch_staging import Arrival, capturing

MAX_COPIES = 256 << 20  # bytes on their way from all devices

_in_flight = 0


def publish_copies(sink: Any, named: List[Tuple[int, Any, int]], scaling: Optional[Any] = None, raw: bool = False) -> None:
    """Of (id, tensor, row flags) of the present step. Rows flagged as divided by the loss scale are divided by that of
    ``scaling``. ``raw``: elements are sent whatever the collections say. What finds no room is counted."""
    global _in_flight
    if capturing():
        sink.device_counts.skip("graph_capture", len(named))
        return
    torch = sys.modules["torch"]
    copies: List[Tuple[int, Any, int]] = []
    devices = set()
    total = 0
    with torch.no_grad():
        for identity, tensor, flags in named:
            tensor = local(tensor.detach())
            if tensor.is_sparse:
                tensor = tensor.coalesce().values()
            size = tensor.numel() * tensor.element_size()
            if _in_flight + size > MAX_COPIES:
                sink.device_counts.skip("raw_in_flight")
                continue
            if flags & abi.FLAG_UNSCALED and scaling is not None and scaling.scale is not None:
                tensor = tensor / scaling.scale.to(tensor.device)
            on_cuda = tensor.device.type == "cuda"
            copy = torch.empty(tensor.shape, dtype=tensor.dtype, pin_memory=on_cuda)
            copy.copy_(tensor, non_blocking=on_cuda)
            if on_cuda:
                devices.add(tensor.device)
            _in_flight += size
            total += size
            copies.append((identity, copy, flags | (abi.TENSOR_RAW if raw else 0)))
    if not copies:
        return
    events = []
    for device in devices:
        event = torch.cuda.Event()
        event.record(torch.cuda.current_stream(device))
        events.append(event)

    def arrived() -> None:
        global _in_flight
        _in_flight -= total

    sink.publish_copies(copies, Arrival(*events) if events else None, arrived)
