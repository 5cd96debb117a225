"""Gradients of a Keras optimizer: measured inside the compiled step (TensorFlow), or taken as they are (PyTorch).

Keras compiles ``train_step`` as a whole, so nothing outside sees a gradient. ``Recorder.install()`` gives the
optimizer's object a subclass whose public ``apply()`` measures first. JAX's step has no place to write to: there
is no recorder for it.
"""

from typing import Any, Dict, List, Optional, Sequence, Tuple

import keras

# As in docs/statistics.md, in the order of a row of `measured()`.
COLUMNS = ("count", "sum", "sumsq", "m2", "abs_sum", "min", "max", "nan", "posinf", "neginf",
           "zero", "negative")


class Recorder:
    """Of one optimizer. Nothing is measured in steps that nobody asked for."""

    def __init__(self, optimizer: Any) -> None:
        self.variables: List[Any] = []      # Keras's, in the order of the gradients
        self.without: List[Any] = []        # of these, those that get none
        self._told = 0
        self._due = False                   # PyTorch
        self._latest: Optional[List[Any]] = None
        self._ask = self._rows = self._updates = None  # TensorFlow's variables
        self._install(getattr(optimizer, "inner_optimizer", optimizer))  # below a loss scale

    @staticmethod
    def possible(optimizer: Any) -> bool:
        """Whether this backend, and the way it is run, has a place for it."""
        if optimizer is None or not callable(getattr(optimizer, "apply", None)):
            return False
        if keras.backend.backend() == "tensorflow":
            import tensorflow

            return tensorflow.distribute.get_strategy().num_replicas_in_sync == 1
        return keras.backend.backend() == "torch"

    def ask(self, due: bool) -> None:
        """Before a step: whether its gradients are wanted."""
        if self._ask is not None and due != self._due:
            self._ask.assign(due)
        self._due = due

    def take(self) -> Optional[Tuple[str, List[Tuple[Any, Any]]]]:
        """After it: ("rows", [(variable, columns)]) or ("arrays", [(variable, gradient)]); None when there
        was no update, or none that was measured."""
        if self._latest is not None:
            latest, self._latest = self._latest, None
            return "arrays", [pair for pair in zip(self.variables, latest) if pair[1] is not None]
        if self._updates is None:
            return None
        updates = int(self._updates.numpy())
        if updates == self._told:
            return None
        self._told = updates
        return "rows", list(zip(self.variables, self._rows.numpy().tolist()))

    def _install(self, optimizer: Any) -> None:
        recorder, kind = self, type(optimizer)

        class Recorded(kind):
            def apply(self, grads: Any, trainable_variables: Any = None) -> Any:
                if trainable_variables is None:
                    return super().apply(grads)
                grads, trainable_variables = list(grads), list(trainable_variables)
                recorder._record(grads, trainable_variables, self.loss_scale_factor)
                return super().apply(grads, trainable_variables)

        # Saved and restored as what it is without us.
        Recorded.__name__, Recorded.__qualname__ = kind.__name__, kind.__qualname__
        Recorded.__module__, Recorded.__doc__ = kind.__module__, kind.__doc__
        optimizer.__class__ = Recorded

    def _record(self, gradients: List[Any], variables: List[Any], scale: Optional[float]) -> None:
        self.variables = variables
        self.without = [variable for variable, gradient in zip(variables, gradients)
                        if gradient is None]
        if keras.backend.backend() == "torch":
            if self._due:
                self._latest = [gradient if gradient is None or scale is None else gradient / scale
                                for gradient in gradients]
            return
        import tensorflow

        with tensorflow.init_scope():  # of the graph that is being traced, or none
            if self._rows is None:
                shape = (len(variables), len(COLUMNS))
                self._rows = tensorflow.Variable(tensorflow.zeros(shape, tensorflow.float64), trainable=False)
                self._updates = tensorflow.Variable(0, dtype=tensorflow.int64, trainable=False)
                self._ask = tensorflow.Variable(self._due, trainable=False)

        def measure() -> Any:
            self._rows.assign(measured(gradients, scale))
            return self._updates.assign_add(1)

        tensorflow.cond(self._ask, measure, self._updates.read_value)


def measured(gradients: Sequence[Any], scale: Optional[float] = None) -> Any:
    """A row of columns for each gradient, as one TensorFlow tensor; zeros where there is none. Of a sparse
    gradient (an embedding's) the rows that it has."""
    import tensorflow

    rows = []
    for gradient in gradients:
        if gradient is None:
            rows.append(tensorflow.zeros(len(COLUMNS), tensorflow.float64))
            continue
        if isinstance(gradient, tensorflow.IndexedSlices):
            gradient = gradient.values
        rows.append(_columns(tensorflow, gradient if scale is None else gradient / scale))
    return tensorflow.stack(rows)


def _columns(tf: Any, value: Any) -> Any:
    if value.dtype.is_complex:
        value = tf.abs(value)
    value = tf.reshape(value, [-1])
    wide = value.dtype if value.dtype in (tf.float32, tf.float64) else tf.float32
    value = tf.cast(value, wide)
    mean = tf.reduce_mean(value)
    sums = (tf.reduce_sum(value), tf.reduce_sum(tf.square(value)),
            tf.reduce_sum(tf.square(value - mean)), tf.reduce_sum(tf.abs(value)),
            tf.reduce_min(value), tf.reduce_max(value))
    infinite = tf.math.is_inf(value)
    flags = (tf.math.is_nan(value), infinite & (value > 0), infinite & (value < 0), value == 0,
             value < 0)
    counts = [tf.reduce_sum(tf.cast(flag, tf.float64)) for flag in flags]
    return tf.stack([tf.cast(tf.size(value), tf.float64),
                     *(tf.cast(one, tf.float64) for one in sums), *counts])


def named(variables: Sequence[Any]) -> Dict[int, str]:
    """Names by id(): the path without the model's own name where that is the same for all."""
    paths = [str(getattr(variable, "path", None) or getattr(variable, "name", "variable")).split(":")[0]
             for variable in variables]
    heads = {path.split("/", 1)[0] for path in paths}
    if len(heads) == 1 and all(path.count("/") > 1 for path in paths):
        paths = [path.split("/", 1)[1] for path in paths]
    out: Dict[int, str] = {}
    used: Dict[str, int] = {}
    for variable, path in zip(variables, paths):
        used[path] = used.get(path, 0) + 1
        out[id(variable)] = path if used[path] == 1 else f"{path}.{used[path]}"
    return out
