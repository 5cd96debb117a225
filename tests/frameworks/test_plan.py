"""What trainers have planned reaches the ledger unasked, and the default rules hold the schedule against it."""
import accelerate
import lightgbm
import lightning.pytorch as lightning
import numpy
import pytest
import sklearn.ensemble
import torch
import transformers
import xgboost
from torch.optim import lr_scheduler as schedulers

from tests.support.hook_support import Telemetry

import tocsin.lightgbm
import tocsin.lightning
import tocsin.sklearn
import tocsin.transformers
import tocsin.xgboost


def planned(out):
    """The newest of each field."""
    telemetry = Telemetry(out)
    return {name[len("ledger/plan/"):]: telemetry.scalars(name)[-1][2] for name in telemetry.names.values() if name.startswith("ledger/plan/")}


def told(callback):
    hook = callback._watcher.hook
    assert not hook.stats()["hook_errors_total"], hook.stats()
    return [one["kind"] for one in hook.issues() if one["rule"] == "budget" and one["status"] == "firing"]


# ---- Lightning: 8 batches per epoch


class Module(lightning.LightningModule):
    def __init__(self, length, interval):
        super().__init__()
        torch.manual_seed(0)
        self.layer, self.length, self.interval = torch.nn.Linear(6, 2), length, interval

    def training_step(self, batch, _):
        return (self.layer(batch) - batch[:, :2]).square().mean()

    def configure_optimizers(self):
        optimizer = torch.optim.Adam(self.parameters(), lr=0.01)
        length = self.length(self.trainer) if callable(self.length) else self.length
        return [optimizer], [{"scheduler": schedulers.CosineAnnealingLR(optimizer, length), "interval": self.interval}]


def fit_lightning(tmp_path, out, length, interval, **options):
    callback = tocsin.lightning.TocsinCallback(out=out, rules="default")
    settings = {"max_epochs": 12, "accelerator": "cpu", "logger": False, "enable_checkpointing": False, "enable_progress_bar": False,
                "enable_model_summary": False, **options}
    lightning.Trainer(default_root_dir=tmp_path, callbacks=[callback], **settings).fit(
        Module(length, interval), torch.utils.data.DataLoader(torch.randn(32, 6), batch_size=4))
    return callback


def all_of_it(trainer):
    return trainer.estimated_stepping_batches


@pytest.mark.parametrize("length, interval, options, plan, kinds", [
    (all_of_it, "step", {}, {"updates": 96, "epochs": 12, "length": 96, "stride": 1, "schedule": 96, "accumulation": 1}, []),
    (all_of_it, "step", {"accumulate_grad_batches": 4}, {"updates": 24, "accumulation": 4, "length": 24, "stride": 1}, []),
    (12, "epoch", {}, {"updates": 96, "length": 12, "stride": 8, "schedule": 96}, []),
    (all_of_it, "epoch", {"max_epochs": 4, "limit_train_batches": 8}, {"length": 32, "stride": 8, "epochs": 4}, ["unfinished"]),
    (all_of_it, "epoch", {"max_epochs": 4, "val_check_interval": 1.0}, {"length": 32, "stride": 8, "schedule": 256}, ["unfinished"]),
    (132, "epoch", {}, {"length": 132, "stride": 8, "schedule": 1056}, ["per_epoch"]),
    (12, "step", {}, {"length": 12, "stride": 1, "schedule": 12}, ["per_epoch"]),
    (96, "step", {"accumulate_grad_batches": 4}, {"updates": 24, "length": 96, "schedule": 96}, ["per_batch"]),
    (48, "step", {"max_steps": 24, "max_epochs": -1}, {"updates": 24, "schedule": 48}, ["unfinished"]),
], ids=["as long", "accumulation", "epochs", "limited", "epochs of updates", "many epochs of updates", "updates of epochs", "batches", "steps"])
def test_lightning(tmp_path, out, length, interval, options, plan, kinds):
    callback = fit_lightning(tmp_path, out, length, interval, **options)
    found = planned(out)
    assert {field: found[field] for field in plan} == plan
    assert told(callback) == kinds


def test_lightning_that_stops_early_may_end_with_its_schedule(tmp_path, out):
    callback = tocsin.lightning.TocsinCallback(out=out, rules="default")
    lightning.Trainer(default_root_dir=tmp_path, max_epochs=100, accelerator="cpu", logger=False, enable_checkpointing=False,
                      enable_progress_bar=False, enable_model_summary=False,
                      callbacks=[callback, lightning.callbacks.Timer(duration={"seconds": 1})]).fit(
                          Module(30, "step"), torch.utils.data.DataLoader(torch.randn(32, 6), batch_size=4))
    assert planned(out)["early_stopping"] == 1 and "per_epoch" not in told(callback)


# ---- Transformers


