"""The ledger of today's PyTorch: own loops, Lightning, Transformers, Accelerate; and what compiles, traces and transforms."""
import copy
import math

import lightning.pytorch as lightning
import pytest
import torch
import torch.nn.functional as F

from tests.frameworks.test_transformers import model as gpt
from tests.frameworks.test_transformers import trainer
from tests.support.hook_support import Telemetry, wire

import tocsin
from tocsin.lightning import TocsinCallback
from tocsin.transformers import TocsinCallback as TransformersCallback


def ledger_of(out):
    """{mode: {step: {name: sum}}}"""
    found, telemetry = {}, Telemetry(out)
    for frame in telemetry.of_kind(wire.SCALAR):
        for row in frame.rows:
            name = telemetry.names[row["name"]]
            if name.startswith("ledger/"):
                assert math.isfinite(row["value"])
                step = found.setdefault(frame.header["mode"], {}).setdefault(row["step"], {})
                step[name[7:]] = step.get(name[7:], 0.0) + row["value"]
    return found


def total(steps, call, field):
    return sum(rows.get(f"{call}/{field}", 0.0) for rows in steps.values())


def batches(count, seed=0):
    generator = torch.Generator().manual_seed(seed)
    for _ in range(count):
        inputs = torch.randn(32, 6, generator=generator)
        yield inputs, inputs[:, :3].argmax(1)


class Module(lightning.LightningModule):
    def __init__(self):
        super().__init__()
        torch.manual_seed(0)
        self.layer = torch.nn.Linear(6, 3)

    def training_step(self, batch, index):
        return F.cross_entropy(self.layer(batch[0]), batch[1])

    def validation_step(self, batch, index):
        return F.cross_entropy(self.layer(batch[0]), batch[1])

    def configure_optimizers(self):
        return torch.optim.Adam(self.parameters(), lr=0.05)


