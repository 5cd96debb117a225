"""The callbacks of today's trainers, copied and pickled after a training (tests/python/test_callback_copies.py has the ways, test_keras.py
the one of Keras: TensorFlow stays out of this process)."""

import copy
import pickle

import lightgbm
import lightning.pytorch
import numpy
import pytest
import sklearn.base
import torch
import transformers
import xgboost

import tocsin.lightgbm
import tocsin.lightning
import tocsin.transformers
import tocsin.xgboost
from tests.support.hook_support import Telemetry

X = numpy.random.default_rng(0).random((48, 3))
Y = X[:, 0]


class Net(lightning.pytorch.LightningModule):
    def __init__(self):
        super().__init__()
        self.layer = torch.nn.Linear(3, 1)

    def training_step(self, batch, _):
        return self.layer(batch).pow(2).mean()

    def configure_optimizers(self):
        return torch.optim.SGD(self.parameters(), lr=0.1)


class Tokens(torch.utils.data.Dataset):
    def __len__(self):
        return 8

    def __getitem__(self, _):
        return {"input_ids": torch.arange(8), "labels": torch.arange(8)}


def with_lightning(callback, _):
    loader = torch.utils.data.DataLoader(torch.randn(16, 3), batch_size=4)
    lightning.pytorch.Trainer(max_steps=3, accelerator="cpu", logger=False, enable_checkpointing=False, enable_progress_bar=False,
                              enable_model_summary=False, callbacks=[callback]).fit(Net(), loader)


def with_transformers(callback, folder):
    model = transformers.GPT2LMHeadModel(transformers.GPT2Config(vocab_size=32, n_positions=8, n_embd=16, n_layer=1, n_head=2))
    arguments = transformers.TrainingArguments(output_dir=str(folder), max_steps=2, report_to=[], use_cpu=True, save_strategy="no",
                                               disable_tqdm=True)
    transformers.Trainer(model=model, args=arguments, train_dataset=Tokens(), callbacks=[callback]).train()


def with_xgboost(callback, _):
    xgboost.train({"nthread": 1}, xgboost.DMatrix(X, Y), 3, evals=[(xgboost.DMatrix(X, Y), "train")], verbose_eval=False, callbacks=[callback])


def with_lightgbm(callback, _):
    data = lightgbm.Dataset(X, Y)
    lightgbm.train({"num_threads": 1, "verbose": -1}, data, 3, valid_sets=[data], callbacks=[callback])


@pytest.mark.parametrize("again", [copy.copy, copy.deepcopy, lambda one: pickle.loads(pickle.dumps(one))], ids=["copy", "deepcopy", "pickle"])
@pytest.mark.parametrize("kind, train", [
    (tocsin.lightning.TocsinCallback, with_lightning),
    (tocsin.transformers.TocsinCallback, with_transformers), (tocsin.xgboost.TocsinCallback, with_xgboost),
    (tocsin.lightgbm.callback, with_lightgbm)], ids=["lightning", "transformers", "xgboost", "lightgbm"])
def test_a_callback_that_has_trained_trains_again_as_a_copy(tmp_path, out, kind, train, again):
    callback = kind(out=out)
    train(callback, tmp_path)
    other = again(callback)
    assert type(other) is kind and other is not callback
    train(other, tmp_path)
    assert [end["outcome"] for end in Telemetry(out).lifecycles("end")] == ["completed", "completed"]


def test_an_estimator_is_cloned_and_saved_with_its_callback(out):
    estimator = xgboost.XGBRegressor(n_estimators=3, n_jobs=1, callbacks=[tocsin.xgboost.TocsinCallback(
        validation=xgboost.DMatrix(X, Y), out=out)])
    estimator.fit(X, Y, eval_set=[(X, Y)], verbose=False)
    assert numpy.allclose(pickle.loads(pickle.dumps(estimator)).predict(X), estimator.predict(X))
    sklearn.base.clone(estimator).fit(X, Y, eval_set=[(X, Y)], verbose=False)
    assert len(Telemetry(out).lifecycles("end")) == 2
