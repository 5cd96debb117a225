"""Scripts of smdebug, as its own examples and tests write them, with nothing changed but the import (`tocsin.smdebug`)."""
import json
import time
import types
import warnings

import pytest
import torch
from tests.support.hook_support import Telemetry

import tocsin
import tocsin.smdebug as smd


class Net(torch.nn.Module):
    """Of smdebug's tests for PyTorch (tests/pytorch/utils.py)."""

    def __init__(self):
        super().__init__()
        self.conv1 = torch.nn.Conv2d(1, 4, 5)
        self.fc1 = torch.nn.Linear(4 * 4, 10)

    def forward(self, x):
        x = torch.nn.functional.max_pool2d(torch.nn.functional.relu(self.conv1(x)), 6)
        return torch.nn.functional.log_softmax(self.fc1(x.view(-1, 4 * 4)), dim=1)


def train(model, criterion, optimizer, hook, steps=3):
    hook.set_mode(smd.modes.TRAIN)
    torch.manual_seed(1)
    for _ in range(steps):
        optimizer.zero_grad()
        loss = criterion(model(torch.randn(2, 1, 28, 28)[:, :, :17, :17]), torch.tensor([1, 3]))
        loss.backward()
        optimizer.step()


@pytest.fixture(autouse=True)
def no_files(monkeypatch):
    for name in ("SMDEBUG_CONFIG_FILE_PATH", "TOCSIN_CONFIG", "TOCSIN_OUT", "TOCSIN_BROKERS"):
        monkeypatch.delenv(name, raising=False)


def json_file(tmp_path, out):
    path = tmp_path / "debughookconfig.json"
    path.write_text(json.dumps({"LocalPath": out, "HookParameters": {"save_interval": "2"}, "CollectionConfigurations": [
        {"CollectionName": "gradients"}, {"CollectionName": "weights"}, {"CollectionName": "losses"}]}))
    return str(path)


@pytest.mark.parametrize("order", ["optimizer first", "optimizer last"])
def test_a_script_with_a_json_file(tmp_path, out, order):
    """pytorch/mnist of the examples: create_from_json_file, register_module, register_loss."""
    model, criterion = Net(), torch.nn.NLLLoss()
    make = lambda: torch.optim.SGD(model.parameters(), lr=0.01)  # noqa: E731
    optimizer = make() if order == "optimizer first" else None
    hook = smd.Hook.create_from_json_file(json_file(tmp_path, out))
    assert isinstance(hook, smd.Hook) and hook is smd.get_hook()
    hook.register_module(model)
    hook.register_loss(criterion)
    optimizer = optimizer or make()
    hook.save_scalar("epoch", 1)
    train(model, criterion, optimizer, hook)
    hook.close()
    telemetry = Telemetry(out)
    assert telemetry.steps() == [0, 1, 2]
    assert "gradient/conv1.weight" in telemetry.summaries(0) and "fc1.weight" in telemetry.summaries(2)
    assert telemetry.summaries(1) == {}
    assert len(telemetry.scalars("loss")) == 3 and telemetry.scalars("epoch")[0][2] == 1


def test_the_file_of_the_environment_and_none(tmp_path, out, monkeypatch):
    assert tocsin.Hook.create_from_json_file() is None and smd.get_hook() is None
    with pytest.raises(FileNotFoundError):
        smd.Hook.create_from_json_file(str(tmp_path / "missing.json"))
    monkeypatch.setenv("SMDEBUG_CONFIG_FILE_PATH", json_file(tmp_path, out))
    hook = tocsin.Hook.create_from_json_file()
    assert hook.stats()["out"] == out
    hook.close()


def test_a_hook_with_save_and_reduction_configurations(out):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        hook = smd.Hook(out, save_config=smd.SaveConfig(save_steps=[0, 2]), include_collections=["gradients", "weights"],
                        reduction_config=smd.ReductionConfig(reductions=["median"], abs_norms=["l2"]))
    model = Net()
    hook.register_module(model)
    train(model, torch.nn.NLLLoss(), torch.optim.Adam(model.parameters()), hook)
    hook.close()
    telemetry = Telemetry(out)
    assert "gradient/fc1.bias" in telemetry.summaries(0) and "gradient/fc1.bias" in telemetry.summaries(2)
    assert not telemetry.summaries(1)
    with pytest.warns(RuntimeWarning, match="profiler_config is not used"):
        smd.Hook(out, profiler_config=None).close()


def test_words_of_the_hook(out):
    hook = smd.Hook(out, save_config=smd.SaveConfig(save_interval=2), include_collections=["custom", "gradients"])
    custom = hook.get_collection("custom")
    custom.include(["^mine"])
    assert hook.should_save_tensor_or_collection("mine_1", "custom")
    assert not hook.should_save_tensor_or_collection("yours", "custom")
    assert not hook.should_save_tensor_or_collection("mine_1", "no_such_collection")
    assert not hook.has_default_hook_configuration() and hook.has_default_hook_configuration({"custom", "gradients", "losses"})
    hook.record_tensor_value("mse_loss", torch.tensor(0.5))
    hook.record_tensor_value("mine", torch.arange(4.0))
    began = time.time()
    hook.record_trace_events(timestamp=began, training_phase="data_iterating", op_name="loader", phase="X", duration=0.25, worker=3)
    hook.record_trace_events(began, op_name="marked", phase="i")
    hook.step()
    assert not hook.should_save_tensor_or_collection("mine_1", "custom")  # an odd step
    hook.flush()
    times = {one["name"]: one for one in hook.get_profiler_data() if one["name"] in ("data_iterating", "marked")}
    assert times["data_iterating"]["seconds"] == pytest.approx(0.25)
    assert times["data_iterating"]["args"] == {"op_name": "loader", "worker": 3}
    hook.close()
    telemetry = Telemetry(out)
    assert [value for _, _, value in telemetry.scalars("mse_loss")] == [0.5]
    assert telemetry.summaries(0)["mine_output_0"]["count"] == 4


