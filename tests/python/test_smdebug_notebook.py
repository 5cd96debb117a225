"""A notebook written for SMDebug, with `smdebug` in its imports changed to `tocsin.smdebug`, and nothing else."""
import importlib

import numpy
import pytest

torch = pytest.importorskip("torch")

import tocsin  # noqa: E402 (after the skip)

NOTEBOOK = '''
from tocsin.smdebug.trials import create_trial
from tocsin.smdebug import modes
from tocsin.smdebug.core.modes import ModeKeys
from tocsin.smdebug.core.collection import CollectionKeys
from tocsin.smdebug.exceptions import *
from tocsin.smdebug.rules import Rule
from tocsin.smdebug.rules.rule_invoker import invoke_rule
from tocsin.smdebug.analysis.utils import no_refresh

# ---- cell 1: what was saved
trial = create_trial(path)
names = trial.tensor_names()
losses = trial.tensor_names(collection=CollectionKeys.LOSSES)
gradients = trial.tensor_names(regex="gradient/.*weight")
steps = trial.steps(mode=modes.TRAIN)
assert trial.loaded_all_steps and trial.num_workers == 1

# ---- cell 2: a curve
def curve(trial, name, mode):
    tensor = trial.tensor(name)
    return [(step, tensor.value(step, mode=mode)) for step in tensor.steps(mode=mode)]
loss = curve(trial, losses[0], ModeKeys.TRAIN)

# ---- cell 3: a custom rule
class SmallGradients(Rule):
    def __init__(self, base_trial, threshold=1e-3):
        super().__init__(base_trial, action_str="")
        self.threshold = float(threshold)
    def set_required_tensors(self, step):
        for name in self.base_trial.tensor_names(collection="gradients"):
            self.req_tensors.add(name=name, steps=[step])
    def invoke_at_step(self, step):
        for tensor in self.req_tensors.get():
            if tensor.reduction_value(step, "mean", abs=True) < self.threshold:
                return True
        return False

met = None
try:
    invoke_rule(SmallGradients(trial, threshold=1e9), raise_eval_cond=True)
except RuleEvaluationConditionMet as condition:
    met = condition.step
calm = invoke_rule(SmallGradients(trial, threshold=0))

# ---- cell 4: what is not there
missing = []
for attempt in (lambda: trial.tensor("nothing"), lambda: trial.tensor(losses[0]).value(999, mode=modes.TRAIN),
                lambda: trial.wait_for_steps([999])):
    try:
        attempt()
    except (TensorUnavailable, TensorUnavailableForStep, StepUnavailable, NoMoreData) as error:
        missing.append(type(error).__name__)

# ---- cell 5: elements
with no_refresh(trial):
    weight = trial.tensor("Linear_weight").value(2, mode=modes.TRAIN)
    reductions = trial.tensor("weight").reduction_values(2, mode=modes.TRAIN)
    shape = trial.tensor("weight").shape(2, mode=modes.TRAIN)
    previous = trial.tensor("weight").prev_steps(3, 2, mode=modes.TRAIN)
'''


def test_a_notebook_runs_with_its_import_changed(out):
    torch.manual_seed(1)
    model = torch.nn.Linear(8, 3)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    hook = tocsin.watch(model, optimizer, out=out, capture={
        "every": "1 step", "overhead": 1.0, "collections": {"weights": {"raw": True}, "gradients": None, "losses": None}})
    weights, losses = [], []
    for _ in range(4):
        optimizer.zero_grad()
        loss = model(torch.randn(4, 8)).square().mean()
        loss.backward()
        hook.log(loss=float(loss))
        losses.append(float(loss))
        weights.append(model.weight.detach().numpy().copy())
        optimizer.step()
    hook.close()
    seen = {"path": out}
    exec(compile(NOTEBOOK, "notebook", "exec"), seen)  # noqa: S102 (a notebook is code that is run)
    assert {"weight", "gradient/weight", "gradient/bias"} <= set(seen["names"]) and seen["losses"] == ["loss"]
    assert seen["gradients"] == ["gradient/weight"] and seen["steps"] == [0, 1, 2, 3]
    assert [value for _, value in seen["loss"]] == losses
    assert seen["met"] == 0 and seen["calm"] == []
    assert seen["missing"] == ["TensorUnavailable", "TensorUnavailableForStep", "NoMoreData"]
    assert numpy.array_equal(seen["weight"], weights[2]) and seen["shape"] == (3, 8) and seen["previous"] == [2, 3]
    assert seen["reductions"]["mean", False] == pytest.approx(weights[2].mean(), rel=1e-5)
    assert seen["reductions"]["l2", True] == pytest.approx(numpy.linalg.norm(weights[2]), rel=1e-5)


@pytest.mark.parametrize("name", ["pytorch", "tensorflow", "mxnet"])
def test_a_training_script_finds_its_framework(name):
    module = importlib.import_module(f"tocsin.smdebug.{name}")
    assert module.Hook.create_from_json_file and module.modes.TRAIN and module.SaveConfig
