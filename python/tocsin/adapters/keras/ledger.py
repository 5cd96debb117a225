"""What a Keras model's loss calls say of their task (docs/ledger.md), in each backend.

While a training is watched the model has, as attributes of the object, its own ``train_step``, ``test_step`` and
``compute_loss`` with a note taken of outputs and targets; behind the step, and in the compiled function, moments are made
of them and given back beside the logs, from which they are taken before Keras sees them. Nothing is saved with the model,
and after the training it is as it was. A step that nobody asked for computes nothing.
"""

from typing import Any, Callable, Dict, List, NamedTuple, Optional, Set, Tuple

import keras

from tocsin.ledger.batch import EVALUATION_ROWS, ROWS, Batch, BatchForm, Wanted, batch
from tocsin.ledger.moments import Form, moments, prepared
from .losses import calls_of, form_of
from .operations import KerasOperations, dense

KEY = "tocsin_ledger"  # among the logs, inside
_PLACE = "_tocsin_ledger"  # of the attachment, in the model's __dict__
_NUMBERS, _PRINTS = "numbers of ", "prints of "  # and a call: what its batch holds, among what the step gives back
_MOST_INPUTS = 4  # of a batch


class _Packed(NamedTuple):
    """A state of JAX's trainer and whether the step is measured."""

    state: Any
    asked: Any


