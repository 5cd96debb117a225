"""Statistics of tensors on a device: Triton's kernels in its interpreter, compiled for GPUs that are not here, and of shards."""
import os
import subprocess
import sys

import pytest

from tests.support import device_cases
from tests.support.hook_support import ROOT


def run(*arguments, **variables):
    done = subprocess.run([sys.executable, *arguments], cwd=ROOT, text=True, capture_output=True, check=False, timeout=900,
                          env={**os.environ, **variables})
    assert done.returncode == 0, done.stdout[-6000:] + done.stderr[-6000:]
    return done.stdout


def test_the_kernels_in_tritons_interpreter():
    said = run("-m", "pytest", "-q", "tests/frameworks/interpreted.py", TRITON_INTERPRET="1", TOCSIN_DEVICE_KERNEL="triton")
    assert " passed" in said and "failed" not in said and "skipped" not in said


@pytest.mark.parametrize("which", sorted(device_cases.ALL))
def test_without_triton_on_torch_2(which):
    device_cases.check(device_cases.ALL[which]())


@pytest.mark.parametrize("capability", [80, 90])
def test_the_kernels_compile_for_gpus_that_are_not_here(capability, tmp_path):
    said = run("tests/frameworks/compile_kernels.py", str(capability), TRITON_CACHE_DIR=str(tmp_path))
    for kinds in ("f32", "f16", "bf16", "all"):
        assert f"{kinds}: vectors 16, spills 0" in said, said


def test_nothing_of_triton_or_torch_is_imported_by_importing_the_package():
    run("-c", "import sys, tocsin, tocsin.sink; assert not {'torch', 'triton', 'numpy'} & set(sys.modules), sys.modules")


def test_a_watched_model_in_host_memory_needs_no_triton(tmp_path):
    run("-c", "import sys, torch, tocsin\n"
              "m = torch.nn.Linear(2, 2); o = torch.optim.SGD(m.parameters(), lr=.1)\n"
              "before = 'triton' in sys.modules\n"
              "h = tocsin.watch(m, o); m(torch.ones(1, 2)).sum().backward(); o.step(); h.close()\n"
              "assert h.stats()['rows_total'] >= 4 and 'device' not in h.stats()\n"
              "assert before or 'tocsin.tensors.torch_kernels' not in sys.modules", TOCSIN_OUT=str(tmp_path))
