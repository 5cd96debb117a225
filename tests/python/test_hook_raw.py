"""Elements of tensors: asked for per collection or per call, sent to the topic or a directory, and read back."""
import glob
import json
import os
import stat
import warnings

import numpy
import pytest
import torch

import tocsin
from tests.support.hook_support import Telemetry, records, wire
from tocsin.raw import NoRawTensor, RawTensors

RAW = {"every": "1 step", "overhead": 1.0, "collections": {"weights": {"raw": True}, "gradients": None, "losses": None}}


@pytest.fixture(params=["topic", "directory"])
def capture(request, tmp_path):
    return {**RAW, "raw": {} if request.param == "topic" else {"to": str(tmp_path / "raw")}}


def trained(out, capture, steps=3):
    """(hook, the weights before each update)."""
    torch.manual_seed(1)
    model = torch.nn.Linear(300, 40)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    hook = tocsin.watch(model, optimizer, out=out, capture=capture)
    seen = []
    for _ in range(steps):
        optimizer.zero_grad()
        model(torch.randn(4, 300)).square().mean().backward()
        seen.append(model.weight.detach().numpy().copy())
        optimizer.step()
    return hook, seen


def test_weights_come_back_as_the_update_saw_them(out, capture):
    hook, seen = trained(out, capture)
    for step, weight in enumerate(seen):
        assert numpy.array_equal(hook.get_tensor("weight", step), weight)
    rows = [row for row in hook.get_tensors("weight", raw=True)]
    assert [row["step"] for row in rows] == [0, 1, 2]
    assert all(numpy.array_equal(row["elements"], weight) for row, weight in zip(rows, seen))
    assert "elements" not in hook.get_tensors("gradient/weight", 1, raw=False)[0]
    hook.close()
    assert hook.stats()["raw"]["sent_total"] == 3 and not hook.stats()["hook_errors_total"]
    again = RawTensors(run=hook.run, out=out, capture=capture)  # the run is over, another reader comes
    assert numpy.array_equal(again.value("weight", 2, worker="worker_0"), seen[2])
    assert again.counters()["refused_total"] == {}


def test_every_type_and_every_layout(out, capture):
    hook = tocsin.watch(out=out, capture=capture)
    block = torch.arange(24, dtype=torch.float32).reshape(4, 6)
    given = {str(dtype): block.to(dtype) for dtype in (
        torch.float32, torch.float64, torch.float16, torch.bfloat16, torch.int8, torch.int16, torch.int32, torch.int64,
        torch.uint8, torch.bool, torch.complex64, torch.complex128)}
    given.update(transposed=block.t(), strided=block[:, ::2], expanded=block[0].expand(3, 6), half_view=block.half()[1:, 3:],
                 one=torch.tensor(2.5), numpy_transposed=block.numpy().T, numpy_half=block.numpy().astype("f2")[::2])
    for name, value in given.items():
        hook.save_tensor(name, value, raw=True)
    for name, value in given.items():
        got = hook.get_tensor(name, 0)
        assert got is not None, name
        expected = value if isinstance(value, numpy.ndarray) else \
            (value.float() if value.dtype is torch.bfloat16 else value).numpy()
        assert got.shape == expected.shape and got.dtype == expected.dtype, name
        assert numpy.array_equal(got, expected), name
    assert not hook.stats()["hook_errors_total"]


def test_types_of_eight_bits_follow_their_tables():
    from tocsin.reading.raw import _table

    e5m2 = _table(5, 2)
    halves = (numpy.arange(256, dtype="<u2") << 8).view("<f2").astype("<f4")  # e5m2 is the upper half of a half
    assert numpy.array_equal(e5m2, halves, equal_nan=True)
    e4m3 = _table(4, 3)
    assert (e4m3[0x7E], e4m3[0x08], e4m3[0x01], e4m3[0xC0]) == (448.0, 2.0**-6, 2.0**-9, -2.0)
    assert numpy.isnan(e4m3[0x7F]) and numpy.isnan(e4m3[0xFF]) and numpy.isfinite(e4m3).sum() == 254


def test_activations_emitted_arrays_and_the_originals_configuration(out):
    model = torch.nn.Sequential(torch.nn.Linear(5, 3), torch.nn.ReLU())
    config = tocsin.DebuggerHookConfig(collection_configs=[
        tocsin.CollectionConfig("relu", {"include_regex": "1_output_0", "save_raw_tensor": "true", "save_interval": "1"}),
        tocsin.CollectionConfig("labels", {"save_raw_tensor": "true", "save_interval": "1"})])
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        hook = tocsin.watch(model, torch.optim.SGD(model.parameters(), lr=0.1), out=out, capture=config)
    result = model(torch.ones(2, 5))
    hook.emit("labels", numpy.array([1, 2, 3]), role="label")
    hook.emit("mine", numpy.array([7.0]), raw=True)
    result.sum().backward()
    hook.step()
    assert hook.get_tensor("1_output_0", 0).shape == (2, 3)
    assert hook.get_tensor("labels", 0).tolist() == [1, 2, 3]


