"""A stopped run is resumed on another node, over a real Kafka: the stop of the first launch is still in the topic, both
nodes have an agent, and the second launch is nobody's business but its own."""
import ctypes
import os
import socket
import subprocess
import sys
import textwrap

import pytest

from tests.support.program import BUILD, ROOT

CLONE_NEWUTS = 0x04000000

CONFIG = """
transport: {{kafka: {{bootstrap.servers: '{kafka}'}}}}
topics: {{prefix: moves{pid}}}
rules: [{{use: exploding_tensor, actions: [stop]}}]
receivers: {{stop: {{stop_training: {{armed: true, mode: stop, grace: 5s, deadline: {{ack: 1s}}}}}}}}
http: {{listen: '127.0.0.1:0'}}
"""

# Never asks whether it should stop: only a signal ends it. What goes wrong stays wrong: a server that has just started tells nobody
# of what was over before it had read its input (docs/routing.md, "Backlogs").
SCRIPT = """
import sys, time
import tocsin
bad, steps = int(sys.argv[1]), int(sys.argv[2])
hook = tocsin.watch(run="{run}", job="moves")
for step in range(steps):
    hook.log(loss=float("nan") if 0 <= bad <= step else 1.0)
    hook.step()
    time.sleep(0.02)
hook.close()
"""


def on_node(name):
    """For preexec_fn: this process and its children believe to be on another machine."""
    def become():
        if ctypes.CDLL(None, use_errno=True).unshare(CLONE_NEWUTS) != 0:
            raise OSError(ctypes.get_errno(), "unshare")
        socket.sethostname(name)
    return become


def may_rename():
    try:
        return subprocess.run(["true"], preexec_fn=on_node("x"), check=False).returncode == 0
    except subprocess.SubprocessError:
        return False


@pytest.mark.skipif(not may_rename(), reason="host names of one's own need CAP_SYS_ADMIN")
def test_resume_on_another_node(server, tmp_path, kafka):
    config = tmp_path / "tocsin.yaml"
    config.write_text(CONFIG.format(kafka=kafka, pid=os.getpid()))
    first = server(config, preexec=on_node("node-a"))
    second = server(config, role="collect", preexec=on_node("node-b"))
    first.wait_for("ready", timeout=60)
    second.wait_for("ready", timeout=60)
    script = tmp_path / "train.py"
    script.write_text(textwrap.dedent(SCRIPT.format(run=f"moves-{os.getpid()}")))

    def train(node, bad, steps):
        environment = {**os.environ, "TOCSIN_CONFIG": str(config), "PYTHONPATH": str(ROOT / "python"),
                       "TOCSIN_LIBRARY": os.environ.get("TOCSIN_LIBRARY", str(BUILD / "collectors/hook/libtocsin_client.so.0"))}
        return subprocess.Popen([sys.executable, str(script), str(bad), str(steps)], env=environment, preexec_fn=on_node(node))

    assert train("node-a", 5, 1500).wait(60) == -15
    first.wait_for("stop_state_changed", to="stopped")
    first.wait_for("job_ended", outcome="stopped_by_rule")
    signals = len(first.all("process_signalled"))
    assert signals == 1 and not second.all("process_signalled")

    assert train("node-b", -1, 250).wait(60) == 0, "the resumed run was ended by what was meant for the first launch"
    first.wait_for("job_ended", outcome="completed")
    assert len(first.all("process_signalled")) == signals and not second.all("process_signalled")

    # And the new launch is watched: what goes wrong with it stops it, by the agent of its own node.
    assert train("node-b", 5, 1500).wait(60) == -15
    second.wait_for("process_signalled")
    assert len(first.all("process_signalled")) == signals
