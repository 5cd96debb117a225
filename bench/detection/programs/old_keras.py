"""Programs written for Keras 1 and 2 on Keras 3: old module paths, arguments and methods. Nothing of a program's file is touched.

Behaviour that changed is put back where it decides what a program trains: `decay` of optimizers, the default rates of Adadelta and Adagrad.
`install()` acts on the keras module of this process."""
import functools
import sys
import types

from bench.detection.programs.old_python import Nothing

LAYER_WORDS = {"output_dim": "units", "init": "kernel_initializer", "border_mode": "padding", "subsample": "strides", "nb_filter": "filters",
               "W_regularizer": "kernel_regularizer", "b_regularizer": "bias_regularizer", "p": "rate"}
FIT_WORDS = {"nb_epoch": "epochs", "nb_val_samples": "validation_steps", "samples_per_epoch": "steps_per_epoch"}
OPTIMIZER_WORDS = {"lr": "learning_rate", "epsilon_": "epsilon"}
DROPPED = ("l2", "workers", "max_queue_size", "max_q_size", "use_multiprocessing", "pickle_safe")
OLD_RATES = {"Adadelta": 1.0, "Adagrad": 0.01}  # what Keras 2 took if nothing was said
LAYERS = ("Dense", "Conv2D", "Conv1D", "Dropout", "LSTM", "GRU", "Embedding", "MaxPooling2D", "SimpleRNN")
OPTIMIZERS = ("SGD", "RMSprop", "Adam", "Adagrad", "Adadelta", "Adamax", "Nadam")
# The callbacks that the benchmarks' own tools brought to Keras: they watch, and are left out.
PEERS_CALLBACKS = ("DeepLocalize", "backpropagation")


def renamed(arguments, words):
    """Arguments under today's names, without those that nobody takes any more."""
    return {words.get(name, name): value for name, value in arguments.items() if name not in DROPPED}


def _old_layer(cls):
    """What makes a layer from old arguments. (Layers keep their own __init__: Keras 3 reads its signature.)"""
    @functools.wraps(cls, updated=())
    def make(*args, **kwargs):
        if "Conv" in cls.__name__ and len(args) >= 3 and isinstance(args[1], int) and isinstance(args[2], int):
            args = (args[0], (args[1], args[2]), *args[3:])  # Conv2D(8, 5, 5) of Keras 1
        return cls(*args, **renamed(kwargs, LAYER_WORDS))
    return make


def _old_optimizer(cls, schedules):
    inner = cls.__init__

    @functools.wraps(inner)
    def init(self, *args, **kwargs):
        kwargs = renamed(kwargs, OPTIMIZER_WORDS)
        if not args and cls.__name__ in OLD_RATES:
            kwargs.setdefault("learning_rate", OLD_RATES[cls.__name__])
        decay = kwargs.pop("decay", 0.0)
        if decay and "learning_rate" in kwargs:  # rate / (1 + decay · updates)
            kwargs["learning_rate"] = schedules.InverseTimeDecay(kwargs["learning_rate"], decay_steps=1, decay_rate=decay)
        inner(self, *args, **kwargs)
    cls.__init__ = init


def _old_model(cls):
    cls.fit_of_today = cls.fit

    @functools.wraps(cls.fit)
    def old_fit(self, *args, **kwargs):
        kwargs = {**renamed(kwargs, FIT_WORDS), "verbose": 0}  # a progress bar takes longer than a small epoch
        if kwargs.get("shuffle") == "batch":
            kwargs["shuffle"] = True
        return self.fit_of_today(*args, **kwargs)
    cls.fit = cls.fit_generator = old_fit
    cls.predict_classes = lambda self, x, **_: self.predict(x).argmax(-1)
    cls.predict_proba = lambda self, x, **_: self.predict(x)