class Attachment:
    """Of one model, for all its trainings."""

    def __init__(self, model: Any) -> None:
        self.forms: Dict[str, Form] = {}  # by call, once a step was traced
        self._batches: Dict[Tuple[bool, str], BatchForm] = {}  # by kind of step and call
        self.weighted = False  # training weighs its samples
        self._model = model
        self._count: Callable[[str], None] = lambda reason: None
        self._fail: Callable[[BaseException], None] = lambda error: None
        self._told: Set[str] = set()  # reasons of this training
        self._backend = keras.backend.backend()
        self._asked = False
        self._flag: Any = None  # TensorFlow's variable
        self._collecting = self._running = False
        self._noted: Optional[Dict[str, Any]] = None
        self._given: Optional[Dict[str, Any]] = None  # of the newest call of train_function or test_function
        self._methods: Dict[str, Any] = {}   # of the model's own __dict__ before
        self._before: Dict[str, Any] = {}    # train_function and test_function without us, and with us
        self._ours: Dict[str, Any] = {}
        self._compiled: Any = None           # what says that the model was not compiled anew between two trainings

    @staticmethod
    def of(model: Any) -> Optional["Attachment"]:
        """That of the model; None where it has no place for one: several replicas, a distribution, torch.compile."""
        backend = keras.backend.backend()
        if backend == "tensorflow":
            import tensorflow

            strategy = getattr(model, "distribute_strategy", None) or tensorflow.distribute.get_strategy()
            if strategy.num_replicas_in_sync != 1:
                return None
        elif backend == "jax":
            if keras.distribution.distribution() is not None:
                return None
        elif backend != "torch" or getattr(model, "jit_compile", False):
            return None
        found = vars(model).get(_PLACE)
        if found is None:
            found = vars(model)[_PLACE] = Attachment(model)
        return found

    # ---- begin and end

    def attach(self, skip: Callable[[str], None], fail: Callable[[BaseException], None]) -> None:
        """``skip(reason)``: a loss of which nothing can be told; ``fail(error)``: what our own code has raised."""
        self.detach()
        self._told, self._asked = set(), False
        self._count, self._fail = skip, fail
        model = self._model
        if self._backend == "tensorflow" and self._flag is None:
            import tensorflow

            with tensorflow.init_scope():
                self._flag = tensorflow.Variable(False, trainable=False)
        wrapped = {name: self._step(getattr(model, name), name == "train_step") for name in ("train_step", "test_step")}
        noting = "compute_metrics" if self._backend == "jax" else "compute_loss"  # JAX differentiates around the loss
        wrapped[noting] = self._notes(getattr(model, noting))
        if self._backend == "jax":
            wrapped["compute_loss"] = self._looks_for_masks(model.compute_loss)
        for kind in ("train", "test"):
            wrapped[f"make_{kind}_function"] = self._makes(getattr(model, f"make_{kind}_function"), f"{kind}_function")
        for name, function in wrapped.items():
            self._methods[name] = vars(model).get(name)
            vars(model)[name] = function
        compiled = getattr(model, "_compile_config", None)
        if compiled is not self._compiled:
            self._ours, self._compiled = {}, compiled
        for kind in ("train", "test"):
            name = f"{kind}_function"
            present = getattr(model, name, None)
            if name in self._ours and present is self._before.get(name):
                setattr(model, name, self._ours[name])
            else:
                self._before[name] = present
                self._ours.pop(name, None)
                if present is not None or kind == "train":
                    getattr(model, f"make_{name}")(force=True)

    def detach(self) -> None:
        """The model is as it was. What was compiled for us is kept for its next training."""
        model = self._model
        for name, before in self._methods.items():
            if before is None:
                vars(model).pop(name, None)
            else:
                vars(model)[name] = before
        for name, ours in self._ours.items() if self._methods else ():
            if getattr(model, name, None) is ours:
                setattr(model, name, self._before.get(name))
        self._methods = {}
        self._count, self._fail = (lambda reason: None), (lambda error: None)
        self._noted = self._given = None

    # ---- steps

    def ask(self, asked: bool) -> None:
        """Before a step: whether it is measured."""
        if self._flag is not None and asked != self._asked:
            self._flag.assign(asked)
        self._asked = asked
        self._given = None

    def take(self, learns: bool) -> List[Tuple[str, Form, Any, Optional[Batch]]]:
        """After it: (name of the call, form, moments, what its batch holds), in host memory. Waits for the device."""
        given, self._given = self._given, None
        if not self._asked or not given:
            return []
        return [(name, self.forms[name], _on_host(vector), self._batch(given, name, learns)) for name, vector in given.items() if name in self.forms]

    def _batch(self, given: Dict[str, Any], name: str, learns: bool) -> Optional[Batch]:
        form = self._batches.get((learns, name))
        numbers, prints = (given.get(kind + name) for kind in (_NUMBERS, _PRINTS))
        if form is None or (numbers is None and prints is None):
            return None
        return Batch(form, None if numbers is None else _on_host(numbers), None if prints is None else _on_host(prints))

    # ---- the model's methods

    def _makes(self, make: Callable[..., Any], name: str) -> Callable[..., Any]:
        def make_function(force: bool = False) -> Any:
            made = make(force=force)
            function = getattr(self._model, name)
            if function is not None and function is not self._ours.get(name):
                self._ours[name] = self._function(function)
                setattr(self._model, name, self._ours[name])
            return made

        return make_function

    def _function(self, function: Callable[..., Any]) -> Callable[..., Any]:
        """``train_function`` or ``test_function``: their logs without our part."""
        if self._backend == "jax":
            import numpy

            def with_state(state: Any, iterator: Any) -> Any:
                logs, packed = self._run(function, _Packed(state, numpy.asarray(self._asked)), iterator)
                return self._stripped(logs), packed.state if isinstance(packed, _Packed) else packed

            return with_state

        def plain(*args: Any) -> Any:
            return self._stripped(self._run(function, *args))

        return plain

    def _run(self, function: Callable[..., Any], *args: Any) -> Any:
        self._running = True
        try:
            return function(*args)
        finally:
            self._running = False

    def _stripped(self, logs: Any) -> Any:
        if isinstance(logs, dict) and KEY in logs:
            self._given = logs[KEY]
            return {name: value for name, value in logs.items() if name != KEY}
        return logs

    def _step(self, step: Callable[..., Any], learns: bool) -> Callable[..., Any]:
        def plain(data: Any) -> Any:
            if not self._running or (self._backend == "torch" and not self._asked):
                return step(data)
            return self._beside(self._collected(step, data), self._flag, learns)

        def with_state(state: Any, data: Any) -> Any:
            if not isinstance(state, _Packed):
                return step(state, data)
            logs, after = self._collected(step, state.state, data)
            return self._beside(logs, state.asked, learns), _Packed(after, state.asked)

        return with_state if self._backend == "jax" else plain

    def _collected(self, step: Callable[..., Any], *args: Any) -> Any:
        self._collecting, self._noted = True, None
        try:
            return step(*args)
        finally:
            self._collecting = False

    def _notes(self, function: Callable[..., Any]) -> Callable[..., Any]:
        def noting(*args: Any, **kwargs: Any) -> Any:
            if self._collecting:
                noted = {**dict(zip(("x", "y", "y_pred", "sample_weight"), args)), **kwargs}
                self._noted = {**noted, "masked": (self._noted or {}).get("masked", False)}
            return function(*args, **kwargs)

        return noting

    def _looks_for_masks(self, function: Callable[..., Any]) -> Callable[..., Any]:
        def looking(*args: Any, **kwargs: Any) -> Any:
            if self._collecting:
                given = {**dict(zip(("x", "y", "y_pred"), args)), **kwargs}
                masked = any(hasattr(one, "_keras_mask") and one._keras_mask is not None
                             for one in keras.tree.flatten(given.get("y_pred")))
                self._noted = {"masked": masked}
            return function(*args, **kwargs)

        return looking

    def _skip(self, reason: str) -> None:
        """Once of each: how often a step is traced is not ours to say."""
        if reason not in self._told:
            self._told.add(reason)
            self._count(reason)

    # ---- moments

    def _beside(self, logs: Any, flag: Any, learns: bool) -> Any:
        """The logs, with the moments of what was noted."""
        noted, self._noted = self._noted, None
        if not isinstance(logs, dict) or noted is None or noted.get("y_pred") is None:
            return logs
        try:
            told = self._moments(noted, flag, learns)
        except Exception as error:  # noqa: BLE001 (the training goes on without)
            self._fail(error)
            return logs
        return {**logs, KEY: told} if told else logs

    def _moments(self, noted: Dict[str, Any], flag: Any, learns: bool) -> Dict[str, Any]:
        if noted["masked"]:
            self._skip("mask")
            return {}
        self.weighted = self.weighted or (learns and noted.get("sample_weight") is not None)
        found = []
        for name, loss, y, y_pred, weights in calls_of(self._model, noted, self._skip):
            form = form_of(loss, self._model)
            if form is None:
                self._skip("loss")
            else:
                found.append((name, loss, form, y, y_pred, weights))
        if not found:
            return {}
        whole = noted.get("x")
        whole = None if keras.tree.is_nested(whole) else whole
        given = [one for one in map(dense, keras.tree.flatten(noted.get("x"))) if one is not None][:_MOST_INPUTS]

        def measure() -> Dict[str, Any]:
            ops, out = KerasOperations(), {}
            inputs = given
            for name, loss, form, y, y_pred, weights in found:
                call = prepared(ops, form, y_pred, y, weights, whole, _per_sample(loss))
                if call is None:
                    self._skip("shape")
                    continue
                self.forms[name] = call.form
                out[name] = keras.ops.reshape(moments(ops, call), (call.form.length,))
                out.update(self._held(ops, name, form, y_pred, y, inputs, learns))
                inputs = []  # of the first loss
            return out

        if self._backend == "torch":
            import torch

            with torch.no_grad():
                return measure()
        if self._backend == "jax":
            import jax

            shapes = jax.eval_shape(measure)
            return jax.lax.cond(flag, measure, lambda: {name: jax.numpy.zeros(one.shape, one.dtype) for name, one in shapes.items()})
        import tensorflow

        shapes: Dict[str, Any] = {}

        def measured() -> Dict[str, Any]:
            out = measure()
            shapes.update({name: (one.shape, one.dtype) for name, one in out.items()})
            return out

        def nothing() -> Dict[str, Any]:  # of the same shape, where the number of samples is known, as XLA wants it
            return {name: tensorflow.zeros([tensorflow.shape(given[0])[0] if size is None else size for size in shape], kind)
                    for name, (shape, kind) in shapes.items()}

        return tensorflow.cond(flag, measured, nothing)

    def _held(self, ops: KerasOperations, name: str, form: Form, outputs: Any, targets: Any, inputs: List[Any], learns: bool) -> Dict[str, Any]:
        """What the batch of a call holds."""
        targets = keras.ops.convert_to_tensor(targets)
        held = batch(ops, form.kind, name, outputs, targets, inputs, Wanted(ROWS if learns else EVALUATION_ROWS, table=learns))
        if held is None:
            return {}
        self._batches[learns, name] = held.form
        return {kind + name: one for kind, one in ((_NUMBERS, held.numbers), (_PRINTS, held.prints)) if one is not None}


def _per_sample(loss: Any) -> Callable[[Any, Any], Any]:
    def losses(outputs: Any, targets: Any) -> Any:
        convert = keras.ops.convert_to_tensor
        return loss.call(convert(targets, dtype=loss.dtype), convert(outputs, dtype=loss.dtype))

    return losses


def _on_host(vector: Any) -> Any:
    return keras.ops.convert_to_numpy(vector)
