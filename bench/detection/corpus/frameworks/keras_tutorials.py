"""Keras, as its tutorials have it (backend: KERAS_BACKEND, PyTorch where nothing is said).

keras_convnet     a convolutional network in fit(), rescaled pixels, dropout, validation_data; accuracy
keras_houses      regression of a table in fit(), a Normalization layer, Huber's loss, validation_split, EarlyStopping

Their faults: below, at the end; what the names mean says support.WORDS."""
import importlib.util
import os

import numpy
import sklearn.datasets

import tocsin

from .. import data
from ..scripts.support import entered, from_start, labelled, rate


def _kept():
    """A callback that stands before the product's and notes the run's name while it is open."""
    import keras

    class Keep(keras.callbacks.Callback):
        """Keeps it in `name`."""
        name = None

        def on_epoch_end(self, epoch, logs=None):
            self.name = tocsin.get_hook().run
    return Keep()


def _keras_convnet(fault, seed, chance, options):
    os.environ.setdefault("KERAS_BACKEND", "torch")
    import keras
    from keras import layers

    from tocsin.keras import TocsinCallback
    keras.utils.set_random_seed(seed)
    split, width, batch = data.images(seed), chance.choice((8, 12)), chance.choice((32, 48))
    x, held_x = ((one.permute(0, 2, 3, 1).numpy() + 1) * 127.5 for one in (split.x, split.held_x))
    y, held_y = labelled(split.y, fault, 10).numpy(), split.held_y.numpy()
    held_x = held_x / 255 if fault == "held_unscaled" else held_x
    model = keras.Sequential([keras.Input((8, 8, 1)), *([] if fault == "pixels_raw" else [layers.Rescaling(1 / 127.5, offset=-1)]),
                              layers.Conv2D(width, 3, padding="same", activation="relu"), layers.Conv2D(2 * width, 3, activation="relu"),
                              layers.MaxPooling2D(), layers.Flatten(), layers.Dropout(0.95 if fault == "dropout_high" else 0.3),
                              layers.Dense(48, activation="relu"), layers.Dense(10, activation="softmax" if fault == "softmax_twice" else None)])
    if fault == "backbone_frozen":
        for layer in model.layers[:-1]:
            layer.trainable = False
    model.compile(optimizer=keras.optimizers.Adam(rate(chance.uniform(8e-4, 2e-3), fault)), metrics=["accuracy"],
                  loss=keras.losses.SparseCategoricalCrossentropy(from_logits=fault != "logits_missing"))
    first, kept = 1 - float(model.evaluate(held_x, held_y, verbose=0)[1]), _kept()
    told = model.fit(x, y, batch_size=batch, epochs=9, validation_data=(held_x, held_y), verbose=0, shuffle=True,
                     callbacks=[kept, TocsinCallback(**options)]).history["val_accuracy"]
    of_epoch = -(-len(x) // batch)
    return kept.name, len(told) * of_epoch, [[0, first], *([(at + 1) * of_epoch - 1, 1 - float(one)] for at, one in enumerate(told))]


def _keras_houses(fault, seed, chance, options):
    os.environ.setdefault("KERAS_BACKEND", "torch")
    import keras
    from keras import layers

    from tocsin.keras import TocsinCallback
    keras.utils.set_random_seed(seed)
    drawn, batch, width = numpy.random.default_rng(seed), chance.choice((32, 48, 64)), chance.choice((48, 64))
    x, price = sklearn.datasets.make_friedman1(2200, 9, noise=1.2, random_state=seed)
    x = (x * drawn.uniform(1, 40, 9) + drawn.uniform(-10, 10, 9)).astype("float32")
    y = ((price - price.mean()) / price.std()).astype("float32")
    if fault == "target_leaks":
        x = numpy.column_stack([x, 3 * y + 10 + 0.1 * drawn.standard_normal(len(y))]).astype("float32")
    elif fault == "labels_misaligned":
        y = numpy.roll(y, 1)
    elif fault == "rows_sorted":
        order = numpy.argsort(y)
        x, y = x[order], y[order]
    elif fault == "targets_raw":
        y = price.astype("float32") * 1000  # in dollars
    elif fault == "inputs_constant":
        x = numpy.ones_like(x)
    normal = layers.Normalization()
    normal.adapt(x)
    model = keras.Sequential([keras.Input((x.shape[1],)), *([] if fault == "numbers_unscaled" else [normal]), layers.Dense(width, activation="relu"),
                              layers.Dense(width, activation="relu"), layers.Dense(1, activation="relu" if fault == "output_clipped" else None)])
    model.compile(optimizer=keras.optimizers.Adam(rate(chance.uniform(1e-3, 3e-3), fault)), loss=keras.losses.Huber(), metrics=["mse"])
    unit = float(1000 * price.std()) ** 2 if fault == "targets_raw" else 1.0
    held, kept = len(x) // 5, _kept()
    first = float(model.evaluate(x[-held:], y[-held:], verbose=0)[1]) / unit
    told = model.fit(x, y, batch_size=batch, epochs=11, validation_split=0.2, verbose=0,
                     callbacks=[kept, keras.callbacks.EarlyStopping(patience=4), TocsinCallback(**options)]).history["val_mse"]
    of_epoch = -(-(len(x) - held) // batch)
    return kept.name, len(told) * of_epoch, [[0, first], *([(at + 1) * of_epoch - 1, float(one) / unit] for at, one in enumerate(told))]


TUNING, FAULTS, fault_names, run = entered({} if not importlib.util.find_spec("keras") else {
    "keras_convnet": (_keras_convnet, from_start("logits_missing", "softmax_twice", "backbone_frozen", "labels_shuffled", "held_unscaled",
                                                 "class_mislabelled", "dropout_high", "rate_hundredfold")),
    "keras_houses": (_keras_houses, from_start("target_leaks", "labels_misaligned", "rows_sorted", "targets_raw", "output_clipped",
                                               "numbers_unscaled", "inputs_constant", "rate_thousandth"))})
