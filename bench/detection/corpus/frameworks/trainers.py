"""Loops that are not our own: an optimizer that asks for the loss again, and the frameworks' trainers."""
import importlib.util
import logging
import random
import tempfile

import numpy
import torch
from torch import nn

import tocsin

from .. import data
from ..recipes.training import CAPTURE

NEEDS = {"line_search": "torch", "trainer": "transformers", "light_module": "lightning"}
TUNING = {name: True for name, package in NEEDS.items() if importlib.util.find_spec(package)}
# Name of the fault, share of the run before it.
FAULTS = {"rate_too_large": 0.0, "rate_zero": 0.0, "rate_tiny": 0.0, "labels_random": 0.0, "input_constant": 0.0, "input_unscaled": 0.0, "input_nan": 0.0,
          "one_class": 0.0, "start_zero": 0.0, "start_large": 0.0, "sign_wrong": 0.0, "overfits": 0.0}
SLOW = ("overfits",)
STEPS = 200


def _sets(seed, fault):
    """((x, y), (held x, held y)) of digits, the first changed by the fault."""
    split, chance = data.digits(seed), torch.Generator().manual_seed(seed + 1)
    x, y = split.x, split.y
    if fault == "labels_random":
        y = y[torch.randperm(len(y), generator=chance)]
    elif fault == "input_constant":
        x = torch.zeros_like(x)
    elif fault == "input_unscaled":
        x = x * 128 + 128
    elif fault == "input_nan":
        x = x.clone()
        x[::20, 3] = float("nan")
    elif fault == "one_class":
        y = torch.zeros_like(y)
    elif fault == "overfits":
        x, y = x[:32], y[:32]
    return (x, y), (split.held_x, split.held_y)


def _rate(rate, fault):
    return rate * {"rate_too_large": 300, "rate_zero": 0, "rate_tiny": 1e-5, "overfits": 3}.get(fault, 1)


def _started(model, fault):
    with torch.no_grad():
        for one in model.parameters():
            if fault == "start_zero":
                one.zero_()
            elif fault == "start_large" and one.dim() > 1:
                one.mul_(30)
    return model


def _line_search(fault, seed, chance, options):
    """LBFGS on the whole data set, a part of it at a time."""
    (x, y), (held_x, held_y) = _sets(seed, fault)
    width = chance.choice((16, 24))
    model = _started(nn.Sequential(nn.Linear(64, width), nn.Tanh(), nn.Linear(width, 10)), fault)
    rate = _rate(chance.choice((0.05, 0.1, 0.2)), fault)
    optimizer = torch.optim.LBFGS(model.parameters(), rate, max_iter=2, history_size=5)
    decay = chance.choice((1e-3, 3e-3))
    hook = tocsin.watch(model, optimizer, capture=CAPTURE, **options)
    passes, steps = [], 120
    for step in range(steps):
        def closure():
            optimizer.zero_grad()
            loss = nn.functional.cross_entropy(model(x), y)
            loss = loss + (0 if fault == "overfits" else decay) * sum(one.square().sum() for one in model.parameters())
            (-loss if fault == "sign_wrong" else loss).backward()
            return loss
        hook.log(loss=optimizer.step(closure))
        if step % 10 == 9:
            with hook.mode("eval"), torch.no_grad():
                passes.append((float(nn.functional.cross_entropy(model(held_x), held_y)), step))
                hook.log(loss=passes[-1][0])
                hook.step()
    uid = hook.run
    hook.close(timeout=20)
    return uid, steps, passes


