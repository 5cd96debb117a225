"""A trace of PyTorch's profiler that was ordered for steps to come."""
import gzip
import json
import os

import pytest
import torch
from tests.support.hook_support import CommandWriter, acks, wait_for

import tocsin
from tocsin import trace
from tocsin.analysis import NoProfilerData, create_trial, traces
from tocsin.raw import NoRawTensor
from tocsin.standing import standing
from tocsin.traces import profiler


@pytest.fixture(autouse=True)
def quick(monkeypatch):
    monkeypatch.setattr(standing, "PERIOD", 0.01)


class Loop:
    def __init__(self, out, **capture):
        self.model = torch.nn.Linear(4, 2)
        self.optimizer = torch.optim.SGD(self.model.parameters(), lr=0.1)
        self.out = out
        self.capture = {"every": "100000 steps", "raw": {"to": out + "-raw"}, **capture}
        self.hook = tocsin.watch(self.model, self.optimizer, out=out, capture=self.capture)
        self.asked = 0
        self.steps(2)
        self.hook.flush(5)

    def steps(self, count):
        for _ in range(count):
            self.optimizer.zero_grad()
            loss = self.model(torch.ones(2, 4)).square().mean()
            loss.backward()
            self.hook.log(loss=loss)
            self.optimizer.step()

    def order(self, **args):
        """The first answer, once it is there."""
        self.asked += 1
        identity = f"cmd_{self.asked}"
        CommandWriter(self.out).stop(self.hook.run, attempt=self.hook.attempt, action="profile", command_id=identity, revision=self.asked,
                                     args={"kind": "trace", **args})
        assert wait_for(lambda: self.hook.flush(1) and self.answers(identity), 30)
        return self.answers(identity)[0]

    def answers(self, identity):
        return [ack for ack in acks(self.out) if ack["command_id"] == identity and ack["phase"] != "received"]

    def until_sent(self, identity):
        """Steps until there is another answer."""
        for _ in range(10_000):
            self.steps(1)
            self.hook.flush(1)
            if len(self.answers(identity)) > 1:
                return self.answers(identity)[-1]
        raise AssertionError("no trace")


def events(data):
    found = json.loads(gzip.decompress(data))
    return found["traceEvents"] if isinstance(found, dict) else found


def updates(data):
    return sum(event.get("name") == "Optimizer.step#SGD.step" for event in events(data) if event.get("ph") == "X")


@pytest.fixture
def place(request, monkeypatch):
    """The section `raw` of where traces go; of a store, one that listens."""
    if request.param != "a store":
        yield {"topic": {"to": "topic"}, "a directory": None}[request.param]
        return
    for name in list(os.environ):
        if name.startswith("AWS_"):
            monkeypatch.delenv(name)
    pytest.importorskip("botocore")  # the store checks signatures as it makes them
    from tests.support.s3 import Store
    with Store() as store:
        for name, value in store.environment().items():
            monkeypatch.setenv(name, value)
        yield {"to": "s3://runs/traces"}
        assert store.refused == [] and store.objects and all(name.startswith("runs/traces/") for name in store.objects)


@pytest.mark.parametrize("place", ["a directory", "topic", "a store"], indirect=True)
def test_it_covers_the_steps_that_were_named(out, place):
    loop = Loop(out, **({"raw": place} if place else {}))
    answer = loop.order(from_step=5, steps=3)
    assert (answer["phase"], answer["effective_step"]) == ("applied", 5)
    told = loop.until_sent("cmd_1")
    assert told["phase"] == "ended" and told["reason"].startswith("profiler/trace at step "), told
    step = int(told["reason"].split()[3])
    assert loop.hook.sink.end_update == loop.hook.sink.clock.end_update  # nothing of it is left in the loop
    run = loop.hook.run
    loop.hook.close()
    data = trace.read(run, step, worker="worker_0", out=out, capture=loop.capture)
    assert updates(data) == 3 and any(event.get("name") == "aten::addmm" or event.get("name") == "aten::linear" for event in events(data))
    with pytest.raises(NoRawTensor):
        trace.read(run, step + 1, out=out, capture=loop.capture, wait=0)
    read = traces(out, step=step, capture=loop.capture)  # the same for an analysis
    assert {row["name"]: row["count"] for row in read.operators()}["aten::addmm"] == sum(event.get("name") == "aten::addmm" for event in events(data))
    assert len(traces(create_trial(out), capture=loop.capture).operators()) == len(read.operators())
    with pytest.raises(NoProfilerData, match=f"step 999999 .it has {step}.: `tocsin capture RUN --trace 5`"):
        traces(out, step=999_999, capture=loop.capture)
    assert loop.hook.stats()["hook_errors_total"] == {}


