"""Anything else: values, arrays and statistics of scripts; phases; reading back what was written."""
import time

import numpy
import pytest
import torch

from tests.support.hook_support import Telemetry, wire

import tocsin
from tocsin.library import lane as _lane

SUMS = {"count": 4, "sum": 2.0, "sumsq": 14.0, "m2": 13.0, "abs_sum": 6.0, "min": -2.0, "max": 3.0, "zero": 1, "negative": 1}


def test_numbers_arrays_and_statistics_of_a_loop_that_counts_its_own_steps(out):
    hook = tocsin.watch(out=out, capture={"every": "1 step", "collections": ["labels", "default"]})
    for step in (0, 1, 4):
        hook.emit("loss", 1.0 / (step + 1), step=step)
        hook.emit("labels", numpy.array([0, 1, 1, 2]), role="label")
        hook.emit("gradient/w", statistics=SUMS, role="gradient")
        hook.emit("mine", numpy.arange(3.0))
    hook.emit("loss", 0.5, mode="eval")
    hook.close()
    assert not hook.stats()["hook_errors_total"]
    telemetry = Telemetry(out)
    assert telemetry.steps() == [0, 1, 2, 3, 4]
    assert telemetry.scalars("loss") == [(wire.TRAIN, 0, 1.0), (wire.TRAIN, 1, 0.5), (wire.TRAIN, 4, 0.2), (wire.EVAL, 0, 0.5)]
    rows = telemetry.summaries(step=4)
    assert set(rows) == {"labels", "gradient/w", "mine"}
    assert {key: rows["gradient/w"][key] for key in SUMS} == SUMS
    roles = {entry["name"]: entry["role"] for entry in telemetry.entries.values()}
    assert (roles["labels"], roles["gradient/w"]) == (wire.ROLES["label"], wire.ROLES["gradient"])


def test_a_loop_without_modes_counts_its_own_steps_too(out):
    hook = tocsin.watch(out=out)
    for round_ in (0, 1, 2, 5, 6):
        hook.emit("train-rmse", 1.0, role="loss", mode="global", step=round_)
        hook.emit("validation-rmse", 2.0, role="loss")
    hook.close()
    assert not hook.stats()["hook_errors_total"]
    for name in ("train-rmse", "validation-rmse"):
        assert [(mode, step) for mode, step, _ in Telemetry(out).scalars(name)] == [(wire.GLOBAL, step) for step in (0, 1, 2, 5, 6)]


@pytest.mark.parametrize("how, words", [
    ({"value": 1.0, "step": 2}, "the present one is 5"), ({"value": 1.0, "role": "lable"}, "unknown role 'lable'"), ({}, "give a value"),
    ({"statistics": {"count": 1}}, "without sum, sumsq, m2, abs_sum, min, max"),
    ({"statistics": {**SUMS, "mean": 1.0}}, "with unknown mean"), ({"value": object()}, "emit"),
    ({"value": torch.ones(2, dtype=torch.complex32) if hasattr(torch, "complex32") else object()}, "emit")])
def test_what_cannot_be_used_is_counted_with_the_reason(out, how, words):
    hook = tocsin.watch(out=out)
    hook.emit("loss", 1.0, step=5)
    with pytest.warns(RuntimeWarning):
        hook.emit("x", **how)
    assert words in hook.stats()["last_hook_error"]
    hook.emit("loss", 1.0)
    hook.close()
    assert len(Telemetry(out).scalars("loss")) == 2


def test_model_inputs_are_statistics_when_their_collection_is_captured(out):
    hook = tocsin.watch(out=out, capture={"collections": ["inputs"]})
    hook.save_model_inputs(torch.ones(2, 3), numpy.zeros(4))
    hook.step()
    hook.close()
    rows = Telemetry(out).summaries(step=0)
    assert (rows["model_input_0"]["sum"], rows["model_input_1"]["zero"]) == (6.0, 4)
    assert Telemetry(out).of_kind(wire.SUMMARY)[0].rows[0]["meta"] >> 8 & 0xff == wire.ROLES["input"]


def spans(out):
    telemetry = Telemetry(out)
    return [(telemetry.names[row["name"]], row["step"], row["duration"]) for frame in telemetry.of_kind(wire.SPAN) for row in frame.rows]


