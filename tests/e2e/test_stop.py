"""Stopping for real: a loop that asks ends itself; one that never asks is ended by the agent on its node."""
import os
import subprocess
import sys
import textwrap

from tests.support.program import BINARY, BUILD, ROOT

CONFIG = """
transport: {{journal: {journal}}}
rules: [{{use: exploding_tensor, actions: [stop]}}]
receivers: {{stop: {{stop_training: {{armed: {armed}, mode: stop, grace: 5s, deadline: {{ack: 1s}}}}}}}}
http: {{listen: '127.0.0.1:0'}}
"""

SCRIPT = """
import sys, time
import tocsin
hook = tocsin.watch(run="r", job="deaf")
for step in range(600):
    hook.log(loss=float("nan") if step == 5 else 1.0)
    hook.step()
    if {asks} and hook.should_stop():
        hook.acknowledge_stop()
        hook.close(outcome="stopped_by_rule")
        sys.exit(tocsin.EXIT_STOPPED)
    time.sleep(0.02)
"""


def train(tmp_path, journal, asks, under=()):
    path = tmp_path / "train.py"
    path.write_text(textwrap.dedent(SCRIPT.format(asks=asks)))
    environment = {**os.environ, "TOCSIN_OUT": str(journal), "PYTHONPATH": str(ROOT / "python"),
                   "TOCSIN_LIBRARY": os.environ.get("TOCSIN_LIBRARY", str(BUILD / "collectors/hook/libtocsin_client.so.0"))}
    return subprocess.Popen([*under, sys.executable, path], env=environment)


def test_a_loop_that_asks_ends_itself_with_77(server, tmp_path):
    journal = tmp_path / "journal"
    one = server(CONFIG.format(journal=journal, armed="true"))
    one.wait_for("ready")
    assert train(tmp_path, journal, asks=True).wait(30) == 77
    one.wait_for("stop_state_changed", to="stopped")


def test_a_loop_that_never_asks_gets_sigterm(server, tmp_path):
    journal = tmp_path / "journal"
    one = server(CONFIG.format(journal=journal, armed="true"))
    one.wait_for("ready")
    assert train(tmp_path, journal, asks=False).wait(30) == -15
    one.wait_for("stop_state_changed", to="platform_graceful")
    one.wait_for("stop_state_changed", to="stopped")
    one.wait_for("job_ended", outcome="stopped_by_rule")  # not lost: we ended it ourselves


def test_a_parent_that_saw_the_signal_is_not_the_last_to_speak(server, tmp_path):
    """`tocsin run` reports signal 15 at once; the agent, which sent it, says whose it was."""
    journal = tmp_path / "journal"
    one = server(CONFIG.format(journal=journal, armed="true"))
    one.wait_for("ready")
    assert train(tmp_path, journal, asks=False, under=[BINARY, "run", "--"]).wait(30) == 143
    one.wait_for("job_ended", outcome="stopped_by_rule")


def test_what_is_not_armed_stops_nothing(server, tmp_path):
    journal = tmp_path / "journal"
    one = server(CONFIG.format(journal=journal, armed="false"))
    one.wait_for("ready")
    assert train(tmp_path, journal, asks=True).wait(40) == 0
    assert one.wait_for("delivery_finished", type="stop_training")["state"] == "cancelled"
