"""What may never happen to a training process: an exception, a wait, a thread too many, a child that hangs."""
import re
import os
import signal
import subprocess
import sys
import time

import pytest

from tests.support.hook_support import MODEL, PACKAGE, Telemetry, closed_port, run_script


def script(body):
    return MODEL + body


def test_importing_starts_nothing(tmp_path):
    result = run_script("""
        import threading, os, sys
        import tocsin
        assert tocsin.EXIT_STOPPED == 77
        assert len(os.listdir("/proc/self/task")) == 1
        assert not any("libtocsin" in line for line in open("/proc/self/maps"))
        assert "torch" not in sys.modules
        assert tocsin.get_hook() is None
    """, tmp_path)
    assert result.returncode == 0, result.stderr
    assert list(tmp_path.iterdir()) == []


def test_disabled_by_the_environment_it_does_nothing_at_all(tmp_path):
    result = run_script(script("""
hook = tocsin.watch(model, optimizer, out="data")
train(hook, 3)
assert not hook.enabled and hook.should_stop() is None and hook.flush() is False
hook.close()
"""), tmp_path, TOCSIN_DISABLED="1")
    assert result.returncode == 0, result.stderr
    assert (result.stdout, result.stderr) == ("", "")
    assert not (tmp_path / "data").exists()


def test_without_close_the_end_is_written_at_exit(tmp_path):
    result = run_script(script('train(tocsin.watch(model, optimizer, out="data"), 3)'), tmp_path)
    assert (result.returncode, result.stdout) == (0, "")
    assert re.fullmatch(r"tocsin: watching run [0-9a-f-]{36} \(job .+\), writing to data\n", result.stderr)
    telemetry = Telemetry(tmp_path / "data")
    assert telemetry.steps() == [0, 1, 2]
    assert telemetry.lifecycles("end")[0]["outcome"] == "completed"


def test_a_crash_of_the_script_is_a_failed_run_and_stays_a_crash(tmp_path):
    result = run_script(script("""
train(tocsin.watch(model, optimizer, out="data"), 1)
raise ValueError("bad batch")
"""), tmp_path)
    assert result.returncode == 1 and "bad batch" in result.stderr
    end = Telemetry(tmp_path / "data").lifecycles("end")[0]
    assert end["outcome"] == "failed" and end["error"] == "ValueError: bad batch" and end["exit_code"] == 1


def test_the_context_manager_records_how_the_loop_ended(tmp_path):
    result = run_script(script("""
import sys
with tocsin.watch(model, optimizer, out="data") as hook:
    train(hook, 2)
    sys.exit(tocsin.EXIT_STOPPED)
"""), tmp_path)
    assert result.returncode == 77
    end = Telemetry(tmp_path / "data").lifecycles("end")[0]
    assert end["outcome"] == "stopped_by_rule" and end["exit_code"] == 77


def test_a_killed_trainer_leaves_a_readable_journal(tmp_path):
    result = run_script(script("""
import os, signal
hook = tocsin.watch(model, optimizer, out="data")
train(hook, 20)
assert hook.flush()
os.kill(os.getpid(), signal.SIGKILL)
"""), tmp_path)
    assert result.returncode == -9
    assert Telemetry(tmp_path / "data").steps()[-1] == 19


def test_data_loader_workers_neither_send_nor_hang(tmp_path):
    result = run_script(script("""
class Data(torch.utils.data.Dataset):
    def __len__(self):
        return 8
    def __getitem__(self, i):
        hook = tocsin.get_hook()
        assert hook is None
        kept.log(item=float(i)); kept.step(); kept.flush(); kept.close()
        return torch.randn(6)
kept = tocsin.watch(model, optimizer, out="data")
train(kept, 1)
for batch in torch.utils.data.DataLoader(Data(), batch_size=4, num_workers=2):
    train(kept, 1)
assert kept.enabled
kept.close()
"""), tmp_path)
    assert result.returncode == 0, result.stderr
    telemetry = Telemetry(tmp_path / "data")
    assert telemetry.steps() == [0, 1, 2]
    assert telemetry.scalars("item") == [] if "item" in telemetry.names.values() else True
    assert len(telemetry.lifecycles("start")) == 1


