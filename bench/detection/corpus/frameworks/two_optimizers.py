"""Trainings in frameworks: Lightning with two optimizers by hand, Hugging Face's Trainer for T5 and for pictures, Keras, scikit-learn."""
import importlib.util
import logging
import os
import random
import tempfile
import warnings

import numpy
import torch
from torch import nn

import tocsin

from .. import data
from .trainers import _rate, _started
from ..recipes.training import CAPTURE

NEEDS = {"duel": "lightning", "copies": "transformers", "glances": "transformers", "reviews": "keras", "meters": "sklearn"}
TUNING = {name: False for name, package in NEEDS.items() if importlib.util.find_spec(package)}
# Name of the fault, share of the run before it.
SETS = {"rate_too_large": 0.0, "rate_zero": 0.0, "rate_tiny": 0.0, "start_large": 0.0, "start_zero": 0.0, "sign_wrong": 0.0, "overfits": 0.0}
OF = {"duel": {"rate_too_large": 0.0, "rate_zero": 0.0, "start_large": 0.0, "start_zero": 0.0, "rows_nan": 0.0, "input_constant": 0.0, "judge_stands": 0.0,
               "judge_strong": 0.0},
      "copies": {**SETS, "targets_of_others": 0.0, "input_constant": 0.0, "unshifted": 0.0},
      "glances": {**SETS, "targets_of_others": 0.0, "input_constant": 0.0, "one_class": 0.0, "held_raw": 0.0},
      "reviews": {**SETS, "targets_of_others": 0.0, "input_constant": 0.0, "one_class": 0.0, "held_permuted": 0.0},
      "meters": {"rate_too_large": 0.0, "rate_zero": 0.0, "targets_of_others": 0.0, "input_constant": 0.0, "input_unscaled": 0.0, "weights_lost": 0.4,
                 "input_lost": 0.4, "held_raw": 0.0}}
FAULTS = {name: share for one in OF.values() for name, share in one.items()}
SLOW = ("overfits",)


def fault_names(name):
    """The faults that a job has."""
    return list(OF[name])


