"""A process that says where it stands: what is told, when, and what is not."""
import os
import threading
import time

import pytest
from tests.support.hook_support import CommandWriter, Telemetry, acks, run_script, wait_for

import tocsin
from tocsin.standing import stacks, standing


@pytest.fixture(autouse=True)
def quick(monkeypatch):
    monkeypatch.setattr(standing, "PERIOD", 0.01)


def findings(out, kind):
    return [finding for record in Telemetry(out).lifecycles("preflight") for finding in record["findings"] if finding["kind"] == kind]


def ask(out, hook, revision, kind):
    CommandWriter(out).stop(hook.run, attempt=hook.attempt, action="profile", command_id=f"cmd_{revision}", revision=revision, args={"kind": kind})


def in_a_named_place(condition):
    assert wait_for(condition, 30)


def test_places_without_values():
    here = stacks.stacks(threading.get_ident())
    assert here[0]["name"] == "MainThread"
    assert "test_places_without_values (python/test_hook_standing.py:" in "".join(here[0]["frames"])
    assert len(here) <= stacks.MOST_THREADS and sum(len(place) for one in here for place in one["frames"]) <= stacks.MOST_TEXT + 200
    assert not any(one["name"].startswith("tocsin-") for one in here)


def test_a_deep_stack_is_cut():
    def deeper(left):
        return deeper(left - 1) if left else stacks.stacks(threading.get_ident())
    frames = deeper(500)[0]["frames"]
    assert len(frames) == stacks.MOST_FRAMES and "stacks (" in frames[0]


def test_without_torch_distributed_it_says_so():
    assert stacks.collectives().startswith("none: ")


def test_the_newest_collectives_come_first():
    entries = [{"record_id": number, "profiling_name": "gloo:all_reduce", "collective_seq_id": number, "process_group": ["0", "default_pg"],
                "input_sizes": [[3]], "state": "scheduled", "retired": number < 9} for number in range(10)]
    told = stacks._last(entries, "gloo").split("; ")
    assert told[0] == "gloo:all_reduce 9 of 0/default_pg [[3]]: scheduled" and told[1].endswith("8 of 0/default_pg [[3]]: completed")
    assert len(told) == stacks.MOST_COLLECTIVES
    assert "is empty" in stacks._last([], "nccl")


def test_a_loop_that_stands_still_says_so_once_and_that_it_goes_on(out, monkeypatch):
    monkeypatch.setenv("TOCSIN_STACKS_AFTER", "1")
    hook = tocsin.watch(out=out)
    hook.step()
    in_a_named_place(lambda: hook.flush(1) and findings(out, "stands_still"))
    hook.step()
    assert wait_for(lambda: hook.flush(1) and findings(out, "goes_on"), 30)
    told = findings(out, "stands_still")
    assert len(told) == 1 and told[0]["count"] >= 1
    assert told[0]["threads"][0]["name"] == "MainThread" and "in_a_named_place" in " ".join(told[0]["threads"][0]["frames"])
    hook.close()
    assert hook.stats()["hook_errors_total"] == {}
    assert not [thread for thread in threading.enumerate() if thread.name == "tocsin-stacks"]


class Clock:
    """Of the hook's thread, moved by hand; it counts how often it was looked at."""

    def __init__(self):
        self.now, self.looks = 1000.0, 0

    def monotonic(self):
        self.looks += 1
        return self.now

    def pass_(self, seconds):
        """So much later, and seen to be."""
        self.now += seconds
        seen = self.looks + 3  # one look may have begun before
        assert wait_for(lambda: self.looks > seen, 30)


def test_as_it_is_shipped_it_waits_for_300_seconds_and_for_20_of_the_longest_pauses(out, monkeypatch):
    monkeypatch.delenv("TOCSIN_STACKS_AFTER", raising=False)
    assert (standing.AFTER, standing.SLOWER) == (300.0, 20)
    clock = Clock()
    monkeypatch.setattr(standing, "time", clock)
    hook = tocsin.watch(out=out)

    def told(kind):
        hook.flush(5)
        return len(findings(out, kind))

    hook.step()
    clock.pass_(1)
    clock.pass_(299)
    assert told("stands_still") == 0
    clock.pass_(2)
    assert wait_for(lambda: told("stands_still") == 1, 30) and findings(out, "stands_still")[0]["count"] in (300, 301, 302)
    clock.pass_(1000)
    assert told("stands_still") == 1, "once"
    hook.step()
    clock.pass_(0)
    assert wait_for(lambda: told("goes_on") == 1, 30)
    clock.pass_(5000)
    assert told("stands_still") == 1, "its longest pause was 1302 s"
    clock.pass_(22_000)
    assert wait_for(lambda: told("stands_still") == 2, 30)
    hook.close()
    assert hook.stats()["hook_errors_total"] == {}


