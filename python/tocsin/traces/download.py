"""Traces of PyTorch's profiler that a run has sent (``tocsin capture RUN --trace STEPS``), as files for Perfetto or chrome://tracing::

    python3 -m tocsin.trace RUN STEP --out kafka://host:9092 --worker worker_0 --to trace.json.gz
    python3 -m tocsin.trace RUN worker_0@STEP worker_1@STEP --to trace.json.gz     # of several ranks, as one
    python3 -m tocsin.trace merge FILE FILE... --to trace.json.gz                  # the same of files
"""

import argparse
import sys
from typing import Any, List, Optional, Sequence, Tuple

from tocsin.reading.raw import NoRawTensor, RawTensors
from .merge import Merged, merge
from .profiler import NAME


def read(run: str, step: int, *, worker: Optional[str] = None, out: Optional[str] = None, config: Optional[str] = None,
         capture: Any = None, wait: float = 5.0) -> bytes:
    """The trace as JSON, compressed by gzip. ``run``: its uid; ``step``: at which it was sent, as the answer says; ``worker``: None: the first that
    sent one then. ``out``, ``config``, ``capture``: as of :func:`tocsin.watch`. Raises :class:`tocsin.raw.NoRawTensor`."""
    with RawTensors(run, out=out, config=config, capture=capture) as tensors:
        return bytes(tensors.value(NAME, step, worker=worker, wait=wait).tobytes())


def main(arguments: Optional[Sequence[str]] = None) -> int:
    words = list(sys.argv[1:] if arguments is None else arguments)
    try:
        return _merge(words[1:]) if words[:1] == ["merge"] else _fetch(words)
    except (NoRawTensor, OSError, ValueError) as error:
        print(f"tocsin: {error}", file=sys.stderr)
        return 1


def _fetch(words: List[str]) -> int:
    parser = argparse.ArgumentParser(prog="python3 -m tocsin.trace", description="writes traces that a run has sent into a file")
    parser.add_argument("run", help="uid of the run; or merge, and files")
    parser.add_argument("step", nargs="+", type=_place, help="at which it was sent, or WORKER@STEP; several are merged")
    parser.add_argument("--worker", help="of several")
    parser.add_argument("--out", help="kafka://host:9092 or a directory (default: as of tocsin.watch)")
    parser.add_argument("--config", help="configuration file")
    parser.add_argument("--to", help="file (default: trace-<worker>-<step>.json.gz)")
    given = parser.parse_args(words)
    traces = [read(given.run, step, worker=worker or given.worker, out=given.out, config=given.config) for worker, step in given.step]
    worker, step = given.step[0]
    several = len(traces) > 1
    name = given.to or f"trace-{'all' if several else worker or given.worker or 'any'}-{step}.json.gz"
    _write(name, _said(merge(traces)) if several else traces[0])
    return 0


def _merge(words: List[str]) -> int:
    parser = argparse.ArgumentParser(prog="python3 -m tocsin.trace merge", description="makes one trace of those of several ranks")
    parser.add_argument("file", nargs="+", help="a trace of one rank, as .json or .json.gz")
    parser.add_argument("--to", default="trace-all.json.gz", help="file (default: %(default)s)")
    given = parser.parse_args(words)
    traces = []
    for name in given.file:
        with open(name, "rb") as file:
            traces.append(file.read())
    _write(given.to, _said(merge(traces)))
    return 0


def _place(text: str) -> Tuple[Optional[str], int]:
    worker, _, step = text.rpartition("@")
    return worker or None, int(step)


def _said(merged: Merged) -> bytes:
    for rank, away in merged.moved.items():
        print(f"rank {rank}: clock moved by {away / 1000:+.3f} ms; its steps then end at most {merged.apart[rank] / 1000:.3f} ms apart from those of "
              f"rank {merged.ranks[0]}", file=sys.stderr)
    return merged.data


def _write(name: str, data: bytes) -> None:
    with open(name, "wb") as file:
        file.write(data)
    print(name)


if __name__ == "__main__":
    sys.exit(main())