def _duel(fault, seed, chance, options):
    """Lightning, optimization by hand: a generator that is told which digit, a judge that is asked the same; measured by what the digits' means look like."""
    logging.getLogger("lightning.pytorch").setLevel(logging.ERROR)
    import lightning

    from tocsin.lightning import TocsinCallback
    split, seen, passes, width = data.digits(seed), [], [], chance.choice((64, 96))
    x, y = split.x, split.y
    if fault == "input_constant":
        x = torch.zeros_like(x)
    elif fault == "rows_nan":
        x = x.clone()
        x[::40, 3] = float("nan")
    rate = chance.uniform(1e-3, 2e-3)
    means = torch.stack([split.held_x[split.held_y == one].mean(0) for one in range(10)])

    class Duel(lightning.LightningModule):
        """As users write it."""

        def __init__(self):
            super().__init__()
            self.automatic_optimization = False
            self.makes = _started(nn.Sequential(nn.Linear(26, width), nn.BatchNorm1d(width), nn.ReLU(), nn.Linear(width, width), nn.BatchNorm1d(width),
                                                nn.ReLU(), nn.Linear(width, 64), nn.Tanh()), fault)
            self.judge = nn.Sequential(nn.Linear(74, 2 * width), nn.LeakyReLU(0.2), nn.Dropout(0.3), nn.Linear(2 * width, width), nn.LeakyReLU(0.2),
                                       nn.Linear(width, 1))

        def training_step(self, batch, _):
            if not seen:
                seen.append(tocsin.get_hook().run)
            x, kind = batch[0], nn.functional.one_hot(batch[1], 10).float()
            first, second = self.optimizers()
            fake = self.makes(torch.cat([torch.randn(len(x), 16), kind], 1))
            self.toggle_optimizer(second)
            real, false = self.judge(torch.cat([x, kind], 1)), self.judge(torch.cat([fake.detach(), kind], 1))
            judged = (nn.functional.softplus(-real) + nn.functional.softplus(false)).mean() / 2
            second.zero_grad()
            self.manual_backward(judged)
            second.step()
            self.untoggle_optimizer(second)
            self.toggle_optimizer(first)
            fooled = nn.functional.softplus(-self.judge(torch.cat([fake, kind], 1))).mean()
            first.zero_grad()
            self.manual_backward(fooled)
            first.step()
            self.untoggle_optimizer(first)
            self.log_dict({"g_loss": fooled, "d_loss": judged})

        def far(self):
            """How unlike the means are."""
            self.eval()
            with torch.no_grad():
                kind = torch.eye(10).repeat_interleave(32, 0)
                off = float((self.makes(torch.cat([torch.randn(320, 16), kind], 1)).reshape(10, 32, 64).mean(1) - means).square().mean())
            self.train()
            return off

        def on_train_epoch_end(self):
            passes.append([self.trainer.global_step // 2 - 1, self.far()])

        def configure_optimizers(self):
            of_judge = {"judge_stands": 0.0, "judge_strong": 60.0}.get(fault, 1.0) * rate
            return [torch.optim.Adam(one.parameters(), value, betas=(0.5, 0.999)) for one, value in ((self.makes, _rate(rate, fault)), (self.judge, of_judge))]
    lightning.seed_everything(seed, verbose=False)
    net = Duel()
    passes.append([0, net.far()])
    loader = torch.utils.data.DataLoader(torch.utils.data.TensorDataset(x, y), 64, shuffle=True, drop_last=True)
    lightning.Trainer(max_epochs=14, accelerator="cpu", logger=False, enable_checkpointing=False, enable_progress_bar=False, enable_model_summary=False,
                      callbacks=[TocsinCallback(capture=CAPTURE, **options)]).fit(net, loader)
    return seen[0], 14 * len(loader), passes


def _fitted(kind, fault, parts, options, settings, passes):
    """Through Hugging Face's Trainer; gives the run's uid."""
    import transformers

    from tocsin.transformers import TocsinCallback
    seen = []

    class Keep(transformers.TrainerCallback):
        """Notes the run's name while the hook is open, and the evaluations."""

        def on_step_end(self, args, state, control, **_):
            if not seen:
                seen.append(tocsin.get_hook().run)

        def on_evaluate(self, args, state, control, metrics=None, **_):
            passes.append([state.global_step - 1, metrics["eval_loss"]])

    class Turned(transformers.Trainer):
        """With the fault's sign."""

        def compute_loss(self, model, inputs, return_outputs=False, **more):
            told = super().compute_loss(model, inputs, return_outputs=return_outputs, **more)
            return -told if fault == "sign_wrong" and model.training else told
    with tempfile.TemporaryDirectory() as folder:
        arguments = transformers.TrainingArguments(folder, save_strategy="no", report_to=[], log_level="error", use_cpu=True, disable_tqdm=True,
                                                   eval_strategy="steps", **settings)
        Turned(kind, arguments, train_dataset=parts[0], eval_dataset=parts[1], callbacks=[TocsinCallback(capture=CAPTURE, **options), Keep()]).train()
    return seen[0]


def _copies(fault, seed, chance, options):
    """Hugging Face's T5 from scratch: letters of one alphabet into another one, in reverse order; Adafactor, a constant rate behind a warm-up."""
    import transformers
    transformers.utils.logging.set_verbosity_error()
    drawn, kinds = torch.Generator().manual_seed(seed), 12
    x = torch.randint(2, kinds, (1800, 6), generator=drawn)
    y = torch.cat([(2 + torch.randperm(kinds - 2, generator=drawn))[x.flip(1) - 2], torch.ones(1800, 1, dtype=torch.long)], 1)
    x, y, held_x, held_y = x[:1600], y[:1600], x[1600:], y[1600:]
    if fault == "input_constant":
        x = torch.full_like(x, 2)
    elif fault == "targets_of_others":
        y = y[torch.randperm(len(y))]
    elif fault == "unshifted":  # the answer begins one place too late
        y = torch.cat([y[:, 1:], y[:, :1]], 1)
    elif fault == "overfits":
        x, y = x[:32], y[:32]
    config = transformers.T5Config(vocab_size=kinds, d_model=32, d_kv=8, d_ff=64, num_layers=1, num_decoder_layers=1, num_heads=4, dropout_rate=0.0,
                                   decoder_start_token_id=0, feed_forward_proj="gated-gelu", pad_token_id=0, eos_token_id=1)
    model, passes, steps = _started(transformers.T5ForConditionalGeneration(config), fault), [], 240
    parts = [[{"input_ids": one, "labels": label} for one, label in zip(*pair)] for pair in ((x, y), (held_x, held_y))]
    with torch.no_grad():
        passes.append([0, float(model.eval()(input_ids=held_x, labels=held_y).loss)])
    return _fitted(model, fault, parts, options,
                   {"max_steps": steps, "per_device_train_batch_size": 16 if fault == "overfits" else 32, "per_device_eval_batch_size": 100,
                    "learning_rate": _rate(chance.uniform(4e-3, 1e-2), fault), "optim": "adafactor", "warmup_steps": 20,
                    "eval_steps": 24,
                    "lr_scheduler_type": "constant_with_warmup", "logging_steps": 4, "seed": seed}, passes), steps, passes


def _glances(fault, seed, chance, options):
    """Hugging Face's vision transformer: smoothed labels, a polynomial fall of the rate, two batches per update, logged at each."""
    import transformers
    transformers.utils.logging.set_verbosity_error()
    split, passes, steps = data.images(seed), [], 160
    x, y, held_x, held_y = split.x, split.y, split.held_x, split.held_y
    if fault == "input_constant":
        x = torch.zeros_like(x)
    elif fault == "targets_of_others":
        y = y[torch.randperm(len(y))]
    elif fault == "one_class":
        y = torch.zeros_like(y)
    elif fault == "held_raw":
        held_x = held_x * 8 + 8
    elif fault == "overfits":
        x, y = x[:32], y[:32]
    config = transformers.ViTConfig(hidden_size=32, num_hidden_layers=2, num_attention_heads=4, intermediate_size=64, image_size=8, patch_size=2,
                                    num_channels=1, num_labels=10, hidden_dropout_prob=0.0, attention_probs_dropout_prob=0.0)
    model = _started(transformers.ViTForImageClassification(config), fault)
    parts = [[{"pixel_values": one, "labels": label} for one, label in zip(*pair)] for pair in ((x, y), (held_x, held_y))]
    with torch.no_grad():
        passes.append([0, float(model.eval()(pixel_values=held_x, labels=held_y).loss)])
    return _fitted(model, fault, parts, options,
                   {"max_steps": steps, "per_device_train_batch_size": 16, "gradient_accumulation_steps": 1 if fault == "overfits" else 2,
                    "per_device_eval_batch_size": 180, "learning_rate": max(_rate(chance.uniform(4e-3, 8e-3), fault), 1e-12),
                    "label_smoothing_factor": 0.05,
                    "lr_scheduler_type": "polynomial", "lr_scheduler_kwargs": {"lr_end": 0.0}, "warmup_steps": 10, "eval_steps": 16, "logging_steps": 1,
                    "weight_decay": 0.05,
                    "adam_beta2": 0.98, "seed": seed}, passes), steps, passes


def _reviews(fault, seed, chance, options):
    """Keras with words: an embedding that learns what is kind and what is not, convolutions, RMSprop with a cosine as its rate, weights for the classes."""
    os.environ.setdefault("KERAS_BACKEND", "torch")
    import keras

    from tocsin.keras import TocsinCallback
    keras.utils.set_random_seed(seed)
    drawn, words, size = numpy.random.default_rng(seed), 80, 2300
    tone, x = drawn.normal(0, 1, words) * (drawn.random(words) < 0.3), drawn.integers(4, words, (size, 20))
    score = tone[x].sum(1) - 2.0 * (tone[x][:, 1:] * (x[:, :-1] % 11 == 3)).sum(1)  # some words turn the next one round
    y = (score + drawn.normal(0, 0.3, size) > 0.8).astype("float32")
    x, y, held_x, held_y = x[:1800], y[:1800], x[1800:], y[1800:]
    if fault == "targets_of_others":
        y = drawn.permutation(y)
    elif fault == "input_constant":
        x = numpy.full_like(x, 4)
    elif fault == "one_class":
        y = numpy.zeros_like(y)
    elif fault == "held_permuted":
        held_y = 1 - held_y
    elif fault == "overfits":
        x, y = x[:32], y[:32]
    model = keras.Sequential([keras.layers.Input((20,), dtype="int32"), keras.layers.Embedding(words, 16),
                              keras.layers.Conv1D(chance.choice((16, 24)), 2, activation="relu"),
                              keras.layers.GlobalAveragePooling1D(), keras.layers.Dropout(0.1), keras.layers.Dense(16, activation="relu"),
                              keras.layers.Dense(1, activation="sigmoid")])
    large = {"start_zero": 0.0, "start_large": 30.0}.get(fault)
    if large is not None:
        model.set_weights([one * large if one.ndim > 1 else one for one in model.get_weights()])
    batch = min(32, len(x) // 2)
    epochs, of_epoch, name = (120 if fault == "overfits" else 8), -(-len(x) // batch), []
    sign, plain = -1.0 if fault == "sign_wrong" else 1.0, keras.losses.BinaryCrossentropy()
    falls = keras.optimizers.schedules.CosineDecay(_rate(chance.uniform(3e-3, 8e-3), fault), (epochs + 1) * of_epoch)
    model.compile(optimizer=keras.optimizers.RMSprop(falls), loss=(lambda true, said: sign * plain(true, said)) if sign < 0 else plain,
                  metrics=["accuracy", keras.metrics.AUC(name="auc")])

    class Keep(keras.callbacks.Callback):
        """Stands before the product's, and notes the run's name while it is open."""

        def on_epoch_end(self, epoch, logs=None):
            name[:] = [tocsin.get_hook().run]
    held_y, y = held_y[:, None], y[:, None]
    first, share = float(plain(held_y, model.predict(held_x, verbose=0))), float(y.mean())
    told = model.fit(x, y, batch_size=batch, epochs=epochs, validation_data=(held_x, held_y), verbose=0,
                     class_weight={0: 0.5 / max(1 - share, 0.1), 1: 0.5 / max(share, 0.1)},
                     callbacks=[Keep(), TocsinCallback(capture=CAPTURE, **options)]).history["val_loss"]
    return name[0], epochs * of_epoch, [[0, first], *([(at + 1) * of_epoch - 1, sign * float(one)] for at, one in enumerate(told))]


def _meters(fault, seed, chance, options):
    """scikit-learn's network for numbers, a batch at a time: what a meter will say, with an evaluation now and then that the script logs itself."""
    warnings.simplefilter("ignore")
    import sklearn.datasets
    import sklearn.neural_network

    import tocsin.sklearn
    x, y = sklearn.datasets.make_friedman1(2000, 8, noise=0.5, random_state=seed)
    x, y, source = (x - x.mean(0)) / x.std(0), (y - y.mean()) / y.std(), numpy.random.default_rng(seed)
    held_x, held_y, x, y = x[1600:], y[1600:], x[:1600], y[:1600]
    if fault == "targets_of_others":
        y = source.permutation(y)
    elif fault == "input_constant":
        x = numpy.zeros_like(x)
    elif fault == "input_unscaled":
        x = x * 128 + 128
    elif fault == "held_raw":
        held_x = held_x * 8 + 8
    factor = {"rate_too_large": 300, "rate_zero": 1e-9}.get(fault, 1)
    model = sklearn.neural_network.MLPRegressor(hidden_layer_sizes=(chance.choice((32, 48)), 16), activation=chance.choice(("tanh", "relu")),
                                                learning_rate_init=factor * chance.uniform(1e-3, 4e-3), alpha=1e-3, random_state=seed)
    training = tocsin.sklearn.watch(model, capture=CAPTURE, **options)
    hook, steps, passes = tocsin.get_hook(), 260, []
    uid, late = hook.run, int(0.4 * steps)
    for at in range(steps):
        part = source.integers(0, len(x), 48)
        here = numpy.zeros_like(x[part]) if fault == "input_lost" and at >= late else x[part]
        if fault == "weights_lost" and at == late:
            for one in model.coefs_:
                one[...] = source.standard_normal(one.shape) * 0.5
        model.partial_fit(here, y[part])
        training.step(loss=float(((model.predict(here) - y[part]) ** 2).mean()))
        if not passes or at % 20 == 19:
            passes.append([at, float(((model.predict(held_x) - held_y) ** 2).mean())])
            with hook.mode("eval"):
                hook.log(loss=passes[-1][1])
                hook.step()
    training.close()
    return uid, steps, passes


MADE = {"duel": _duel, "copies": _copies, "glances": _glances, "reviews": _reviews, "meters": _meters}


def run(fault, seed, out, job, name):
    """Trains and records; returns (uid, steps, step of the best evaluation, the evaluations: less is better)."""
    torch.manual_seed(seed)
    numpy.random.seed(seed)
    uid, steps, passes = MADE[job](fault, seed, random.Random(f"{job}/{seed}"), {"out": out, "run": name, "job": job})
    return uid, steps, min(((value, step) for step, value in passes if value == value), default=(0.0, 0))[1], passes
