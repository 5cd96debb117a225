"""Moments of a loss call inside a step that JAX compiles: ``tocsin.jax.ledger``."""

import functools
from typing import Any, Callable, Dict, Iterator, List, NamedTuple, Optional, Tuple, Union

import jax
from jax import numpy as jnp

from tocsin.ledger.batch import EVALUATION_ROWS, Batch, BatchForm, Wanted, batch
from tocsin.ledger.moments import KINDS, Form, moments, prepared
from tocsin.ledger.operations import Operations

MAX_INPUTS = 4  # of a batch

# Functions of optax, and what they are called here.
_OPTAX: Dict[str, Dict[str, Any]] = {
    "softmax_cross_entropy": {"kind": "cross_entropy"}, "softmax_cross_entropy_with_integer_labels": {"kind": "cross_entropy"},
    "sigmoid_binary_cross_entropy": {"kind": "binary"}, "squared_error": {"kind": "squared"}, "l2_loss": {"kind": "squared", "scale": 0.5},
    "huber_loss": {"kind": "huber"}}


class JaxOperations(Operations):
    """jax.numpy."""

    floats = "float32"
    fixed = True

    def __init__(self) -> None:  # pylint: disable=super-init-not-called
        self.module = jnp

    def cast(self, value: Any, dtype: str) -> Any:
        return jnp.asarray(value).astype(dtype)

    def segment_sum(self, values: Any, ids: Any, count: int) -> Any:
        return jax.ops.segment_sum(values, ids, num_segments=count)

    def has_words(self, value: Any) -> bool:
        return str(value.dtype).startswith(("float", "bfloat", "int", "uint", "bool")) and "float8" not in str(value.dtype)

    def words(self, value: Any) -> Any:
        if not self.is_floating(value):
            return value.astype("uint32")
        value = value if value.dtype.itemsize == 8 else value.astype("float32")
        words = jax.lax.bitcast_convert_type(value + value.dtype.type(0), "uint32")
        return words.reshape(words.shape[0], -1)

    def whole(self, value: Any) -> Any:
        return jnp.asarray(value, "uint32")

    def low(self, value: Any) -> Any:
        return value

    def shifted(self, value: Any, bits: int) -> Any:
        return jax.lax.shift_right_logical(value, jnp.full_like(value, bits))


class _About(NamedTuple):
    """What the step is compiled with."""

    name: str
    form: Optional[Form]
    problem: str
    batch: Optional[BatchForm] = None


class Moments:
    """An array of a few numbers that the compiled step gives back, and what it is of. ``held``: what the batch holds, or None."""

    def __init__(self, array: Any, about: _About, held: Optional[Tuple[Any, Any]] = None) -> None:
        self.array, self.about, self.held = array, about, held


jax.tree_util.register_pytree_node(Moments, lambda one: ((one.array, one.held), one.about), lambda about, children: Moments(children[0], about, children[1]))


def ledger(outputs: Any, targets: Any, loss: Union[str, Callable[[Any, Any], Any]], *, weights: Any = None, inputs: Any = None,
           name: Optional[str] = None, from_logits: bool = True, label_smoothing: float = 0.0, delta: float = 1.0, when: Any = True) -> Moments:
    """What a loss call says of its task (docs/ledger.md): to be called inside the compiled step, and given back from it.

    ``outputs``: (n, …) with a row for each sample. ``loss``: ``cross_entropy``, ``binary``, ``squared``, ``absolute``, ``huber``
    or ``poisson``; a function of optax; or any function of (outputs, targets) that gives a number for each sample or unit, of
    which the best constant is not known. ``weights``: of samples; 0 leaves one out. ``inputs``: what the model was given, an array or a
    tree of them with a row for each sample. ``when``: a traced flag; where it is false nothing is computed. Never raises.
    """
    try:
        return _ledger(outputs, targets, loss, weights, inputs, name, from_logits, label_smoothing, delta, when)
    except Exception as error:  # noqa: BLE001 (the step is compiled without; the loop counts it)
        return Moments(jnp.zeros(0), _About(name or "loss", None, f"{type(error).__name__}: {error}"))