def learned(steps, call):
    late = {step: rows for step, rows in steps.items() if step >= max(steps) // 2}
    assert total(late, call, "wins") > 0.8 * total(late, call, "pairs") > 0
    assert total(late, call, "loss") < total(late, call, "trivial")


def test_lightning_tells_training_and_validation(tmp_path, out):
    loaders = [torch.utils.data.DataLoader(list(batches(count)), batch_size=None) for count in (30, 4)]
    one = lightning.Trainer(max_epochs=2, accelerator="cpu", devices=1, logger=False, enable_checkpointing=False, enable_progress_bar=False,
                            enable_model_summary=False, callbacks=[TocsinCallback(out=out)], default_root_dir=str(tmp_path))
    one.fit(Module(), *loaders)
    ledger = ledger_of(out)
    assert sorted(ledger[wire.TRAIN]) == list(range(60))
    assert all(rows["cross_entropy/samples"] == 32 for rows in ledger[wire.TRAIN].values())
    learned(ledger[wire.TRAIN], "cross_entropy")
    assert total(ledger[wire.EVAL], "cross_entropy", "calls") == 8
    assert total(ledger[wire.EVAL], "cross_entropy", "wins") > 0.8 * total(ledger[wire.EVAL], "cross_entropy", "pairs")


def test_the_trainer_of_transformers_tells_training_and_evaluation(tmp_path, out):
    trainer(tmp_path, TransformersCallback(out=out), max_steps=40, learning_rate=1e-2, eval_strategy="steps", eval_steps=20).train()
    ledger = ledger_of(out)
    assert sorted(ledger[wire.TRAIN]) == list(range(40))
    assert ledger[wire.TRAIN][0]["cross_entropy/samples"] == 8 * 7, "the last place of each row has no next one"
    learned(ledger[wire.TRAIN], "cross_entropy")
    assert total(ledger[wire.EVAL], "cross_entropy", "calls") == 6, "3 batches, twice"


def test_micro_batches_of_the_trainer_are_one_step(tmp_path, out):
    trainer(tmp_path, TransformersCallback(out=out), max_steps=3, gradient_accumulation_steps=4).train()
    steps = ledger_of(out)[wire.TRAIN]
    assert sorted(steps) == [0, 1, 2] and all(rows["cross_entropy/calls"] == 4 for rows in steps.values())


def test_a_prepared_model_of_accelerate(out):
    accelerate = pytest.importorskip("accelerate")
    accelerator = accelerate.Accelerator(cpu=True)
    try:
        torch.manual_seed(0)
        model = torch.nn.Linear(6, 3)
        model, optimizer = accelerator.prepare(model, torch.optim.Adam(model.parameters(), lr=0.05))
        hook = tocsin.watch(model, optimizer, out=out)
        for inputs, targets in batches(40):
            accelerator.backward(F.cross_entropy(model(inputs), targets))
            optimizer.step()
            optimizer.zero_grad()
        hook.close()
    finally:
        accelerate.state.AcceleratorState._reset_state(reset_partial_state=True)
    learned(ledger_of(out)[wire.TRAIN], "cross_entropy")


@pytest.fixture
def watched(out):
    model = torch.nn.Linear(6, 3)
    hook = tocsin.watch(model, torch.optim.SGD(model.parameters(), 0.1), out=out)
    yield hook
    assert hook.stats()["hook_errors_total"] == {}
    hook.close()


class Loss(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.classes = torch.nn.CrossEntropyLoss(label_smoothing=0.1)

    def forward(self, z: torch.Tensor, t: torch.Tensor):
        return self.classes(z, t) + F.mse_loss(z, z * 2)


Z, T = torch.randn(8, 3, generator=torch.Generator().manual_seed(1)), torch.arange(8) % 3


def measured(hook):
    return hook.stats()["ledger"]["measured"]


def test_a_compiler_finds_the_functions_of_torch(watched):
    bare = Loss()(Z, T)
    before = measured(watched)
    compiled = torch.compile(Loss(), backend="aot_eager", fullgraph=True)
    assert torch.equal(compiled(Z.clone().requires_grad_(), T), bare)
    assert measured(watched) == before
    exported = torch.export.export(Loss(), (Z, T))
    assert "cross_entropy" in str(exported.graph) and torch.equal(exported.module()(Z, T), bare)


def test_scripts_traces_and_graphs(watched):
    bare = Loss()(Z, T)
    scripted, traced, graph = torch.jit.script(Loss()), torch.jit.trace(Loss(), (Z, T)), torch.fx.symbolic_trace(Loss())
    for one in (scripted, traced, graph):
        assert torch.allclose(one(Z, T), bare)
    assert "torch.nn.functional.mse_loss" in graph.code


def test_transformations_and_stand_ins(watched):
    before = measured(watched)
    from torch._subclasses import FakeTensorMode
    assert torch.func.vmap(lambda z, t: F.cross_entropy(z[None], t[None]))(Z, T).shape == (8,)
    assert torch.func.grad(lambda z: F.cross_entropy(z, T))(Z).shape == Z.shape
    with FakeTensorMode():
        F.cross_entropy(torch.randn(3, 4, requires_grad=True), torch.tensor([1, 2, 3]))
    F.cross_entropy(torch.randn(3, 4, requires_grad=True, device="meta"), torch.zeros(3, dtype=torch.long, device="meta"))
    assert measured(watched) == before


def test_a_subclass_is_asked_with_the_function_of_torch(out):
    seen, own = [], F.cross_entropy

    class Sub(torch.Tensor):
        @classmethod
        def __torch_function__(cls, function, types, args=(), kwargs=None):
            seen.append(function)
            return super().__torch_function__(function, types, args, kwargs or {})

    hook = tocsin.watch(torch.nn.Linear(1, 1), out=out)
    F.cross_entropy(Z.as_subclass(Sub).requires_grad_(), T)
    assert own in seen and F.cross_entropy not in seen and measured(hook) == 0
    hook.close()
    assert F.cross_entropy is own


def test_a_mode_of_torch_functions_sees_one_call(out):
    """A default device is one."""
    hook = tocsin.watch(torch.nn.Linear(1, 1), out=out)
    calls = []

    class Mode(torch.overrides.TorchFunctionMode):
        def __torch_function__(self, function, types, args=(), kwargs=None):
            calls.append(function)
            return function(*args, **(kwargs or {}))

    z = Z.clone().requires_grad_()
    with Mode():
        F.cross_entropy(z, T)
    assert [getattr(one, "__name__", "") for one in calls].count("cross_entropy") == 1
    hook.close()
    assert len(calls) < 4, "none of ours"


def test_no_warning_of_ours(watched, recwarn):
    with torch.autocast("cpu", dtype=torch.bfloat16):
        F.cross_entropy(torch.nn.Linear(6, 3)(torch.randn(8, 6)), T)
    F.gaussian_nll_loss(Z.clone().requires_grad_(), Z + 1, torch.ones(8))
    assert [str(one.message) for one in recwarn if "tocsin" in str(one.filename)] == []


def test_a_copy_of_a_loss_module_is_one(watched):
    assert torch.equal(copy.deepcopy(Loss())(Z, T), Loss()(Z, T))


def test_training_under_autocast_is_bit_for_bit_the_same(out):
    def run(watch):
        torch.manual_seed(3)
        model = torch.nn.Sequential(torch.nn.Linear(6, 16), torch.nn.GELU(), torch.nn.Dropout(), torch.nn.Linear(16, 3))
        optimizer = torch.optim.AdamW(model.parameters(), 1e-2)
        hook = tocsin.watch(model, optimizer, out=out) if watch else None
        for inputs, targets in batches(20):
            optimizer.zero_grad()
            with torch.autocast("cpu", dtype=torch.bfloat16):
                F.cross_entropy(model(inputs), targets).backward()
            optimizer.step()
        if hook is not None:
            assert measured(hook) == 20
            hook.close()
        return list(model.parameters())

    assert all(torch.equal(one, other) for one, other in zip(run(False), run(True)))


def test_checkpointed_losses_are_counted_once(out):
    from torch.utils.checkpoint import checkpoint
    torch.manual_seed(0)
    model = torch.nn.Linear(6, 3)
    optimizer = torch.optim.SGD(model.parameters(), 0.1)
    hook = tocsin.watch(model, optimizer, out=out)
    for inputs, targets in batches(5):
        optimizer.zero_grad()
        checkpoint(lambda x, t=targets: F.cross_entropy(model(x), t), inputs, use_reentrant=False).backward()
        optimizer.step()
    hook.close()
    steps = ledger_of(out)[wire.TRAIN]
    assert sorted(steps) == list(range(5)) and all(rows["cross_entropy/calls"] == 1 for rows in steps.values())


def test_gpt_in_an_own_loop(out):
    model = gpt()
    optimizer = torch.optim.AdamW(model.parameters(), 1e-2)
    hook = tocsin.watch(model, optimizer, out=out)
    torch.manual_seed(0)
    for _ in range(30):
        ids = (torch.randint(0, 20, (8, 1)) + torch.arange(8)) % 32
        optimizer.zero_grad()
        model(input_ids=ids, labels=ids).loss.backward()
        optimizer.step()
    hook.close()
    learned(ledger_of(out)[wire.TRAIN], "cross_entropy")


def shaped(*shape):
    return torch.randn(*shape, device="cuda")


def labels(*shape):
    return torch.zeros(*shape, dtype=torch.long, device="cuda")


ON_A_DEVICE = {
    "classes": ("cross_entropy", lambda: ((shaped(16, 5), labels(16)), {})),
    "weighted classes": ("cross_entropy", lambda: ((shaped(16, 5), labels(16)), {"weight": shaped(5), "label_smoothing": 0.1})),
    "places": ("cross_entropy", lambda: ((shaped(3, 5, 7), labels(3, 7)), {})),
    "shares": ("cross_entropy", lambda: ((shaped(16, 5), shaped(16, 5)), {})),
    "many": ("cross_entropy", lambda: ((shaped(20000, 5), labels(20000)), {})),
    "one": ("cross_entropy", lambda: ((shaped(1, 5), labels(1)), {})),
    "logs": ("nll_loss", lambda: ((shaped(16, 5), labels(16)), {})),
    "one quantity": ("mse_loss", lambda: ((shaped(1, 5), shaped(1, 5)), {})),
    "switches": ("binary_cross_entropy_with_logits", lambda: ((shaped(16, 5), shaped(16, 5)), {"pos_weight": shaped(5)})),
    "a switch": ("binary_cross_entropy", lambda: ((shaped(16, 1), shaped(16, 1)), {})),
    "variances": ("gaussian_nll_loss", lambda: ((shaped(16, 5), shaped(16, 5), shaped(16, 5)), {})),
    **{name: (name, lambda: ((shaped(16, 5), shaped(16, 5)), {})) for name in (
        "mse_loss", "l1_loss", "smooth_l1_loss", "huber_loss", "poisson_nll_loss", "kl_div")},
}


@pytest.mark.parametrize("case", ON_A_DEVICE)
def test_nobody_waits_for_a_device(case):
    """A stand-in for a tensor of a GPU has no numbers: whoever asks for one, as who waits for a device does, fails."""
    from torch._subclasses import FakeTensorMode

    from tocsin.adapters.torch.ledger.calls import Arguments, measure
    name, given = ON_A_DEVICE[case]
    state = {}
    with FakeTensorMode():
        for learns in (True, True, False):
            args, kwargs = given()
            measured = measure(Arguments(name, args, kwargs), state, learns)
            assert measured.numbers.device.type == "cuda" and "loss" in measured.fields


def test_a_model_that_is_compiled_while_calls_are_passed_over_is_compiled_once(out):
    model = torch.nn.Sequential(torch.nn.Embedding(20, 8), torch.nn.Linear(8, 20))
    optimizer = torch.optim.SGD(model.parameters(), 0.1)
    hook = tocsin.watch(model, optimizer, out=out, capture={"collections": {}})
    ids = torch.randint(0, 20, (4, 10))

    def train(applied, steps):
        for _ in range(steps):
            optimizer.zero_grad()
            F.cross_entropy(applied(ids).flatten(0, 1), ids.flatten()).backward()
            optimizer.step()

    with torch._dynamo.config.patch(error_on_recompile=True):
        train(model, 3)
        hook.sink.ledger.skip = 6
        train(model, 4)
        assert not model[0]._forward_hooks  # they come back with the call that may be measured, if the model is run as it is
        train(torch.compile(model, backend="eager"), 12)
    assert hook.stats()["hook_errors_total"] == {}
    hook.close()
