"""Trainings in frameworks: Hugging Face's Trainer for classes and for text, Lightning with one optimizer and with two, Keras."""
import importlib.util
import logging
import os
import random

import numpy
import torch
from torch import nn
from torch.nn import functional

import tocsin

from .. import data
from .two_optimizers import _fitted
from .trainers import _rate, _started
from ..language.common import sentences
from ..recipes.training import CAPTURE

NEEDS = {"hf_classes": "transformers", "hf_text": "transformers", "light_plateau": "lightning", "light_gan": "lightning", "keras_functional": "keras"}
TUNING = {name: False for name, package in NEEDS.items() if importlib.util.find_spec(package)}
# Name of the fault, share of the run before it.
SETS = {"rate_too_large": 0.0, "rate_zero": 0.0, "start_large": 0.0, "overfits": 0.0, "targets_of_others": 0.0}
OF = {"hf_classes": {**SETS, "padding_unmasked": 0.0, "held_shuffled": 0.0, "labels_one_off": 0.0, "backbone_frozen": 0.0},
      "hf_text": {**SETS, "unshifted": 0.0, "backbone_frozen": 0.0, "rate_tiny": 0.0},
      "light_plateau": {**SETS, "held_shuffled": 0.0, "held_divided": 0.0, "targets_raw": 0.0, "rate_copied": 0.0},
      "light_gan": {"rate_too_large": 0.0, "rate_zero": 0.0, "start_large": 0.0, "start_zero": 0.0, "input_constant": 0.0, "judge_stands": 0.0,
                    "judge_strong": 0.0},
      "keras_functional": {**SETS, "held_shuffled": 0.0, "held_divided": 0.0, "labels_one_off": 0.0, "one_class": 0.0}}
FAULTS = {name: share for one in OF.values() for name, share in one.items()}
SLOW = ("overfits",)


def fault_names(name):
    """The faults that a job has."""
    return list(OF[name])


def _sets(split, fault):
    """(x, y, held x, held y), changed by the fault."""
    x, y, held_x, held_y = split.x, split.y, split.held_x, split.held_y
    if fault == "targets_of_others":
        y = y[torch.randperm(len(y))]
    elif fault == "held_shuffled":
        held_y = held_y[torch.randperm(len(held_y))]
    elif fault == "held_divided":
        held_x = held_x / 255
    elif fault == "labels_one_off":
        y = (y + 1) % split.classes
    elif fault == "one_class":
        y = torch.zeros_like(y)
    elif fault == "targets_raw":
        y = 20 * y + 50
    elif fault == "input_constant":
        x = torch.zeros_like(x)
    elif fault == "overfits":
        x, y = x[:32], y[:32]
    return x, y, held_x, held_y