def _trainer(fault, seed, chance, options):
    """Hugging Face's Trainer: a small BERT on the rows of images as its words, AdamW, warm-up, a straight line to zero."""
    import transformers

    from tocsin.transformers import TocsinCallback
    transformers.utils.logging.set_verbosity_error()
    (x, y), (held_x, held_y) = _sets(seed, fault)
    config = transformers.BertConfig(vocab_size=4, hidden_size=32, num_hidden_layers=2, num_attention_heads=4, intermediate_size=64, max_position_embeddings=16,
                                     num_labels=10)

    class Rows(nn.Module):
        """Eight rows of an image as eight words."""

        def __init__(self):
            super().__init__()
            self.enter, self.body = nn.Linear(8, 32), transformers.BertForSequenceClassification(config)

        def forward(self, rows, labels=None):
            out = self.body(inputs_embeds=self.enter(rows), labels=labels)
            if fault == "sign_wrong" and self.training:
                out.loss = -out.loss
            return out
    parts = [[{"rows": one.reshape(8, 8), "labels": int(label)} for one, label in zip(*pair)] for pair in ((x, y), (held_x, held_y))]
    model, seen, passes = _started(Rows(), fault), [], []
    steps = 400 if fault == "overfits" else STEPS

    class Keep(transformers.TrainerCallback):
        """Notes the run's name while the hook is open, and the evaluations."""

        def on_step_end(self, args, state, control, **_):
            if not seen:
                seen.append(tocsin.get_hook().run)

        def on_evaluate(self, args, state, control, metrics=None, **_):
            passes.append((metrics["eval_loss"], state.global_step - 1))
    with tempfile.TemporaryDirectory() as folder:
        arguments = transformers.TrainingArguments(folder, max_steps=steps, per_device_train_batch_size=chance.choice((16, 32)), per_device_eval_batch_size=128,
                                                   learning_rate=_rate(chance.uniform(1e-3, 3e-3), fault), warmup_steps=10, eval_strategy="steps", eval_steps=20,
                                                   save_strategy="no", report_to=[], logging_steps=10, log_level="error", use_cpu=True, disable_tqdm=True, seed=seed)
        transformers.Trainer(model, arguments, train_dataset=parts[0], eval_dataset=parts[1],
                             callbacks=[TocsinCallback(capture=CAPTURE, **options), Keep()]).train()
    return seen[0], steps, passes


def _light_module(fault, seed, chance, options):
    """Lightning: a convolutional network, SGD with Nesterov's momentum, one cycle, an epoch's mean of the validation."""
    logging.getLogger("lightning.pytorch").setLevel(logging.ERROR)
    import lightning

    from tocsin.lightning import TocsinCallback
    (x, y), (held_x, held_y) = _sets(seed, fault)
    width, rate, batch = chance.choice((8, 12)), _rate(chance.uniform(0.01, 0.05), fault), 16 if fault == "overfits" else 32
    net = nn.Sequential(nn.Unflatten(1, (1, 8, 8)), nn.Conv2d(1, width, 3, padding=1), nn.BatchNorm2d(width), nn.GELU(), nn.MaxPool2d(2),
                        nn.Conv2d(width, 2 * width, 3, padding=1), nn.BatchNorm2d(2 * width), nn.GELU(), nn.Flatten(), nn.Linear(32 * width, 10))
    steps, passes, seen = 400 if fault == "overfits" else STEPS, [], []

    class Net(lightning.LightningModule):
        """As users write it."""

        def __init__(self):
            super().__init__()
            self.net = _started(net, fault)

        def forward(self, x):
            return self.net(x)

        def training_step(self, batch, _):
            loss = nn.functional.cross_entropy(self(batch[0]), batch[1])
            if not seen:
                seen.append(tocsin.get_hook().run)
            return -loss if fault == "sign_wrong" else loss

        def validation_step(self, batch, _):
            loss = nn.functional.cross_entropy(self(batch[0]), batch[1])
            self.log("val_loss", loss)
            return loss

        def on_validation_epoch_end(self):
            passes.append((float(self.trainer.callback_metrics.get("val_loss", 0)), self.trainer.global_step - 1))

        def configure_optimizers(self):
            optimizer = torch.optim.SGD(self.parameters(), rate, momentum=0.9, nesterov=True)
            if fault in ("overfits", "rate_zero"):
                return optimizer
            return [optimizer], [{"scheduler": torch.optim.lr_scheduler.OneCycleLR(optimizer, rate, total_steps=steps + 1), "interval": "step"}]
    lightning.seed_everything(seed, verbose=False)
    sets = [torch.utils.data.TensorDataset(*one) for one in ((x, y), (held_x, held_y))]
    loaders = [torch.utils.data.DataLoader(sets[0], batch, shuffle=True, drop_last=len(sets[0]) > 64), torch.utils.data.DataLoader(sets[1], 180)]
    trainer = lightning.Trainer(max_steps=steps, accelerator="cpu", logger=False, enable_checkpointing=False, enable_progress_bar=False,
                                enable_model_summary=False, callbacks=[TocsinCallback(capture=CAPTURE, **options)], num_sanity_val_steps=0,
                                val_check_interval=20, check_val_every_n_epoch=None)
    trainer.fit(Net(), *loaders)
    return seen[0], steps, passes


def run(fault, seed, out, job, name):
    """Trains and records; returns (uid, steps, step of the best evaluation)."""
    torch.manual_seed(seed)
    numpy.random.seed(seed)
    made = {"line_search": _line_search, "trainer": _trainer, "light_module": _light_module}[job]
    uid, steps, passes = made(fault, seed, random.Random(f"{job}/{seed}"), {"out": out, "run": name, "job": job})
    return uid, steps, min((one for one in passes if one[0] == one[0]), default=(0.0, 0))[1]
