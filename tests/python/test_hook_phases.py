"""Times of the phases of a step that nobody asked for, and what they must not disturb."""
import copy
import gc
import io
import weakref

import pytest
import torch
from tests.support.hook_support import Telemetry, wire

import tocsin
from tocsin.adapters.torch.models import phases as torch_phases, scripting
from tocsin.library import lane

STEP = ["forward", "backward", "optimizer"]


@pytest.fixture(autouse=True, params=("functions of the library", "functions of Python"))
def way(request, monkeypatch):
    """What is done at every pass, in both ways."""
    native = request.param == "functions of the library"
    if not native:
        monkeypatch.setattr(lane, "native", lambda library, handle: None)
    made = torch_phases.Passes.__init__

    def checked(self, *args, **kwargs):
        made(self, *args, **kwargs)
        assert bool(self._native) is native

    monkeypatch.setattr(torch_phases.Passes, "__init__", checked)


def perceptron():
    model = torch.nn.Sequential(torch.nn.Linear(4, 3), torch.nn.ReLU())
    return model, torch.optim.SGD(model.parameters(), lr=0.1)


def train(model, optimizer, steps=1, apply=None):
    for _ in range(steps):
        optimizer.zero_grad()
        (apply or model)(torch.ones(2, 4)).square().mean().backward()
        optimizer.step()


def phases(out, step=None, without="finalization"):
    """(name, step, duration), or the names of one step; without how the run ended."""
    telemetry = Telemetry(out)
    told = [(telemetry.names[row["name"]], row["step"], row["duration"]) for frame in telemetry.of_kind(wire.SPAN) for row in frame.rows
            if telemetry.names[row["name"]] != without]
    return told if step is None else [name for name, at, _ in told if at == step]


def test_of_every_step_without_a_word_of_the_script(out):
    model, optimizer = perceptron()
    hook = tocsin.watch(model, optimizer, out=out)
    for batch in hook.batches([torch.ones(2, 4)] * 3):
        train(model, optimizer, apply=lambda _: model(batch))
    with hook.phase("finalization"):
        pass
    with pytest.warns(RuntimeWarning, match="is no phase"):
        with hook.phase("lunch"):
            pass
    hook.close()
    told = phases(out, without=None)
    for step in range(3):
        assert [name for name, at, _ in told if at == step and name != "data_wait"] == \
            (["initialization"] if step == 0 else []) + STEP + (["finalization"] if step == 2 else [])
    assert sum(name == "data_wait" for name, _, _ in told) == 4  # three batches, and that there are no more
    assert all(duration > 0 for _, _, duration in told)
    assert not model._forward_hooks and not model._forward_pre_hooks and scripting._SCRIPTED not in model.__dict__


def test_they_can_be_left_out(out):
    model, optimizer = perceptron()
    hook = tocsin.watch(model, optimizer, out=out, phases=False, capture={"ledger": False})
    assert not model._forward_hooks and not model._forward_pre_hooks
    train(model, optimizer)
    hook.close()
    assert phases(out, 0) == ["optimizer"]


def test_what_the_script_times_itself_counts_and_nothing_beside_it(out):
    model, optimizer = perceptron()
    hook = tocsin.watch(model, optimizer, out=out)
    for _ in range(2):
        with hook.phase("forward"):
            loss = model(torch.ones(2, 4)).square().mean()
        with hook.phase("backward"):
            loss.backward()
        with hook.phase("optimizer"):
            optimizer.step()
    other, its_own = perceptron()  # watched later: it hears of what was said before
    hook.close()
    hook = tocsin.watch(other, its_own, out=out, run="next")
    with hook.phase("evaluation"), torch.no_grad():
        other.eval()(torch.ones(2, 4))
    other.train()
    train(other, its_own)
    hook.close()
    told = [name for name, _, _ in phases(out)]
    assert told == ["initialization"] + STEP * 2 + ["evaluation", "initialization"] + STEP


