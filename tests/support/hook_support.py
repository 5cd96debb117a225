"""What the tests of the hook share: reading journals, writing commands, scripts in processes of their own."""
import glob
import importlib.util
import json
import os
import pathlib
import struct
import subprocess
import sys
import textwrap
import time

ROOT = pathlib.Path(__file__).resolve().parents[2]
PACKAGE = str(ROOT / "python")
if PACKAGE not in sys.path:
    sys.path.insert(0, PACKAGE)

_spec = importlib.util.spec_from_file_location("tocsin_wire_of_hook", ROOT / "python" / "tocsin" / "wire.py")
wire = importlib.util.module_from_spec(_spec)
sys.modules[_spec.name] = wire
_spec.loader.exec_module(wire)

if str(ROOT) not in sys.path:
    sys.path.insert(0, str(ROOT))
from tests.support import journal  # noqa: E402 (after the path above)
from tests.support.receiver import free_port  # noqa: E402
from tests.support.patience import patience  # noqa: E402


def closed_port():
    """A port on which nobody listens: connecting to it is refused at once."""
    return free_port()


def library():
    """Path of the built library, or None."""
    given = os.environ.get("TOCSIN_LIBRARY")
    found = [given] if given else sorted(glob.glob(str(ROOT / "build" / "*" / "collectors" / "hook" / "libtocsin_client.so.0")),
                                         key=lambda path: "release" not in path)
    return found[0] if found else None


def records(directory, topic):
    """Every record of a topic in a journal, oldest first."""
    return journal.records(directory, topic)


class Telemetry:
    """The frames of one journal, with names resolved."""

    def __init__(self, directory):
        self.frames = [wire.decode_frame(record["value"]) for record in records(directory, "telemetry")]
        self.entries = {entry["hash"]: entry for frame in self.frames for entry in frame.entries}
        self.names = {hash_: entry["name"] for hash_, entry in self.entries.items()}

    def of_kind(self, kind):
        return [frame for frame in self.frames if frame.kind == kind]

    def summaries(self, step=None):
        """name -> row (with `step`, `mode` and `extra`: {stat: value}), of one step or the last of each name."""
        out = {}
        for frame in self.of_kind(wire.SUMMARY):
            if step is not None and frame.header["step"] != step:
                continue
            sparse = [(stat, values) for stat, _, values in frame.sparse_columns()]
            for number, row in enumerate(frame.rows):
                extra = {stat: values[number] for stat, values in sparse if number in values}
                out[self.names[row["name"]]] = dict(row, step=frame.header["step"], mode=frame.header["mode"], extra=extra)
        return out

    def vectors(self):
        """{(step, name): {stat: numbers}} of the vector statistics."""
        out = {}
        for frame in self.of_kind(wire.SUMMARY):
            for tag, payload in frame.extensions:
                if tag == 2:
                    stat, params, row, count, _ = struct.unpack_from("<HHIII", payload)
                    name = self.names[frame.rows[row]["name"]]
                    out.setdefault((frame.header["step"], name), {})[stat] = list(
                        struct.unpack_from(f"<{count}d", payload, 16 + 8 * params))
        return out

    def scalars(self, name):
        """[(mode, step, value)] in order."""
        return [(frame.header["mode"], row["step"], row["value"]) for frame in self.of_kind(wire.SCALAR)
                for row in frame.rows if self.names[row["name"]] == name]

    def steps(self, mode=wire.TRAIN):
        return [row["step"] for frame in self.of_kind(wire.STEP_END) if frame.header["mode"] == mode for row in frame.rows]

    def run(self):
        """Uid of the run whose frames these are."""
        return str(self.frames[0].header["run"])

    def lifecycles(self, event):
        """Of the first updates, what looks wrong: that the protocol is kept is ``protocol_kept()``."""
        told = [frame.lifecycle for frame in self.of_kind(wire.LIFECYCLE) if frame.lifecycle["event"] == event]
        return [one for one in told if not self._is_kept(one)]

    def protocol_kept(self):
        return [frame.lifecycle["findings"] for frame in self.of_kind(wire.LIFECYCLE) if self._is_kept(frame.lifecycle)]

    @staticmethod
    def _is_kept(lifecycle):
        return [one.get("kind") for one in lifecycle.get("findings") or []] == ["kept"]


def acks(directory):
    return [json.loads(record["value"]) for record in records(directory, "acks")]


class CommandWriter:
    """Writes commands, as the router or the command line would."""

    def __init__(self, directory):
        self.directory = directory

    def write(self, run, action, value):
        headers = []
        if value is not None:
            headers = [("ce_specversion", b"1.0"), ("ce_type", b"dev.tocsin.command.v1"), ("ce_source", b"/test"),
                       ("ce_id", value["command_id"].encode()), ("ce_subject", run.encode())]
        journal.append(self.directory, ("commands", f"{run}/{action}", None if value is None else json.dumps(value), headers))

    def stop(self, run, attempt=1, launch=None, **more):
        command = {"command_id": "cmd_test", "action": "stop", "run": {"uid": run, "attempt": attempt, "launch": launch or launch_now()},
                   "ranks": "all", "revision": 1,
                   "issued_at": rfc3339(time.time()), "requested_by": "test",
                   "reason": {"rule": "exploding_tensor", "summary": "too large"},
                   "dry_run": False, "args": {"mode": "stop"}}
        command.update(more)
        self.write(run, command["action"], command)


def launch_now():
    """The `launch` of a command to whatever is open on this node now."""
    boot = pathlib.Path("/proc/sys/kernel/random/boot_id").read_text(encoding="ascii")[:8]
    return {os.uname().nodename: f"{boot}/{time.clock_gettime_ns(time.CLOCK_BOOTTIME)}"}


def rfc3339(seconds):
    return time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(seconds)) + ".000Z"


def wait_for(condition, seconds=5.0):
    """What `condition` gives once it is true; the last answer when the time is over."""
    end = time.monotonic() + patience(seconds)
    pause = 0.002
    while True:
        answer = condition()
        if answer or time.monotonic() > end:
            return answer
        time.sleep(pause)
        pause = min(pause * 1.2, 0.05)  # what is waited for long is not asked for five hundred times a second


def run_script(text, directory, timeout=120, **environment):
    """A training script in a process of its own, in `directory`."""
    env = {key: value for key, value in os.environ.items() if not key.startswith("TOCSIN_") or key == "TOCSIN_LIBRARY"}
    env["PYTHONPATH"] = PACKAGE
    env.update(environment)
    return subprocess.run([sys.executable, "-c", textwrap.dedent(text)], cwd=directory, env=env, timeout=timeout,
                          capture_output=True, text=True)


MODEL = """
import torch, tocsin
torch.manual_seed(0); torch.set_num_threads(1)
model = torch.nn.Sequential(torch.nn.Linear(6, 8), torch.nn.ReLU(), torch.nn.Linear(8, 2))
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
def train(hook, steps):
    for _ in range(steps):
        optimizer.zero_grad()
        loss = model(torch.randn(4, 6)).square().mean()
        loss.backward()
        hook.log(loss=loss)
        optimizer.step()
"""
