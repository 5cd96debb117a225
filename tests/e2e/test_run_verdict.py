"""`tocsin run` judges where nobody else does and says at the end what was found; `status` shows what nobody judges."""
import json
import os
import subprocess
import sys
import textwrap

import pytest

from tests.support.program import BINARY, BUILD, ROOT, run_cli

OPEN = """
import os, sys, time
import tocsin
hook = tocsin.watch(run="r", job="verdicts")
"""
SOUND = "for i in range(40): hook.log(loss=1 / (i + 1)); hook.step()\nhook.close()"
NAN = "for i in range(40): hook.log(loss=float('nan') if i > 9 else 1.0); hook.step()\nhook.close()"


def run(tmp_path, body, *options, **environment):
    path = tmp_path / "train.py"
    path.write_text(OPEN + textwrap.dedent(body))
    env = {**os.environ, "TOCSIN_OUT": str(tmp_path / "data"), "PYTHONPATH": str(ROOT / "python"),
           "TOCSIN_LIBRARY": os.environ.get("TOCSIN_LIBRARY", str(BUILD / "collectors/hook/libtocsin_client.so.0")), **environment}
    for name in ("TOCSIN_LAUNCH", "TOCSIN_CONFIG", "TOCSIN_BROKERS"):
        if name not in environment:
            env.pop(name, None)
    return subprocess.run([str(BINARY), "run", *options, "--", sys.executable, str(path)], env=env, cwd=tmp_path, capture_output=True, text=True,
                          timeout=60)


def verdicts(result):
    return [line for line in result.stderr.splitlines() if "verdict on run" in line]


def test_a_sound_run_is_said_to_be_one(tmp_path):
    result = run(tmp_path, SOUND)
    assert result.returncode == 0
    (one,) = verdicts(result)
    assert "no issue found; " in one and "rules judged 40 steps" in one
    assert "no rules judge" not in result.stderr, "the run itself does"


@pytest.mark.parametrize("before", [False, True])
def test_what_fired_is_told_as_it_comes_and_in_the_verdict(tmp_path, before):
    if before:
        assert verdicts(run(tmp_path, SOUND))
    result = run(tmp_path, NAN)
    assert result.returncode == 0
    (one,) = verdicts(result)
    assert "(job verdicts)" in one and "first sign: error exploding_tensor at step 10" in one
    lines = result.stderr.splitlines()
    assert any(line.startswith("tocsin: error exploding_tensor at step 10") for line in lines[:lines.index(one)])


def test_quiet_is_quiet(tmp_path):
    assert run(tmp_path, NAN, TOCSIN_QUIET="1").stderr == ""


def test_who_trains_nothing_leaves_no_folder(tmp_path):
    result = subprocess.run([str(BINARY), "run", "--", "true"], cwd=tmp_path, capture_output=True, text=True, timeout=60,
                            env={**os.environ, "TOCSIN_OUT": str(tmp_path / "data")})
    assert result.returncode == 0 and not (tmp_path / "data").exists() and verdicts(result) == []


def test_an_engine_beside_it_judges_alone(tmp_path, server):
    up = server(f"transport: {{journal: {tmp_path / 'data'}}}\nrules: [exploding_tensor]\nhttp: {{listen: '127.0.0.1:0'}}\n")
    up.wait_for("ready")
    result = run(tmp_path, NAN)
    assert result.returncode == 0 and verdicts(result) == [] and "no rules judge" not in result.stderr


@pytest.mark.parametrize("foreign", ["reports: {at_end: html}\n", "evidence: {keep: all}\n", "reports: 7\n", "rules: [{use: x\n", "new: {er: [1]}\n"])
def test_a_file_with_other_sections_starts_and_is_judged(tmp_path, foreign):
    (tmp_path / "tocsin.yaml").write_text(f"transport: {{journal: {tmp_path / 'data'}}}\n" + foreign)
    result = run(tmp_path, NAN, "-c", str(tmp_path / "tocsin.yaml"), TOCSIN_OUT="")
    assert result.returncode == 0, result.stderr
    (one,) = verdicts(result)
    assert "exploding_tensor" in one and (tmp_path / "data").is_dir()


def test_the_rules_of_the_file_judge(tmp_path):
    (tmp_path / "tocsin.yaml").write_text("rules:\n  - {name: big, select: 'metric(\"loss\")', when: value > 0.9}\n")
    result = run(tmp_path, "for i in range(9): hook.log(loss=1.0); hook.step()\nhook.close()", "-c", str(tmp_path / "tocsin.yaml"))
    assert "1 rule judged 9 steps" in verdicts(result)[0] and "big" in verdicts(result)[0]


@pytest.mark.parametrize("out", ["localhost:9092", "kafka:/x", "http://x"])
def test_a_place_that_is_none_is_refused_with_the_forms(tmp_path, out):
    result = run(tmp_path, SOUND, "--out", out)
    assert result.returncode == 3 and "kafka://host:9092" in result.stderr and os.listdir(tmp_path) == ["train.py"]


def test_status_shows_what_nobody_judges(tmp_path):
    path = tmp_path / "train.py"
    path.write_text(OPEN + "hook.log(loss=1.0); hook.step(); hook.flush(); print(flush=True); sys.stdin.read()")
    env = {**os.environ, "TOCSIN_OUT": str(tmp_path / "data"), "PYTHONPATH": str(ROOT / "python"), "TOCSIN_QUIET": "1",
           "TOCSIN_LIBRARY": os.environ.get("TOCSIN_LIBRARY", str(BUILD / "collectors/hook/libtocsin_client.so.0"))}
    training = subprocess.Popen([sys.executable, str(path)], env=env, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    try:
        training.stdout.readline()
        code, out, _ = run_cli("status", "--out", tmp_path / "data")
        assert code == 1 and "nobody judges" in out and "verdicts" in out and "runs that no engine knows: 1" in out
        code, out, _ = run_cli("status", "--out", tmp_path / "data", "--output", "json")
        told = json.loads(out)
        assert told["judged"] is False and [run["job"] for run in told["unknown_runs"]] == ["verdicts"]
    finally:
        training.communicate(b"")


def test_status_of_a_journal_that_an_engine_reads_says_nothing_of_it(tmp_path, server):
    up = server(f"transport: {{journal: {tmp_path / 'data'}}}\nrules: [exploding_tensor]\nhttp: {{listen: '127.0.0.1:0'}}\n")
    up.wait_for("ready")
    assert "nobody judges" not in run_cli("status", "--out", tmp_path / "data")[1]