def test_a_child_may_open_a_hook_of_its_own(tmp_path):
    result = run_script(script("""
import os
import re
hook = tocsin.watch(model, optimizer, out="data")
train(hook, 1)
child = os.fork()
if child == 0:
    own = tocsin.watch(out="child", run="child")
    own.log(loss=2.0); own.step(); own.close()
    os._exit(0 if not hook.enabled else 3)
assert os.waitpid(child, 0)[1] == 0
hook.close()
"""), tmp_path)
    assert result.returncode == 0, result.stderr
    assert Telemetry(tmp_path / "child").steps() == [0]
    assert Telemetry(tmp_path / "data").steps() == [0]


def test_a_directory_that_cannot_be_written_is_no_obstacle(tmp_path):
    (tmp_path / "file").write_text("in the way")
    result = run_script(script("""
hook = tocsin.watch(model, optimizer, out="file/data")
train(hook, 5)
import time
end = time.monotonic() + 5
while not hook.stats()["error"] and time.monotonic() < end:
    time.sleep(0.01)
assert hook.stats()["error"]
hook.close(timeout=0.2)
"""), tmp_path)
    assert result.returncode == 0, result.stderr


def test_nonsense_values_are_skipped_and_counted_and_the_hook_stays_on(tmp_path):
    result = run_script(script("""
hook = tocsin.watch(model, optimizer, out="data")
hook.log(loss="not a number"); hook.log({1: object()}); hook.save_tensor("x", None); hook.set_mode("sideways")
hook.load_state_dict({"steps": 3}); hook.log(loss=torch.randn(3))
deep = []
for _ in range(100):
    deep = [deep]
with hook.span("deep", value=deep):
    pass
train(hook, 2)
assert hook.enabled and sum(hook.stats()["hook_errors_total"].values()) == 7, hook.stats()
for _ in range(100):
    hook.log(loss="again", kept=1.5)
    hook.step()
assert hook.enabled and hook.stats()["hook_errors_total"]["log"] == 103, hook.stats()
train(hook, 2)
"""), tmp_path)
    assert result.returncode == 0, result.stderr
    assert result.stderr.count("tocsin skips what it cannot use") == 1
    telemetry = Telemetry(tmp_path / "data")
    assert len(telemetry.scalars("kept")) == 100  # what stood beside a bad value is there
    assert telemetry.lifecycles("end")[0]["outcome"] == "completed"


ENDINGS = [
    ("pass", 0, {"outcome": "completed", "exit_code": 0}),
    ("sys.exit()", 0, {"outcome": "completed", "exit_code": 0}),
    ("sys.exit(3)", 3, {"outcome": "failed", "exit_code": 3}),
    ("raise SystemExit(4)", 4, {"outcome": "failed", "exit_code": 4}),
    ("exit(5)", 5, {"outcome": "failed", "exit_code": 5}),
    ("sys.exit('gone wrong')", 1, {"outcome": "failed", "exit_code": 1}),
    ("raise ValueError('bad batch')", 1, {"outcome": "failed", "exit_code": 1, "error": "ValueError: bad batch"}),
    ("sys.exit(tocsin.EXIT_STOPPED)", 77, {"outcome": "failed", "exit_code": 77}),  # no stop was asked for
    ("os._exit(3)", 3, {"outcome": "failed", "exit_code": 3}),
    ("os._exit(0)", 0, {"outcome": "completed", "exit_code": 0}),
    ("os._exit(77)", 77, {"outcome": "failed", "exit_code": 77}),  # no stop was asked for
    ("import ctypes; ctypes.CDLL(None)._exit(0)", 0, None),
    ("os.kill(os.getpid(), 9)", -9, None),
]


