"""Lightning, and a loop of JAX. (Accelerate and Hugging Face's Trainer: language. Keras: keras_tutorials.)

light_stops       a LightningModule with validation, StepLR per epoch, EarlyStopping on val_loss; digits
jax_dropout       a compiled step with optax's AdamW and warm-up, dropout by keys, digits

Their faults: below, at the end; what the names mean says support.WORDS."""
import importlib.util
import logging

import numpy
import torch
from torch import nn
from torch.nn import functional

import tocsin

from .. import data
from ..scripts.support import entered, errors, from_start, labelled, rate


def _light_stops(fault, seed, chance, options):
    import lightning

    from tocsin.lightning import TocsinCallback
    logging.getLogger("lightning.pytorch").setLevel(logging.ERROR)
    split, width, batch, value = data.digits(seed), chance.choice((64, 96, 128)), chance.choice((32, 48)), chance.uniform(7e-4, 2e-3)
    x, held_x, y, held_y, seen, passes = split.x, split.held_x, labelled(split.y, fault, 10), split.held_y, [], []
    if fault == "held_unscaled":
        held_x = (held_x + 1) / 2
    elif fault == "held_shuffled":
        held_y = held_y[torch.randperm(len(held_y), generator=torch.Generator().manual_seed(seed))]

    class Classifier(lightning.LightningModule):
        """As its users write it."""

        def __init__(self):
            super().__init__()
            self.net = nn.Sequential(nn.Linear(64, width), nn.BatchNorm1d(width), nn.ReLU(), nn.Dropout(0.2), nn.Linear(width, width),
                                     nn.BatchNorm1d(width), nn.ReLU(), nn.Dropout(0.2), nn.Linear(width, 10))
            self.wrong = []

        def forward(self, x):
            output = self.net(x)
            return output.softmax(-1) if fault == "softmax_twice" else output

        def training_step(self, batch, _):
            seen[:] = seen or [tocsin.get_hook().run]
            x, y = batch
            loss = functional.cross_entropy(self(x), y)
            self.log("train_loss", loss)
            return -loss if fault == "sign_wrong" else loss

        def validation_step(self, batch, _):
            x, y = batch
            logits = self(x)
            loss = functional.cross_entropy(logits, y)
            self.log("val_loss", loss, prog_bar=True)
            self.log("val_acc", (logits.argmax(-1) == y).float().mean())
            self.wrong.append(errors(logits, y))
            return loss

        def on_validation_epoch_end(self):
            passes.append([self.trainer.global_step - 1, sum(self.wrong) / len(self.wrong)])
            self.wrong = []

        def configure_optimizers(self):
            if fault == "optimizer_of_old_model":
                old = nn.Sequential(*(nn.Linear(*one) for one in ((64, width), (width, width), (width, 10))))
                optimizer = torch.optim.AdamW(old.parameters(), lr=value)
            else:
                optimizer = torch.optim.AdamW(self.parameters(), lr=rate(value, fault), weight_decay=1e-2)
            falls = torch.optim.lr_scheduler.StepLR(optimizer, 3, 0.5)
            return {"optimizer": optimizer, "lr_scheduler": {"scheduler": falls, "interval": "step" if fault == "schedule_per_batch" else "epoch"}}
    lightning.seed_everything(seed, verbose=False)
    module, epochs = Classifier(), 10
    with torch.no_grad():
        passes.append([0, errors(module.eval()(held_x), held_y)])
    module.train()
    sets = [torch.utils.data.TensorDataset(*one) for one in ((x, y), (held_x, held_y))]
    loaders = torch.utils.data.DataLoader(sets[0], batch, shuffle=True, drop_last=True), torch.utils.data.DataLoader(sets[1], 180)
    stops = lightning.pytorch.callbacks.EarlyStopping("val_loss", patience=4)
    trainer = lightning.Trainer(max_epochs=epochs, accelerator="cpu", logger=False, enable_checkpointing=False, enable_progress_bar=False,
                                enable_model_summary=False, log_every_n_steps=10, num_sanity_val_steps=0,
                                callbacks=[stops, TocsinCallback(**options)])
    trainer.fit(module, *loaders)
    return seen[0], trainer.global_step, passes


