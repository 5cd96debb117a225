"""Where this process stands: the stacks of its threads, and its last collective operations. Places only: no values, no source."""

import json
import sys
import threading
from typing import Any, Dict, Iterable, List

MOST_FRAMES, MOST_THREADS, MOST_TEXT = 30, 16, 12_000  # of a thread; of a process; characters of all together
MOST_COLLECTIVES = 5
_OURS = "tocsin-"  # threads of this package


def stacks(main: int, skip: Iterable[int] = ()) -> List[Dict[str, Any]]:
    """Threads with their frames, the innermost first; the thread ``main`` (an id) first of all. ``skip``: ids that are left
    out, besides this package's own."""
    names = {thread.ident: thread.name for thread in threading.enumerate()}
    found = sys._current_frames()
    skipped = set(skip)
    order = sorted(found, key=lambda ident: (ident != main, ident))
    out: List[Dict[str, Any]] = []
    left = MOST_TEXT
    for ident in order:
        name = names.get(ident) or f"thread {ident}"
        if ident in skipped or (name.startswith(_OURS) and ident != main) or len(out) == MOST_THREADS or left <= 0:
            continue
        places: List[str] = []
        frame = found[ident]
        while frame is not None and len(places) < MOST_FRAMES and left > 0:
            places.append(place(frame))
            left -= len(places[-1])
            frame = frame.f_back
        out.append({"name": name, "frames": places})
    return out


def place(frame: Any) -> str:
    """``function (file.py:12)``, the file with the folder that it lies in."""
    code = frame.f_code
    file = "/".join(code.co_filename.replace("\\", "/").split("/")[-2:])
    return f"{getattr(code, 'co_qualname', code.co_name)} ({file}:{frame.f_lineno})"[:200]


def collectives() -> str:
    """The last collective operations of torch.distributed, where its flight recorder is there to be asked; else why not."""
    torch = sys.modules.get("torch")
    group = getattr(torch, "distributed", None)
    try:
        if group is None or not group.is_available() or not group.is_initialized():
            return "none: torch.distributed is not in use"
        backend = str(group.get_backend())
        module = torch._C._distributed_c10d  # type: ignore[union-attr]
        dump = getattr(module, "_dump_nccl_trace_json" if "nccl" in backend else "_dump_fr_trace_json", None)
        if dump is None:
            return f"not available: this PyTorch has no flight recorder for {backend}"
        return _last(json.loads(dump()).get("entries") or [], backend)
    except Exception as error:  # noqa: BLE001 - evidence is taken as far as it is there
        return f"not available: {type(error).__name__}: {error}"[:200]


def _last(entries: List[Dict[str, Any]], backend: str) -> str:
    if not entries:
        return f"not available: the flight recorder of {backend} is empty (TORCH_FR_BUFFER_SIZE)"
    newest = sorted(entries, key=lambda entry: entry.get("record_id", 0))[-MOST_COLLECTIVES:]
    return "; ".join(
        f"{entry.get('profiling_name', '?')} {entry.get('collective_seq_id', '?')} of {'/'.join(entry.get('process_group') or ['?'])} "
        f"{entry.get('input_sizes', '')}: {'completed' if entry.get('retired') else entry.get('state', '?')}" for entry in reversed(newest))


def text(threads: List[Dict[str, Any]], operations: str) -> str:
    """The same for a terminal."""
    parts = [thread["name"] + ":\n  " + "\n  ".join(thread["frames"]) for thread in threads]
    return "\n".join(parts + [f"collectives: {operations}"])
