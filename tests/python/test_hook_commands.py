"""From a command in the journal to the end of the loop, and what the run answers."""
import json
import os
import time

import pytest

from tests.support import hook_support as support
from tests.support.hook_support import CommandWriter, Telemetry, acks, wait_for

import tocsin



@pytest.fixture
def hook(tmp_path):
    opened = tocsin.watch(out=str(tmp_path), run="commanded", job="digits")
    opened.log(loss=1.0)
    opened.step()
    assert opened.flush()
    yield opened
    opened.close(timeout=1)


def phases(directory):
    return [(ack["command_id"], ack["phase"]) for ack in acks(directory)]


def test_a_stop_reaches_the_loop_and_every_phase_is_answered(hook, tmp_path):
    assert hook.should_stop() is None
    CommandWriter(tmp_path).stop(hook.run, hook.attempt)
    request = wait_for(hook.should_stop)
    assert request and request.rule == "exploding_tensor" and request.reason == "too large" and request.mode == "stop"
    assert hook.should_stop() is not None
    with hook.checkpointing():
        (tmp_path / "model.pt").write_bytes(b"1234")
    hook.acknowledge_stop()
    hook.close()
    assert [phase for _, phase in phases(tmp_path)] == ["received", "accepted", "checkpointing", "checkpoint_done", "stopping", "stopped"]
    first = acks(tmp_path)[0]
    assert first["worker"] == "worker_0" and first["rank"] == 0 and first["action"] == "stop"
    assert Telemetry(tmp_path).lifecycles("end")[0]["outcome"] == "stopped_by_rule"


def test_a_checkpoint_is_reported_with_its_size(hook, tmp_path):
    CommandWriter(tmp_path).stop(hook.run, hook.attempt)
    assert wait_for(hook.should_stop)
    checkpoint = tmp_path / "model.pt"
    checkpoint.write_bytes(b"12345")
    with hook.checkpointing():
        pass
    hook.acknowledge_stop(checkpoint=str(checkpoint))
    hook.close()
    done, = [ack for ack in acks(tmp_path) if ack["phase"] == "checkpoint_done"]
    assert done["checkpoint"] == {"path": str(checkpoint), "bytes": 5}


def test_the_stop_is_seen_within_milliseconds(hook, tmp_path):
    writer = CommandWriter(tmp_path)
    assert wait_for(lambda: hook.stats()["sent_records_total"] > 0)
    time.sleep(0.2)  # the reader has found the new writer's folder
    written = time.monotonic()
    writer.stop(hook.run, hook.attempt)
    assert wait_for(hook.should_stop)
    took = time.monotonic() - written
    print(f"command to should_stop: {took * 1e3:.1f} ms")
    assert took < 0.5


def test_a_withdrawn_stop_no_longer_stops(hook, tmp_path):
    writer = CommandWriter(tmp_path)
    writer.stop(hook.run, hook.attempt)
    assert wait_for(hook.should_stop)
    writer.write(hook.run, "stop", None)
    assert wait_for(lambda: hook.should_stop() is None)


def test_a_stop_for_a_later_step_waits_for_it(hook, tmp_path):
    CommandWriter(tmp_path).stop(hook.run, hook.attempt, args={"mode": "stop", "not_before_step": 3})
    assert wait_for(lambda: hook.stats()["commands_received_total"] == 1)
    assert hook.should_stop() is None
    hook.step()
    assert hook.should_stop() is None
    hook.step()
    assert hook.should_stop() is not None


@pytest.mark.parametrize("change, reason", [
    ({"expires_at": support.rfc3339(time.time() - 60)}, "expired"),
    ({"action": "agent", "args": {}}, "unsupported"),
    ({"action": "adjust/lr", "args": {"name": "lr", "value": 0.1}}, "not_registered"),
])
def test_what_cannot_be_done_is_refused_with_the_reason(hook, tmp_path, change, reason):
    CommandWriter(tmp_path).stop(hook.run, hook.attempt, **change)
    assert wait_for(lambda: any(ack["phase"] == "refused" for ack in acks(tmp_path)))
    assert acks(tmp_path)[0]["reason"] == reason
    assert hook.should_stop() is None


