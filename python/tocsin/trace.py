"""Traces of PyTorch's profiler that a run has sent (``tocsin capture RUN --trace STEPS``), as files for Perfetto or chrome://tracing::

    python3 -m tocsin.trace RUN STEP --out kafka://host:9092 --worker worker_0 --to trace.json.gz
"""

import argparse
import sys
from typing import Any, Optional

from ._traces import NAME
from .raw import NoRawTensor, RawTensors


def read(run: str, step: int, *, worker: Optional[str] = None, out: Optional[str] = None, config: Optional[str] = None,
         capture: Any = None, wait: float = 5.0) -> bytes:
    """The trace as JSON, compressed by gzip. ``run``: its uid; ``step``: at which it was sent, as the answer says; ``worker``: None: the first that
    sent one then. ``out``, ``config``, ``capture``: as of :func:`tocsin.watch`. Raises :class:`tocsin.raw.NoRawTensor`."""
    with RawTensors(run, out=out, config=config, capture=capture) as tensors:
        return bytes(tensors.value(NAME, step, worker=worker, wait=wait).tobytes())


def main() -> int:
    parser = argparse.ArgumentParser(prog="python3 -m tocsin.trace", description="writes a trace that a run has sent into a file")
    parser.add_argument("run", help="uid of the run")
    parser.add_argument("step", type=int, help="at which it was sent")
    parser.add_argument("--worker", help="of several")
    parser.add_argument("--out", help="kafka://host:9092 or a directory (default: as of tocsin.watch)")
    parser.add_argument("--config", help="configuration file")
    parser.add_argument("--to", help="file (default: trace-<worker>-<step>.json.gz)")
    given = parser.parse_args()
    name = given.to or f"trace-{given.worker or 'any'}-{given.step}.json.gz"
    try:
        data = read(given.run, given.step, worker=given.worker, out=given.out, config=given.config)
    except NoRawTensor as error:
        print(f"tocsin: {error}", file=sys.stderr)
        return 1
    with open(name, "wb") as file:
        file.write(data)
    print(name)
    return 0


if __name__ == "__main__":
    sys.exit(main())
