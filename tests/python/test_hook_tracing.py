"""A watched model that is traced, scripted, exported, copied or transformed is found as if nobody watched it: the same graph, the same
numbers, nothing raised, and nothing of it published."""
import copy
import io
import re
import warnings

import pytest
import torch

import tocsin
from tests.support.hook_support import Telemetry, wire

EVERYTHING = {"every": "1 step", "overhead": "100%", "collections": {
    "layers": None, "inputs": None, "outputs": None, "labels": {"statistics": ["classes"]}, "predictions": None, "gradients": None, "weights": None}}
TWO = torch.__version__ >= "2"


class Block(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.one, self.two = torch.nn.Linear(8, 8), torch.nn.Linear(8, 8)

    def forward(self, x):
        return x + torch.relu(self.two(torch.relu(self.one(x))))


def network():
    torch.manual_seed(0)
    return torch.nn.Sequential(torch.nn.Linear(8, 8), Block(), torch.nn.ReLU(), torch.nn.Linear(8, 3))


def plain(graph):
    """Without the numbers that tell classes of one name apart."""
    return re.sub(r"___torch_mangle_\d+\.", "", str(graph))


def traced(model, x):
    return plain(torch.jit.trace(model, x).inlined_graph)


def traced_part(model, x):
    return plain(torch.jit.trace(model[1], x).inlined_graph)


def scripted(model, x):
    return plain(torch.jit.script(copy.deepcopy(model)).inlined_graph)


def symbolic(model, x):
    return str(torch.fx.symbolic_trace(model).graph)


def symbolic_around(model, x):
    class Around(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.inner = model

        def forward(self, x):
            return self.inner(x) * 2
    return str(torch.fx.symbolic_trace(Around()).graph)


def onnx(model, x):
    file = io.BytesIO()
    kind = {"dynamo": False} if TWO else {}
    try:
        torch.onnx.export(model, x, file, **kind)
    except (ModuleNotFoundError, torch.onnx.errors.OnnxExporterError) as error:  # the package onnx writes the file, after the graph
        assert "onnx" in str(error)
    return ""


def copied(model, x):
    return [one.tolist() for one in copy.deepcopy(model)(x)]


def pickled(model, x):
    file = io.BytesIO()
    torch.save(model, file)
    file.seek(0)
    return [one.tolist() for one in (torch.load(file, weights_only=False) if TWO else torch.load(file))(x)]


def functional(model, x):
    call = torch.func.functional_call if TWO else torch.nn.utils.stateless.functional_call
    return [one.tolist() for one in call(model, {name: one * 2 for name, one in model.state_dict().items()}, (x,))]


def flops(model, x):
    """Real tensors, and everything that is done with them is told to a mode."""
    from torch.fx.experimental.proxy_tensor import make_fx
    return str(make_fx(lambda given: model(given))(x).graph)


WAYS = [traced, traced_part, scripted, symbolic, symbolic_around, onnx, copied, pickled, functional, flops]
if TWO:
    def exported(model, x):
        return str(torch.export.export(model, (x,)).graph)

    def strict(model, x):
        return str(torch.export.export(model, (x,), strict=True).graph)

    def mapped(model, x):
        return [one.tolist() for one in torch.func.vmap(model)(x)]

    def derived(model, x):
        return torch.func.jacrev(model)(x[0]).tolist()

    def compiled(model, x):
        graphs = []

        def backend(graph, _):
            graphs.append(sorted(str(graph.graph).splitlines()))  # with hooks the compiler meets inputs in another order
            return graph
        torch._dynamo.reset()
        out = torch.compile(model, backend=backend, fullgraph=True)(x)
        return graphs, out.tolist()

    def onnx_of_today(model, x):
        try:
            return str(torch.onnx.export(model, (x,), dynamo=True).exported_program.graph)
        except ModuleNotFoundError as error:
            assert "onnx" in str(error)
            return ""
    WAYS += [exported, strict, mapped, derived, compiled, onnx_of_today]


@pytest.fixture(params=["eval", "train"])
def state(request):
    return request.param


@pytest.mark.parametrize("way", WAYS, ids=lambda way: way.__name__)
def test_a_watched_model_is_found_as_if_nobody_watched_it(out, way, state):
    x = torch.randn(4, 8)
    unwatched, model = network(), network()
    getattr(unwatched, state)()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        expected = way(unwatched, x)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.0)
    hook = tocsin.watch(model, optimizer, out=out, capture=EVERYTHING)

    def step():
        model.train()
        loss = torch.nn.functional.cross_entropy(model(x), torch.tensor([0, 1, 2, 0]))
        loss.backward()
        hook.log(loss=loss)
        optimizer.step()
    step()
    with warnings.catch_warnings():
        warnings.simplefilter("error", torch.jit.TracerWarning)
        for place in range(4):  # at the begin of a step, whose first pass would be captured, and within one
            getattr(model, state)()
            assert way(model, x) == expected
            step()
            model.train()
            model(x)  # the step's own pass
            getattr(model, state)()
            assert way(model, x) == expected
            step()
    hook.close()
    assert hook.stats()["hook_errors_total"] == {}
    told = Telemetry(out)
    assert told.steps() == list(range(9))
    assert told.steps(wire.EVAL if hasattr(wire, "EVAL") else 2) == []
    # A row of each layer for each step, of a pass of its own: not of one that was only looked at.
    rows = [told.names[row["name"]] for frame in told.of_kind(wire.SUMMARY) for row in frame.rows]
    for name in ("0_output_0", "1.one_output_0", "2_output_0"):
        assert rows.count(name) == 9, name
    assert not [name for name in rows if name.endswith("_output_1")]


def test_scripting_does_not_end_what_is_captured(out):
    """``torch.jit.script`` takes hooks out of the model; with the next step they are there again."""
    model = network()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    hook = tocsin.watch(model, optimizer, out=out, capture=EVERYTHING)
    for step in range(6):
        model(torch.randn(4, 8)).square().mean().backward()
        optimizer.step()
        if step in (1, 3):
            torch.jit.script(model if step == 1 else model[1])
    hook.close()
    told = Telemetry(out)
    rows = [frame.header["step"] for frame in told.of_kind(wire.SUMMARY) for row in frame.rows if told.names[row["name"]] == "1.one_output_0"]
    assert rows[-1] == 5, rows
    assert hook.stats()["hook_errors_total"] == {}


@pytest.mark.parametrize("capture", [None, EVERYTHING, {"collections": ["layers"], "phases": []}], ids=["default", "everything", "layers"])
@pytest.mark.parametrize("made", ["stack", "layer", "inside"])
def test_an_evaluation_is_bit_for_bit_that_of_an_unwatched_model(out, capture, made):
    """An encoder layer has a fast path that gives other numbers, and for a sample that is padding alone a number instead of NaN;
    it is left where a module in it has hooks."""
    def build():
        torch.manual_seed(1)
        layer = torch.nn.TransformerEncoderLayer(16, 2, 32, batch_first=True)
        if made == "layer":
            return layer
        stack = torch.nn.TransformerEncoder(layer, 2)
        return torch.nn.ModuleDict({"encoder": stack, "head": torch.nn.Linear(16, 2)}) if made == "inside" else stack

    def apply(model, x, padding):
        if made == "inside":
            return model["head"](model["encoder"](x, src_key_padding_mask=padding))
        return model(x, src_key_padding_mask=padding)
    x = torch.randn(3, 5, 16)
    padding = torch.tensor([[False] * 5, [False, False, True, True, True], [True] * 5])
    results = []
    for watched in (False, True):
        model = build()
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        hook = tocsin.watch(model, optimizer, out=out, **({} if capture is None else {"capture": capture})) if watched else None
        torch.manual_seed(2)
        for _ in range(3):
            model.train()
            apply(model, x, padding[:2].repeat(2, 1)[:3]).square().mean().backward()
            optimizer.step()
            model.eval()
            with torch.no_grad():
                results.append((watched, apply(model, x, padding), apply(copy.deepcopy(model), x, padding)))
        if hook is not None:
            hook.close()
            assert hook.stats()["hook_errors_total"] == {}
    for (_, one, its_copy), (_, other, of_watched) in zip(results[:3], results[3:]):
        assert torch.equal(torch.nan_to_num(one, nan=-7.0), torch.nan_to_num(other, nan=-7.0))
        assert torch.equal(torch.nan_to_num(its_copy, nan=-7.0), torch.nan_to_num(of_watched, nan=-7.0))


def test_hooks_of_the_script_in_an_encoder_layer_are_its_own(out):
    layer = torch.nn.TransformerEncoderLayer(16, 2, 32, batch_first=True)
    calls = []
    early = layer.linear1.register_forward_hook(lambda *_: calls.append("early"))
    optimizer = torch.optim.SGD(layer.parameters(), lr=0.1)
    hook = tocsin.watch(layer, optimizer, out=out, capture=EVERYTHING)
    late = layer.linear2.register_forward_hook(lambda *_: calls.append("late"))
    layer(torch.randn(2, 3, 16))
    assert calls == ["early", "late"]
    early.remove()
    late.remove()
    layer(torch.randn(2, 3, 16))
    assert calls == ["early", "late"]
    hook.close()
    assert not layer.linear1._forward_hooks and not layer.linear2._forward_hooks