def test_other_runs_other_ranks_and_dry_runs_do_not_stop_this_one(hook, tmp_path):
    writer = CommandWriter(tmp_path)
    writer.stop("4e3046d4-8c1f-5278-82e3-ea3595bc5999", hook.attempt)
    writer.stop(hook.run, hook.attempt, ranks=[3])
    writer.stop(hook.run, hook.attempt, dry_run=True)
    assert wait_for(lambda: acks(tmp_path))
    assert hook.should_stop() is None
    assert phases(tmp_path) == [("cmd_test", "received")]


def test_the_loop_may_take_adjustments_within_bounds(hook, tmp_path):
    seen = []
    hook.on_command("lr", seen.append, bounds=(0.0, 1.0))
    writer = CommandWriter(tmp_path)
    writer.stop(hook.run, hook.attempt, action="adjust/lr", command_id="cmd_a", args={"name": "lr", "value": 0.5})

    def applied():
        hook.should_stop()
        return seen

    assert wait_for(applied) == [0.5]
    writer.stop(hook.run, hook.attempt, action="adjust/lr", command_id="cmd_b", revision=2, args={"name": "lr", "value": 7})
    assert wait_for(lambda: hook.should_stop() or any(ack["phase"] == "refused" for ack in acks(tmp_path)))
    assert seen == [0.5]
    assert phases(tmp_path) == [("cmd_a", "received"), ("cmd_a", "applied"), ("cmd_b", "received"), ("cmd_b", "refused")]


def test_the_bounds_of_whoever_asks_hold_too(hook, tmp_path):
    seen = []
    hook.on_command("lr", seen.append)
    for number, value in enumerate([5, True, "1", None], 1):
        CommandWriter(tmp_path).stop(hook.run, hook.attempt, action="adjust/lr", command_id=f"cmd_{number}", revision=number,
                                     args={"name": "lr", "value": value, "bounds": [0, 1]})
        assert wait_for(lambda: hook.should_stop() or (f"cmd_{number}", "refused") in phases(tmp_path))
    assert seen == []
    assert {ack["reason"] for ack in acks(tmp_path) if ack["phase"] == "refused"} == {"out_of_bounds"}


def test_an_adjustment_for_a_later_step_waits_for_it(hook, tmp_path):
    seen = []
    hook.on_command("lr", seen.append)
    CommandWriter(tmp_path).stop(hook.run, hook.attempt, action="adjust/lr", args={"name": "lr", "value": 0.5, "not_before_step": 3})
    assert wait_for(lambda: hook.stats()["commands_received_total"] == 1)
    for _ in range(2):
        hook.should_stop()
        assert seen == []
        hook.step()
    hook.should_stop()
    assert seen == [0.5]


def test_an_adjustment_whose_step_is_over_is_refused_and_taken_for_a_later_one(hook, tmp_path):
    seen = []
    hook.on_command("lr", seen.append)
    for _ in range(4):
        hook.step()
    hook.should_stop()
    writer = CommandWriter(tmp_path)
    args = {"name": "lr", "value": 0.5, "not_before_step": 2}
    writer.stop(hook.run, hook.attempt, action="adjust/lr", args=args)
    assert wait_for(lambda: [ack["reason"] for ack in acks(tmp_path) if ack["phase"] == "refused"]) == ["too_late"]
    hook.should_stop()
    assert seen == []
    writer.stop(hook.run, hook.attempt, action="adjust/lr", revision=2, args={**args, "not_before_step": 6})
    assert wait_for(lambda: hook.stats()["commands_received_total"] == 1)
    hook.step()
    hook.should_stop()
    assert seen == [0.5]
    writer.stop(hook.run, hook.attempt, action="adjust/lr", revision=3, args={**args, "not_before_step": 7})
    assert wait_for(lambda: hook.stats()["commands_received_total"] == 2)
    hook.step()
    hook.should_stop()
    assert seen == [0.5], "the same command in other terms: it is done"


