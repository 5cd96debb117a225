"""Two ranks of a script on this machine: under a real torchrun, where this interpreter's PyTorch has one that runs (Debian's 1.13 fails in it
with Python 3.11), else as two processes with the environment that it would give them."""
import os
import socket
import subprocess
import sys

import torch

from tests.support.program import BUILD, ROOT


class TwoRanks:
    def __init__(self, script, *arguments, cwd, **environment):
        base = {key: value for key, value in os.environ.items() if not key.startswith("TOCSIN_") or key == "TOCSIN_LIBRARY"}
        base.setdefault("TOCSIN_LIBRARY", str(BUILD / "collectors/hook/libtocsin_client.so.0"))
        base.update(PYTHONPATH=str(ROOT / "python"), TOCSIN_QUIET="1", OMP_NUM_THREADS="1", **environment)
        command = [str(script), *map(str, arguments)]
        if torch.__version__ >= "2":
            launches = [([sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc_per_node", "2", *command], {})]
        else:
            with socket.create_server(("127.0.0.1", 0)) as one:
                port = one.getsockname()[1]
            ranks = {"WORLD_SIZE": "2", "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(port)}
            launches = [([sys.executable, *command], {**ranks, "RANK": str(rank)}) for rank in range(2)]
        self._processes = [subprocess.Popen(line, env={**base, **more}, cwd=cwd) for line, more in launches]

    def wait(self, timeout):
        """The worst exit status; kills what does not end in time."""
        try:
            return max(abs(process.wait(timeout)) for process in self._processes)
        finally:
            for process in self._processes:
                process.kill()
                process.wait()