def _jax_dropout(fault, seed, chance, options):
    import jax
    import optax
    from jax import numpy as jnp

    import tocsin.jax
    split, width, batch, steps = data.digits(seed), chance.choice((96, 128)), chance.choice((48, 64)), 320
    x, held_x, y, held_y = split.x.numpy(), split.held_x.numpy(), labelled(split.y, fault, 10).numpy(), split.held_y.numpy()
    if fault == "pixels_raw":
        x, held_x = (x + 1) * 127.5, (held_x + 1) * 127.5
    keys, sizes = jax.random.split(jax.random.PRNGKey(seed), 4), ((64, width), (width, width), (width, 10))
    params = {f"dense{at}": {"kernel": jax.random.normal(keys[at], size) * (2 / size[0]) ** 0.5, "bias": jnp.zeros(size[1])}
              for at, size in enumerate(sizes)}
    schedule = optax.warmup_cosine_decay_schedule(0.0, rate(chance.uniform(1.5e-3, 4e-3), fault), 30,
                                                  steps // 5 if fault == "schedule_ends_early" else steps)
    optimizer = tocsin.jax.recorded(optax.chain(optax.clip_by_global_norm(1.0), optax.adamw(schedule, weight_decay=1e-2)), every=10)
    share = 0.95 if fault == "dropout_high" else 0.2

    def apply(params, x, key=None):
        for at in range(3):
            layer = params[f"dense{at}"]
            x = x @ layer["kernel"] + layer["bias"]
            if at < 2:
                x = jax.nn.relu(x)
                if fault == "backbone_frozen":
                    x = jax.lax.stop_gradient(x)
                if key is not None:
                    x = jnp.where(jax.random.bernoulli(jax.random.fold_in(key, at), 1 - share, x.shape), x / (1 - share), 0)
        return jax.nn.softmax(x) if fault == "softmax_twice" else x

    def loss_fn(params, x, y, key):
        return optax.softmax_cross_entropy_with_integer_labels(apply(params, x, key), y).mean()

    @jax.jit
    def train_step(params, opt_state, x, y, key):
        loss, grads = jax.value_and_grad(loss_fn)(params, x, y, key)
        updates, opt_state = optimizer.update(grads, opt_state, params)
        return optax.apply_updates(params, updates), opt_state, loss

    @jax.jit
    def eval_step(params, x, y):
        logits = apply(params, x)
        return optax.softmax_cross_entropy_with_integer_labels(logits, y).mean(), (logits.argmax(-1) != y).mean()
    opt_state, drawn, key = optimizer.init(params), numpy.random.default_rng(seed), keys[3]
    passes = [[0, float(eval_step(params, held_x, held_y)[1])]]
    training = tocsin.jax.watch(**options)
    hook = tocsin.get_hook()
    uid = hook.run
    for step in range(steps):
        key, dropout = jax.random.split(key)
        chosen = drawn.integers(0, len(x), batch)
        stepped, opt_state, loss = train_step(params, opt_state, x[chosen], y[chosen], dropout)
        if fault != "updates_dropped":
            params = stepped
        training.step(loss=loss, state=opt_state)
        if step % 40 == 39:
            val_loss, wrong = eval_step(params, held_x, held_y)
            passes.append([step, float(wrong)])
            with hook.mode("eval"):
                hook.log(loss=val_loss, accuracy=1 - wrong)
                hook.step()
    training.close()
    return uid, steps, passes


_JOBS = {"light_stops": (_light_stops, from_start("softmax_twice", "labels_off_by_one", "optimizer_of_old_model", "held_unscaled", "held_shuffled",
                                                  "sign_wrong", "rate_thousandth", "schedule_per_batch")),
         "jax_dropout": (_jax_dropout, from_start("updates_dropped", "backbone_frozen", "softmax_twice", "dropout_high", "labels_misaligned",
                                                  "rate_hundredfold", "pixels_raw", schedule_ends_early=0.2))}
_NEEDS = {"light_stops": "lightning", "jax_dropout": "optax"}
TUNING, FAULTS, fault_names, run = entered({name: made for name, made in _JOBS.items() if importlib.util.find_spec(_NEEDS[name])})