class Tokens(torch.utils.data.Dataset):
    ids = torch.arange(8).repeat(96, 1)

    def __len__(self):
        return len(self.ids)

    def __getitem__(self, index):
        return {"input_ids": self.ids[index], "labels": self.ids[index]}


@pytest.mark.parametrize("options, plan", [
    ({"num_train_epochs": 3}, {"updates": 36, "epochs": 3, "accumulation": 1, "length": 36, "stride": 1, "schedule": 36, "lowest": 0}),
    ({"num_train_epochs": 6, "gradient_accumulation_steps": 4}, {"updates": 18, "epochs": 6, "accumulation": 4, "length": 18, "schedule": 18}),
    ({"max_steps": 30, "lr_scheduler_type": "cosine", "warmup_steps": 5}, {"updates": 30, "length": 30, "lowest": 0}),
    ({"max_steps": 30, "lr_scheduler_type": "constant_with_warmup", "warmup_steps": 5}, {"updates": 30}),
], ids=["linear", "accumulation", "cosine", "constant"])
def test_transformers(tmp_path, out, options, plan):
    torch.manual_seed(0)
    callback = tocsin.transformers.TocsinCallback(out=out, rules="default")
    transformers.Trainer(
        model=transformers.GPT2LMHeadModel(transformers.GPT2Config(vocab_size=32, n_positions=8, n_embd=16, n_layer=1, n_head=2)),
        args=transformers.TrainingArguments(output_dir=str(tmp_path / "trained"), per_device_train_batch_size=8, report_to=[], use_cpu=True,
                                            disable_tqdm=True, save_strategy="no", learning_rate=1e-3, **options),
        train_dataset=Tokens(), callbacks=[callback]).train()
    found = planned(out)
    assert {field: found[field] for field in plan} == plan and ("schedule" in found) == ("lowest" in found)
    assert told(callback) == []


@pytest.mark.parametrize("length, kinds", [(36, []), (12, ["ends_early"]), (100, ["unfinished"])])
def test_transformers_with_a_scheduler_of_the_scripts(tmp_path, out, length, kinds):
    torch.manual_seed(0)
    model = transformers.GPT2LMHeadModel(transformers.GPT2Config(vocab_size=32, n_positions=8, n_embd=16, n_layer=1, n_head=2))
    optimizer = torch.optim.AdamW(model.parameters(), 1e-3)
    callback = tocsin.transformers.TocsinCallback(out=out, rules="default")
    transformers.Trainer(model=model, train_dataset=Tokens(), callbacks=[callback],
                         optimizers=(optimizer, transformers.get_cosine_schedule_with_warmup(optimizer, 4, length)),
                         args=transformers.TrainingArguments(output_dir=str(tmp_path / "trained"), per_device_train_batch_size=8, report_to=[],
                                                             use_cpu=True, disable_tqdm=True, save_strategy="no", num_train_epochs=3)).train()
    assert planned(out)["schedule"] == length and told(callback) == kinds


# ---- Accelerate


def test_a_scheduler_that_accelerate_prepared_steps_once_per_process(out, monkeypatch):
    accelerator = accelerate.Accelerator(cpu=True)
    try:
        model = torch.nn.Linear(6, 2)
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        model, optimizer, scheduler = accelerator.prepare(model, optimizer, schedulers.CosineAnnealingLR(optimizer, 160))
        hook = tocsin.watch(model, optimizer, out=out, rules="default")
        hook.plan(updates=40)
        for _ in range(40):
            loss = model(torch.randn(4, 6)).square().mean()
            accelerator.backward(loss)
            optimizer.step()
            with monkeypatch.context() as of_four:  # as on each of four
                of_four.setattr(accelerate.state.PartialState(), "num_processes", 4)
                scheduler.step()
            optimizer.zero_grad()
        hook.close()
        assert planned(out) == {"updates": 40, "length": 160, "stride": 0.25, "schedule": 40, "lowest": 0}
        assert [one for one in hook.issues() if one["rule"] == "budget"] == []
    finally:
        accelerate.state.AcceleratorState._reset_state(reset_partial_state=True)


# ---- boosting


def data():
    random = numpy.random.default_rng(0)
    x = random.normal(size=(200, 4))
    return x, x[:, 0] * 3 + random.normal(size=200) * 0.1


@pytest.mark.parametrize("rounds, eta, more, kinds", [
    (20, 0.3, {}, []), (40, 0.05, {}, []), (20, 0.002, {}, ["too_small"]), (20, 0.002, {"early_stopping_rounds": 5}, [])])
def test_xgboost(out, rounds, eta, more, kinds):
    x, y = data()
    callback = tocsin.xgboost.TocsinCallback(out=out, rules="default")
    both = xgboost.DMatrix(x, y)
    xgboost.train({"eta": eta, "max_depth": 2, "nthread": 1}, both, rounds, evals=[(both, "train")], verbose_eval=False, callbacks=[callback], **more)
    assert planned(out) == pytest.approx({"rounds": rounds, "shrinkage": eta, "early_stopping": float(bool(more))})
    assert told(callback) == kinds