def test_what_was_not_captured_is_a_warning_that_says_how(out):
    hook, _ = trained(out, {"every": "1 step", "overhead": 1.0})
    with pytest.warns(RuntimeWarning, match=r"weight at step 1 of train: no elements.*raw: true"):
        assert hook.get_tensor("weight", 1) is None
    with pytest.warns(RuntimeWarning, match="no elements of weight"):
        assert "elements" not in hook.get_tensors("weight", 1, raw=True)[0]
    with pytest.raises(NoRawTensor, match="raw: true"):
        RawTensors(run=hook.run, out=out).value("weight", 1)
    assert records(out, "tensors") == []


def test_beyond_the_limit_of_a_step_is_skipped_and_said_once(out, capfd):
    capture = {**RAW, "raw": {"max_bytes": "1KiB"}}
    hook, _ = trained(out, capture, steps=5)
    hook.close()
    assert hook.stats()["raw"]["skipped_total"]["step_limit"] == 5
    gaps = [frame.lifecycle for frame in Telemetry(out).of_kind(wire.LIFECYCLE) if frame.lifecycle["event"] == "gap"]
    assert [(gap["lane"], gap["reason"]) for gap in gaps] == [("raw", "step_limit")]
    assert "5 raw tensors (240000 bytes) did not go to topic: 5 step_limit" in capfd.readouterr().err


@pytest.mark.skipif(os.geteuid() == 0, reason="nothing is forbidden to root")
def test_a_directory_without_leave_to_write(out, tmp_path, capfd):
    place = tmp_path / "raw"
    place.mkdir(mode=0o500)
    hook, _ = trained(out, {**RAW, "raw": {"to": str(place)}})
    hook.close()
    assert hook.stats()["raw"]["skipped_total"]["refused"] == 3
    place.chmod(stat.S_IRWXU)
    assert "Permission denied" in capfd.readouterr().err


def test_a_file_where_the_directory_should_be_costs_the_elements_and_nothing_else(out, tmp_path, capfd):
    (tmp_path / "raw").write_text("a file")
    hook, _ = trained(out, {**RAW, "raw": {"to": str(tmp_path / "raw")}})
    hook.close()
    assert hook.stats()["raw"]["skipped_total"]["refused"] == 3
    assert "raw tensors" in capfd.readouterr().err
    assert Telemetry(out).steps() == [0, 1, 2]


def test_a_damaged_file_is_said_to_be(out, tmp_path):
    hook, _ = trained(out, {**RAW, "raw": {"to": str(tmp_path / "raw")}}, steps=1)
    hook.close()
    [file] = glob.glob(str(tmp_path / "raw/**/*.tcsn"), recursive=True)
    data = bytearray(open(file, "rb").read())
    data[1000] ^= 1
    open(file, "wb").write(data)
    with pytest.raises(NoRawTensor, match="bad_crc"):
        RawTensors(run=hook.run, out=out).value("weight", 0)


def test_the_reference_codec_reads_what_the_hook_writes(out, tmp_path):
    hook, seen = trained(out, {**RAW, "raw": {"to": str(tmp_path / "raw"), "chunk": "16KiB"}}, steps=1)
    hook.close()
    [reference] = [wire.decode_frame(record["value"]) for record in records(out, "tensors")]
    offset, length, uri = reference.chunk["dataref"]
    assert reference.chunk["data"] == b"" and reference.chunk["about"][1:] == ("weight", "worker_0")
    with open(uri[len("file://"):], "rb") as file:
        file.seek(offset)
        rest, data, chunks = file.read(length), b"", 0
    while rest:
        size = wire.HEADER_BYTES + int.from_bytes(rest[16:20], "little")
        chunk = wire.decode_frame(rest[:size]).chunk
        assert chunk["byte_offset"] == len(data) and chunk["chunk"] == chunks and chunk["chunks"] == 3
        data, rest, chunks = data + chunk["data"], rest[size:], chunks + 1
    assert numpy.array_equal(numpy.frombuffer(data, "<f4").reshape(40, 300), seen[0])


def test_a_rule_over_a_recording_sees_elements(out):
    from tocsin.exceptions import ElementsUnavailableForStep
    from tocsin.rules import Rule, create_trial, invoke_rule

    class Duplicated(Rule):
        def invoke_at_step(self, step):
            weight = self.base_trial.tensor("weight").value(step)
            return bool((weight[0] != weight[1]).any()) and step == 1

    hook, seen = trained(out, {**RAW, "collections": {"weights": {"raw": True, "every": "2 steps"}, "gradients": None}})
    hook.close()
    trial = create_trial(out)
    assert numpy.array_equal(trial.tensor("weight").value(2), seen[2])
    assert numpy.array_equal(trial.tensor("weight").values()[0], seen[0])
    with pytest.raises(ElementsUnavailableForStep, match="use reduction_value.*raw: true"):
        trial.tensor("gradient/weight").value(1)
    assert trial.tensor("gradient/weight").reduction_value(1, "l2") > 0
    assert invoke_rule(Duplicated(trial)) == []  # step 1 has none: insufficient, and no hit


def test_a_dry_run_copies_nothing(out):
    hook, _ = trained(out, {**RAW, "dry_run": True})
    hook.close()
    assert json.loads(json.dumps(hook.stats()))["raw"]["tensors_total"] == 0
