"""The collections of a hook: what a script reads of them and changes before its first step."""
import numpy
import pytest
import torch

from tests.support.hook_support import Telemetry

import tocsin


class Net(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.first = torch.nn.Linear(3, 4)
        self.act = torch.nn.ReLU()
        self.last = torch.nn.Linear(4, 1)

    def forward(self, x):
        return self.last(self.act(self.first(x)))


def trained(hook, model, optimizer, steps):
    for _ in range(steps):
        optimizer.zero_grad()
        model(torch.ones(2, 3)).sum().backward()
        optimizer.step()
        hook.step()


@pytest.fixture
def watched(out):
    model = Net()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    return tocsin.watch(model, optimizer, out=out, capture={"overhead": "100%", "every": "2 steps"}), model, optimizer


def test_a_script_reads_and_extends_them_before_its_first_step(out, watched):
    hook, model, optimizer = watched
    assert set(hook.collections) == {"gradients", "weights", "biases", "losses"}
    assert hook.collections["weights"].settings["statistics"] == ["delta"]
    hook.collections["gradients"].change(every="3 steps")
    hook.collections.add("relu", include=[r"act_output"], every="1 step")
    assert hook.collections["relu"].include_regex == ["act_output"]
    trained(hook, model, optimizer, 4)
    assert hook.collections["relu"].tensor_names == ["act_output_0"]
    assert sorted(hook.collections["gradients"].tensor_names) == [
        f"gradient/{layer}.{kind}" for layer in ("first", "last") for kind in ("bias", "weight")]
    hook.close()
    assert not hook.stats()["hook_errors_total"]
    telemetry = Telemetry(out)
    assert [set(telemetry.summaries(step)) & {"act_output_0", "gradient/last.weight", "last.weight"} for step in range(4)] == [
        {"act_output_0", "gradient/last.weight", "last.weight"}, {"act_output_0"}, {"act_output_0", "last.weight"},
        {"act_output_0", "gradient/last.weight"}]


def test_the_start_record_says_what_was_added(out, watched):
    hook, _, _ = watched
    assert hook.flush()  # `start` may be out already
    hook.collections.add("mine", include=["x"], every="7 steps")
    hook.close()
    starts = [one["capture"] for one in Telemetry(out).lifecycles("start")]
    assert starts[-1]["collections"]["mine"] == {"every": "7 steps", "statistics": []}


def test_a_module_by_its_object(out, watched):
    hook, model, optimizer = watched
    hook.get_collection("inside").add_module_tensors(model.act, inputs=True)
    trained(hook, model, optimizer, 1)
    assert sorted(hook.get_collections()["inside"].tensor_names) == ["act_input_0", "act_output_0"]
    with pytest.raises(ValueError):
        hook.get_collection("inside").add_module_tensors(torch.nn.ReLU())
    assert hook.get_collection("nowhere", create=False) is None


def test_later_it_is_refused_and_nothing_changes(out, watched):
    hook, model, optimizer = watched
    trained(hook, model, optimizer, 1)
    with pytest.warns(RuntimeWarning, match="before the first step"):
        hook.collections.add("late", include=["x"])
    assert "late" not in hook.collections
    hook.collections["weights"].change(every="sometimes")
    assert hook.stats()["hook_errors_total"] == {"collections": 2}


def test_a_hook_that_is_off_has_none(monkeypatch):
    monkeypatch.setenv("TOCSIN_DISABLED", "1")
    hook = tocsin.watch()
    assert len(hook.collections) == 0 and hook.collections.add("mine", include=["x"]).tensor_names == []
    assert hook.get_collections() == {} and hook.should_save_step() is False


def test_patterns_that_find_nothing_are_told_at_the_end(out, capfd):
    hook = tocsin.watch(out=out, capture={"every": "1 step", "collections": {"relu": {"include": ["Relu_output"]}, "x": {"include": ["^x$"]}}})
    hook.save_tensor("x", numpy.ones(3))
    hook.step()
    hook.close()
    said = capfd.readouterr().err
    assert "collection relu held nothing: no name has Relu_output" in said and "collection x" not in said


def test_a_dry_run_sends_nothing_and_says_what_it_would(tmp_path, capfd, monkeypatch):
    monkeypatch.chdir(tmp_path)
    hook = tocsin.watch(capture={"every": "1 step", "dry_run": True, "collections": {"x": {"include": ["^x"]}}}, out=str(tmp_path / "out"))
    for name in ("x1", "x2", "y"):
        hook.save_tensor(name, numpy.ones(3))
    hook.step()
    assert hook.flush() and hook.stats()["out"] == "nowhere (dry run)"
    hook.close()
    assert "collection x: 2 tensors (x1, x2)" in capfd.readouterr().err
    assert hook.stats()["loss"] == "" and list(tmp_path.iterdir()) == []


def test_names_of_the_original(out):
    hook = tocsin.watch(out=out, capture={"every": "2 steps"})
    hook.add_collection(tocsin.CollectionConfig("mine", {"include_regex": "^m", "save_interval": "3"}))
    assert hook.collections["mine"].settings["every"] == "3 steps"
    assert hook.should_save_step("mine") and hook.should_save_step()
    hook.save_scalar("accuracy", 0.5, sm_metric=True)
    hook.step()
    assert not hook.should_save_step()
    hook.close()
    assert [value for _, _, value in Telemetry(out).scalars("accuracy")] == [0.5]
