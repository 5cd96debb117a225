"""Lightning, JAX, Keras. (Hugging Face's Trainer: language. scikit-learn: tabular.)

light_waves       a LightningModule of one-dimensional convolutions, OneCycleLR per step, validation each epoch
jax_gru           a GRU by lax.scan adds the two marked numbers of a row; optax's Adam, warm-up, squared error and the ledger as its page has it
keras_two_inputs  a functional model of categories and numbers in fit(), binary cross-entropy, AUC

Their faults: below, at the end."""
import importlib.util
import logging
import os

import numpy
import torch
from torch import nn
from torch.nn import functional

import tocsin

from ..scripts.support import entered, errors, from_start, rate
from ..scripts.glyphs import labelled


def _waves(seed, count=2200, kinds=5):
    """Rows of 48 values: a beat, a chirp, a saw, a burst or a swing, with noise and an offset."""
    drawn, at = numpy.random.default_rng(seed), numpy.linspace(0, 1, 48)
    y, x = drawn.integers(0, kinds, count), numpy.zeros((count, 1, 48), "float32")
    for row, kind in enumerate(y):
        phase, turns = drawn.uniform(0, 6.3), drawn.uniform(3, 6)
        x[row, 0] = (numpy.sin(6.3 * turns * at + phase) * numpy.sin(3.1 * at), numpy.sin(6.3 * turns * at**2 + phase), 2 * ((turns * at + phase) % 1) - 1,
                     3 * numpy.exp(-((at - drawn.uniform(0.2, 0.8)) / 0.05) ** 2), numpy.sin(3.1 * at + phase))[kind]
    return torch.tensor(120 + 40 * (x + 0.5 * drawn.standard_normal(x.shape)), dtype=torch.float32), torch.tensor(y)