def test_an_evaluation_lasts_from_its_first_pass_to_its_last(out, monkeypatch):
    model, optimizer = perceptron()
    hook = tocsin.watch(model, optimizer, out=out)
    train(model, optimizer, 2)
    with torch.no_grad():
        model(torch.ones(2, 4))  # in the training state without gradients: nobody's
    now = [1_000_000]
    monkeypatch.setattr(torch_phases, "time_ns", lambda: now[0])
    model.eval()
    for _ in range(3):
        now[0] += 1000
        model(torch.ones(2, 4))
    hook.log(accuracy=0.5)
    now[0] += 50_000
    model.train()
    train(model, optimizer)
    hook.close()
    assert [duration for name, _, duration in phases(out) if name == "evaluation"] == [2000]
    assert sum(name == "forward" for name, _, _ in phases(out)) == 3


def test_an_evaluation_at_the_end_is_told(out):
    model, optimizer = perceptron()
    hook = tocsin.watch(model, optimizer, out=out)
    train(model, optimizer)
    model.eval()(torch.ones(2, 4))
    hook.close()
    assert "evaluation" in [name for name, _, _ in phases(out)]


def test_writing_a_checkpoint_is_a_phase_once(out):
    hook = tocsin.watch(out=out)
    with hook.checkpointing():
        pass
    with hook.phase("checkpoint"), hook.checkpointing():
        pass
    hook.close()
    assert [name for name, _, _ in phases(out)] == ["checkpoint"] * 2


def test_a_copy_of_the_model_is_not_watched_and_a_pickled_one_needs_nothing_of_ours(out):
    model, optimizer = perceptron()
    hook = tocsin.watch(model, optimizer, out=out)
    train(model, optimizer)
    averaged = copy.deepcopy(model)
    train(averaged, torch.optim.SGD(averaged.parameters(), lr=0.1))
    scripted = torch.jit.script(copy.deepcopy(averaged))
    assert scripted(torch.ones(2, 4)).shape == (2, 3) and model._forward_hooks
    file = io.BytesIO()
    torch.save(model, file)
    assert b"tocsin" not in file.getvalue()
    file.seek(0)
    loaded = torch.load(file, **({} if torch.__version__ < "2" else {"weights_only": False}))
    train(loaded, torch.optim.SGD(loaded.parameters(), lr=0.1))
    hook.close()
    assert phases(out) and max(step for _, step, _ in phases(out)) == 0
    assert hook.stats()["hook_errors_total"] == {}


def test_a_model_that_is_scripted_goes_on_without_them(out):
    model, optimizer = perceptron()
    hook = tocsin.watch(model, optimizer, out=out)
    torch.jit.trace(model, torch.ones(2, 4))
    train(model, optimizer)
    torch.jit.script(torch.nn.Sequential(model))
    assert not model._forward_hooks and not model._forward_pre_hooks
    train(model, optimizer)
    hook.close()
    assert phases(out, 0)[-3:] == STEP and phases(out, 1) == ["optimizer"]
    assert hook.stats()["hook_errors_total"] == {}


def test_a_scripted_model_is_watched_without_them(out):
    scripted = torch.jit.script(perceptron()[0])
    optimizer = torch.optim.SGD(scripted.parameters(), lr=0.1)
    hook = tocsin.watch(scripted, optimizer, out=out)
    train(scripted, optimizer)
    hook.close()
    assert phases(out, 0) == ["optimizer"] and hook.stats()["hook_errors_total"] == {}


