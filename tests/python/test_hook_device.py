"""Tensors on a device: their statistics without Triton, the way back without waiting, what is skipped and counted.

There is no device here: tensors in host memory take the device's path, and events are the test's.
"""
import math

import pytest

import torch
from torch.utils._python_dispatch import TorchDispatchMode

from tests.support import device_cases
from tests.support.device_events import Event
from tests.support.hook_support import Telemetry
from tests.support.small_model import backward, make

import tocsin
from tocsin.adapters.torch import adapter as torch_adapter, capture as torch_capture
from tocsin.adapters.torch.optimizers.scaling import Scaling
from tocsin.library import abi
from tocsin.tensors import torch_device, torch_layout, torch_packed, torch_staging
from tocsin.tensors.device_counts import DeviceCounts


@pytest.fixture
def events(monkeypatch):
    """The events that the staging has recorded, in order; CPU tensors are on a device."""
    made = []

    def event(self, timing):
        made.append(Event())
        return made[-1]

    monkeypatch.setattr(torch_staging.Staging, "event", event)
    monkeypatch.setattr(torch_capture, "on_host", lambda tensor: False)
    torch_device._devices.clear()
    yield made
    torch_device._devices.clear()


def finish(events):
    for event in events:
        event.done = True


@pytest.mark.parametrize("which", sorted(device_cases.ALL))
def test_statistics_are_those_of_the_library(which):
    counts = device_cases.check(device_cases.ALL[which]())
    assert counts.as_dict()["kernels"] == {"cpu": "torch (not a GPU)"}


def test_many_matrices_and_large_tensors_are_joined(monkeypatch):
    monkeypatch.setattr(torch_packed, "MATRIX", 1 << 14)
    torch.manual_seed(5)
    device_cases.check({"large": torch.randn(300_001) + 3, "half": torch.randn(90_000).half(), "long": torch.arange(90_000),
                        **{f"small {n}": torch.randn(n) for n in range(1, 40)}})


class Operations(TorchDispatchMode):
    """Counts what would be launched on a GPU."""

    VIEWS = ("view", "_unsafe_view", "_reshape_alias", "reshape", "narrow", "slice", "as_strided", "unsqueeze", "alias", "select", "detach", "expand", "empty",
             "lift_fresh", "_local_scalar_dense")

    def __init__(self):
        super().__init__()
        self.counts = {}

    def __torch_dispatch__(self, function, types, args=(), kwargs=None):
        name = function.__name__.split(".")[0]
        if name not in self.VIEWS:
            self.counts[name] = self.counts.get(name, 0) + 1
        return function(*args, **(kwargs or {}))


def operations(tensors):
    with Operations() as counted:
        device_cases.of_device(tensors)
    return counted.counts


def test_without_triton_the_number_of_launches_does_not_grow_with_the_number_of_tensors():
    operations([torch.randn(7)])  # its memory for copies is there
    few, many = ([torch.randn(7) for _ in range(n)] for n in (20, 200))
    assert operations(few) == operations(many)
    assert 20 < sum(operations(many).values()) <= 100


def test_a_device_divides_gradients_by_the_loss_scale_and_says_what_was_skipped():
    torch.manual_seed(3)
    weight, gradient = torch.randn(5, 4), torch.randn(5, 4)
    named = [(1, weight, 0), (2, gradient * 8, abi.FLAG_UNSCALED)]
    for found_inf, flags in ((0.0, abi.FLAG_UNSCALED), (1.0, abi.FLAG_UNSCALED | abi.FLAG_SKIPPED)):
        rows, _ = torch_device.device_rows(named, Scaling(torch.tensor(8.0), torch.tensor(found_inf)), DeviceCounts())
        given = list(rows())
        for row, value in zip(given, (weight, gradient)):
            want = device_cases.of_library(value)
            device_cases.assert_same({name: getattr(row, name) for name in device_cases.NAMES}, want, found_inf)
        assert [row.meta & ~0xff for row in given] == [0, flags]
    rows, _ = torch_device.device_rows(named, Scaling(None, torch.tensor(0.0)), DeviceCounts())
    assert rows()[1].abs_sum == pytest.approx(float((gradient * 8).abs().sum()), rel=1e-5)


def test_what_cannot_be_read_is_counted_and_the_others_have_rows(monkeypatch, capsys):
    monkeypatch.setattr(torch_layout, "MAX_GATHERED", 100)

    class Odd:
        dtype = torch.float32

        def numel(self):
            raise RuntimeError("no storage")

    given_back = torch.randn(9)[2:]
    given_back.storage().resize_(0)
    compressed = torch.eye(3).to_sparse_csr()
    values = [torch.randn(64, 64)[:, ::2], Odd(), given_back, torch.ones(3), compressed, torch.zeros(3, dtype=torch.float32)]
    counts = DeviceCounts()
    rows, _ = torch_device.device_rows([(i, value, 0) for i, value in enumerate(values)], None, counts)
    assert [row.name for row in rows()] == [3, 5]
    assert counts.skipped == {"view_too_large": 1, "unreadable": 1, "no_memory": 1, "layout": 1}
    said = capsys.readouterr().err
    assert said.count("stats()['device']") == 4 and "views with gaps" in said


