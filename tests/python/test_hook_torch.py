"""The hook in a PyTorch loop: values, names, modes, steps. In one process, one journal per test."""
import json
import math
import warnings

import pytest

import numpy as np
import torch

from tests.support.hook_support import Telemetry, wire  # noqa: E402
from tests.support.small_model import backward, make  # noqa: E402

import tocsin  # noqa: E402


def expected(array):
    x = np.asarray(array, dtype=np.float64).ravel()
    return {"count": x.size, "sum": x.sum(), "sumsq": (x * x).sum(), "m2": ((x - x.mean()) ** 2).sum(),
            "abs_sum": np.abs(x).sum(), "min": x.min(), "max": x.max(), "zero": int((x == 0).sum()),
            "negative": int((x < 0).sum())}


def assert_row(row, array):
    want = expected(array)
    for name in ("count", "zero", "negative", "min", "max"):
        assert row[name] == want[name], name
    for name in ("sum", "sumsq", "m2", "abs_sum"):
        assert row[name] == pytest.approx(want[name], rel=1e-5, abs=1e-5 * want["abs_sum"]), name


def test_statistics_of_gradients_and_weights_are_numpys(out):
    model, optimizer = make()
    hook = tocsin.watch(model, optimizer, out=out)
    hook.log(loss=backward(model, optimizer))
    before = {name: parameter.detach().clone() for name, parameter in model.named_parameters()}
    gradients = {name: parameter.grad.clone() for name, parameter in model.named_parameters()}
    optimizer.step()
    hook.close()
    rows = Telemetry(out).summaries(step=0)
    assert set(rows) == set(before) | {"gradient/" + name for name in before}
    for name in before:
        assert_row(rows[name], before[name].numpy())
        assert_row(rows["gradient/" + name], gradients[name].numpy())


def test_sparse_gradients_are_of_stored_rows_and_say_so(out):
    embedding, head = torch.nn.Embedding(10, 3, sparse=True), torch.nn.Linear(3, 1)
    optimizer = torch.optim.SGD([*embedding.parameters(), *head.parameters()], lr=0.1)
    hook = tocsin.watch(torch.nn.Sequential(embedding, head), optimizer, out=out, capture={"every": "1 step"})
    for rows in ([1, 1, 4], [2]):
        optimizer.zero_grad()
        head(embedding(torch.tensor(rows))).sum().backward()
        optimizer.step()
    hook.emit("mine", torch.sparse_coo_tensor([[0, 3]], [1.0, -2.0], (9,)))
    hook.step()
    hook.close()
    telemetry = Telemetry(out)
    for step, count in ((0, 6), (1, 3)):
        rows = telemetry.summaries(step=step)
        assert rows["gradient/0.weight"]["count"] == count and rows["gradient/0.weight"]["meta"] & 1 << 17
        assert not any(row["meta"] & 1 << 17 for name, row in rows.items() if name not in ("gradient/0.weight", "mine"))
    mine = telemetry.summaries()["mine"]
    assert mine["count"] == 2 and mine["meta"] & 1 << 17


def test_names_carry_role_dtype_shape_and_collection(out):
    model, optimizer = make()
    hook = tocsin.watch(model, optimizer, out=out, job="digits", labels={"team": "nlp"})
    hook.log(loss=backward(model, optimizer), accuracy=0.5)
    optimizer.step()
    hook.close()
    telemetry = Telemetry(out)
    entry = {entry["name"]: entry for entry in telemetry.entries.values()}
    assert entry["0.weight"]["role"] == wire.ROLES["weight"] and entry["0.weight"]["dims"] == [8, 6]
    assert entry["gradient/0.weight"]["role"] == wire.ROLES["gradient"]
    assert entry["2.bias"]["role"] == wire.ROLES["bias"] and entry["2.bias"]["dtype"] == wire.DTYPES["f32"]
    assert json.loads(entry["gradient/0.weight"]["attrs"])["collections"] == ["gradients"]
    assert json.loads(entry["worker_0"]["attrs"]) == {"job": "digits", "labels": {"team": "nlp"}}
    assert entry["loss"]["role"] == wire.ROLES["loss"] and entry["accuracy"]["role"] == wire.ROLES["metric"]
    start = telemetry.lifecycles("start")[0]
    assert start["job"] == "digits" and start["labels"] == {"team": "nlp"} and start["framework"].startswith("torch")