@pytest.mark.parametrize("last_words, status, end", ENDINGS, ids=[ending[0] for ending in ENDINGS])
def test_a_hook_that_nobody_closed_tells_how_the_process_ended(tmp_path, last_words, status, end):
    """Completed only for status 0; who cannot know says nothing."""
    result = run_script(f"""
        import os, sys, tocsin
        hook = tocsin.watch(out="data")
        hook.log(loss=1.0); hook.step(); assert hook.flush()
        {last_words}
    """, tmp_path)
    assert result.returncode == status, result.stderr
    told = Telemetry(tmp_path / "data").lifecycles("end")
    assert [{key: one[key] for key in one if key in ("outcome", "exit_code", "error")} for one in told] == ([end] if end else [])


@pytest.mark.parametrize("out", ["redis://localhost:6379", "s3://bucket/path", "kafka://", "kafka://host:port", "kafka://host:9092/topic",
                                 "file.txt"])
def test_a_place_that_cannot_be_used_is_said_and_makes_no_folder(tmp_path, out):
    (tmp_path / "file.txt").write_text("in the way")
    before = sorted(tmp_path.iterdir())
    for argument, environment in ((repr(out), {}), ("None", {"TOCSIN_OUT": out})):
        result = run_script(f"""
            import tocsin
            hook = tocsin.watch(out={argument})
            assert not hook.enabled
            hook.log(loss=1.0)
        """, tmp_path, **environment)
        assert result.returncode == 0, result.stderr
        assert out in result.stderr and "kafka://host:9092" in result.stderr and "directory" in result.stderr
    assert sorted(tmp_path.iterdir()) == before


def test_span_arguments_that_never_repeat_do_not_grow_without_bound(tmp_path):
    result = run_script("""
        import tocsin
        hook = tocsin.watch(out="data")
        for i in range(1500):
            hook.event("batch", number=i)
        hook.close()
    """, tmp_path)
    assert result.returncode == 0, result.stderr
    entries = Telemetry(tmp_path / "data").entries.values()
    assert len([entry for entry in entries if '"number"' in entry["name"]]) == 1000


def test_names_with_a_number_in_them_do_not_grow_without_bound(tmp_path, monkeypatch):
    import numpy
    import tocsin.hook.spans
    import tocsin.sink
    monkeypatch.setattr(tocsin.hook.spans, "MAX_NAMES", 5)
    monkeypatch.setattr(tocsin.loop.late_values, "MAX_NAMES", 5)
    with pytest.warns(RuntimeWarning, match="more than 5 names"):
        hook = tocsin.watch(out=str(tmp_path / "data"))
        for number in range(9):
            with hook.span(f"batch {number}"):
                pass
            hook.log({f"loss of batch {number}": 0.5, "loss of batch 0": 1.0})
            hook.save_tensor(f"scores {number}", numpy.zeros(2))
            hook.step()
        hook.close()
    telemetry = Telemetry(tmp_path / "data")
    kinds = {name_type: {entry["name"] for entry in telemetry.entries.values() if entry["type"] == name_type} for name_type in (1, 2, 6)}
    assert len(kinds[2]) == 5 and len(kinds[1]) <= 5
    assert kinds[6] - set(tocsin.loop.phases.PHASES) == {f"batch {number}" for number in range(5)} | {"(others)"}
    assert [step for _, step, _ in telemetry.scalars("loss of batch 0")] == list(range(9)), "beside one that is not"
    assert hook.stats()["hook_errors_total"] == {"span": 4, "log": 4, "save_tensor": 4}


def test_a_wrong_setting_is_one_warning_and_no_hook(tmp_path):
    result = run_script(script("""
hook = tocsin.watch(model, optimizer, out="data", capture={"collektions": ["weights"]})
assert not hook.enabled
train(hook, 2)
"""), tmp_path)
    assert result.returncode == 0
    assert result.stderr.count("tocsin is off") == 1 and "did you mean" in result.stderr


def test_a_missing_library_is_one_warning_and_no_hook(tmp_path):
    result = run_script(script('train(tocsin.watch(model, optimizer), 2)'), tmp_path, TOCSIN_LIBRARY=str(tmp_path / "none.so"))
    assert result.returncode == 0
    assert result.stderr.count("tocsin is off") == 1


