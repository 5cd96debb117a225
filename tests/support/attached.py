"""A script under `tocsin run`, without a line of ours in it."""
import os
import subprocess
import sys
import textwrap

from tests.support.program import BINARY, BUILD, ROOT


def run(tmp_path, body, *options, before=(sys.executable,), **environment):
    """What it printed and said, and its code; telemetry goes to tmp_path/data."""
    path = tmp_path / "train.py"
    path.write_text(textwrap.dedent(body))
    known = {"PYTHONPATH": str(ROOT / "python"),
             "TOCSIN_LIBRARY": os.environ.get("TOCSIN_LIBRARY", str(BUILD / "collectors/hook/libtocsin_client.so.0")), **environment}
    return subprocess.run([str(BINARY), "run", "--out", str(tmp_path / "data"), *options, "--", *before, str(path)],
                          capture_output=True, text=True, timeout=240, cwd=tmp_path, env={**os.environ, **known}, check=False)


def lines(done):
    """What was said of ours."""
    return [line for line in done.stderr.splitlines() if line.startswith("tocsin: ")]