def test_an_issue_that_asks_is_told_where_it_is(out):
    hook = tocsin.watch(out=out)
    hook.step()
    hook.flush(5)
    CommandWriter(out).stop(hook.run, attempt=hook.attempt, action="profile", command_id="cmd_1", revision=1, reason={"rule": "straggler"},
                            args={"kind": "stacks", "tell": True})
    in_a_named_place(lambda: [ack for ack in acks(out) if ack["phase"] == "applied"])
    hook.close()
    (told,) = findings(out, "place")
    assert (told["asked_by"], told["command_id"]) == ("straggler", "cmd_1")
    assert "in_a_named_place" in " ".join(told["threads"][0]["frames"]) and told["collectives"].startswith("none: ")


@pytest.mark.parametrize("why", ["off", "promised", "a notebook", "slow steps"])
def test_nothing_is_said_unasked(out, monkeypatch, why):
    if why == "slow steps":  # without a word it waits for many times the longest pause, too
        monkeypatch.setattr(standing, "AFTER", 1.0)
        monkeypatch.setattr(standing, "SLOWER", 10**6)
    else:
        monkeypatch.setenv("TOCSIN_STACKS_AFTER", "off" if why == "off" else "1")
    if why == "a notebook":
        monkeypatch.setitem(__import__("sys").modules, "ipykernel", os)
    hook = tocsin.watch(out=out)
    hook.step()
    if why == "promised":
        hook.report_progress(expect_next_in=600)
    ticks = []
    monkeypatch.setattr(hook.standing, "_look_for_commands", lambda: ticks.append(time.monotonic()))
    assert wait_for(lambda: ticks and ticks[-1] - ticks[0] > 1.5, 30)  # it has looked, for longer than it would have waited
    hook.close()
    assert findings(out, "stands_still") == []


def test_an_answer_to_whoever_asks(out):
    hook = tocsin.watch(out=out)
    hook.step()
    hook.flush(5)
    ask(out, hook, 1, "stacks")
    in_a_named_place(lambda: [ack for ack in acks(out) if ack["phase"] == "applied"])
    ask(out, hook, 2, "of tomorrow")
    assert wait_for(lambda: [ack for ack in acks(out) if ack["phase"] == "refused"], 30)
    hook.close()
    answer = {ack["phase"]: ack.get("reason", "") for ack in acks(out)}
    assert "MainThread:" in answer["applied"] and "in_a_named_place (" in answer["applied"] and "collectives: none" in answer["applied"]
    assert answer["refused"].startswith("unsupported: of tomorrow")
    assert findings(out, "stands_still") == []


def test_a_script_that_answers_itself_is_left_alone(out):
    heard = []
    hook = tocsin.watch(out=out)
    hook.on_command("profile", heard.append)
    hook.step()
    hook.flush(5)
    ask(out, hook, 1, "stacks")
    assert wait_for(lambda: (hook.should_stop(), heard)[1], 30)
    hook.close()
    assert heard == [{"kind": "stacks"}]


def test_code_that_never_lets_go_of_the_interpreter_is_seen_by_its_watchdog(tmp_path):
    """``re`` holds the interpreter while it looks for what is not there, here for three seconds at least."""
    done = run_script("""
        import re, time, tocsin
        hook = tocsin.watch(out="journal")
        hook.step()
        def holds_the_interpreter(size):
            began = time.monotonic()
            re.match("(a+)+$", "a" * size + "b")
            return time.monotonic() - began
        size = 20
        while holds_the_interpreter(size) < 3:
            size += 1
        end = time.monotonic() + 60
        while not hook.standing._watchdog._read and time.monotonic() < end:
            time.sleep(0.05)
        hook.close()
    """, tmp_path, TOCSIN_STACKS_AFTER="1", TOCSIN_STACKS_FILE=str(tmp_path / "stacks"))
    assert done.returncode == 0, done.stderr
    written = "".join(path.read_text() for path in tmp_path.glob("stacks.*"))
    assert "in holds_the_interpreter" in written
    told = [one for one in findings(str(tmp_path / "journal"), "stands_still") if one["threads"][0]["name"].startswith("while nothing")]
    assert told and "holds_the_interpreter" in " ".join(told[0]["threads"][0]["frames"])