def test_the_file_is_written(out, tmp_path, monkeypatch, capsys):
    loop = Loop(out, raw={"to": "topic"})
    loop.order(from_step=3, steps=1)
    step = loop.until_sent("cmd_1")["reason"].split()[3]
    loop.hook.close()
    monkeypatch.setattr("sys.argv", ["trace", loop.hook.run, step, "--out", out, "--to", str(tmp_path / "one.json.gz")])
    assert trace.main() == 0 and updates((tmp_path / "one.json.gz").read_bytes()) == 1
    monkeypatch.setattr("sys.argv", ["trace", loop.hook.run, "777777", "--out", out, "--to", str(tmp_path / "none.json.gz")])
    assert trace.main() == 1 and not (tmp_path / "none.json.gz").exists()
    assert "no elements of profiler/trace" in capsys.readouterr().err


def test_what_is_refused_says_why(out, monkeypatch):
    loop = Loop(out)
    reason = [loop.order(from_step=1, steps=1)["reason"], loop.order(from_step=50, steps=0)["reason"],
              loop.order(from_step=50, steps=10_001)["reason"]]
    assert loop.order(from_step=100_000, steps=1)["phase"] == "applied"
    assert loop.order(from_step=5, steps=100_000 // 10)["phase"] == "applied"
    reason.append(loop.answers("cmd_4")[-1]["reason"])
    loop.steps(5)
    reason.append(loop.order(from_step=100_000, steps=1)["reason"])
    assert [text.split(":")[0] for text in reason] == ["too_late", "out_of_bounds", "out_of_bounds", "replaced", "busy"], reason
    loop.hook.close()
    assert loop.answers("cmd_5")[-1]["phase"] == "ended"


def test_one_that_never_begins_says_so(out):
    loop = Loop(out)
    assert loop.order(from_step=100_000, steps=1)["phase"] == "applied"
    loop.hook.close()
    assert loop.answers("cmd_1")[-1]["reason"].startswith("ended: the loop ended before")


def test_a_profiler_of_the_script_is_left_alone(out):
    loop = Loop(out)
    assert loop.order(from_step=4, steps=2)["phase"] == "applied"
    with torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CPU]) as own:
        loop.steps(6)
    loop.hook.close()
    assert loop.answers("cmd_1")[-1]["reason"].startswith("busy: another profiler")
    assert sum(event.count for event in own.key_averages() if event.key == "Optimizer.step#SGD.step") == 6


def test_one_that_is_too_large_is_refused_and_the_loop_goes_on(out):
    loop = Loop(out, raw={"to": "topic", "max_bytes": "64KiB"})
    assert loop.order(from_step=3, steps=500)["phase"] == "applied"
    told = loop.until_sent("cmd_1")
    assert told["phase"] == "refused" and told["reason"].startswith("too_large: step_limit"), told
    loop.steps(2)
    loop.hook.close()
    assert loop.hook.stats()["hook_errors_total"] == {}


def test_a_loop_that_ends_before_sends_what_there_is(out):
    loop = Loop(out)
    assert loop.order(from_step=4, steps=1000)["phase"] == "applied"
    loop.steps(8)
    run = loop.hook.run
    loop.hook.close()
    told = loop.answers("cmd_1")[-1]
    assert told["phase"] == "ended", told
    assert 5 <= updates(trace.read(run, int(told["reason"].split()[3]), out=out, capture=loop.capture)) <= 6


def test_more_json_than_anybody_reads_is_refused(out, monkeypatch):
    monkeypatch.setattr(profiler, "MOST_BYTES", 100)
    loop = Loop(out)
    loop.order(from_step=3, steps=1)
    assert loop.until_sent("cmd_1")["reason"].startswith("too_large: ")
    loop.hook.close()


def test_one_that_is_over_takes_none_away_that_was_ordered_meanwhile(out):
    loop = Loop(out)
    loop.order(from_step=10_000, steps=1)
    traces = loop.hook.standing._traces
    over = traces._trace
    loop.order(from_step=12, steps=1)
    newer = traces._trace
    assert newer is not over
    traces._take_out(over)
    assert traces._trace is newer
    assert loop.until_sent("cmd_2")["phase"] == "ended"
    loop.hook.close()