def test_xgboost_of_scikit_learn_of_other_boosters_and_with_a_schedule(out):
    x, y = data()
    callback = tocsin.xgboost.TocsinCallback(out=out, run="a", rules="default")
    xgboost.XGBRegressor(n_estimators=15, learning_rate=0.01, max_depth=2, n_jobs=1, callbacks=[callback]).fit(x, y)
    assert planned(out) == pytest.approx({"rounds": 15, "shrinkage": 0.01, "early_stopping": 0}) and told(callback) == ["too_small"]
    for number, (settings, others) in enumerate([({"booster": "gblinear"}, []), ({"booster": "dart"}, []),
                                                 ({}, [xgboost.callback.LearningRateScheduler(lambda _: 0.01)])]):
        callback = tocsin.xgboost.TocsinCallback(out=f"{out}{number}", run="b", rules="default", trees=False, importance=())
        xgboost.train({"eta": 0.01, "nthread": 1, **settings}, xgboost.DMatrix(x, y), 15, callbacks=[callback, *others])
        assert planned(f"{out}{number}") == {"rounds": 15, "early_stopping": 0} and told(callback) == []


def test_xgboost_that_goes_on_counts_the_rounds_before(out):
    x, y = data()
    both, settings = xgboost.DMatrix(x, y), {"eta": 0.1, "nthread": 1}
    first = xgboost.train(settings, both, 30)
    callback = tocsin.xgboost.TocsinCallback(out=out, rules="default")
    xgboost.train(settings, both, 3, xgb_model=first, callbacks=[callback])
    assert planned(out)["rounds"] == 33 and told(callback) == []


@pytest.mark.parametrize("rounds, settings, callbacks, plan, kinds", [
    (20, {}, (), {"shrinkage": 0.1, "early_stopping": 0}, []),
    (200, {"eta": 0.05}, (), {"shrinkage": 0.05, "early_stopping": 0}, []),
    (20, {"learning_rate": 0.002}, (), {"shrinkage": 0.002, "early_stopping": 0}, ["too_small"]),
    (20, {"learning_rate": 0.002, "early_stopping_round": 5}, (), {"shrinkage": 0.002, "early_stopping": 1}, []),
    (20, {"learning_rate": 0.002}, ("early",), {"shrinkage": 0.002, "early_stopping": 1}, []),
    (20, {"learning_rate": 0.002}, ("reset",), {"early_stopping": 0}, []),
    (20, {"learning_rate": 0.002, "boosting": "dart"}, (), {"early_stopping": 0}, []),
], ids=["its default", "many", "too few", "stops early", "stops early by a callback", "a schedule", "dart"])
def test_lightgbm(out, rounds, settings, callbacks, plan, kinds):
    x, y = data()
    made = {"early": lambda: lightgbm.early_stopping(5, verbose=False), "reset": lambda: lightgbm.reset_parameter(learning_rate=[0.002] * rounds)}
    callback = tocsin.lightgbm.callback(out=out, rules="default")
    first = lightgbm.Dataset(x[:150], y[:150])
    lightgbm.train({"num_leaves": 4, "num_threads": 1, "verbose": -1, "min_data_in_leaf": 2, **settings}, first, rounds,
                   valid_sets=[lightgbm.Dataset(x[150:], y[150:], reference=first)], callbacks=[callback, *(made[one]() for one in callbacks)])
    hook = callback._watcher.hook
    hook.close()
    assert planned(out) == pytest.approx({"rounds": rounds, **plan}) and told(callback) == kinds


@pytest.mark.parametrize("estimator, plan", [
    (sklearn.ensemble.GradientBoostingRegressor(n_estimators=20, learning_rate=0.01), {"rounds": 20, "shrinkage": 0.01, "early_stopping": 0}),
    (sklearn.ensemble.GradientBoostingRegressor(n_estimators=20, n_iter_no_change=3), {"rounds": 20, "shrinkage": 0.1, "early_stopping": 1}),
    (sklearn.ensemble.HistGradientBoostingRegressor(max_iter=20), {"rounds": 20, "shrinkage": 0.1, "early_stopping": 0}),
    (sklearn.ensemble.HistGradientBoostingRegressor(max_iter=20, early_stopping=True), {"rounds": 20, "shrinkage": 0.1, "early_stopping": 1}),
], ids=["small", "stops", "histograms", "histograms that stop"])
def test_scikit_learn(out, estimator, plan):
    tocsin.sklearn.history(estimator.fit(*data()), out=out)
    assert planned(out) == pytest.approx(plan)
