"""Keras (backend: KERAS_BACKEND, PyTorch where nothing is said).

keras_sequence    a functional model with an embedding, a convolution and the largest over places tells the kind of a sentence; padding, AdamW, fit()
keras_two_outputs a functional model with two heads, a class and a number, losses by name and their weights; a cosine schedule; validation_data

Their faults: below, at the end."""
import importlib.util
import os

import numpy
import torch

import tocsin

from ..scripts.shapes import entered, from_start, labelled, rate, shapes


def _kept():
    """A callback that stands before the product's, and notes the run's name while it is open."""
    import keras

    class Keep(keras.callbacks.Callback):
        """Keeps it in `name`."""
        name = None

        def on_epoch_end(self, epoch, logs=None):
            self.name = tocsin.get_hook().run
    return Keep()


def _steps(count, batch):
    return -(-count // batch)


def _sentences(seed, count=2400, longest=16):
    """Sentences with 0 behind their end; the kind is told by two signs that stand together in one of four orders, and other signs stand alone."""
    drawn = numpy.random.default_rng(seed)
    x, y = numpy.zeros((count, longest), int), drawn.integers(0, 4, count)
    for at, length in enumerate(drawn.integers(8, longest + 1, count)):
        x[at, :length] = drawn.integers(5, 40, length)
        x[at, drawn.choice(length, 2, replace=False)] = drawn.integers(1, 5, 2)
        place = drawn.integers(0, length - 1)
        x[at, place:place + 2] = ((1, 2), (2, 1), (3, 4), (4, 3))[y[at]]
    return x, y


def _keras_sequence(fault, seed, chance, options):
    os.environ.setdefault("KERAS_BACKEND", "torch")
    import keras
    from keras import layers

    from tocsin.keras import TocsinCallback
    keras.utils.set_random_seed(seed)
    x, y = _sentences(seed)
    held_x, held_y, x, y = x[-400:], y[-400:], x[:-400], labelled(torch.tensor(y[:-400]), fault, 4).numpy()
    if fault == "held_recoded":
        held_x = numpy.concatenate([[0], 1 + numpy.random.default_rng(seed).permutation(39)])[held_x]
    elif fault == "inputs_constant":
        x = numpy.repeat(x[:1], len(x), 0)
    elif fault == "few_rows":
        x, y = x[:32].repeat(62, 0), y[:32].repeat(62)
    width, batch, epochs = chance.choice((24, 32)), chance.choice((32, 40)), 6
    words = keras.Input((16,), dtype="int32")
    hidden = layers.Embedding(40, width)(words)
    hidden = layers.Conv1D(width, 3, padding="same", activation="relu")(hidden)
    hidden = layers.GlobalMaxPooling1D()(hidden)
    hidden = layers.Dense(width, activation="relu")(hidden)
    hidden = layers.Dropout(0.95 if fault == "dropout_high" else 0.1)(hidden)
    model = keras.Model(words, layers.Dense(4, activation=None if fault == "logits_missing" else "softmax")(hidden))
    model.compile(optimizer=keras.optimizers.AdamW(rate(chance.uniform(4e-3, 6e-3), fault)), loss="sparse_categorical_crossentropy", metrics=["accuracy"])
    first, kept = 1 - float(model.evaluate(held_x, held_y, verbose=0)[1]), _kept()
    told = model.fit(x, y, batch_size=batch, epochs=epochs, validation_data=(held_x, held_y), verbose=0, shuffle=True,
                     callbacks=[kept, TocsinCallback(**options)]).history["val_accuracy"]
    of_epoch = _steps(len(x), batch)
    return kept.name, epochs * of_epoch, [[0, first], *([(at + 1) * of_epoch - 1, 1 - float(one)] for at, one in enumerate(told))]


def _keras_two_outputs(fault, seed, chance, options):
    os.environ.setdefault("KERAS_BACKEND", "torch")
    import keras
    from keras import layers

    from tocsin.keras import TocsinCallback
    keras.utils.set_random_seed(seed)
    images, kinds, _, boxes = shapes(seed, 2000)
    images, y, row = images.permute(0, 2, 3, 1).numpy() / 127.5 - 1, kinds.numpy(), (boxes[:, 0].numpy() - 7.5) / 1.73
    x, held_x, held = images[:-300], images[-300:], {"kind": y[-300:], "row": row[-300:]}
    y, row = y[:-300], row[:-300]
    if fault == "labels_misaligned":
        y, row = numpy.roll(y, 1), numpy.roll(row, 1)
    elif fault == "class_random":
        y = labelled(torch.tensor(y), fault, 6).numpy()
    elif fault == "held_unscaled":
        held_x = 127.5 * (held_x + 1)
    elif fault == "held_other_classes":
        held["kind"] = 5 - held["kind"]
    elif fault == "evaluated_on_training":
        held_x, held = x[:300], {"kind": y[:300], "row": row[:300]}
    width, batch, epochs = chance.choice((8, 12)), chance.choice((32, 40)), 8
    picture = keras.Input((16, 16, 1))
    hidden = picture
    for at in range(2):
        hidden = layers.Conv2D((at + 1) * width, 3, strides=2, padding="same", activation="relu")(hidden)
    hidden = layers.Dense(48, activation="relu")(layers.Flatten()(hidden))
    outputs = {"kind": layers.Dense(6, activation="softmax" if fault == "softmax_twice" else None, name="kind")(hidden),
               "row": layers.Dense(1, activation="relu" if fault == "output_clipped" else None, name="row")(hidden)}
    model = keras.Model(picture, outputs)
    if fault == "backbone_frozen":
        for layer in model.layers:
            layer.trainable = layer.name in ("kind", "row")
    of_epoch = _steps(len(x), batch)
    schedule = keras.optimizers.schedules.CosineDecay(rate(chance.uniform(3e-3, 4e-3), fault), epochs * of_epoch)
    model.compile(optimizer=keras.optimizers.Adam(schedule), loss_weights={"kind": 1.0, "row": 0.5}, metrics={"kind": ["accuracy"], "row": ["mae"]},
                  loss={"kind": keras.losses.SparseCategoricalCrossentropy(from_logits=True), "row": "mse"})
    begun, kept = model.evaluate(held_x, held, verbose=0, return_dict=True), _kept()
    told = model.fit(x, {"kind": y, "row": row}, batch_size=batch, epochs=epochs, validation_data=(held_x, held), verbose=0,
                     callbacks=[kept, TocsinCallback(**options)]).history

    def wrong(accuracy, far):
        return (1 - float(accuracy) + min(float(far), 2.0)) / 2
    passes = [[(at + 1) * of_epoch - 1, wrong(*both)] for at, both in enumerate(zip(told["val_kind_accuracy"], told["val_row_mae"]))]
    return kept.name, epochs * of_epoch, [[0, wrong(begun["kind_accuracy"], begun["row_mae"])], *passes]


_JOBS = {
    "keras_sequence": (_keras_sequence, from_start("labels_shuffled", "held_recoded", "inputs_constant", "few_rows", "dropout_high", "logits_missing",
                                                   "rate_hundredfold", "rate_thousandth")),
    "keras_two_outputs": (_keras_two_outputs, from_start("labels_misaligned", "held_unscaled", "held_other_classes", "softmax_twice", "backbone_frozen",
                                                         "class_random", "evaluated_on_training", "rate_hundredfold"))}
TUNING, FAULTS, fault_names, run = entered(_JOBS if importlib.util.find_spec("keras") else {})
