"""What can be known about the process without importing anything that it has not imported."""

import os
import sys
from typing import Any


def framework() -> str:
    for name in ("torch", "tensorflow", "jax", "xgboost"):
        module = sys.modules.get(name)
        if module is not None:
            return f"{name} {getattr(module, '__version__', '')}".strip()
    return "python"


def distributed() -> Any:
    """(rank, world size) of torch.distributed when it is up, else (-1, -1): the environment says."""
    torch = sys.modules.get("torch")
    group = getattr(torch, "distributed", None)
    try:
        if group is not None and group.is_available() and group.is_initialized():
            return group.get_rank(), group.get_world_size()
    except Exception:  # noqa: BLE001
        pass
    return -1, -1


def say(text: str) -> None:
    """One line on stderr for the person at the terminal; nothing with ``TOCSIN_QUIET=1``."""
    if os.environ.get("TOCSIN_QUIET", "0") not in ("", "0"):
        return
    try:
        print(f"tocsin: {text}", file=sys.stderr, flush=True)
    except Exception:  # noqa: BLE001 - stderr may be closed
        pass
