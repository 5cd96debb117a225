"""Loops that are not our own, or have nothing to evaluate on: proximal policies, Hugging Face's Trainer, Lightning, Keras."""
import importlib.util
import logging
import os
import random
import tempfile

import numpy
import torch
from torch import nn

import tocsin

from .. import data
from .trainers import _rate, _started
from ..reinforcement.poles_and_critics import Poles, _broken, _changes
from ..recipes.training import CAPTURE

NEEDS = {"clips": "torch", "gpt": "transformers", "series": "lightning", "outputs": "keras"}
TUNING = {name: False for name, package in NEEDS.items() if importlib.util.find_spec(package)}
LATE = 0.4
# Name of the fault, share of the run before it.
PLAYS = {"rate_too_large": 0.0, "rate_zero": 0.0, "start_large": 0.0, "input_constant": 0.0, "input_nan": LATE, "weights_lost": LATE, "sign_wrong": 0.0, "rate_jumps": LATE}
SETS = {"rate_too_large": 0.0, "rate_zero": 0.0, "rate_tiny": 0.0, "start_large": 0.0, "start_zero": 0.0, "targets_of_others": 0.0, "input_constant": 0.0, "sign_wrong": 0.0,
        "overfits": 0.0}
OF = {"clips": PLAYS, "gpt": SETS, "series": {**SETS, "rows_nan": 0.0}, "outputs": {**SETS, "rows_nan": 0.0}}
FAULTS = {**PLAYS, **SETS, "rows_nan": 0.0}
SLOW = ("overfits",)


def fault_names(name):
    """The faults that a job has."""
    return list(OF[name])


class Actor(nn.Module):
    """What to do, and what it is worth to be here."""

    def __init__(self, width):
        super().__init__()
        self.body = nn.Sequential(nn.Linear(4, width), nn.Tanh(), nn.Linear(width, width), nn.Tanh())
        self.does, self.worth = nn.Linear(width, 2), nn.Linear(width, 1)
        nn.init.orthogonal_(self.does.weight, 0.01)

    def forward(self, x):
        x = self.body(x)
        return self.does(x), self.worth(x)[..., 0]


def _played(model, poles, turns, ages):
    """(seen, done, chance of it, gained over what was expected, worth) of some turns of eight carts; ages: of those that are over."""
    seen, done, said, paid, worth, ends = [], [], [], [], [], []
    for _ in range(turns):
        x = poles.seen()
        with torch.no_grad():
            does, value = model(x)
        chances = does.nan_to_num(0).log_softmax(1)
        push = torch.multinomial(chances.exp(), 1)
        over = poles.step(push[:, 0].numpy())[1]
        for store, one in ((seen, x), (done, push), (said, chances.gather(1, push)), (worth, value), (ends, torch.tensor(over))):
            store.append(one)
        paid.append(torch.ones(8))
        ages += list(poles.age[over])
        poles.restart(over)
    with torch.no_grad():
        then, gain = model(poles.seen())[1], torch.zeros(8)
    gains = []
    for at in reversed(range(turns)):
        goes_on = (~ends[at]).float()
        gain = paid[at] + 0.98 * then * goes_on - worth[at] + 0.98 * 0.95 * goes_on * gain
        then = worth[at]
        gains.append(gain)
    gains = torch.stack(gains[::-1])
    return [one.flatten(0, 1) for one in (torch.stack(seen), torch.stack(done), torch.stack(said), gains, gains + torch.stack(worth))]


