"""The example of a trainer in C, as C and as C++: built with a compiler and nothing else, watched, judged, stopped."""
import os
import struct
import subprocess

import pytest

from tests.support.hook_support import Telemetry, acks, wire
from tests.support.program import BUILD, ROOT

LIBRARIES = BUILD.resolve() / "collectors/hook"
SOURCE = ROOT / "collectors/hook/example/trainer.c"
COMPILERS = {"c": ["cc", "-std=c99"], "c++": ["c++", "-std=c++11", "-x", "c++"]}
STOPS = """
transport: {{journal: {journal}}}
rules: [{{use: exploding_tensor, actions: [stop]}}]
receivers: {{stop: {{stop_training: {{armed: true, mode: checkpoint_then_stop, grace: 60s, deadline: {{ack: 60s}}}}}}}}
http: {{listen: '127.0.0.1:0'}}
"""


@pytest.fixture(scope="module", params=list(COMPILERS))
def trainer(request, tmp_path_factory):
    program = tmp_path_factory.mktemp("trainer") / "trainer"
    built = subprocess.run([*COMPILERS[request.param], "-O2", "-Wall", "-Wextra", "-Werror", "-I", ROOT / "collectors/hook", SOURCE, "-x", "none",
                            "-L", LIBRARIES, "-ltocsin_client", "-lm", "-o", program], text=True, capture_output=True, check=False)
    assert built.returncode == 0, built.stderr
    return program


def run(trainer, folder, *arguments, **environment):
    env = {key: value for key, value in os.environ.items() if not key.startswith("TOCSIN_")}
    env.update(LD_LIBRARY_PATH=str(LIBRARIES), TOCSIN_OUT=str(folder / "journal"), **environment)
    return subprocess.run([trainer, *map(str, arguments)], cwd=folder, env=env, text=True, capture_output=True, check=False, timeout=120)


def test_it_learns_and_is_watched(trainer, tmp_path):
    done = run(trainer, tmp_path, 0.5, 301)
    assert done.returncode == 0 and done.stderr == "", done.stderr
    assert [round(float(word)) for word in done.stdout.split()[-4:]] == [1, 2, 3, 4]
    telemetry = Telemetry(tmp_path / "journal")
    assert telemetry.steps() == list(range(301))
    losses = [value for _, _, value in telemetry.scalars("loss")]
    assert len(losses) == 301 and losses[300] < 1e-3 < losses[0]
    rows = telemetry.summaries(step=300)
    assert set(rows) == {"linear.weight", "gradient/linear.weight"}
    assert rows["linear.weight"]["sum"] == pytest.approx(10, abs=1e-2) and rows["linear.weight"]["count"] == 4
    roles = {entry["name"]: entry["role"] for entry in telemetry.entries.values()}
    assert [roles[name] for name in ("linear.weight", "gradient/linear.weight", "loss")] == [
        wire.ROLES[role] for role in ("weight", "gradient", "loss")]
    start, = telemetry.lifecycles("start")
    assert start["job"] == "linear" and [end["outcome"] for end in telemetry.lifecycles("end")] == ["completed"]


def test_a_rule_stops_it_with_a_checkpoint(trainer, server, tmp_path):
    one = server(STOPS.format(journal=tmp_path / "journal"))
    one.wait_for("ready")
    done = run(trainer, tmp_path, 20, 2_000_000_000)
    assert done.returncode == 77 and done.stdout.startswith("stopped after "), done.stderr
    assert len(struct.unpack("4f", (tmp_path / "checkpoint.bin").read_bytes())) == 4
    one.wait_for("job_ended")
    assert "exploding_tensor" in [event["rule"] for event in one.all("issue_fired")]
    phases = [ack["phase"] for ack in acks(tmp_path / "journal")]
    assert phases == ["received", "accepted", "checkpointing", "checkpoint_done", "stopping", "stopped"]
    assert [end["outcome"] for end in Telemetry(tmp_path / "journal").lifecycles("end")] == ["stopped_by_rule"]


def test_it_trains_without_a_hook(trainer, tmp_path):
    done = run(trainer, tmp_path, 0.5, 20, TOCSIN_DISABLED="1")
    assert done.returncode == 0 and done.stderr == "" and not (tmp_path / "journal").exists()