def _ledger(outputs: Any, targets: Any, loss: Any, weights: Any, inputs: Any, name: Optional[str], from_logits: bool, smoothing: float,
            delta: float, when: Any) -> Moments:
    function, options = loss, {}
    while isinstance(function, functools.partial):
        options = {**function.keywords, **options}
        function = function.func
    known = dict(_OPTAX.get(getattr(function, "__name__", ""), {})) if getattr(function, "__module__", "").startswith("optax") else {}
    if isinstance(loss, str):
        if loss not in KINDS[:-1]:
            raise ValueError(f"loss {loss!r}: expected a function, or one of {', '.join(KINDS[:-1])}")
        known = {"kind": loss}
    if known:
        from_logits = from_logits if isinstance(loss, str) else True
    form = Form(known.get("kind", "other"), from_logits=from_logits, smoothing=smoothing, delta=float(options.get("delta", delta)),
                scale=known.get("scale", 1.0))
    called = name or (loss if isinstance(loss, str) else getattr(function, "__name__", "loss"))
    outputs, targets, weights, inputs = jax.lax.stop_gradient(jax.tree_util.tree_map(jnp.asarray, (outputs, targets, weights, inputs)))
    ops, given = JaxOperations(), jax.tree_util.tree_leaves(inputs)
    call = prepared(ops, form, outputs, targets, weights, given[0] if len(given) == 1 else None, None if known else loss)
    if call is None:
        return Moments(jnp.zeros(0), _About(called, None, "shape"))
    given = [one for one in given if one.ndim > 0 and targets.ndim > 0 and one.shape[0] == targets.shape[0]][:MAX_INPUTS]
    # Training or evaluation: that is said when the step is over.
    measure = functools.partial(_measure, ops, call, form.kind, called, outputs, targets, given)
    about: List[Optional[BatchForm]] = []
    shapes = jax.eval_shape(lambda: measure(about))
    if when is True:
        array, held = measure([])
    else:
        array, held = jax.lax.cond(when, lambda: measure([]), lambda: jax.tree_util.tree_map(lambda one: jnp.zeros(one.shape, one.dtype), shapes))
    return Moments(array, _About(called, call.form, "", about[0]), held)


def _measure(ops: Any, call: Any, kind: str, name: str, outputs: Any, targets: Any, given: List[Any], about: List[Optional[BatchForm]]) -> Any:
    """(moments, (numbers, prints) or None); the form of the latter is added to ``about``."""
    held: Optional[Batch] = batch(ops, kind, name, outputs, targets, given, Wanted(EVALUATION_ROWS))
    about.append(None if held is None else held.form)
    return moments(ops, call), None if held is None else (held.numbers, held.prints)


def vectors(given: Any, skip: Callable[[str], None]) -> Iterator[Tuple[str, Form, Any, Any]]:
    """(name, form, moments in host memory) of what a step gave back: one, or a tree of them, each also stacked by a scan."""
    for one in jax.tree_util.tree_leaves(given, is_leaf=lambda leaf: isinstance(leaf, Moments)):
        if not isinstance(one, Moments) or one.about.form is None:
            skip(one.about.problem if isinstance(one, Moments) and one.about.problem == "shape" else "loss")
            continue
        array, held = jax.device_get((one.array, one.held))
        steps = array.reshape(-1, array.shape[-1])
        for place, vector in enumerate(steps):
            yield one.about.name, one.about.form, vector, _held(one.about.batch, held, place, len(steps))


def _held(form: Optional[BatchForm], held: Any, place: int, steps: int) -> Optional[Batch]:
    """Of one of the steps that a scan has stacked."""
    if form is None or held is None:
        return None
    numbers, prints = (None if one is None else one.reshape(steps, *one.shape[one.ndim - most:])[place] for one, most in zip(held, (1, 2)))
    return Batch(form, numbers, prints)


def ready(given: Any) -> bool:
    """Whether nobody would wait for it."""
    return all(getattr(one, "is_ready", lambda: True)() for one in jax.tree_util.tree_leaves(given))