def test_every_row_comes_after_its_dictionary_entry_and_before_the_end_of_its_step(out):
    model, optimizer = make()
    hook = tocsin.watch(model, optimizer, out=out)
    for _ in range(31):
        hook.log(loss=backward(model, optimizer))
        optimizer.step()
    hook.close()
    known, ended, sequences = set(), -1, []
    for frame in Telemetry(out).frames:
        sequences.append(frame.header["sequence"])
        known |= {entry["hash"] for entry in frame.entries}
        if frame.kind in (wire.SUMMARY, wire.SCALAR):
            assert {row["name"] for row in frame.rows} <= known
            assert frame.header["step"] > ended
        if frame.kind == wire.STEP_END:
            ended = frame.rows[-1]["step"]
    assert ended == 30
    assert sequences == list(range(sequences[0], sequences[0] + len(sequences)))


def test_tensors_are_saved_on_the_grid_and_scalars_at_every_step(out):
    model, optimizer = make()
    hook = tocsin.watch(model, optimizer, out=out, capture={"every": "4 steps", "collections": {
        "gradients": {}, "weights": {"every": 3, "steps": [7]}}})
    for _ in range(9):
        hook.log(loss=backward(model, optimizer))
        optimizer.step()
    hook.close()
    telemetry = Telemetry(out)
    steps = {}
    for frame in telemetry.of_kind(wire.SUMMARY):
        for row in frame.rows:
            steps.setdefault(telemetry.names[row["name"]], []).append(frame.header["step"])
    assert steps["gradient/0.weight"] == [0, 4, 8]
    assert steps["0.weight"] == [0, 3, 6, 7]
    assert "0.bias" not in steps
    assert [step for _, step, _ in telemetry.scalars("loss")] == list(range(9))
    assert telemetry.steps() == list(range(9))


def test_weights_say_how_far_they_moved(out):
    model, optimizer = make()
    hook = tocsin.watch(model, optimizer, out=out, capture={"every": "2 steps"})
    weights = []
    for _ in range(3):
        hook.log(loss=backward(model, optimizer))
        weights.append(model[0].weight.detach().clone())
        optimizer.step()
    hook.close()
    telemetry = Telemetry(out)
    assert telemetry.summaries(step=0)["0.weight"]["extra"] == {}
    extra = telemetry.summaries(step=2)["0.weight"]["extra"]
    assert extra[7] == pytest.approx(float((weights[2] - weights[0]).norm()), rel=1e-5)
    assert extra[10] == pytest.approx(float(weights[0].norm()), rel=1e-5)
    assert extra[11] == 0


def test_a_bad_value_is_found_with_its_index(out):
    model, optimizer = make()
    hook = tocsin.watch(model, optimizer, out=out)
    backward(model, optimizer)
    model[0].weight.grad[2, 3] = float("inf")
    model[0].weight.grad[5, 1] = float("nan")
    hook.log(loss=float("nan"))
    optimizer.step()
    hook.close()
    telemetry = Telemetry(out)
    row = telemetry.summaries(step=0)["gradient/0.weight"]
    assert (row["nan"], row["posinf"]) == (1, 1) and math.isnan(row["max"])
    assert row["extra"][20] == 2 * 6 + 3
    assert math.isnan(telemetry.scalars("loss")[0][2])


