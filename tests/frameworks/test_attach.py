"""`tocsin run` on today's frameworks, in scripts without a line of ours."""
import sys

import pytest

from tests.support.attached import lines, run
from tests.support.hook_support import Telemetry

TORCH = """
import torch
model = torch.nn.Sequential(torch.nn.Linear(4, 4), torch.nn.Linear(4, 1))
optimizer = torch.optim.Adam(model.parameters())
for _ in range(30):
    loss = torch.nn.functional.mse_loss(model(torch.randn(8, 4)), torch.zeros(8, 1))
    optimizer.zero_grad(); loss.backward(); optimizer.step()
"""
TRANSFORMERS = """
import torch, transformers
class Tokens(torch.utils.data.Dataset):
    def __len__(self): return 64
    def __getitem__(self, i): return {"input_ids": torch.arange(8), "labels": torch.arange(8)}
model = transformers.GPT2LMHeadModel(transformers.GPT2Config(vocab_size=32, n_positions=8, n_embd=16, n_layer=1, n_head=2))
arguments = transformers.TrainingArguments(output_dir="trained", max_steps=12, report_to=[], use_cpu=True, save_strategy="no",
                                           disable_tqdm=True)
transformers.Trainer(model=model, args=arguments, train_dataset=Tokens()).train()
"""
LIGHTNING = """
import lightning.pytorch as pl, torch
class Net(pl.LightningModule):
    def __init__(self):
        super().__init__(); self.layer = torch.nn.Linear(4, 1)
    def training_step(self, batch, _): return self.layer(batch).pow(2).mean()
    def configure_optimizers(self): return torch.optim.SGD(self.parameters(), lr=0.1)
pl.Trainer(max_steps=12, accelerator="cpu", logger=False, enable_checkpointing=False, enable_progress_bar=False,
           enable_model_summary=False).fit(Net(), torch.utils.data.DataLoader(torch.randn(64, 4), batch_size=4))
"""
XGBOOST = """
import numpy, xgboost
x = numpy.random.rand(100, 3)
xgboost.train({"nthread": 1}, xgboost.DMatrix(x, x[:, 0]), 12, evals=[(xgboost.DMatrix(x, x[:, 0]), "train")], verbose_eval=False)
"""
XGBOOST_SKLEARN = """
import numpy, xgboost
x = numpy.random.rand(100, 3)
xgboost.XGBRegressor(n_estimators=12, n_jobs=1).fit(x, x[:, 0], eval_set=[(x, x[:, 0])], verbose=False)
"""
LIGHTGBM = """
import lightgbm, numpy
x = numpy.random.rand(100, 3)
data = lightgbm.Dataset(x, x[:, 0])
lightgbm.train({"num_threads": 1, "verbose": -1, "metric": "l2"}, data, 12, valid_sets=[data], valid_names=["train"])
"""
KERAS = """
import keras, numpy
model = keras.Sequential([keras.layers.Input((4,)), keras.layers.Dense(3, activation="relu"), keras.layers.Dense(1)])
model.compile("adam", "mse")
x = numpy.random.rand(48, 4)
model.fit(x, x[:, :1], epochs=3, batch_size=12, verbose=0)
"""


@pytest.mark.parametrize("body, attached, steps", [
    (TORCH, "Adam of Sequential", 29), (TRANSFORMERS, "transformers.Trainer", 12), (LIGHTNING, "lightning.Trainer", 12),
    (XGBOOST, "xgboost.train", 12), (XGBOOST_SKLEARN, "xgboost.train", 12), (LIGHTGBM, "lightgbm.train", 12),
    (KERAS, "keras.Model.fit", 12)],
    ids=["torch", "transformers", "lightning", "xgboost", "xgboost.sklearn", "lightgbm", "keras"])
def test_a_script_without_a_line_of_ours_is_watched(tmp_path, body, attached, steps):
    done = run(tmp_path, body)
    assert done.returncode == 0, done.stderr
    assert [line for line in lines(done) if "attached" in line] == [f"tocsin: attached to {attached}"], done.stderr
    telemetry = Telemetry(tmp_path / "data")
    assert len(telemetry.lifecycles("start")) == 1
    assert len(telemetry.steps()) >= steps
    assert telemetry.lifecycles("end")[0]["outcome"] == "completed"


def test_workers_of_torchrun_are_one_run(tmp_path):
    body = TORCH.replace("import torch\n", "import torch, torch.distributed\ntorch.distributed.init_process_group('gloo')\n")
    done = run(tmp_path, body, before=(sys.executable, "-m", "torch.distributed.run", "--nproc-per-node", "2"))
    assert done.returncode == 0, done.stderr
    starts = Telemetry(tmp_path / "data").lifecycles("start")
    assert len(starts) == 2 and len({str(frame.header["run"]) for frame in Telemetry(tmp_path / "data").frames}) == 1
    assert len({start["pid"] for start in starts}) == 2
    assert len([line for line in lines(done) if "attached" in line]) == 1  # rank 0 speaks for all