@pytest.mark.parametrize("why", ["max_bytes", "until_time"])
def test_a_denser_capture_ends_at_its_bounds(hook, tmp_path, why):
    bound = {"max_bytes": 250} if why == "max_bytes" else {"until_time": support.rfc3339(time.time() + 2)}
    CommandWriter(tmp_path).stop(hook.run, hook.attempt, action="capture/of-test", command_id="cmd_c", args={
        "version": "v2", "plans": [{"every": "1 steps", "collections": {"gradients": {}}}], **bound})
    assert wait_for(lambda: hook.stats()["commands_received_total"] == 1)
    for _ in range(6):
        hook.save_tensor("gradient/w", support_array(), collection="gradients")
        hook.step()
        if why == "until_time":
            time.sleep(0.5)
    hook.close()
    steps = [frame.header["step"] for frame in Telemetry(tmp_path).of_kind(support.wire.SUMMARY)]
    ended, = [ack for ack in acks(tmp_path) if ack["phase"] == "ended"]
    assert ended["reason"] == why and steps and max(steps) < ended["effective_step"] < 7
    if why == "max_bytes":
        assert len(steps) == 3, "112 bytes a row: the third one passes 250"


def test_a_denser_capture_takes_effect_at_the_next_step(hook, tmp_path):
    writer = CommandWriter(tmp_path)
    writer.stop(hook.run, hook.attempt, action="capture", command_id="cmd_c",
                args={"version": "v2", "plans": [{"collections": {"gradients": {"every": "2 steps"}}}]})
    assert wait_for(lambda: hook.stats()["commands_received_total"] == 1)
    for _ in range(4):
        hook.save_tensor("gradient/w", support_array(), collection="gradients")
        hook.step()
    hook.close()
    telemetry = Telemetry(tmp_path)
    assert [frame.header["step"] for frame in telemetry.of_kind(support.wire.SUMMARY)] == [2, 4]
    applied = [ack for ack in acks(tmp_path) if ack["phase"] == "applied"][0]
    assert applied["version"] == "v2" and applied["effective_step"] == 2
    assert telemetry.lifecycles("applied")[0]["command_id"] == "cmd_c"


def test_a_denser_capture_may_have_an_end(hook, tmp_path):
    CommandWriter(tmp_path).stop(hook.run, hook.attempt, action="capture", command_id="cmd_c", args={
        "version": "v2", "plans": [{"collections": {"gradients": {"every": "1 steps", "end_step": 4}}}]})
    assert wait_for(lambda: hook.stats()["commands_received_total"] == 1)
    for _ in range(5):
        hook.save_tensor("gradient/w", support_array(), collection="gradients")
        hook.step()
    hook.close()
    assert [frame.header["step"] for frame in Telemetry(tmp_path).of_kind(support.wire.SUMMARY)] == [2, 3]


def test_a_collection_that_the_rules_need_is_captured_from_then_on(tmp_path):
    import numpy
    hook = tocsin.watch(out=str(tmp_path), run="needy", capture={"every": "1 step", "collections": ["gradients"]})
    hook.step()
    writer = CommandWriter(tmp_path)
    writer.stop(hook.run, hook.attempt, action="capture", command_id="cmd_n",
                args={"version": "v4", "plans": [{"collections": {"weights": {"statistics": ["delta"]}}}]})
    assert wait_for(lambda: hook.stats()["commands_received_total"] == 1)
    for step in range(4):
        hook.save_tensor("layer.weight", numpy.full(4, step, dtype=numpy.float32), collection="mine")
        hook.step()
    hook.close()
    telemetry = Telemetry(tmp_path)
    assert telemetry.summaries()["layer.weight"]["extra"][7] == pytest.approx(2.0)
    entry = [entry for entry in telemetry.entries.values() if entry["name"] == "layer.weight"][0]
    assert sorted(json.loads(entry["attrs"])["collections"]) == ["mine", "weights"]