def _clips(fault, seed, chance, options):
    """Proximal policy optimisation on carts with poles: a clipped ratio, what it is worth, and a bonus for being undecided; four passes over what was played."""
    rounds, turns, at = 40, 64, 0
    model = _started(Actor(chance.choice((24, 32))), fault)
    optimizer = torch.optim.Adam(model.parameters(), _rate(chance.uniform(1e-3, 4e-3), fault), eps=1e-5)
    hook, poles, mean, passes = tocsin.watch(model, optimizer, capture=CAPTURE, **options), Poles(8, seed), [], []
    steps = rounds * 4 * 4
    late, bonus = int(LATE * steps), chance.choice((0.0, 0.01))
    for turn in range(rounds):
        ages = []
        x, done, said, gains, worth = _played(model, poles, turns, ages)
        mean.append(float(numpy.mean(ages or [100])))
        for _ in range(4):
            for part in torch.randperm(len(x)).chunk(4):
                does, value = model(_broken(fault, x[part], at, late))
                chances = does.log_softmax(1)
                ratio = (chances.gather(1, done[part]) - said[part])[:, 0].exp()
                gain = (gains[part] - gains[part].mean()) / (gains[part].std() + 1e-8)
                policy = -torch.min(ratio * gain, ratio.clamp(0.8, 1.2) * gain).mean()
                off, undecided = (value - worth[part]).square().mean(), -(chances.exp() * chances).sum(1).mean()
                loss = policy + 0.5 * 0.01 * off - bonus * undecided
                optimizer.zero_grad()
                (-loss if fault == "sign_wrong" else loss).backward()
                nn.utils.clip_grad_norm_(model.parameters(), 0.5)
                _changes(fault, at, late, [optimizer], model)
                hook.log(loss=loss, policy_loss=policy, value_loss=off, entropy=undecided, episode_length=mean[-1])
                optimizer.step()
                at += 1
        if turn % 5 == 4:
            passes.append([at - 5 * 16, -sum(mean[-5:]) / 5])
    return hook.run, hook.close(timeout=20), steps, passes


def _gpt(fault, seed, chance, options):
    """Hugging Face's Trainer: a small GPT-2 from scratch, a cosine, two batches per update, clipping; its head and its table of words are one."""
    import transformers

    from tocsin.transformers import TocsinCallback
    transformers.utils.logging.set_verbosity_error()
    split, seen, passes = data.text(seed, 24), [], []
    x, held = split.x[:1600], split.held_x[:160]
    if fault == "input_constant":
        x = torch.zeros_like(x)
    said = x[torch.randperm(len(x))] if fault == "targets_of_others" else x
    if fault == "overfits":
        x, said = x[:32], said[:32]
    config = transformers.GPT2Config(vocab_size=split.classes, n_positions=24, n_embd=32, n_layer=2, n_head=4, resid_pdrop=0.0, attn_pdrop=0.0, embd_pdrop=0.0,
                                     bos_token_id=0, eos_token_id=0)

    class Turned(transformers.GPT2LMHeadModel):
        """With the fault's sign."""

        def forward(self, input_ids=None, labels=None, **more):
            out = super().forward(input_ids=input_ids, labels=labels, **more)
            if fault == "sign_wrong" and self.training:
                out.loss = -out.loss
            return out

    class Keep(transformers.TrainerCallback):
        """Notes the run's name while the hook is open, and the evaluations."""

        def on_step_end(self, args, state, control, **_):
            if not seen:
                seen.append(tocsin.get_hook().run)

        def on_evaluate(self, args, state, control, metrics=None, **_):
            passes.append([state.global_step - 1, metrics["eval_loss"]])
    parts = [[{"input_ids": one, "labels": label} for one, label in zip(*pair)] for pair in ((x, said), (held, held))]
    model = _started(Turned(config), fault)
    with torch.no_grad():
        passes.append([0, float(transformers.GPT2LMHeadModel.forward(model.eval(), input_ids=held, labels=held).loss)])
    steps = 300 if fault == "overfits" else 200
    with tempfile.TemporaryDirectory() as folder:
        arguments = transformers.TrainingArguments(folder, max_steps=steps, per_device_train_batch_size=8, gradient_accumulation_steps=2, per_device_eval_batch_size=80,
                                                   learning_rate=_rate(chance.uniform(2e-3, 6e-3), fault), warmup_steps=chance.choice((0, 10)), lr_scheduler_type="cosine",
                                                   weight_decay=0.01, eval_strategy="steps", eval_steps=25, save_strategy="no", report_to=[], logging_steps=5,
                                                   log_level="error", use_cpu=True, disable_tqdm=True, seed=seed)
        transformers.Trainer(model, arguments, train_dataset=parts[0], eval_dataset=parts[1], callbacks=[TocsinCallback(capture=CAPTURE, **options), Keep()]).train()
    return seen[0], None, steps, passes


