"""Whole scripts: compiled optimizers, impatient people."""
import os
import re
import signal
import subprocess
import sys
import textwrap
import time

from tests.support.hook_support import MODEL, Telemetry, run_script

def test_a_compiled_update_is_watched_without_a_word_of_the_compiler(tmp_path):
    """torch.compile would trace into the hook, and warn of each call that it cannot follow."""
    done = run_script(MODEL + """
        hook = tocsin.watch(model, optimizer, out="data", capture={"every": "2 steps", "overhead": "100%"})
        compiled = torch.compile(optimizer.step, backend="eager")
        for _ in range(5):
            optimizer.zero_grad()
            loss = model(torch.randn(4, 6)).square().mean()
            loss.backward()
            hook.log(loss=loss)
            compiled()
        hook.close()
        print(hook.stats()["hook_errors_total"])
        """.replace("\n        ", "\n"), tmp_path, timeout=300)
    assert done.returncode == 0, done.stderr
    assert done.stdout.strip() == "{}"
    said = [line for line in done.stderr.splitlines() if "record_function" not in line and "nobody judges" not in line]  # torch's own, of its own profiler
    assert len(said) == 1 and said[0].startswith("tocsin: watching"), done.stderr
    telemetry = Telemetry(tmp_path / "data")
    assert telemetry.steps() == list(range(5))
    assert "gradient/0.weight" in telemetry.summaries(step=4)


def test_a_compiled_model_keeps_its_names(tmp_path):
    done = run_script(MODEL + """
        compiled = torch.compile(model, backend="eager")
        hook = tocsin.watch(compiled, optimizer, out="data")
        for _ in range(3):
            optimizer.zero_grad()
            compiled(torch.randn(4, 6)).square().mean().backward()
            optimizer.step()
        hook.close()
        """.replace("\n        ", "\n"), tmp_path, timeout=300)
    assert done.returncode == 0, done.stderr
    assert "gradient/0.weight" in Telemetry(tmp_path / "data").summaries(step=0)


SLOW = MODEL + """
import time
hook = tocsin.watch(model, optimizer, out="kafka://127.0.0.1:9")
train(hook, 3)
print("ready", flush=True)
time.sleep(60)
"""


def test_a_person_in_a_hurry_presses_ctrl_c_twice_and_gets_one_traceback_at_most(tmp_path):
    """Nobody answers at that address: the exit waits, and the second Ctrl-C meets it there."""
    environment = {**{key: value for key, value in os.environ.items() if not key.startswith("TOCSIN_") or key == "TOCSIN_LIBRARY"}}
    process = subprocess.Popen([sys.executable, "-c", textwrap.dedent(SLOW)], cwd=tmp_path, env=environment, text=True,
                               stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    assert process.stdout.readline() == "ready\n"
    began = time.monotonic()
    process.send_signal(signal.SIGINT)
    time.sleep(1.0)
    process.send_signal(signal.SIGINT)
    _, errors = process.communicate(timeout=30)
    assert time.monotonic() - began < 5
    assert len(re.findall("Traceback", errors)) == 1 and "atexit" not in errors, errors
    assert errors.count("KeyboardInterrupt") == 1, errors
