"""Another copy of RE2 that everybody in the process sees, as TensorFlow 2 brings one: it is not called in place of ours."""
import os
import shutil
import subprocess
import sys

import pytest

from tests.support.program import BUILD, ROOT

# A constructor of another RE2, which our library must not run.
ANOTHER = """
#include <stdlib.h>
#include <unistd.h>
void _ZN3re23RE2C1EPKc(void) { write(2, "the other RE2\\n", 14); _exit(66); }
void _ZN3re23RE2C1ERKNS_11StringPieceERKNS0_7OptionsE(void) { _ZN3re23RE2C1EPKc(); }
void _ZN3re23RE2C1ERKNS_11StringPieceE(void) { _ZN3re23RE2C1EPKc(); }
void _ZN3re23RE2C1ERKNSt7__cxx1112basic_stringIcSt11char_traitsIcESaIcEEE(void) { _ZN3re23RE2C1EPKc(); }
"""

JOB = """
import ctypes, math, os, sys
ctypes.CDLL(sys.argv[1], mode=ctypes.RTLD_GLOBAL)
import tocsin
rules = "{rules: [{use: exploding_tensor, with: {tensor_regex: 'lo.*s'}}]}"
hook = tocsin.watch(out=sys.argv[2], rules=rules, capture={"collections": {"mine": {"include": ["lo.*s"]}}})
for step in range(20):
    hook.log(loss=math.nan if step == 5 else 1.0)
    hook.step()
hook.close()
print("enabled" if os.path.exists(os.path.join(sys.argv[2], "telemetry.db")) else "off", len(hook.issues()))
"""


@pytest.fixture
def another(tmp_path):
    compiler = shutil.which("cc") or pytest.skip("no C compiler")
    (tmp_path / "another.c").write_text(ANOTHER)
    library = tmp_path / "libanother.so"
    subprocess.run([compiler, "-shared", "-fPIC", "-w", "-o", library, tmp_path / "another.c"], check=True)
    return library


def run(another, tmp_path, **environment):
    (tmp_path / "job.py").write_text(JOB)
    env = {**os.environ, "PYTHONPATH": str(ROOT / "python"), "TOCSIN_LIBRARY": str(BUILD / "collectors/hook/libtocsin_client.so.0"), **environment}
    return subprocess.run([sys.executable, tmp_path / "job.py", another, tmp_path / "out"], env=env, capture_output=True, text=True, timeout=60)


def test_the_library_and_its_rules_call_their_own(another, tmp_path):
    done = run(another, tmp_path)
    assert (done.returncode, done.stdout) == (0, "enabled 2\n"), done.stderr


def test_where_that_cannot_be_made_sure_the_job_goes_on_unwatched_and_says_so(another, tmp_path):
    done = run(another, tmp_path, LD_PRELOAD="libm.so.6")
    assert (done.returncode, done.stdout) == (0, "off 0\n"), done.stderr
    assert done.stderr.count("another RE2 is loaded for everybody") == 1, done.stderr