def test_a_hook_to_which_nobody_said_anything_is_the_default(out):
    hook = tocsin.watch(out=out)
    assert hook.has_default_hook_configuration()
    hook.close()


def test_get_set_and_del(out):
    assert smd.get_hook() is None
    hook = smd.get_hook(create_if_not_exists=True)
    assert hook is smd.get_hook() is tocsin.get_hook()
    smd.set_hook(hook)
    smd.del_hook()
    assert smd.get_hook() is None and not hook.enabled
    assert smd.CollectionKeys.GRADIENTS == "gradients" and callable(smd.create_trial)


def test_a_second_module_and_its_loss(out):
    """Of several registered modules each is watched with its own optimizer."""
    hook = smd.Hook(out, save_config=smd.SaveConfig(1), include_collections=["gradients"])
    one, two = Net(), torch.nn.Linear(3, 2)
    hook.register_module(one)
    hook.register_module(two)
    first, second = torch.optim.SGD(one.parameters(), lr=0.1), torch.optim.SGD(two.parameters(), lr=0.1)
    for _ in range(2):
        one(torch.randn(2, 1, 17, 17)).sum().backward()
        first.step()
        two(torch.randn(4, 3)).sum().backward()
        second.step()
    hook.close()
    names = set(Telemetry(out).summaries())
    assert any("conv1.weight" in name for name in names) and any(name.endswith("/weight") or ".weight" in name for name in names)


class FakeValue:
    def __init__(self, numbers, name="", role=None):
        import numpy

        self.numbers, self.name, self.grad_req = numpy.asarray(numbers, dtype="float32"), name, "write"

    def numpy(self):
        return self.numbers


class FakeTape:
    """As tf.GradientTape is used: a context, and ``gradient()``."""

    def __enter__(self):
        return self

    def __exit__(self, *_):
        return None

    def gradient(self, target, sources):
        return [FakeValue(source.numbers * 2) for source in sources]


def test_a_tape(out):
    """tensorflow2 of the examples: ``with hook.wrap_tape(tf.GradientTape()) as tape``."""
    hook = smd.Hook(out, save_config=smd.SaveConfig(1), include_collections=["gradients", "weights", "biases"])
    kernel = FakeValue([[1, 2], [3, 4]], "dense/kernel:0")
    for _ in range(2):
        with hook.wrap_tape(FakeTape()) as tape:
            loss = FakeValue(3.0)
        assert tape.gradient(loss, [kernel])[0].numbers.max() == 8
    hook.close()
    telemetry = Telemetry(out)
    assert telemetry.steps() == [0, 1]
    assert telemetry.summaries(1)["gradient/dense/kernel"]["max"] == 8 and telemetry.summaries(1)["dense/kernel"]["max"] == 4
    assert [value for _, _, value in telemetry.scalars("loss")] == [3.0, 3.0]


def test_a_tape_without_values_is_counted_and_harmless(out):
    hook = smd.Hook(out)
    with pytest.warns(RuntimeWarning, match="tocsin.keras.watch"):
        tape = hook.wrap_tape(FakeTape())
        assert tape.gradient(object(), []) == []
    hook.close()


def test_what_is_no_module_is_counted(out):
    hook = smd.Hook(out)
    with pytest.warns(RuntimeWarning, match="register_module"):
        hook.register_module("net")
    hook.register_block(types.SimpleNamespace())
    assert hook.stats()["hook_errors_total"] == {"register_module": 1, "register_block": 1}
    hook.close()


CONFIG = {"HookParameters": {"save_interval": "2"}, "CollectionConfigurations": [{"CollectionName": "gradients"}]}


def steps_with_gradients(hook, out, steps=5):
    model = Net()
    hook.register_module(model)
    train(model, torch.nn.NLLLoss(), torch.optim.SGD(model.parameters(), lr=0.01), hook, steps)
    hook.close()
    return [step for step in range(steps) if "gradient/fc1.weight" in Telemetry(out).summaries(step)]


@pytest.mark.parametrize("give", [
    lambda out: {**CONFIG, "LocalPath": out},
    lambda out: smd.DebuggerHookConfig(container_local_output_path=out, hook_parameters={"save_interval": "2"},
                                       collection_configs=[smd.CollectionConfig("gradients")])], ids=["dictionary", "object"])
def test_a_hook_of_a_whole_configuration_obeys_it(out, give):
    assert steps_with_gradients(smd.Hook(give(out)), out) == [0, 2, 4]


def test_a_hook_of_a_json_file_obeys_it(out, tmp_path):
    assert steps_with_gradients(smd.Hook(json_file(tmp_path, out)), out) == [0, 2, 4]


def test_a_second_hook_with_other_settings_is_the_one_that_counts(out, tmp_path):
    first = smd.Hook(str(tmp_path / "first"))
    hook = smd.Hook(out, save_config=smd.SaveConfig(save_interval=2), include_collections=["gradients"])
    assert hook is not first and not first.enabled
    assert smd.Hook() is hook  # without settings: the open one
    assert smd.Hook(out, save_config=smd.SaveConfig(save_interval=2), include_collections=["gradients"]) is hook
    assert steps_with_gradients(hook, out) == [0, 2, 4]


def test_a_configuration_that_is_none_raises(out):
    with pytest.raises(ValueError, match="save_intervall"):
        smd.Hook({"HookParameters": {"save_intervall": "2"}})
    assert smd.get_hook() is None