def test_a_step_ends_after_the_log_that_follows_the_optimizer(out):
    model, optimizer = make()
    hook = tocsin.watch(model, optimizer, out=out)
    for i in range(3):
        backward(model, optimizer)
        optimizer.step()
        hook.log(loss=float(i))
    hook.close()
    telemetry = Telemetry(out)
    assert [(step, value) for _, step, value in telemetry.scalars("loss")] == [(0, 0.0), (1, 1.0), (2, 2.0)]
    assert telemetry.steps() == [0, 1, 2]


def test_step_beside_a_watched_optimizer_counts_nothing_twice(out):
    model, optimizer = make()
    hook = tocsin.watch(model, optimizer, out=out)
    for log_first in (True, True, False, False):
        loss = backward(model, optimizer)
        if log_first:
            hook.log(loss=loss)
        optimizer.step()
        hook.step()
    hook.close()
    assert Telemetry(out).steps() == [0, 1, 2, 3]


def test_evaluation_counts_batches_in_passes_of_its_own(out):
    model, optimizer = make()
    hook = tocsin.watch(model, optimizer, out=out)
    for _ in range(2):
        hook.log(loss=backward(model, optimizer))
        optimizer.step()
        model.eval()
        for batch in range(2):
            hook.log(loss=float(batch))
            hook.step()
        model.train()
    with hook.mode("predict"):
        hook.log(score=1.0)
    hook.log(loss=backward(model, optimizer))
    optimizer.step()
    hook.close()
    telemetry = Telemetry(out)
    assert telemetry.steps(wire.TRAIN) == [0, 1, 2]
    assert telemetry.steps(wire.EVAL) == [0, 1, 2, 3]
    assert telemetry.steps(wire.PREDICT) == [0]
    passes = {frame.header["step"]: frame.header["pass_"] for frame in telemetry.of_kind(wire.STEP_END)
              if frame.header["mode"] == wire.EVAL}
    assert passes[1] == 0 and passes[3] == 1
    numbers = sorted(row["global_step"] for frame in telemetry.of_kind(wire.STEP_END) for row in frame.rows)
    assert numbers == list(range(8))


def test_a_model_trained_in_its_eval_state_is_still_training(out):
    model, optimizer = make()
    model.eval()
    hook = tocsin.watch(model, optimizer, out=out)
    for _ in range(3):
        loss = backward(model, optimizer)
        optimizer.step()
        hook.log(loss=loss)
    hook.close()
    telemetry = Telemetry(out)
    assert telemetry.steps(wire.TRAIN) == [0, 1, 2] and telemetry.steps(wire.EVAL) == []