@pytest.fixture(params=["the library's functions", "Python's", "Python's, of a library that has fewer"])
def lane(request, monkeypatch):
    """The calls of every step, as the library has them, and as they are where it cannot see the interpreter."""
    if request.param == "Python's":
        monkeypatch.setattr(_lane, "native", lambda library, handle: None)
    elif request.param != "the library's functions":
        monkeypatch.setattr(_lane, "native", lambda library, handle: {"scalar": pytest.fail})
    else:
        native = _lane.native
        monkeypatch.setattr(_lane, "native", lambda library, handle: native(library, handle) or pytest.fail("not seen"))


def test_times_of_phases_go_out_with_their_step_and_are_never_lost(lane, out):
    hook = tocsin.watch(out=out, phases=False)
    short, long, most = 1000, _lane.SHORT_TIME, _lane.MOST_TIMES
    wait = hook.sink.phases.of("data_wait")
    wait(1, short)
    wait(2, short)
    hook.set_mode("eval")  # what came before it is of the mode before
    wait(3, short)
    wait(4, long)  # at once, and those before it too
    wait(5, short)
    hook.step()
    for begin in range(6, 6 + most + 3):
        wait(begin, short)
    assert hook._client.held() == (0, 2), "of the many the last two"
    hook.close()
    telemetry = Telemetry(out)
    found = [(frame.header["mode"], row["start"], row["step"]) for frame in telemetry.of_kind(wire.SPAN) for row in frame.rows]
    assert found == [(wire.TRAIN, 1, 0), (wire.TRAIN, 2, 0), (wire.EVAL, 3, 0), (wire.EVAL, 4, 0), (wire.EVAL, 5, 0)] + [
        (wire.EVAL, begin, 1) for begin in range(6, 6 + most + 3)]
    named = [entry["name"] for frame in telemetry.frames for entry in frame.entries]
    assert named.count("phase") == 1  # told once, not with every frame of times


def test_scalars_go_out_with_their_step_where_steps_are_short(lane, out):
    hook = tocsin.watch(out=out, capture={"every": "1000 steps"})
    client = hook._client
    client.set_short(10**18)
    for step in range(3):
        hook.log(loss=float(step))
        assert client.held() == (0 if step == 0 else 1, 0)
        hook.step()
        assert client.held() == (0, 0)
    client.set_short(0)
    hook.log(loss=3.0)
    assert client.held() == (1, 0)
    hook.step()  # it took longer than that
    hook.log(loss=4.0)
    assert client.held() == (0, 0), "nobody knows how long this step takes"
    client.set_short(10**18)
    hook.step()
    hook.log(loss=5.0)
    assert client.held() == (1, 0), "the step before was short again"
    hook.close()
    assert [(step, value) for _, step, value in Telemetry(out).scalars("loss")] == [(step, float(step)) for step in range(6)]


@pytest.mark.parametrize("then", ["set_mode", "save_tensor", "flush", "close", "load_state_dict", "a phase that lasts", "many"])
def test_scalars_that_wait_for_their_step_are_never_lost(lane, out, then):
    hook = tocsin.watch(out=out, capture={"every": "1000 steps"})
    hook._client.set_short(10**17)
    for step in range(3):
        hook.log(loss=float(step))
        if step < 2:
            hook.step()
    assert hook._client.held() == (1, 0)
    if then == "set_mode":
        hook.set_mode("eval")
    elif then == "save_tensor":
        hook.save_tensor("x", torch.ones(2))
    elif then == "flush":
        assert hook.flush(5)
    elif then == "load_state_dict":
        hook.load_state_dict({"steps": {"train": 7}, "global_step": 7})
    elif then == "a phase that lasts":
        hook.sink.phases.of("evaluation")(1, 10**18)
    elif then == "many":
        hook.log({f"metric{number}": 1.0 for number in range(_lane.MOST_TIMES)})
        hook.log({f"metric{number}": 2.0 for number in range(_lane.MOST_TIMES)})
        assert hook._client.held()[0] <= _lane.MOST_TIMES
    if then not in ("close", "many"):
        assert hook._client.held() == (0, 0)
    hook.close()
    telemetry = Telemetry(out)
    assert [(step, value) for _, step, value in telemetry.scalars("loss")] == [(step, float(step)) for step in range(3)]
    for number in range(_lane.MOST_TIMES if then == "many" else 0):
        assert [value for _, _, value in telemetry.scalars(f"metric{number}")] == [1.0, 2.0]