def test_types_without_statistics_have_their_number_of_elements():
    quantized = torch.quantize_per_tensor(torch.ones(4), 0.1, 0, torch.qint8)
    rows, _ = torch_device.device_rows([(1, quantized, 0)], None, DeviceCounts())
    row = rows()[0]
    assert row.count == 4 and row.meta == 0 and all(math.isnan(getattr(row, name)) for name in ("sum", "sumsq", "m2", "abs_sum", "min", "max"))


# ---- through the hook


def test_rows_are_read_when_the_device_is_done_and_nobody_waits(out, events):
    model, optimizer = make()
    hook = tocsin.watch(model, optimizer, out=out, capture={"every": "1 step", "overhead": "100%"})
    kept = []
    for _ in range(4):
        hook.log(loss=float(backward(model, optimizer)))
        kept.append({name: parameter.detach().clone() for name, parameter in model.named_parameters()})
        optimizer.step()
    assert hook.stats()["rows_total"] == 0 or hook.stats()["step"] == 0, "the device has not computed anything yet"
    assert len(events) == 8, "two of each step"
    finish(events[:2])
    hook.log(loss=0.5)
    assert hook.stats()["step"] == 1
    finish(events)
    hook.close()
    assert [event.waited for event in events] == [0] * 8
    telemetry = Telemetry(out)
    for step, weights in enumerate(kept):
        rows = telemetry.summaries(step)
        assert set(rows) == set(weights) | {"gradient/" + name for name in weights}
        for name, weight in weights.items():
            assert rows[name]["sum"] == pytest.approx(float(weight.double().sum()), abs=1e-5)
    device = hook.stats()["device"]
    assert device["tensors_total"] == 4 * 8 and device["batches_total"] == 4 and device["skipped_total"] == {} == device["waits_total"]
    assert device["seconds_total"] == pytest.approx(4 * 2e-3)


def test_closing_waits_for_what_the_device_still_computes(out, events):
    model, optimizer = make()
    hook = tocsin.watch(model, optimizer, out=out)
    backward(model, optimizer)
    optimizer.step()
    hook.close()
    assert events[-1].waited == 1
    assert len(Telemetry(out).summaries(0)) == 8


def test_collections_decide_on_a_device_too(out, events):
    model, optimizer = make()
    hook = tocsin.watch(model, optimizer, out=out, capture={"every": "1 step", "overhead": "100%", "collections": {
        "gradients": {}, "biases": {"every": "2 steps"}, "mine": {"every": "3 steps"}}})
    for _ in range(4):
        backward(model, optimizer)
        hook.save_tensor("x", torch.ones(3), "mine")
        optimizer.step()
        hook.log(loss=1.0)
        finish(events)
    hook.close()
    telemetry = Telemetry(out)
    gradients = {"gradient/0.weight", "gradient/2.weight", "gradient/0.bias", "gradient/2.bias"}
    biases = {"0.bias", "2.bias"}
    assert [set(telemetry.summaries(step)) - {"x"} for step in range(4)] == [gradients | biases, gradients, gradients | biases, gradients]


def test_a_device_tensor_is_saved_when_its_collection_is_due(out, events, monkeypatch):
    hook = tocsin.watch(out=out, capture={"every": "1 step", "overhead": "100%", "collections": {"mine": {"every": "2 steps"}}})
    for step in range(4):
        hook.sink._tensors["x"] = hook.sink.tensor("x", dtype=torch.float32, shape=(3,), collection="mine")
        hook.sink._publish_on_device(hook.sink._tensors["x"], torch.full((3,), float(step)), raw=False)
        finish(events)
        hook.step()
    hook.close()
    assert [step for step in range(4) if Telemetry(out).summaries(step)] == [0, 2]


def test_memory_on_its_way_is_not_used_again(events):
    counts, tensor = DeviceCounts(), torch.ones(10)
    first, ready = torch_device.device_rows([(1, tensor, 0)], None, counts)
    second, _ = torch_device.device_rows([(1, tensor * 2, 0)], None, counts)
    assert not ready.query()
    finish(events)
    assert ready.query() and first()[0].sum == 10 and second()[0].sum == 20


def test_a_device_that_is_far_behind_is_not_asked_for_more(out, events, monkeypatch):
    monkeypatch.setattr(torch_staging, "MAX_IN_FLIGHT", 1 << 15)
    model, optimizer = make()
    hook = tocsin.watch(model, optimizer, out=out, capture={"every": "1 step", "overhead": "100%"})
    for _ in range(10):
        hook.log(loss=float(backward(model, optimizer)))
        optimizer.step()
    batches = hook.stats()["device"]["batches_total"]
    assert 1 <= batches < 10
    assert hook.stats()["device"]["skipped_total"] == {"in_flight": 8 * (10 - batches)}
    finish(events)
    hook.log(loss=0.0)
    backward(model, optimizer)
    optimizer.step()
    assert hook.stats()["device"]["batches_total"] == batches + 1
    finish(events)
    hook.close()
    assert Telemetry(out).steps() == list(range(11))