class KerasClassifier:
    """The wrapper for scikit-learn, as far as fit() goes."""

    def __init__(self, build_fn=None, **fit_arguments):
        self.build_fn, self.fit_arguments = build_fn, fit_arguments

    def get_params(self, deep=True):
        """For scikit-learn's clone()."""
        del deep
        return {"build_fn": self.build_fn, **self.fit_arguments}

    def __sklearn_tags__(self):
        from sklearn.base import BaseEstimator
        return BaseEstimator.__sklearn_tags__(self)

    def set_params(self, **given):
        self.build_fn = given.pop("build_fn", self.build_fn)
        self.fit_arguments.update(given)
        return self

    def fit(self, x, y):
        self.model = self.build_fn()
        self.model.fit(x, y, **self.fit_arguments)
        return self

    def score(self, x, y):
        return self.model.evaluate(x, y, verbose=0)[-1]


def _module(name, source, **more):
    """A module under an old path with the names of today's module."""
    module = types.ModuleType(name)
    module.__dict__.update({key: value for key, value in vars(source).items() if not key.startswith("__")} if source else {})
    module.__dict__.update(more)
    module.__path__ = []
    sys.modules[name] = module
    return module


def _old_paths(keras):
    import keras._tf_keras.keras.preprocessing.image as image
    import keras._tf_keras.keras.preprocessing.sequence as sequence
    import keras._tf_keras.keras.preprocessing.text as text
    for part in ("core", "convolutional", "advanced_activations", "normalization", "recurrent", "pooling", "embeddings", "wrappers"):
        setattr(keras.layers, part, _module(f"keras.layers.{part}", keras.layers))
    for part in ("np_utils", "vis_utils", "generic_utils"):
        setattr(keras.utils, part, _module(f"keras.utils.{part}", keras.utils))
    for name, source in (("image", image), ("sequence", sequence), ("text", text)):
        setattr(keras.preprocessing, name, _module(f"keras.preprocessing.{name}", source))
    wrappers = _module("keras.wrappers", None)
    wrappers.scikit_learn = _module("keras.wrappers.scikit_learn", None, KerasClassifier=KerasClassifier, KerasRegressor=KerasClassifier)
    keras.wrappers = wrappers


def _of_tensorflow(keras):
    """tf.contrib.keras, tensorflow.python.keras and the optimizers of TensorFlow 1 become Keras 3's."""
    import tensorflow
    import tensorflow.compat.v1.train as train
    contrib = _module("tensorflow.contrib", None, keras=keras)
    sys.modules["tensorflow.contrib.keras"] = sys.modules["tensorflow.python.keras"] = keras
    tensorflow.contrib = contrib
    for old, new in (("GradientDescentOptimizer", keras.optimizers.SGD), ("AdamOptimizer", keras.optimizers.Adam),
                     ("RMSPropOptimizer", keras.optimizers.RMSprop)):
        setattr(train, old, new)
        setattr(tensorflow.compat.v1.train, old, new)


def install():
    """Returns keras, which takes old programs from now on."""
    import keras
    if "keras.layers.core" in sys.modules:
        return keras
    import keras._tf_keras.keras.layers as of_tensorflow  # what `tensorflow.keras.layers` is
    for name in LAYERS:
        made = _old_layer(getattr(keras.layers, name))
        setattr(keras.layers, name, made)
        setattr(of_tensorflow, name, made)
    for name in OPTIMIZERS:
        _old_optimizer(getattr(keras.optimizers, name), keras.optimizers.schedules)
    _old_model(keras.Model)
    for shape in ("input", "output"):
        setattr(keras.layers.Layer, f"{shape}_shape", property(lambda self, shape=shape: getattr(self, shape).shape))
    for name in PEERS_CALLBACKS:
        setattr(keras.callbacks, name, lambda *_, **__: keras.callbacks.Callback())
    keras.backend.set_session = keras.backend.get_session = Nothing()
    _old_paths(keras)
    _of_tensorflow(keras)
    return keras