def _hf_classes(fault, seed, chance, options):
    """DistilBERT for topics of sentences: padding, warm-up and a straight line, decay, an evaluation per epoch, a log each tenth step."""
    import transformers
    transformers.utils.logging.set_verbosity_error()
    x, y, held_x, held_y = _sets(sentences(seed), fault)
    config = transformers.DistilBertConfig(vocab_size=60, max_position_embeddings=16, n_layers=2, n_heads=4, dim=32, hidden_dim=64, dropout=0.1,
                                           num_labels=4,
                                           pad_token_id=0)
    model = _started(transformers.DistilBertForSequenceClassification(config), fault)
    if fault == "backbone_frozen":
        model.distilbert.requires_grad_(False)
    batch, epochs = (16 if fault == "overfits" else 32), (100 if fault == "overfits" else 5)
    of_epoch, passes = -(-len(x) // batch), []

    def mask(one):
        return torch.ones_like(one) if fault == "padding_unmasked" else (one != 0).long()
    parts = [[{"input_ids": one, "attention_mask": mask(one), "labels": label} for one, label in zip(*pair)] for pair in ((x, y), (held_x, held_y))]
    with torch.no_grad():
        passes.append([0, float(model.eval()(input_ids=held_x, attention_mask=mask(held_x), labels=held_y).loss)])
    return _fitted(model, fault, parts, options,
                   {"num_train_epochs": epochs, "per_device_train_batch_size": batch, "per_device_eval_batch_size": 100, "warmup_steps": 20,
                    "weight_decay": 0.01,
                    "learning_rate": _rate(chance.uniform(1e-3, 3e-3), fault), "eval_steps": 40 if fault == "overfits" else of_epoch,
                    "logging_steps": 10,
                    "seed": seed}, passes), epochs * of_epoch, passes


def _hf_text(fault, seed, chance, options):
    """GPT-2 from scratch on text: a cosine behind a warm-up, two batches per update, logged at each fifth step."""
    import transformers
    transformers.utils.logging.set_verbosity_error()
    split, steps, passes = data.text(seed, 16), 200, []
    x, y = split.x, split.x
    if fault == "targets_of_others":
        y = y[torch.randperm(len(y))]
    elif fault == "unshifted":  # the script shifts labels, and the model does so once more
        y = split.y
    elif fault == "overfits":
        x, y = x[:32], y[:32]
    config = transformers.GPT2Config(vocab_size=split.classes, n_positions=16, n_embd=32, n_layer=2, n_head=4, resid_pdrop=0.0, embd_pdrop=0.0,
                                     attn_pdrop=0.0,
                                     bos_token_id=0, eos_token_id=0)
    model = _started(transformers.GPT2LMHeadModel(config), fault)
    if fault == "backbone_frozen":
        model.transformer.h.requires_grad_(False)
    parts = [[{"input_ids": one, "labels": label} for one, label in zip(*pair)] for pair in ((x, y), (split.held_x, split.held_x))]
    with torch.no_grad():
        passes.append([0, float(model.eval()(input_ids=split.held_x, labels=split.held_x).loss)])
    return _fitted(model, fault, parts, options,
                   {"max_steps": steps, "per_device_train_batch_size": 16, "gradient_accumulation_steps": 1 if fault == "overfits" else 2,
                    "per_device_eval_batch_size": 150, "learning_rate": max(_rate(chance.uniform(3e-3, 8e-3), fault), 1e-12), "warmup_steps": 20,
                    "lr_scheduler_type": "cosine", "weight_decay": 0.1, "eval_steps": 25, "logging_steps": 5, "seed": seed}, passes), steps, passes


def _lightning(module, loaders, epochs, options):
    """Fits a module."""
    logging.getLogger("lightning.pytorch").setLevel(logging.ERROR)
    import lightning

    from tocsin.lightning import TocsinCallback
    lightning.Trainer(max_epochs=epochs, accelerator="cpu", logger=False, enable_checkpointing=False, enable_progress_bar=False,
                      enable_model_summary=False,
                      log_every_n_steps=10, num_sanity_val_steps=0, callbacks=[TocsinCallback(capture=CAPTURE, **options)]).fit(module, *loaders)


def _light_plateau(fault, seed, chance, options):
    """Lightning: a network for numbers; Adam, ReduceLROnPlateau on val_loss, validation each epoch."""
    import lightning
    import sklearn.datasets
    rows, value = sklearn.datasets.make_friedman1(1800, 10, noise=1.0, random_state=seed)
    x, y, held_x, held_y = _sets(data.Split(torch.tensor((rows - 0.5) / 0.29, dtype=torch.float32),
                                            torch.tensor((value - value.mean()) / value.std(), dtype=torch.float32)[:, None], 400), fault)
    width, rate, batch, seen, passes = chance.choice((48, 64)), chance.uniform(5e-4, 2e-3), min(64, len(x) // 2), [], []
    of_epoch, epochs = len(x) // batch, 200 if fault == "overfits" else 16

    class Module(lightning.LightningModule):
        """As users write it."""

        def __init__(self):
            super().__init__()
            self.net = _started(nn.Sequential(nn.Linear(10, width), nn.ReLU(), nn.Linear(width, width), nn.ReLU(), nn.Linear(width, 1)), fault)

        def forward(self, x):
            return self.net(x)

        def training_step(self, batch, _):
            if not seen:
                seen.append(tocsin.get_hook().run)
            loss = functional.mse_loss(self(batch[0]), batch[1])
            self.log("train_loss", loss)
            return loss

        def validation_step(self, batch, _):
            self.log("val_loss", functional.mse_loss(self(batch[0]), batch[1]))

        def on_validation_epoch_end(self):
            passes.append([self.trainer.global_step - 1, float(self.trainer.callback_metrics["val_loss"])])

        def configure_optimizers(self):
            optimizer = torch.optim.Adam(self.parameters(), 0.1 if fault == "rate_copied" else _rate(rate, fault))
            falls = torch.optim.lr_scheduler.ReduceLROnPlateau(optimizer, factor=0.3, patience=2)
            return {"optimizer": optimizer, "lr_scheduler": {"scheduler": falls, "monitor": "val_loss"}}
    lightning.seed_everything(seed, verbose=False)
    module = Module()
    with torch.no_grad():
        passes.append([0, float(functional.mse_loss(module(held_x), held_y))])
    sets = [torch.utils.data.TensorDataset(*one) for one in ((x, y), (held_x, held_y))]
    _lightning(module, (torch.utils.data.DataLoader(sets[0], batch, shuffle=True, drop_last=True), torch.utils.data.DataLoader(sets[1], 200)), epochs,
               options)
    return seen[0], epochs * of_epoch, passes


def _light_gan(fault, seed, chance, options):
    """Lightning's example of a GAN, by hand: two optimizers, g_loss and d_loss; measured by the digits' mean and spread."""
    import lightning
    split, seen, passes, width, rate = data.digits(seed), [], [], chance.choice((64, 96)), chance.uniform(7e-4, 1.5e-3)
    x, y, held_x, _ = _sets(split, fault)
    fixed = torch.randn(256, 16, generator=torch.Generator().manual_seed(seed))

    class Gan(lightning.LightningModule):
        """As in the documentation."""

        def __init__(self):
            super().__init__()
            self.automatic_optimization = False
            self.generator = _started(nn.Sequential(nn.Linear(16, width), nn.BatchNorm1d(width), nn.ReLU(), nn.Linear(width, 2 * width),
                                                    nn.BatchNorm1d(2 * width),
                                                    nn.ReLU(), nn.Linear(2 * width, 64), nn.Tanh()), fault)
            self.discriminator = nn.Sequential(nn.Linear(64, 2 * width), nn.LeakyReLU(0.2), nn.Dropout(0.3), nn.Linear(2 * width, width),
                                               nn.LeakyReLU(0.2),
                                               nn.Linear(width, 1))

        def forward(self, z):
            return self.generator(z)

        def training_step(self, batch, _):
            if not seen:
                seen.append(tocsin.get_hook().run)
            real, first, second = batch[0], *self.optimizers()
            valid, fake = torch.ones(len(real), 1), torch.zeros(len(real), 1)
            z = torch.randn(len(real), 16)
            self.toggle_optimizer(first)
            g_loss = functional.binary_cross_entropy_with_logits(self.discriminator(self(z)), valid)
            first.zero_grad()
            self.manual_backward(g_loss)
            first.step()
            self.untoggle_optimizer(first)
            self.toggle_optimizer(second)
            d_loss = (functional.binary_cross_entropy_with_logits(self.discriminator(real), valid)
                      + functional.binary_cross_entropy_with_logits(self.discriminator(self(z).detach()), fake)) / 2
            second.zero_grad()
            self.manual_backward(d_loss)
            second.step()
            self.untoggle_optimizer(second)
            self.log_dict({"g_loss": g_loss, "d_loss": d_loss})

        def far(self):
            """How unlike the mean and the spread are."""
            self.eval()
            with torch.no_grad():
                made = self(fixed)
            self.train()
            return float((made.mean(0) - held_x.mean(0)).abs().mean() + (made.std(0) - held_x.std(0)).abs().mean())

        def on_train_epoch_end(self):
            passes.append([self.trainer.global_step // 2 - 1, self.far()])

        def configure_optimizers(self):
            of_judge = {"judge_stands": 0.0, "judge_strong": 60.0}.get(fault, 1.0) * rate
            return [torch.optim.Adam(self.generator.parameters(), _rate(rate, fault), betas=(0.5, 0.999)),
                    torch.optim.Adam(self.discriminator.parameters(), of_judge, betas=(0.5, 0.999))], []
    lightning.seed_everything(seed, verbose=False)
    module = Gan()
    passes.append([0, module.far()])
    loader = torch.utils.data.DataLoader(torch.utils.data.TensorDataset(x, y), 64, shuffle=True, drop_last=True)
    _lightning(module, (loader,), 12, options)
    return seen[0], 12 * len(loader), passes


def _keras_functional(fault, seed, chance, options):
    """Keras's functional interface: a branch around two layers, batch normalisation, dropout, EarlyStopping and ReduceLROnPlateau."""
    os.environ.setdefault("KERAS_BACKEND", "torch")
    import keras

    from tocsin.keras import TocsinCallback
    keras.utils.set_random_seed(seed)
    split, width = data.digits(seed), chance.choice((48, 64))
    x, y, held_x, held_y = (one.numpy() for one in _sets(split, fault))
    batch, epochs, name = min(32, len(x) // 2), (150 if fault == "overfits" else 9), []
    inputs = keras.Input((64,))
    first = keras.layers.Dense(width, activation="relu")(inputs)
    z = keras.layers.BatchNormalization()(keras.layers.Dense(width, activation="relu")(first))
    z = keras.layers.Dropout(0.2)(keras.layers.add([first, z]))
    model = keras.Model(inputs, keras.layers.Dense(10, activation="softmax")(z))
    if fault == "start_large":
        model.set_weights([one * 30 if one.ndim > 1 else one for one in model.get_weights()])
    model.compile(optimizer=keras.optimizers.Adam(_rate(chance.uniform(5e-4, 2e-3), fault)), loss="sparse_categorical_crossentropy",
                  metrics=["accuracy"])

    class Keep(keras.callbacks.Callback):
        """Stands before the product's, and notes the run's name while it is open."""

        def on_epoch_end(self, epoch, logs=None):
            name[:] = [tocsin.get_hook().run]
    first = float(model.evaluate(held_x, held_y, verbose=0)[0])
    told = model.fit(x, y, batch_size=batch, epochs=epochs, validation_data=(held_x, held_y), verbose=0,
                     callbacks=[Keep(), keras.callbacks.EarlyStopping(patience=1000 if fault == "overfits" else 4, restore_best_weights=True),
                                keras.callbacks.ReduceLROnPlateau(factor=0.3, patience=2),
                                TocsinCallback(capture=CAPTURE, **options)]).history["val_loss"]
    of_epoch = -(-len(x) // batch)
    return name[0], len(told) * of_epoch, [[0, first], *([(at + 1) * of_epoch - 1, float(one)] for at, one in enumerate(told))]


MADE = {"hf_classes": _hf_classes, "hf_text": _hf_text, "light_plateau": _light_plateau, "light_gan": _light_gan,
        "keras_functional": _keras_functional}


def run(fault, seed, out, job, name):
    """Trains and records; returns (uid, steps, step of the best evaluation, the evaluations: less is better)."""
    torch.manual_seed(seed)
    numpy.random.seed(seed)
    uid, steps, passes = MADE[job](fault, seed, random.Random(f"{job}/{seed}"), {"out": out, "run": name, "job": job})
    return uid, steps, min(((value, step) for step, value in passes if value == value), default=(0.0, 0))[1], passes