def test_while_a_graph_is_captured_nothing_is_launched_asked_or_waited_for(out, events, monkeypatch):
    model, optimizer = make()
    hook = tocsin.watch(model, optimizer, out=out, capture={"every": "1 step", "overhead": "100%"})
    hook.log(loss=float(backward(model, optimizer)))
    optimizer.step()
    before = len(events)
    finish(events)
    with monkeypatch.context() as patch:
        capture(patch)
        patch.setattr(Event, "query", None)  # raises when it is called
        patch.setattr(Event, "synchronize", None)
        backward(model, optimizer)
        optimizer.step()
        hook.sink._publish_on_device(hook.sink.tensor("0.weight"), model[0].weight.detach(), raw=False)
    assert len(events) == before
    hook.log(loss=float(backward(model, optimizer)))
    optimizer.step()
    finish(events)
    hook.close()
    assert hook.stats()["hook_errors_total"] == {}
    assert hook.stats()["device"]["skipped_total"] == {"graph_capture": 4 + 1}
    telemetry = Telemetry(out)
    assert telemetry.steps() == [0, 1], "the capture is no step"
    assert [len(telemetry.summaries(step)) for step in range(2)] == [8, 8]


def capture(patch):
    for module in (torch_staging, torch_device, torch_adapter):
        patch.setattr(module, "capturing", lambda: True)


def test_replays_of_a_graph_with_the_update_in_it_are_steps(out, events, monkeypatch):
    model, optimizer = make()
    hook = tocsin.watch(model, optimizer, out=out, capture={"every": "2 steps", "overhead": "100%"})
    with monkeypatch.context() as patch:
        capture(patch)
        backward(model, optimizer)
        optimizer.step()
    for replay in range(4):
        for parameter in model.parameters():
            parameter.grad.fill_(float(replay))
        if replay != 3:
            hook.log(loss=float(replay))
        hook.step()
        finish(events)
    with hook.mode("eval"):
        hook.log(accuracy=0.5)
        hook.step()
    hook.log(loss=float(backward(model, optimizer)))
    optimizer.step()  # outside of a graph again
    hook.step()
    finish(events)
    hook.close()
    telemetry = Telemetry(out)
    assert [(mode, step) for mode, step, _ in telemetry.scalars("loss")] == [(1, 0), (1, 1), (1, 2), (1, 4)]
    assert [telemetry.summaries(step).get("gradient/2.bias", {}).get("max") for step in range(4)] == [0.0, None, 2.0, None]
    assert telemetry.steps() == [0, 1, 2, 3, 4], "hook.step() after an update counts none"
    assert len(telemetry.summaries(4)) == 8 and hook.stats()["hook_errors_total"] == {}


def test_tensors_in_host_memory_beside_those_of_a_device(out, events, monkeypatch):
    model, optimizer = make()
    monkeypatch.setattr(torch_capture, "on_host", lambda tensor: tensor is not model[0].weight)
    hook = tocsin.watch(model, optimizer, out=out, capture={"every": "1 step", "overhead": "100%"})
    for _ in range(2):
        hook.log(loss=float(backward(model, optimizer)))
        optimizer.step()
    assert hook.stats()["device"]["waits_total"] == {"host_tensors": 1}, "the order is kept: step 1's come after step 0's"
    finish(events)
    hook.close()
    assert [len(Telemetry(out).summaries(step)) for step in range(2)] == [8, 8]


def test_parameters_that_move_to_a_device_are_followed(out, events, monkeypatch):
    model, optimizer = make()
    moved = []
    monkeypatch.setattr(torch_capture, "on_host", lambda tensor: not moved)
    hook = tocsin.watch(model, optimizer, out=out, capture={"every": "1 step", "overhead": "100%"})
    for step in range(3):
        hook.log(loss=float(backward(model, optimizer)))
        optimizer.step()
        finish(events)
        if step == 0:
            moved.append(True)
            for parameter in model.parameters():
                parameter.data = parameter.data.clone()
    hook.close()
    assert hook.stats()["device"]["tensors_total"] == 2 * 8
    assert [len(Telemetry(out).summaries(step)) for step in range(3)] == [8, 8, 8]


def test_where_the_kernels_fail_the_tensors_are_measured_all_the_same(events, monkeypatch):
    class Broken(torch_device.TritonStatistics):
        def __init__(self, device):
            pass

        def __call__(self, runs, flight):
            flight.upload(torch.zeros(1, dtype=torch.int64))
            raise RuntimeError("Failed to find C compiler")

    monkeypatch.setattr(torch_device, "TritonStatistics", Broken)
    monkeypatch.setattr(torch_device, "why_not", lambda device: None)
    counts = DeviceCounts()
    for _ in range(2):
        rows, _ = torch_device.device_rows([(1, torch.ones(4), 0)], None, counts)
        finish(events)
        assert rows()[0].sum == 4
    assert counts.as_dict()["kernels"] == {"cpu": "torch (RuntimeError: Failed to find C compiler)"} and counts.launches == 0