def test_a_capture_that_cannot_be_given_is_refused(hook, tmp_path):
    CommandWriter(tmp_path).stop(hook.run, hook.attempt, action="capture", command_id="cmd_c", args={
        "version": "v3", "plans": [{"collections": {"gradients": {"every": "10 steps", "statistics": ["depth", "units(200)"]}}}]})
    assert wait_for(lambda: hook.stats()["commands_received_total"] == 1)
    hook.step()
    assert wait_for(lambda: [ack["phase"] for ack in acks(tmp_path)] == ["received", "refused"])
    assert acks(tmp_path)[1]["reason"] == "unsupported: gradients/depth, gradients/units(200)"


def support_array():
    import numpy
    return numpy.ones(4, dtype=numpy.float32)


def test_a_stop_that_an_earlier_launch_was_given_does_not_stop_this_one(tmp_path):
    writer = CommandWriter(tmp_path)
    earlier = support.launch_now()
    hook = tocsin.watch(out=str(tmp_path), run="commanded", job="digits")
    hook.log(loss=1.0)
    hook.step()
    writer.stop(hook.run, hook.attempt, launch=earlier)
    assert wait_for(lambda: acks(tmp_path))
    assert acks(tmp_path)[0]["reason"] == "stale" and hook.should_stop() is None
    writer.stop(hook.run, hook.attempt, revision=2)
    assert wait_for(hook.should_stop)
    answer = acks(tmp_path)[-1] if wait_for(lambda: len(acks(tmp_path)) == 3) else None
    assert answer["phase"] == "accepted" and answer["revision"] == 2 and answer["node"] == os.uname().nodename
    hook.close(timeout=1)


RANK = """
import os, sys, time
import tocsin
hook = tocsin.watch(out="data", run="shared", job="digits")
hook.log(loss=1.0); hook.step(); hook.flush()
end = time.monotonic() + 30
while not hook.should_stop() and time.monotonic() < end:
    role = hook.stats()["command_reader"]
    with open(f"role-{hook.rank}", "w") as out:
        out.write(role)
    time.sleep(0.02)
hook.acknowledge_stop()
hook.close()
sys.exit(tocsin.EXIT_STOPPED if time.monotonic() < end else 1)
"""


def test_when_the_reading_rank_is_killed_another_takes_over(tmp_path):
    """Of the ranks of a node one reads `commands`; kill -9 of it costs the others nothing."""
    import signal
    import subprocess
    import sys
    environment = {**os.environ, "PYTHONPATH": support.PACKAGE, "WORLD_SIZE": "4", "LOCAL_WORLD_SIZE": "4"}
    ranks = [subprocess.Popen([sys.executable, "-c", RANK], cwd=tmp_path, env={**environment, "RANK": str(rank)}) for rank in range(4)]

    def role(rank):
        path = tmp_path / f"role-{rank}"
        return path.read_text() if path.exists() else ""

    try:
        assert wait_for(lambda: sorted(role(rank) for rank in range(4)) == ["follower"] * 3 + ["leader"], 20), [role(r) for r in range(4)]
        leader = next(rank for rank in range(4) if role(rank) == "leader")
        ranks[leader].send_signal(signal.SIGKILL)
        ranks[leader].wait()
        others = [rank for rank in range(4) if rank != leader]
        assert wait_for(lambda: sorted(role(rank) for rank in others) == ["follower", "follower", "leader"], 10)
        CommandWriter(tmp_path / "data").stop(Telemetry(tmp_path / "data").run())
        assert [ranks[rank].wait(20) for rank in others] == [77, 77, 77]
        answered = {ack["rank"] for ack in acks(tmp_path / "data") if ack["phase"] == "stopping"}
        assert answered == set(others)
    finally:
        for process in ranks:
            if process.poll() is None:
                process.kill()