def test_at_a_step_that_is_captured_the_loss_goes_before_the_tensors(lane, out):
    model = torch.nn.Linear(4, 2)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    hook = tocsin.watch(model, optimizer, out=out, capture={"every": "2 steps", "overhead": "100%"})
    hook._client.set_short(10**18)
    for _ in range(6):
        optimizer.zero_grad()
        loss = model(torch.ones(2, 4)).square().mean()
        loss.backward()
        hook.log(loss=loss)
        optimizer.step()
    hook.close()
    rows = [(frame.kind, row["step"] if "step" in row else frame.header["step"])
            for frame in Telemetry(out).frames for row in frame.rows if frame.kind in (wire.SCALAR, wire.SUMMARY)]
    assert {step for kind, step in rows if kind == wire.SUMMARY} == {0, 2, 4}
    for step in (0, 2, 4):
        assert rows.index((wire.SCALAR, step)) < rows.index((wire.SUMMARY, step))


def test_a_phase_ends_whatever_happens_in_it_and_what_cannot_be_used_is_an_error_of_python(lane, out):
    hook = tocsin.watch(out=out, phases=False)
    phase, wait = hook.phase("checkpoint"), hook.sink.phases.get("data_wait")
    with pytest.raises(ZeroDivisionError):
        with phase, phase:
            1 / 0
    wait.leave()  # never entered
    for _ in range(200):
        wait.enter()  # never left
    wait.leave()
    for wrong in (lambda: wait.add("now", 1), lambda: wait.add(1), lambda: hook._client.scalar(1, None, False)):
        with pytest.raises((TypeError, ValueError, OverflowError)):
            wrong()
    hook.log(loss=1.0)
    hook.step()
    hook.close()
    assert [name for name, _, _ in spans(out)] == ["checkpoint", "checkpoint", "data_wait"]
    with phase:  # somebody has kept it
        wait.add(1, 2)
    assert hook._client.stop_requested(0) == 0 and not hook._client.step_end(0)


def test_what_was_written_is_read_back(out):
    model = torch.nn.Linear(4, 2)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    hook = tocsin.watch(model, optimizer, out=out, capture={"every": "2 steps", "overhead": "100%"})
    norms = []
    for _ in range(3):
        optimizer.zero_grad()
        loss = model(torch.ones(2, 4)).square().mean()
        loss.backward()
        norms.append(float(model.weight.detach().norm()))
        hook.log(loss=loss)
        optimizer.step()
    losses = hook.get_tensors("loss")
    assert [(value["step"], value["mode"], value["role"]) for value in losses] == [(n, "train", "loss") for n in range(3)]
    weights = hook.get_tensors("weight")
    assert [value["step"] for value in weights] == [0, 2]
    assert [value["l2"] for value in weights] == pytest.approx([norms[0], norms[2]], rel=1e-5)
    assert weights[1]["delta_from_step"] == 0 and weights[1]["prev_l2"] == pytest.approx(norms[0], rel=1e-5)
    assert {value["name"] for value in hook.get_tensors(step=2)} >= {"loss", "weight", "gradient/weight", "bias"}
    hook.close()
    assert len(hook.get_tensors("loss")) == 3  # also when it is closed


def test_times_are_read_back(out):
    model = torch.nn.Linear(4, 2)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    hook = tocsin.watch(model, optimizer, out=out)
    for number in range(3):
        with hook.span("augment", images=number):
            batch = torch.ones(2, 4)
        optimizer.zero_grad()
        loss = model(batch).square().mean()
        loss.backward()
        hook.log(loss=loss)  # before the update, which then ends the step
        optimizer.step()
    hook.event("resumed")
    spans = hook.get_profiler_data("augment")
    assert [(one["step"], one["mode"], one["args"]) for one in spans] == [(step, "train", {"images": step}) for step in range(3)]
    assert all(one["seconds"] > 0 and abs(one["start"] - time.time()) < 600 for one in spans)
    assert [one["step"] for one in hook.get_profiler_data("optimizer")] == [0, 1, 2]
    assert [one["seconds"] for one in hook.get_profiler_data("resumed")] == [-1.0]
    hook.close()
    steps = hook.get_profiler_data("step")
    assert [one["step"] for one in steps] == [0, 1, 2] and all(one["seconds"] > 0 and one["args"] == {} for one in steps)
    assert {one["name"] for one in hook.get_profiler_data(step=1)} == {"step", "augment", "forward", "backward", "optimizer"}