def test_wrappers_leave_no_trace_in_names_and_frozen_or_tied_parameters_are_not_repeated(out):
    class Tied(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.embed = torch.nn.Linear(4, 4, bias=False)
            self.head = torch.nn.Linear(4, 4, bias=False)
            self.head.weight = self.embed.weight
            self.frozen = torch.nn.Linear(4, 4)
            self.frozen.requires_grad_(False)
            self.unused = torch.nn.Linear(4, 4)

        def forward(self, x):
            return self.head(self.frozen(self.embed(x)))

    model = Tied()
    wrapped = torch.nn.DataParallel(model)
    optimizer = torch.optim.Adam(model.parameters())
    hook = tocsin.watch(wrapped, optimizer, out=out)
    model(torch.randn(2, 4)).sum().backward()
    hook.log(loss=1.0)
    optimizer.step()
    hook.close()
    names = set(Telemetry(out).summaries(step=0))
    assert names == {"embed.weight", "gradient/embed.weight", "unused.weight", "unused.bias"}


def test_channels_last_and_sliced_gradients_are_read_as_they_lie(out):
    torch.manual_seed(1)
    convolution = torch.nn.Conv2d(3, 4, 3).to(memory_format=torch.channels_last)
    plain = torch.nn.Linear(3, 5)
    parameters = list(convolution.parameters()) + list(plain.parameters())
    optimizer = torch.optim.SGD(parameters, lr=0.1)
    hook = tocsin.watch(torch.nn.ModuleList([convolution, plain]), optimizer, out=out)
    convolution(torch.randn(1, 3, 5, 5)).sum().backward()
    wide = torch.randn(5, 6)
    plain.weight.grad = wide[:, ::2]
    hook.log(loss=1.0)
    optimizer.step()
    hook.close()
    rows = Telemetry(out).summaries(step=0)
    assert not convolution.weight.is_contiguous()
    assert_row(rows["gradient/0.weight"], convolution.weight.grad.numpy())
    assert_row(rows["gradient/1.weight"], wide[:, ::2].numpy())


def test_save_tensor_takes_arrays_of_any_kind_when_their_collection_is_due(out):
    hook = tocsin.watch(out=out, capture={"every": "2 steps"})
    array = np.arange(12, dtype=np.float64).reshape(3, 4)
    for _ in range(3):
        hook.save_tensor("mine", array[:, ::2], collection="custom")
        hook.save_tensor("labels", torch.tensor([1, 2, 2]))
        hook.step()
    hook.close()
    telemetry = Telemetry(out)
    frames = telemetry.of_kind(wire.SUMMARY)
    assert [frame.header["step"] for frame in frames] == [0, 2]
    rows = telemetry.summaries(step=2)
    assert_row(rows["mine"], array[:, ::2])
    assert_row(rows["labels"], [1, 2, 2])


def test_schedulers_closures_and_state_dicts_do_not_notice(out):
    model, optimizer = make()
    hook = tocsin.watch(model, optimizer, out=out)
    scheduler = torch.optim.lr_scheduler.StepLR(optimizer, step_size=1, gamma=0.5)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for _ in range(3):
            assert optimizer.step(lambda: backward(model, optimizer)).numel() == 1
            scheduler.step()
            hook.log(loss=1.0)
    assert optimizer.step.__self__ is optimizer if hasattr(optimizer.step, "__self__") else True
    import copy
    import pickle
    assert pickle.loads(pickle.dumps(optimizer)).param_groups[0]["lr"] == optimizer.param_groups[0]["lr"]
    copy.deepcopy(optimizer).step()
    hook.close()
    telemetry = Telemetry(out)
    assert [value for _, _, value in telemetry.scalars("learning_rate")] == [0.1, 0.05, 0.025]
    assert telemetry.steps() == [0, 1, 2]


def test_a_scheduler_made_before_the_hook_keeps_its_mark(out):
    model, optimizer = make()
    scheduler = torch.optim.lr_scheduler.StepLR(optimizer, step_size=1)
    hook = tocsin.watch(model, optimizer, out=out)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        hook.log(loss=backward(model, optimizer))
        optimizer.step()
        scheduler.step()
    hook.close()
    assert Telemetry(out).steps() == [0]


def test_close_gives_the_optimizer_its_own_step_back(out):
    model, optimizer = make()
    hook = tocsin.watch(model, optimizer, out=out)
    hook.close()
    assert "step" not in optimizer.__dict__
    backward(model, optimizer)
    optimizer.step()


def test_watching_twice_is_watching_once(out):
    model, optimizer = make()
    first = tocsin.watch(model, optimizer, out=out)
    second = tocsin.watch(model, optimizer, out=out)
    assert first is second is tocsin.get_hook()
    first.log(loss=backward(model, optimizer))
    optimizer.step()
    first.close()
    assert tocsin.get_hook() is None
    assert Telemetry(out).steps() == [0]


def test_counters_continue_from_a_checkpoint(out):
    model, optimizer = make()
    hook = tocsin.watch(model, optimizer, out=out + "1")
    for _ in range(5):
        hook.log(loss=backward(model, optimizer))
        optimizer.step()
    state = json.loads(json.dumps(hook.state_dict()))
    hook.close()
    hook = tocsin.watch(model, optimizer, out=out)
    hook.load_state_dict(state)
    hook.log(loss=backward(model, optimizer))
    optimizer.step()
    hook.close()
    telemetry = Telemetry(out)
    assert telemetry.steps() == [5]
    assert telemetry.lifecycles("start")[-1]["continues_from"] == 5