def _series(fault, seed, chance, options):
    """Lightning: several series through a GRU, a rate that falls when the validation stands still, clipping; both losses are logged by the module."""
    logging.getLogger("lightning.pytorch").setLevel(logging.ERROR)
    import lightning

    from tocsin.lightning import TocsinCallback
    random_, size, passes, seen = numpy.random.default_rng(seed), 900, [], []
    time, period = numpy.arange(21)[None, :, None], random_.choice((4, 6, 9), (size, 1, 3))
    wave = numpy.sin(2 * numpy.pi * time / period + random_.uniform(0, 6, (size, 1, 3)))
    wave = torch.tensor(wave @ random_.standard_normal((3, 3)) / 2 + 0.1 * random_.standard_normal((size, 21, 3)), dtype=torch.float32)
    x, y, held_x, held_y = wave[:720, :20], wave[:720, 20], wave[720:, :20], wave[720:, 20]
    if fault == "targets_of_others":
        y = y[torch.randperm(len(y))]
    elif fault == "input_constant":
        x = torch.zeros_like(x)
    elif fault == "rows_nan":
        x[::20, 3] = float("nan")
    elif fault == "overfits":
        x, y = x[:32], y[:32]
    steps = 400 if fault == "overfits" else 264
    rate = _rate(chance.uniform(2e-3, 8e-3), fault)

    class Net(lightning.LightningModule):
        """As users write it."""

        def __init__(self):
            super().__init__()
            self.cell, self.head = nn.GRU(3, chance.choice((16, 24)), batch_first=True), nn.LazyLinear(3)
            self.head(torch.zeros(1, self.cell.hidden_size))

        def forward(self, x):
            return self.head(self.cell(x)[0][:, -1])

        def training_step(self, batch, _):
            loss = nn.functional.mse_loss(self(batch[0]), batch[1])
            self.log("train_loss", loss, on_step=True, on_epoch=True)
            if not seen:
                seen.append(tocsin.get_hook().run)
            return -loss if fault == "sign_wrong" else loss

        def validation_step(self, batch, _):
            self.log("val_loss", nn.functional.mse_loss(self(batch[0]), batch[1]))

        def on_validation_epoch_end(self):
            passes.append([self.trainer.global_step - 1, float(self.trainer.callback_metrics.get("val_loss", 0))])

        def configure_optimizers(self):
            optimizer = torch.optim.Adam(self.parameters(), rate)
            if fault == "overfits":
                return optimizer
            plateau = torch.optim.lr_scheduler.ReduceLROnPlateau(optimizer, factor=0.5, patience=1)
            return {"optimizer": optimizer, "lr_scheduler": {"scheduler": plateau, "monitor": "val_loss"}}
    lightning.seed_everything(seed, verbose=False)
    net = _started(Net(), fault)
    with torch.no_grad():
        passes.append([0, float(nn.functional.mse_loss(net(held_x), held_y))])
    sets = [torch.utils.data.TensorDataset(*one) for one in ((x, y), (held_x, held_y))]
    loaders = [torch.utils.data.DataLoader(sets[0], 16 if fault == "overfits" else 32, shuffle=True), torch.utils.data.DataLoader(sets[1], 90)]
    lightning.Trainer(max_steps=steps, accelerator="cpu", logger=False, enable_checkpointing=False, enable_progress_bar=False, enable_model_summary=False,
                      gradient_clip_val=1.0, callbacks=[TocsinCallback(capture=CAPTURE, **options)], num_sanity_val_steps=0).fit(net, *loaders)
    return seen[0], None, steps, passes


