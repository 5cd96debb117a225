"""Keras 3 (``keras``, ``tf.keras`` since TensorFlow 2.16)::

    from tocsin.keras import TocsinCallback
    model.fit(x, y, callbacks=[TocsinCallback()])

Watches weights, gradients (TensorFlow and PyTorch backends), the loss of every update, the metrics and the ledger
(docs/ledger.md), and ends training when a rule asks for it. A loop of one's own in TensorFlow::

    training = tocsin.keras.watch(model)
    for x, y in batches:
        loss, gradients = step(x, y)          # may be a tf.function
        training.step(loss=loss, gradients=gradients)
        if training.should_stop():
            break
    training.close()
"""

import os
from typing import Any, Dict, Mapping, Optional, Sequence, Tuple

import keras

from tocsin.adapters.keras.gradients import COLUMNS, Recorder, measured, named
from tocsin.adapters.keras.ledger_fit import FitLedger
from tocsin.adapters.keras.mean import RunningMean
from tocsin.adapters.keras.plan import planned, rate_of
from tocsin.hook import emit
from tocsin.hook.commands import StopRequest
from tocsin.ledger.loop_ledger import Loss, LoopLedger, of_arrays
from .callback import Watcher
from .copies import Copyable
from .monitors import Monitors

if int(keras.__version__.split(".")[0]) < 3:
    raise ImportError(f"tocsin.keras is for Keras 3; here is {keras.__version__}")

PREFLIGHT_AFTER = 3  # updates: a variable that had no gradient when the step was compiled never gets one


class _Values:
    """What both kinds of loops publish of variables."""

    def __init__(self, watcher: Watcher) -> None:
        self._watcher = watcher
        self._names: Dict[int, str] = {}
        self._of: Tuple[int, ...] = ()
        self._plan = -1
        self._remembered: Sequence[Tuple[str, Any]] = ()  # of the optimizer, as far as it is captured

    def due(self) -> bool:
        """Whether tensors are captured at the step that comes now; asking is not measured."""
        sink = self._watcher.hook.sink
        if not (sink.publishes(False) and sink.wants()):
            return False
        sink.publish_lent(None, 0)
        return True

    def name(self, variables: Sequence[Any]) -> Dict[int, str]:
        ids = tuple(id(variable) for variable in variables)
        if ids != self._of:
            self._of, self._names = ids, named(variables)
        return self._names

    def weights(self, variables: Sequence[Any]) -> None:
        names, sink = self.name(variables), self._watcher.hook.sink
        for variable in variables:
            name = names[id(variable)]
            role = "bias" if name.rsplit("/", 1)[-1] in ("bias", "b", "beta") else "weight"
            sink.publish_tensor(name, _array(variable), None, role=role)

    def memory(self, optimizer: Any) -> None:
        """What the optimizer remembers, if a collection holds it: its variables but counts and rates."""
        sink = self._watcher.hook.sink
        plan = sink.plan_changes()
        if plan != self._plan:
            self._plan = plan
            self._remembered = [(name, one) for name, one in _slots(optimizer) if sink.wants_tensor(name, "optimizer")]
        for name, variable in self._remembered:
            sink.publish_tensor(name, _array(variable), None, role="optimizer")

    def gradients(self, pairs: Sequence[Tuple[str, Any]]) -> None:
        for name, gradient in pairs:
            if gradient is not None:
                self._watcher.hook.sink.publish_tensor("gradient/" + name, _array(gradient), None, role="gradient")

    def rows(self, pairs: Sequence[Tuple[str, Sequence[float]]]) -> None:
        sink, rows = self._watcher.hook.sink, []
        for name, columns in pairs:
            values = dict(zip(COLUMNS, columns))
            if values["count"] > 0:
                identity = sink.tensor("gradient/" + name, dtype="float32", role="gradient")
                rows.append(emit.row(identity, name, values))
        if rows:
            sink.publish_rows_now(rows)