def _light_waves(fault, seed, chance, options):
    import lightning

    from tocsin.lightning import TocsinCallback
    logging.getLogger("lightning.pytorch").setLevel(logging.ERROR)
    x, y = _waves(seed)
    width, batch, value, epochs = chance.choice((12, 16)), chance.choice((48, 64)), chance.uniform(3e-3, 6e-3), 8
    x, held_x, y, held_y, seen, passes = (x[:-400] - 120) / 40, x[-400:], labelled(y[:-400], fault, 5), y[-400:], [], []
    held_x = held_x if fault == "held_unscaled" else (held_x - 120) / 40

    class Classifier(lightning.LightningModule):
        """As its users write it."""

        def __init__(self):
            super().__init__()
            self.features = nn.Sequential(nn.Conv1d(1, width, 5, padding=2), nn.BatchNorm1d(width), nn.ReLU(), nn.MaxPool1d(2),
                                          nn.Conv1d(width, 2 * width, 5, padding=2), nn.BatchNorm1d(2 * width), nn.ReLU(), nn.AdaptiveAvgPool1d(4),
                                          nn.Flatten())
            self.head = nn.Linear(8 * width, 5)
            self.wrong = []

        def forward(self, x):
            features = self.features(x)
            if fault == "head_dead":
                features = functional.relu(features - 50.0)
            output = self.head(features)
            return output.softmax(-1) if fault == "softmax_twice" else output

        def training_step(self, batch, _):
            seen[:] = seen or [tocsin.get_hook().run]
            x, y = batch
            loss = functional.cross_entropy(self(x), y)
            self.log("train_loss", loss)
            return loss

        def validation_step(self, batch, _):
            x, y = batch
            logits = self(x)
            self.log("val_loss", functional.cross_entropy(logits, y))
            self.log("val_acc", (logits.argmax(-1) == y).float().mean())
            self.wrong.append(errors(logits, y))

        def on_validation_epoch_end(self):
            passes.append([self.trainer.global_step - 1, sum(self.wrong) / len(self.wrong)])
            self.wrong = []

        def configure_optimizers(self):
            optimizer = torch.optim.AdamW(self.parameters(), lr=rate(value, fault) / 25, weight_decay=1e-2)
            scheduler = torch.optim.lr_scheduler.OneCycleLR(optimizer, max_lr=rate(value, fault), total_steps=epochs * (len(x) // batch))
            return {"optimizer": optimizer, "lr_scheduler": {"scheduler": scheduler, "interval": "epoch" if fault == "schedule_per_epoch" else "step"}}
    lightning.seed_everything(seed, verbose=False)
    module = Classifier()
    with torch.no_grad():
        passes.append([0, errors(module.eval()(held_x), held_y)])
    module.train()
    sets = [torch.utils.data.TensorDataset(*one) for one in ((x, y), (x[:400], y[:400]) if fault == "evaluated_on_training" else (held_x, held_y))]
    loaders = torch.utils.data.DataLoader(sets[0], batch, shuffle=True, drop_last=True), torch.utils.data.DataLoader(sets[1], 200)
    trainer = lightning.Trainer(max_epochs=epochs, accelerator="cpu", logger=False, enable_checkpointing=False, enable_progress_bar=False,
                                enable_model_summary=False, log_every_n_steps=10, num_sanity_val_steps=0, callbacks=[TocsinCallback(**options)])
    trainer.fit(module, *loaders)
    return seen[0] if seen else "", trainer.global_step, passes


def _marked(seed, count=3000, length=10):
    """Rows of numbers of which two are marked; their sum is asked for."""
    drawn = numpy.random.default_rng(seed)
    numbers, marks = drawn.uniform(-1, 1, (count, length)), numpy.zeros((count, length))
    for row in marks:
        row[drawn.choice(length, 2, replace=False)] = 1
    return numpy.stack([numbers, marks], 2).astype("float32"), (numbers * marks).sum(1).astype("float32")


def _jax_gru(fault, seed, chance, options):
    import jax
    import optax
    from jax import numpy as jnp

    import tocsin.jax
    rows, sums = _marked(seed)
    width, batch, steps = chance.choice((24, 32)), chance.choice((48, 64)), 600
    x, y, held_x, held_y = rows[:-400], labelled(torch.tensor(sums[:-400]), fault).numpy(), rows[-400:], sums[-400:]
    if fault == "inputs_constant":
        x, held_x = numpy.ones_like(x), numpy.ones_like(held_x)
    elif fault == "held_unscaled":
        held_x = held_x * numpy.array([50, 1], "float32") + numpy.array([100, 0], "float32")
    keys = jax.random.split(jax.random.PRNGKey(seed), 3)
    params = {"gru": {"input": jax.random.normal(keys[0], (2, 3 * width)) * 0.5, "hidden": jax.random.normal(keys[1], (width, 3 * width)) / width**0.5,
                      "bias": jnp.zeros(3 * width)}, "out": {"kernel": jax.random.normal(keys[2], (width, 1)) / width**0.5, "bias": jnp.zeros(1)}}
    value = rate(chance.uniform(4e-3, 8e-3), fault)
    warm = 20 * steps if fault == "warmup_endless" else 30
    schedule = optax.join_schedules([optax.linear_schedule(0.0, value, warm), optax.linear_schedule(value, 0.0, steps - 30)], [warm])
    optimizer = tocsin.jax.recorded(optax.chain(optax.clip_by_global_norm(1.0), optax.adam(schedule)), every=10)

    def apply(params, x):
        gru = params["gru"]

        def cell(hidden, now):
            told, kept = now @ gru["input"] + gru["bias"], hidden @ gru["hidden"]
            if fault == "backbone_frozen":
                told, kept = jax.lax.stop_gradient(told), jax.lax.stop_gradient(kept)
            reset, update = jax.nn.sigmoid(told[:, :width] + kept[:, :width]), jax.nn.sigmoid(told[:, width:2 * width] + kept[:, width:2 * width])
            new = jnp.tanh(told[:, 2 * width:] + reset * kept[:, 2 * width:])
            return (1 - update) * new + update * hidden, None
        hidden, _ = jax.lax.scan(cell, jnp.zeros((len(x), width)), x.swapaxes(0, 1))
        return hidden @ params["out"]["kernel"] + params["out"]["bias"]

    def loss_fn(params, x, y, when):
        output = apply(params, x)
        if fault != "broadcast":
            output = output[:, 0]
        told = tocsin.jax.ledger(output, y, "squared", when=when)
        return ((output - y) ** 2).mean(), told

    @jax.jit
    def train_step(params, opt_state, x, y, when):
        (loss, told), grads = jax.value_and_grad(loss_fn, has_aux=True)(params, x, y, when)
        if fault == "sign_wrong":
            grads = jax.tree.map(lambda one: -one, grads)
        updates, opt_state = optimizer.update(grads, opt_state, params)
        return optax.apply_updates(params, updates), opt_state, loss, told

    @jax.jit
    def eval_step(params, x, y):
        loss, told = loss_fn(params, x, y, True)
        return loss, told, ((apply(params, x)[:, 0] - y) ** 2).mean()
    opt_state, drawn = optimizer.init(params), numpy.random.default_rng(seed)
    passes = [[0, float(eval_step(params, held_x, held_y)[2])]]
    training = tocsin.jax.watch(**options)
    uid = tocsin.get_hook().run
    for step in range(steps):
        chosen = drawn.integers(0, len(x), batch)
        stepped, opt_state, loss, told = train_step(params, opt_state, x[chosen], y[chosen], training.wants_ledger())
        if fault != "updates_dropped":
            params = stepped
        training.step(loss=loss, state=opt_state, ledger=told)
        if step % 60 == 59:
            val_loss, told, truth = eval_step(params, held_x, held_y)
            passes.append([step, float(truth)])
            training.evaluated(loss=val_loss, ledger=told)
    training.close()
    return uid, steps, passes


def _visits(seed, count=3200):
    """Two categories, five numbers in their units, and who bought."""
    drawn = numpy.random.default_rng(seed)
    codes = numpy.stack([drawn.integers(0, 20, count), drawn.integers(0, 6, count)], 1)
    numbers = numpy.stack([drawn.gamma(2, 60, count), drawn.poisson(4, count), drawn.lognormal(3, 0.7, count), drawn.uniform(0, 24, count),
                           drawn.normal(0, 1, count)], 1)
    pull = drawn.normal(0, 1.5, 20)[codes[:, 0]] + drawn.normal(0, 0.8, 6)[codes[:, 1]]
    score = pull + 0.9 * numpy.log(numbers[:, 0] / 100) + 0.4 * (numbers[:, 1] - 4) + 1.2 * numpy.cos(numbers[:, 3] / 24 * 6.28) - 0.5
    return codes, numbers, (score + drawn.logistic(0, 0.5, count) > 0).astype("float32")


def _keras_two_inputs(fault, seed, chance, options):
    os.environ.setdefault("KERAS_BACKEND", "torch")
    import keras
    from keras import layers

    from tocsin.keras import TocsinCallback
    keras.utils.set_random_seed(seed)
    codes, numbers, y = _visits(seed)
    if fault == "target_leaks":
        numbers = numpy.column_stack([numbers, y + 0.05 * numpy.random.default_rng(seed).standard_normal(len(y))])
    scaled = numbers if fault == "numbers_unscaled" else (numbers - numbers[:-700].mean(0)) / numbers[:-700].std(0)
    train, held, y, held_y = [codes[:-700], scaled[:-700]], [codes[-700:].copy(), scaled[-700:]], y[:-700], y[-700:]
    if fault == "labels_misaligned":
        y = numpy.roll(y, 1)
    elif fault == "pairs_moved":
        train[1] = numpy.roll(train[1], 1, 0)
    elif fault == "held_recoded":
        held[0] = numpy.stack([numpy.random.default_rng(seed + at).permutation(kinds)[held[0][:, at]] for at, kinds in enumerate((20, 6))], 1)
    elif fault == "held_in_training":
        train, y = [numpy.concatenate(one) for one in zip(train, held)], numpy.concatenate([y, held_y])
    kinds, values, width = keras.Input((2,), dtype="int32", name="kinds"), keras.Input((scaled.shape[1],), name="values"), chance.choice((32, 48))
    embedded = [layers.Flatten()(layers.Embedding(count, 6)(kinds[:, at:at + 1])) for at, count in enumerate((20, 6))]
    hidden = layers.Dense(width, activation="relu")(layers.Concatenate()([*embedded, values]))
    hidden = layers.Dense(width, activation="relu")(layers.Dropout(0.1)(hidden))
    model = keras.Model([kinds, values], layers.Dense(1, activation="sigmoid" if fault == "sigmoid_twice" else None)(hidden))
    model.compile(optimizer=keras.optimizers.Adam(rate(chance.uniform(2e-3, 4e-3), fault)), loss=keras.losses.BinaryCrossentropy(from_logits=True),
                  metrics=[keras.metrics.AUC(from_logits=fault != "sigmoid_twice", name="auc")])

    class Keep(keras.callbacks.Callback):
        """Stands before the product's callback and notes the run's name while it is open."""
        name = None

        def on_epoch_end(self, epoch, logs=None):
            self.name = tocsin.get_hook().run
    batch, kept = chance.choice((48, 64)), Keep()
    first = 1 - float(model.evaluate(held, held_y, verbose=0)[1])
    told = model.fit(train, y, batch_size=batch, epochs=8, validation_data=(held, held_y), verbose=0, callbacks=[kept, TocsinCallback(**options)]).history
    of_epoch = -(-2500 // batch)
    return kept.name, len(told["auc"]) * of_epoch, [[0, first], *([(at + 1) * of_epoch - 1, 1 - float(one)] for at, one in enumerate(told["val_auc"]))]


_JOBS = {
    "light_waves": (_light_waves, from_start("labels_misaligned", "held_unscaled", "softmax_twice", "schedule_per_epoch", "rate_thousandth",
                                             "evaluated_on_training", "head_dead", "class_random")),
    "jax_gru": (_jax_gru, from_start("updates_dropped", "labels_shuffled", "broadcast", "backbone_frozen", "inputs_constant", "sign_wrong",
                                     "rate_hundredfold", "held_unscaled", "warmup_endless")),
    "keras_two_inputs": (_keras_two_inputs, from_start("labels_misaligned", "pairs_moved", "target_leaks", "held_recoded", "held_in_training",
                                                       "sigmoid_twice", "numbers_unscaled", "rate_hundredfold"))}
_NEEDS = {"light_waves": "lightning", "jax_gru": "optax", "keras_two_inputs": "keras"}
TUNING, FAULTS, fault_names, run = entered({name: made for name, made in _JOBS.items() if importlib.util.find_spec(_NEEDS[name])})
