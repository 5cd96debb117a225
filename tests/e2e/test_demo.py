"""The demo as a user runs it: a real training job, the real program, every action really delivered."""

import os
import pathlib
import re
import signal
import subprocess
import time

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[2]
BINARY = pathlib.Path(os.environ.get("TOCSIN_BINARY", ROOT / "build" / "release" / "app" / "tocsin"))


def started(*arguments):
    return subprocess.Popen([ROOT / "tools" / "demo", *arguments], text=True, stdout=subprocess.PIPE,
                            stderr=subprocess.STDOUT, start_new_session=True)


def left_behind(demo):
    """Processes of the demo that are still there ten seconds after it: the cluster's keeper sees its end a little later."""
    deadline = time.monotonic() + 10
    while (found := living(demo)) and time.monotonic() < deadline:
        time.sleep(0.1)
    return found


def living(demo):
    """Living processes that name the demo's folder or its cluster, and were not there for another demo."""
    found = []
    for path in pathlib.Path("/proc").glob("[0-9]*"):
        try:
            command = (path / "cmdline").read_bytes().replace(b"\0", b" ").decode()
            if re.search(rf"build/demo/\S*-{demo.pid}/|demo-{demo.pid}\b", command):
                found.append(command)
        except OSError:
            pass
    return found


def finished(demo, timeout=110):
    output, _ = demo.communicate(timeout=timeout)
    assert left_behind(demo) == []
    return output


@pytest.mark.alone
def test_exploding_run_is_seen_stopped_and_told_and_the_healthy_one_left_alone():
    began = time.monotonic()
    demo = started("exploding", "healthy")
    output = finished(demo)
    assert demo.returncode == 0, output
    assert time.monotonic() - began < 60
    assert "exploding_tensor" in output and "ended with status 77" in output and "everything went as" in output
    for action in ("stop_training", "email", "mqtt", "webhook", "publish_metric"):
        assert re.search(rf"{action} +delivered", output), output
    assert "signature verified" in output and "no issue, no mail, nothing stopped" in output
    (subject,) = re.findall("Subject: (.*)", output)  # the worst, though another rule has seen the first sign
    assert re.fullmatch(r"\[error\] digits: \S+ (is|has) (NaN|Inf|\+Inf) since step \d+ – stopped, checkpoint saved", subject), output
    assert re.search(r'publish_metric +delivered .*tocsin_issue_active\{rule="exploding_tensor",.*job="digits".*\} (1|0 \(the run has ended\))\n', output), output
    (further,) = re.findall(r"Look further: .* issues show (\S+) --from \S+\n", output)
    assert further.startswith("iss_")


@pytest.mark.alone
def test_vanishing_run_is_stopped():
    demo = started("vanishing")
    output = finished(demo)
    assert demo.returncode == 0, output
    assert "vanishing_gradient" in output


@pytest.mark.alone
def test_the_same_over_a_real_kafka():
    demo = started("--broker", "kafka", "exploding", "healthy")
    output = finished(demo)
    assert demo.returncode == 0, output


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_interrupted_demo_leaves_nothing_behind(number):
    demo = started("healthy")
    for line in demo.stdout:
        if "step" in line and "/440" in line:
            break
    demo.send_signal(number)
    output = finished(demo, timeout=30)
    assert demo.returncode == 128 + number
    assert "interrupted" in output


def test_killed_demo_leaves_nothing_behind():
    demo = started("healthy")
    for line in demo.stdout:
        if "/440" in line:
            break
    demo.kill()
    demo.communicate(timeout=30)
    deadline = time.monotonic() + 10
    while left_behind(demo) and time.monotonic() < deadline:
        time.sleep(0.05)
    assert left_behind(demo) == []


def test_unknown_scenario_is_named():
    demo = started("melting")
    assert "no scenario 'melting'" in finished(demo) and demo.returncode == 1