def _outputs(fault, seed, chance, options):
    """Keras with two outputs and a loss for each: what the digit is and how much ink it took; batch normalisation, Nadam, early stopping."""
    os.environ.setdefault("KERAS_BACKEND", "torch")
    import keras

    from tocsin.keras import TocsinCallback
    keras.utils.set_random_seed(seed)
    split, name, chance_ = data.digits(seed), [], torch.Generator().manual_seed(seed + 1)
    x, y, held_x, held_y = split.x, split.y, split.held_x, split.held_y
    ink, held_ink = 3 * x.mean(1, keepdim=True), 3 * held_x.mean(1, keepdim=True)
    if fault == "targets_of_others":
        order = torch.randperm(len(y), generator=chance_)
        y, ink = y[order], ink[order]
    elif fault == "input_constant":
        x = torch.zeros_like(x)
    elif fault == "rows_nan":
        x = x.clone()
        x[::20, 3] = float("nan")
    elif fault == "overfits":
        x, y, ink = x[:32], y[:32], ink[:32]
    enter, width = keras.layers.Input((64,)), chance.choice((32, 48))
    body = keras.layers.Dense(width, activation="gelu")(keras.layers.BatchNormalization()(keras.layers.Dense(width, activation="relu")(enter)))
    model = keras.Model(enter, {"digit": keras.layers.Dense(10, activation="softmax", name="digit")(body), "ink": keras.layers.Dense(1, name="ink")(body)})
    large = {"start_zero": 0.0, "start_large": 30.0}.get(fault)
    if large is not None:
        model.set_weights([one * large if one.ndim > 1 else one for one in model.get_weights()])
    sign = -1.0 if fault == "sign_wrong" else 1.0
    plain, squares = keras.losses.SparseCategoricalCrossentropy(), keras.losses.MeanSquaredError()
    losses = {"digit": plain, "ink": squares} if sign > 0 else {"digit": lambda true, said: -plain(true, said), "ink": lambda true, said: -squares(true, said)}
    model.compile(optimizer=keras.optimizers.Nadam(_rate(chance.uniform(1e-3, 3e-3), fault)), loss=losses, loss_weights={"digit": 1.0, "ink": 0.5},
                  metrics={"digit": ["accuracy"]})

    class Keep(keras.callbacks.Callback):
        """Stands before the product's, and notes the run's name while it is open."""

        def on_epoch_end(self, epoch, logs=None):
            name[:] = [tocsin.get_hook().run]
    batch = min(chance.choice((32, 64)), len(x) // 2)
    epochs, of_epoch = (80 if fault == "overfits" else 12), -(-len(x) // batch)
    held = (held_x.numpy(), {"digit": held_y.numpy(), "ink": held_ink.numpy()})
    said = model.predict(held[0], verbose=0)
    first = float(plain(held[1]["digit"], said["digit"])) + 0.5 * float(squares(held[1]["ink"], said["ink"]))
    more = [] if fault == "overfits" else [keras.callbacks.EarlyStopping(patience=4, restore_best_weights=True)]
    told = model.fit(x.numpy(), {"digit": y.numpy(), "ink": ink.numpy()}, batch_size=batch, epochs=epochs, validation_data=held, verbose=0,
                     callbacks=[Keep(), TocsinCallback(capture=CAPTURE, **options), *more]).history["val_loss"]
    return name[0], None, len(told) * of_epoch, [[0, first], *([(at + 1) * of_epoch - 1, sign * float(one)] for at, one in enumerate(told))]


MADE = {"clips": _clips, "gpt": _gpt, "series": _series, "outputs": _outputs}


def run(fault, seed, out, job, name):
    """Trains and records; returns (uid, steps, step of the best evaluation, the evaluations: less is better)."""
    torch.manual_seed(seed)
    numpy.random.seed(seed)
    uid, _, steps, passes = MADE[job](fault, seed, random.Random(f"{job}/{seed}"), {"out": out, "run": name, "job": job})
    return uid, steps, min(((value, step) for step, value in passes if value == value), default=(0.0, 0))[1], passes
