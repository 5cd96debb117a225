"""`tocsin run -- python train.py` on scripts without a line of ours: attached by public means, or left alone."""

import threading

import pytest

from tests.support.attached import lines, run
from tests.support.hook_support import CommandWriter, Telemetry, acks, wait_for

PLAIN = """
import torch
class Net(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.first, self.second = torch.nn.Linear(4, 4), torch.nn.Linear(4, 1)
    def forward(self, x):
        return self.second(self.first(x))
def train(steps=30):
    torch.manual_seed(0)
    model, criterion = Net(), torch.nn.MSELoss()
    optimizer = torch.optim.Adam(model.parameters())
    for _ in range(steps):
        loss = criterion(model(torch.randn(8, 4)), torch.zeros(8, 1))
        optimizer.zero_grad(); loss.backward(); optimizer.step()
if __name__ == "__main__":
    train()
    print("trained")
"""


def names(tmp_path):
    return {entry["name"] for frame in Telemetry(tmp_path / "data").frames for entry in frame.entries}


def test_a_plain_loop_is_watched_with_its_model_and_its_loss(tmp_path):
    pytest.importorskip("torch")
    done = run(tmp_path, PLAIN)
    assert (done.returncode, done.stdout) == (0, "trained\n"), done.stderr
    assert [line for line in lines(done) if "attached" in line] == [
        "tocsin: attached to Adam of Net, the output of MSELoss is its loss"]
    assert names(tmp_path) >= {"gradient/first.weight", "second.bias", "loss", "learning_rate"}
    assert Telemetry(tmp_path / "data").lifecycles("end")[0]["outcome"] == "completed"


LONG = PLAIN.replace("range(steps)", "range(60_000)").replace("        loss = ", "        time.sleep(0.001); loss = ").replace(
    "import torch\n", "import time, torch\n", 1).replace("    train()\n", """
    try:
        train()
    finally:
        print("ended")
""")


def stop_when_it_has_begun(data):
    """Writes a stop to what trains into `data`."""
    def begun():
        telemetry = Telemetry(data) if (data / "telemetry.db").exists() else None
        return telemetry if telemetry is not None and telemetry.frames and telemetry.steps() else None

    telemetry = wait_for(begun, 120)
    CommandWriter(data).stop(telemetry.run(), telemetry.frames[0].header["attempt"])


def test_a_plain_loop_obeys_a_stop(tmp_path):
    """No line of ours stands in it: the update after which the stop is wanted is its last."""
    pytest.importorskip("torch")
    other = threading.Thread(target=stop_when_it_has_begun, args=(tmp_path / "data",))
    other.start()
    done = run(tmp_path, LONG)
    other.join()
    assert done.returncode == 77 and done.stdout == "ended\n", done.stderr
    assert [line for line in lines(done) if "stopped by exploding_tensor after step" in line], done.stderr
    telemetry = Telemetry(tmp_path / "data")
    assert telemetry.lifecycles("end")[0]["outcome"] == "stopped_by_rule"
    assert [ack["phase"] for ack in acks(tmp_path / "data")] == ["received", "accepted", "stopping", "stopped"]


@pytest.mark.parametrize("switch", ["TOCSIN_DISABLED", "TOCSIN_DISABLE"])
def test_the_kill_switch_leaves_nothing_of_ours(tmp_path, switch):
    pytest.importorskip("torch")
    done = run(tmp_path, "import sys; print(sorted(m for m in sys.modules if 'tocsin' in m))" + PLAIN, **{switch: "1"})
    assert (done.returncode, done.stdout, done.stderr) == (0, "[]\ntrained\n", "")
    assert not (tmp_path / "data").exists()


def test_without_attaching_only_the_scripts_own_watch_counts(tmp_path):
    pytest.importorskip("torch")
    done = run(tmp_path, PLAIN, "--no-attach")
    assert done.returncode == 0 and lines(done) == []
    assert not (tmp_path / "data").exists()


def test_a_script_that_watches_by_itself_is_left_alone(tmp_path):
    pytest.importorskip("torch")
    own = PLAIN.replace("    for _ in", "    import tocsin; hook = tocsin.watch(model, optimizer, job='mine')\n    for _ in")
    done = run(tmp_path, own)
    assert done.returncode == 0 and not any("attached" in line for line in lines(done))
    start, = Telemetry(tmp_path / "data").lifecycles("start")
    assert start["job"] == "mine"


def test_a_script_without_a_framework_runs_as_ever_and_is_told_so(tmp_path):
    done = run(tmp_path, "import sys; print('torch' in sys.modules); sys.exit(3)")
    assert (done.returncode, done.stdout) == (3, "False\n")
    (line,) = lines(done)
    assert "nothing was watched" in line


def test_a_framework_that_is_not_what_it_seems_breaks_nothing(tmp_path):
    """A module of the user's own that is called like one of the frameworks."""
    (tmp_path / "torch.py").write_text("x = 1\n")
    (tmp_path / "xgboost.py").write_text("def train(a, b):\n    return a + b\n")
    done = run(tmp_path, "import torch, xgboost; print(torch.x, xgboost.train(1, 2))")
    assert (done.returncode, done.stdout) == (0, "1 3\n"), done.stderr
    assert any("cannot attach to torch" in line for line in lines(done))


def test_the_start_up_module_that_was_there_still_runs(tmp_path):
    own = tmp_path / "own"
    own.mkdir()
    (own / "sitecustomize.py").write_text("import builtins; builtins.mine = True\n")
    from tests.support.program import ROOT
    done = run(tmp_path, "import sitecustomize; print(mine, sitecustomize.__file__)", PYTHONPATH=f"{own}:{ROOT / 'python'}")
    assert done.stdout == f"True {own}/sitecustomize.py\n", done.stderr


def test_an_interpreter_without_the_package_says_so_once(tmp_path):
    done = run(tmp_path, "import subprocess, sys; subprocess.run([sys.executable, '-c', 'pass']); print('ran')", PYTHONPATH="")
    if "nothing is attached" not in done.stderr:
        pytest.skip("this Python has the package installed")
    assert done.stdout == "ran\n" and done.stderr.count("nothing is attached") == 1


@pytest.mark.parametrize("method", ["fork", "spawn"])
def test_processes_that_the_script_starts_are_watched_too(tmp_path, method):
    pytest.importorskip("torch")
    body = PLAIN.split("if __name__")[0] + f"""
if __name__ == "__main__":
    import multiprocessing
    context = multiprocessing.get_context("{method}")
    workers = [context.Process(target=train) for _ in range(2)]
    [one.start() for one in workers]
    [one.join() for one in workers]
    print([one.exitcode for one in workers])
"""
    done = run(tmp_path, body)
    assert (done.returncode, done.stdout) == (0, "[0, 0]\n"), done.stderr
    telemetry = Telemetry(tmp_path / "data")
    assert len({start["pid"] for start in telemetry.lifecycles("start")}) == 2
    assert [end["outcome"] for end in telemetry.lifecycles("end")] == ["completed"] * 2
    assert "nothing was watched" not in done.stderr