@pytest.mark.skipif(not hasattr(torch, "compile"), reason="torch 2")
@pytest.mark.parametrize("how", ["before", "after", "in place", "inside of a function", "exported"])
def test_a_compiler_finds_nothing_in_them(out, how):
    """``fullgraph``: it raises at the first thing that it cannot trace."""
    torch._dynamo.reset()
    model, optimizer = perceptron()
    compiled = torch.compile(model, backend="aot_eager", fullgraph=True) if how == "before" else model
    hook = tocsin.watch(compiled, optimizer, out=out)
    if how == "after":
        compiled = torch.compile(model, backend="aot_eager", fullgraph=True)
    elif how == "in place":
        model.compile(backend="aot_eager", fullgraph=True)
    elif how == "inside of a function":
        compiled = torch.compile(lambda x: model(x) * 2, backend="aot_eager", fullgraph=True)
    elif how == "exported":
        torch.export.export(model, (torch.ones(2, 4),), strict=True)
    torch._dynamo.utils.counters.clear()
    train(model, optimizer, 3, compiled)
    assert torch._dynamo.utils.counters["stats"]["unique_graphs"] == (0 if how == "exported" else 1)
    hook.close()
    assert phases(out, 2) == (STEP if how in ("before", "exported") else ["optimizer"])
    assert hook.stats()["hook_errors_total"] == {}


def test_a_model_that_raised_in_its_forward_pass_is_timed_at_the_next_step(out):
    model, optimizer = perceptron()
    hook = tocsin.watch(model, optimizer, out=out)
    for width in (4, 3, 4):
        try:
            model(torch.ones(2, width)).square().mean().backward()
        except RuntimeError:
            pass
        optimizer.step()
    hook.close()
    assert phases(out, 2) == STEP


def test_other_hooks_of_the_models_output_stay_and_are_of_that_output_alone(out):
    model, optimizer = perceptron()
    hook = tocsin.watch(model, optimizer, out=out)
    seen = []
    for step in range(4):
        output = model(torch.ones(2, 4))
        if step == 1:
            output.register_hook(lambda gradient: seen.append(step))
        if step == 2:
            output.register_hook(lambda gradient: seen.append("never")).remove()
        output.square().mean().backward()
        optimizer.step()
    hook.close()
    assert seen == [1]
    assert [name for name, _, _ in phases(out)].count("backward") == 4


def test_a_model_goes_with_all_that_timed_it(out):
    model, optimizer = perceptron()
    hook = tocsin.watch(model, optimizer, out=out)
    train(model, optimizer, 2)
    passes = [weakref.ref(one._passes) for one in hook.sink.adapters() if hasattr(one, "_passes")]
    gone = weakref.ref(model)
    del model, optimizer
    gc.collect()
    assert gone() is None and [one() for one in passes] == [None]
    hook.close()


def test_what_the_library_cannot_hook_is_left_to_python(out):
    class Pair(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.layer = torch.nn.Linear(4, 3)

        def forward(self, batch, kind):
            made = self.layer(batch)
            return {"dictionary": {"out": made}, "leaf": self.layer.weight, "hooked": made, "none": batch}[kind]

    model = Pair()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    hook = tocsin.watch(model, optimizer, out=out)
    seen = []
    handle = model.register_forward_hook(lambda _, given, output: output.register_hook(seen.append) and None
                                         if given[1] == "hooked" else None)
    if not handle.id < 0:  # ours first, theirs on the same tensor after it
        model._forward_hooks.move_to_end(handle.id, last=False)
    for kind in ("dictionary", "leaf", "hooked", "none"):
        output = model(torch.ones(2, 4), kind)
        output = output["out"] if kind == "dictionary" else output
        (output.sum() if kind != "none" else model.layer.bias.sum()).backward()
        optimizer.step()
    hook.close()
    assert len(seen) == 1 and not hook.stats()["hook_errors_total"]
    assert [phases(out, step).count("backward") for step in range(4)] == [1, 1, 1, 0]
    assert [phases(out, step).count("forward") for step in range(4)] == [1] * 4


def test_a_span_stands_on_the_track_that_the_script_names(out):
    hook = tocsin.watch(out=out)
    with hook.span("aten::mm", track="op.cpu"):
        pass
    with hook.span("load"):
        pass
    hook.step()
    hook.close()
    assert hook.stats()["hook_errors_total"] == {}
    told = Telemetry(out)
    tracks = {told.names[row["name"]]: told.names[row["track"]] for frame in told.of_kind(wire.SPAN) for row in frame.rows}
    assert tracks["aten::mm"] == "op.cpu" and tracks["load"] == "phase"
