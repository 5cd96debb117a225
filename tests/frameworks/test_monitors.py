"""What a trainer stops by, or keeps its best state by, is computed on the training set: certain, and told once."""
import os

import pytest

from tests.support.hook_support import Telemetry


def told(folder):
    return [(one["kind"], one["names"]) for record in Telemetry(str(folder)).lifecycles("preflight") for one in record["findings"]]


@pytest.mark.parametrize("monitor, validates, expected", [("loss", True, [("monitors_training", ["loss"])]), ("val_loss", True, []),
                                                          ("loss", False, [])])
@pytest.mark.parametrize("keeps", [False, True])
def test_keras(tmp_path, monitor, validates, expected, keeps):
    os.environ.setdefault("KERAS_BACKEND", "torch")
    import keras
    import numpy
    from tocsin.keras import TocsinCallback
    model = keras.Sequential([keras.Input((4,)), keras.layers.Dense(1)])
    model.compile("adam", "mse")
    rows = numpy.random.default_rng(0).normal(size=(32, 4))
    other = keras.callbacks.ModelCheckpoint(str(tmp_path / "best.keras"), monitor, save_best_only=True) if keeps else \
        keras.callbacks.EarlyStopping(monitor, patience=5)
    model.fit(rows, rows[:, 0], epochs=3, verbose=0, validation_data=(rows[:8], rows[:8, 0]) if validates else None,
              callbacks=[other, keras.callbacks.ReduceLROnPlateau("loss"), TocsinCallback(out=str(tmp_path / "out"), job="monitors")])
    assert told(tmp_path / "out") == expected


@pytest.mark.parametrize("monitor, expected", [("train_loss", [("monitors_training", ["train_loss"])]), ("val_loss", []), ("both", [])])
@pytest.mark.parametrize("keeps", [False, True])
def test_lightning(tmp_path, monitor, expected, keeps):
    import lightning.pytorch as lightning
    import torch
    from lightning.pytorch.callbacks import EarlyStopping, ModelCheckpoint

    from tocsin.lightning import TocsinCallback

    class Module(lightning.LightningModule):
        def __init__(self):
            super().__init__()
            self.layer = torch.nn.Linear(6, 1)

        def training_step(self, batch, index):
            loss = self.layer(batch).square().mean()
            self.log("train_loss", loss, on_epoch=True)
            self.log("both", loss, on_epoch=True, on_step=False)
            return loss

        def validation_step(self, batch, index):
            self.log("val_loss", self.layer(batch).square().mean())
            self.log("both", self.layer(batch).square().mean())

        def configure_optimizers(self):
            return torch.optim.Adam(self.parameters(), lr=0.01)

    data = torch.utils.data.DataLoader(torch.randn(64, 6), 8)
    other = ModelCheckpoint(tmp_path / "best", monitor=monitor) if keeps else EarlyStopping(monitor)
    lightning.Trainer(max_epochs=2, accelerator="cpu", logger=False, enable_checkpointing=keeps, enable_progress_bar=False,
                      enable_model_summary=False, callbacks=[other, TocsinCallback(out=str(tmp_path / "out"), job="monitors")]
                      ).fit(Module(), data, data)
    assert told(tmp_path / "out") == expected


@pytest.mark.parametrize("same, best, expected", [(True, True, [("monitors_training", ["loss"])]), (False, True, []), (True, False, [])])
def test_transformers(tmp_path, same, best, expected):
    import torch
    import transformers

    from tocsin.transformers import TocsinCallback
    data = [{"input_ids": torch.arange(8), "labels": torch.arange(8)}] * 16
    config = transformers.GPT2Config(vocab_size=32, n_positions=8, n_embd=16, n_layer=1, n_head=2)
    arguments = transformers.TrainingArguments(
        output_dir=str(tmp_path / "trainer"), max_steps=4, per_device_train_batch_size=2, report_to=[], use_cpu=True, disable_tqdm=True,
        eval_strategy="steps", eval_steps=2, save_strategy="steps", save_steps=2, load_best_model_at_end=best)
    transformers.Trainer(model=transformers.GPT2LMHeadModel(config), args=arguments, train_dataset=data,
                         eval_dataset=data if same else list(data),
                         callbacks=[TocsinCallback(out=str(tmp_path / "out"), job="monitors")]).train()
    assert told(tmp_path / "out") == expected
