"""The table of ten deliberate mistakes in the README is what their scripts say, and the healthy twin gets no issue."""
import os
import pathlib
import re
import subprocess
import sys

import pytest

pytest.importorskip("torch")
pytest.importorskip("sklearn")

ROOT = pathlib.Path(__file__).resolve().parents[2]
FOLDER = ROOT / "python" / "examples" / "mistakes"
ROW = re.compile(r"^\| \[[^\]]+\]\(python/examples/mistakes/(?P<script>\w+)\.py\) \| (?P<first>step \d+|first updates) "
                 r"\| \[(?P<rule>\w+)\]\(", re.MULTILINE)
TABLE = {row["script"]: row for row in ROW.finditer((ROOT / "README.md").read_text(encoding="utf-8"))}

# One process imports PyTorch, then each script runs in a child of it.
DRIVER = """
import os, pathlib, runpy, sys
import sklearn.datasets, torch
for script in map(pathlib.Path, sys.argv[1:]):
    child = os.fork()
    if not child:
        sys.argv = [str(script)]
        sys.path.insert(0, str(script.parent))
        os.dup2(os.open(script.stem + ".out", os.O_WRONLY | os.O_CREAT), 1)
        runpy.run_path(str(script), run_name="__main__")
        sys.exit()
    assert os.waitpid(child, 0)[1] == 0, script
"""


@pytest.fixture(scope="module")
def told(tmp_path_factory):
    """{script: [(step or None, rule), …]} of all scripts, in the order in which the rules were heard of."""
    folder = tmp_path_factory.mktemp("mistakes")
    # On a busy machine the governor would widen the grid, and the first sign would come later.
    (folder / "tocsin.yaml").write_text("capture: { overhead: 100% }\n")
    scripts = sorted(path for path in FOLDER.glob("*.py") if path.stem != "digits")
    done = subprocess.run([sys.executable, "-c", DRIVER, *map(str, scripts)], cwd=folder, text=True, capture_output=True, timeout=600,
                          check=False, env={**os.environ, "PYTHONPATH": str(ROOT / "python"), "OMP_NUM_THREADS": "1",
                               "TOCSIN_CONFIG": str(folder / "tocsin.yaml")})
    assert done.returncode == 0, done.stdout + done.stderr
    return {script.stem: [(None if step == "-" else int(step), rule) for step, rule in
                          re.findall(r"^step (-|\d+)  (\w+):", (folder / f"{script.stem}.out").read_text(), re.MULTILINE)]
            for script in scripts}


def test_the_table_has_every_script(told):
    assert len(TABLE) == 10
    assert set(TABLE) | {"healthy"} == set(told)


def test_the_healthy_twin_gets_no_issue(told):
    assert told["healthy"] == []


@pytest.mark.parametrize("script", sorted(TABLE))
def test_a_mistake_is_reported_as_the_table_says(told, script):
    steps = [step for step, rule in told[script] if rule == TABLE[script]["rule"]]
    assert len(steps) == 1, told[script]
    first = re.search(r"\d+", TABLE[script]["first"])
    if first:  # a wider grid of the README's run: one save later
        assert abs(steps[0] - int(first[0])) <= 10, told[script]
    else:  # found beside the loop, which may have ended an update or two before the issue is made
        assert steps[0] is None or steps[0] < 5, told[script]