def _slots(optimizer: Any) -> Sequence[Tuple[str, Any]]:
    """``optimizer/adam/dense_kernel_momentum``: the names that Keras gives them."""
    return [(f"optimizer/{getattr(one, 'path', one.name)}", one) for one in getattr(optimizer, "variables", ()) if len(one.shape) > 0]


class TocsinCallback(Copyable, keras.callbacks.Callback):
    """``options`` are those of :func:`tocsin.watch` (``out``, ``run``, ``job``, ``capture``, …).

    ``gradients``: measure them too. ``loss_every``: updates between two readings of loss and metrics; each waits
    for the device. ``checkpoints``: where weights go when a stop asks for a checkpoint.

    After training ``stopped`` is the :class:`tocsin.StopRequest` that ended it, or None.
    """

    def __init__(self, gradients: bool = True, loss_every: int = 1, checkpoints: str = ".",
                 **options: Any) -> None:
        super().__init__()
        self._watcher = Watcher(options)
        self._values = _Values(self._watcher)
        self._gradients, self._loss_every, self._checkpoints = gradients, max(loss_every, 1), checkpoints
        self._recorder: Optional[Recorder] = None
        self._ledger: Optional[FitLedger] = None
        self._mean, self._monitors = RunningMean(), Monitors()
        self._begin = self._batches = self._updates = 0  # of this fit()
        self._at = 0  # the optimizer's own count
        self._open = False  # an update whose step has not ended: more may be said of it
        self._due = self._rate_due = False

    @property
    def stopped(self) -> Optional[StopRequest]:
        return self._watcher.stopped

    # ---- begin and end

    def on_train_begin(self, logs: Any = None) -> None:
        model = self.model
        optimizer = getattr(model, "optimizer", None)
        before = int(optimizer.iterations) if optimizer is not None else 0
        self._watcher.open(None, [], before // _accumulated(optimizer))
        self._at, self._batches, self._updates = before, 0, 0
        self._open = False
        if not self._watcher.active:
            return
        with self._watcher.hook.sink.guard("keras"):
            self._watcher.hook.sink.plan.say(**planned(optimizer, self.params, before, _accumulated(optimizer)))
            if self._gradients and self._recorder is None and Recorder.possible(optimizer):
                self._recorder = Recorder(optimizer)
                model.make_train_function(force=True)  # compiled before, perhaps, without it
        with self._watcher.hook.sink.guard("ledger"):
            self._ledger = FitLedger(self._watcher.hook.sink, model)

    def on_train_end(self, logs: Any = None) -> None:
        self._close()
        if self._watcher.active and self._watcher.wants_checkpoint():
            with self._watcher.hook.sink.guard("keras"):
                path = os.path.join(self._checkpoints, f"stopped-at-{int(self.model.optimizer.iterations)}.weights.h5")
                with self._watcher.hook.checkpointing():
                    self.model.save_weights(path)
                self._watcher.checkpoint = path
        if self._recorder is not None:
            self._recorder.ask(False)
        if self._ledger is not None:
            self._ledger.end()
            self._ledger = None
        self._watcher.end()

    # ---- steps

    def on_epoch_begin(self, epoch: int, logs: Any = None) -> None:
        self._mean.reset(self.model)
        self._rate_due = True
        if self._ledger is not None:
            self._ledger.pause()
            if self._watcher.active:
                with self._watcher.hook.sink.guard("ledger"):
                    self._ledger.begins_epoch()

    def on_train_batch_begin(self, batch: int, logs: Any = None) -> None:
        self._begin = batch
        self._close()
        if self._watcher.active:
            with self._watcher.hook.sink.guard("keras"):
                self._due = self._values.due()
                if self._recorder is not None:
                    self._recorder.ask(self._due)
                if self._ledger is not None:
                    self._ledger.before(True, (self._updates + 1) % self._loss_every == 0)

    def on_train_batch_end(self, batch: int, logs: Any = None) -> None:
        if not self._watcher.active:
            return
        with self._watcher.hook.sink.guard("keras"):
            self._ended(batch - self._begin + 1, logs or {})
        if self._watcher.asked() is not None:
            self.model.stop_training = True

    def _ended(self, batches: int, logs: Mapping[str, Any]) -> None:
        """``batches``: with ``steps_per_execution`` several between two calls."""
        optimizer = self._watched_model().optimizer
        if batches > 1 and keras.backend.backend() != "jax":  # the last call of an epoch names more than there were
            batches = int(optimizer.iterations) - self._at
        self._at += batches
        self._batches += batches
        self._mean.passed += batches
        if self._ledger is not None:
            self._ledger.after(True)
        every = _accumulated(optimizer)
        updates = self._batches // every - self._updates
        if updates == 0:
            return  # gradients are gathered for a later update
        self._updates += updates
        for _ in range(updates - 1):
            self._watcher.hook.step()
        self._open = True
        if self._updates % self._loss_every < updates:
            values = _numbers(logs)
            loss = self._mean.since(values.get("loss"))
            self._watcher.log({**values, **({} if loss is None else {"loss": loss})})
            if self._ledger is not None:
                self._ledger.publish()
        if self._due or self._rate_due or self._updates.bit_length() != (self._updates - updates).bit_length():
            self._rate_due = False  # per epoch, and at doubled updates: to ask for it may cost a calculation
            rate = rate_of(self.model.optimizer, self._at)  # with JAX read back first
            if rate is not None:
                self._watcher.hook.sink.publish_scalar("learning_rate", rate)
        if self._due:
            self._tensors()

    def _tensors(self) -> None:
        model, hook = self.model, self._watcher.hook
        variables = model.trainable_variables
        if not hook.sink.wants():
            return
        hook.sink.publish_lent(None, 0)
        self._values.weights(variables)
        self._values.memory(model.optimizer)
        if self._recorder is not None:
            taken = self._recorder.take()
            if taken is not None:
                names = self._values.name(variables)
                kind, pairs = taken
                publish = self._values.rows if kind == "rows" else self._values.gradients
                publish([(names.get(id(variable), "other"), value) for variable, value in pairs])
        if self._recorder is not None and self._recorder.without and self._updates >= PREFLIGHT_AFTER:
            self._preflight(self._recorder.without, model)

    def _preflight(self, without: Sequence[Any], model: Any) -> None:
        names = sorted(self._values.name(model.trainable_variables).get(id(one), "other") for one in without)
        self._recorder.without = []
        shown = ", ".join(names[:5]) + (", …" if len(names) > 5 else "")
        self._watcher.hook.sink.preflight(
            [{"kind": "no_gradient", "model": type(model).__name__, "count": len(names), "names": names[:20]}],
            [f"{len(names)} trainable variables of {type(model).__name__} get no gradient: {shown}"])

    def _watched_model(self) -> Any:
        """Without Keras's reading back of all state, which ``self.model`` means with JAX."""
        return getattr(self, "_model", None) or self.model

    def _close(self) -> None:
        if self._open and self._watcher.active:
            self._watcher.hook.step()
        self._open = False

    # ---- evaluation

    def on_test_begin(self, logs: Any = None) -> None:
        self._close()
        if self._watcher.active:
            self._watcher.hook.set_mode("eval")
            self._mean.reset(self.model)
            if self._ledger is not None:
                self._ledger.pause()

    def on_test_batch_begin(self, batch: int, logs: Any = None) -> None:
        if self._ledger is not None and self._watcher.active:
            with self._watcher.hook.sink.guard("ledger"):
                self._ledger.before(False)

    def on_test_batch_end(self, batch: int, logs: Any = None) -> None:
        if self._watcher.active:
            with self._watcher.hook.sink.guard("keras"):
                self._mean.passed = batch + 1
                self._watcher.evaluated(self._mean.since(_numbers(logs or {}).get("loss")))
                if self._ledger is not None:
                    self._ledger.after(False)
                    self._ledger.publish()

    def on_test_end(self, logs: Any = None) -> None:
        if self._watcher.active:
            with self._watcher.hook.sink.guard("keras"):
                self._watcher.log({name: value for name, value in _numbers(logs or {}).items() if name != "loss"})
                self._monitors.keras(self, self._watcher.hook.sink, self._watched_model(), logs or {})
            self._watcher.hook.set_mode("train")


class Training:
    """A loop of one's own. Nothing here raises."""

    def __init__(self, model: Any, variables: Optional[Sequence[Any]], options: Dict[str, Any]) -> None:
        self._watcher = Watcher(options)
        self._values = _Values(self._watcher)
        self._model, self._given = model, variables
        self._watcher.open(None, [])
        self._ledger = LoopLedger(self._watcher)

    @property
    def stopped(self) -> Optional[StopRequest]:
        return self._watcher.stopped

    def step(self, *, gradients: Any = None, outputs: Any = None, targets: Any = None, loss_kind: Loss = None, **scalars: Any) -> None:
        """An update is done. ``gradients``: a list as of the variables, or what :func:`statistics` made of it
        inside a ``tf.function``. ``outputs``, ``targets``, ``loss_kind``: as of :meth:`tocsin.sklearn.Training.step`.
        ``scalars``: ``loss=…`` and the like."""
        watcher = self._watcher
        if not watcher.active:
            return
        watcher.log(scalars)
        with watcher.hook.sink.guard("keras"):
            if self._values.due():
                variables = list(self._model.trainable_variables if self._given is None else self._given)
                names = self._values.name(variables)
                order = [names[id(variable)] for variable in variables]
                self._values.weights(variables)
                if gradients is not None:
                    if hasattr(gradients, "shape"):
                        self._values.rows(list(zip(order, _array(gradients).tolist())))
                    else:
                        self._values.gradients(list(zip(order, gradients)))
        if outputs is not None and targets is not None:
            self._ledger.tell(lambda wanted: of_arrays(_array(outputs), _array(targets), loss_kind))
        watcher.hook.step()

    def evaluated(self, **scalars: Any) -> None:
        """A batch, or all, of an evaluation: a step in mode ``eval``."""
        if self._watcher.active:
            self._watcher.hook.set_mode("eval")
            self._watcher.log(scalars)
            self._watcher.hook.step()
            self._watcher.hook.set_mode("train")

    def should_stop(self) -> Optional[StopRequest]:
        return self._watcher.asked()

    def close(self) -> None:
        """Ends the run's record; as stopped, if a stop was seen."""
        self._watcher.end()


def watch(model: Any = None, *, variables: Optional[Sequence[Any]] = None, **options: Any) -> Training:
    """``model``, or its ``variables`` (Keras's or ``tf.Variable``); ``options`` are those of :func:`tocsin.watch`."""
    return Training(model, [] if model is None and variables is None else variables, options)


def statistics(gradients: Sequence[Any]) -> Any:
    """The columns of docs/statistics.md of each gradient, as one tensor: to be called inside a ``tf.function`` and
    given back from it, so that the gradients need not leave it."""
    return measured(gradients)


def _accumulated(optimizer: Any) -> int:
    """Batches that make one update."""
    inner = getattr(optimizer, "inner_optimizer", optimizer)
    return max(int(getattr(inner, "gradient_accumulation_steps", None) or 1), 1)


def _array(value: Any) -> Any:
    """Host memory of a variable, tensor or sparse gradient."""
    value = getattr(value, "values", value) if type(value).__name__ == "IndexedSlices" else value
    if hasattr(value, "numpy") and not hasattr(value, "grad"):
        return value.numpy()
    return keras.ops.convert_to_numpy(value)


def _numbers(logs: Mapping[str, Any]) -> Dict[str, float]:
    out: Dict[str, float] = {}
    for name, value in logs.items():
        try:
            out[name] = float(value)
        except (TypeError, ValueError):
            continue  # a metric of several values
    return out