@pytest.mark.parametrize("version, has", [("1", "has version 1 of"), ("3", "has version 3 of"), (None, "has no version of")])
def test_a_library_of_another_version_is_refused_before_it_is_used(tmp_path, version, has):
    """It may have a function of the same name with other arguments, whose values would be lost without a word."""
    (tmp_path / "other.c").write_text("int tocsin_other;" if version is None else f"int tocsin_abi_version(void) {{ return {version}; }}")
    subprocess.run(["cc", "-shared", "-fPIC", tmp_path / "other.c", "-o", tmp_path / "other.so"], check=True)
    result = run_script(script('hook = tocsin.watch(model, optimizer)\ntrain(hook, 2)\nassert not hook.enabled'), tmp_path,
                        TOCSIN_LIBRARY=str(tmp_path / "other.so"))
    assert result.returncode == 0, result.stderr
    said = [line for line in result.stderr.splitlines() if "tocsin is off" in line]
    assert len(said) == 1 and str(tmp_path / "other.so") in said[0] and has in said[0] and "needs 2" in said[0], result.stderr


def test_threads_have_names_and_block_signals(tmp_path):
    result = run_script(script("""
import os
hook = tocsin.watch(model, optimizer, out="data")
train(hook, 1)
hook.flush()
ours = {}
for task in os.listdir("/proc/self/task"):
    name = open(f"/proc/self/task/{task}/comm").read().strip()
    if name.startswith("tocsin"):
        status = open(f"/proc/self/task/{task}/status").read()
        ours[name] = int(status.split("SigBlk:")[1].split()[0], 16)
assert {"tocsin-send", "tocsin-command"} <= set(ours), ours
everything_but_kill_and_stop = (1 << 31) - 1 & ~(1 << 8) & ~(1 << 18)
for name, blocked in ours.items():
    assert blocked & everything_but_kill_and_stop == everything_but_kill_and_stop, (name, hex(blocked))
import signal
assert signal.getsignal(signal.SIGTERM) == signal.SIG_DFL
hook.close()
"""), tmp_path)
    assert result.returncode == 0, result.stderr


def test_what_an_earlier_cell_raised_does_not_make_the_next_run_fail(tmp_path):
    result = run_script("""
        import sys, tocsin
        sys.last_type, sys.last_value = ValueError, ValueError("in an earlier cell")
        hook = tocsin.watch(out="data")
        hook.log(loss=1.0); hook.step()
    """, tmp_path)
    assert result.returncode == 0, result.stderr
    end = Telemetry(tmp_path / "data").lifecycles("end")[0]
    assert (end["outcome"], end["exit_code"]) == ("completed", 0)


def test_a_second_interrupt_gives_up_the_delivery_and_prints_nothing_of_ours(tmp_path):
    """The first one ends the script; the second comes while the last records wait for a dead broker."""
    script_file = tmp_path / "train.py"
    script_file.write_text("""
import tocsin, time
hook = tocsin.watch(out="kafka://127.0.0.1:%d")
for _ in range(20):
    hook.log(loss=1.0); hook.step()
print("training", flush=True)
time.sleep(60)
""" % closed_port())
    environment = {**os.environ, "PYTHONPATH": PACKAGE, "TOCSIN_QUIET": "1"}
    with subprocess.Popen([sys.executable, str(script_file)], cwd=tmp_path, env=environment, stdout=subprocess.PIPE,
                          stderr=subprocess.PIPE, text=True) as process:
        assert process.stdout.readline() == "training\n"
        process.send_signal(signal.SIGINT)
        time.sleep(1.0)  # in the exit handler now, whose five seconds have begun
        begin = time.monotonic()
        process.send_signal(signal.SIGINT)
        _, stderr = process.communicate(timeout=20)
    assert time.monotonic() - begin < 3
    assert stderr.count("Traceback") == 1 and "atexit" not in stderr and "_lifetime" not in stderr, stderr
