"""Moments of a loss call inside a step that JAX compiles: ``tocsin.jax.ledger``."""

import functools
from typing import Any, Callable, Dict, Iterator, NamedTuple, Optional, Tuple, Union

import jax
from jax import numpy as jnp

from ._ledger import KINDS, Form, Operations, moments, prepared

# Functions of optax, and what they are called here.
_OPTAX: Dict[str, Dict[str, Any]] = {
    "softmax_cross_entropy": {"kind": "cross_entropy"}, "softmax_cross_entropy_with_integer_labels": {"kind": "cross_entropy"},
    "sigmoid_binary_cross_entropy": {"kind": "binary"}, "squared_error": {"kind": "squared"}, "l2_loss": {"kind": "squared", "scale": 0.5},
    "huber_loss": {"kind": "huber"}}


class JaxOperations(Operations):
    """jax.numpy."""

    floats = "float32"

    def __init__(self) -> None:  # pylint: disable=super-init-not-called
        self.module = jnp

    def cast(self, value: Any, dtype: str) -> Any:
        return jnp.asarray(value).astype(dtype)

    def segment_sum(self, values: Any, ids: Any, count: int) -> Any:
        return jax.ops.segment_sum(values, ids, num_segments=count)


class _About(NamedTuple):
    """What the step is compiled with."""

    name: str
    form: Optional[Form]
    problem: str


class Moments:
    """An array of a few numbers that the compiled step gives back, and what it is of."""

    def __init__(self, array: Any, about: _About) -> None:
        self.array, self.about = array, about


jax.tree_util.register_pytree_node(Moments, lambda one: ((one.array,), one.about), lambda about, children: Moments(children[0], about))


def ledger(outputs: Any, targets: Any, loss: Union[str, Callable[[Any, Any], Any]], *, weights: Any = None, inputs: Any = None,
           name: Optional[str] = None, from_logits: bool = True, label_smoothing: float = 0.0, delta: float = 1.0, when: Any = True) -> Moments:
    """What a loss call says of its task (docs/ledger.md): to be called inside the compiled step, and given back from it.

    ``outputs``: (n, …) with a row for each sample. ``loss``: ``cross_entropy``, ``binary``, ``squared``, ``absolute``, ``huber``
    or ``poisson``; a function of optax; or any function of (outputs, targets) that gives a number for each sample or unit, of
    which the best constant is not known. ``weights``: of samples; 0 leaves one out. ``inputs``: of the model, where they are
    whole numbers as the targets are. ``when``: a traced flag; where it is false nothing is computed. Never raises.
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
    outputs, targets, weights, inputs = jax.lax.stop_gradient((outputs, targets, weights, inputs))
    ops = JaxOperations()
    call = prepared(ops, form, jnp.asarray(outputs), jnp.asarray(targets), None if weights is None else jnp.asarray(weights),
                    None if inputs is None else jnp.asarray(inputs), None if known else loss)
    if call is None:
        return Moments(jnp.zeros(0), _About(called, None, "shape"))
    if when is True:
        return Moments(moments(ops, call), _About(called, call.form, ""))
    length = call.form.length
    array = jax.lax.cond(when, lambda: moments(ops, call), lambda: jnp.zeros(length, ops.floats))
    return Moments(array, _About(called, call.form, ""))


def vectors(given: Any, skip: Callable[[str], None]) -> Iterator[Tuple[str, Form, Any, Any]]:
    """(name, form, moments in host memory) of what a step gave back: one, or a tree of them, each also stacked by a scan."""
    for one in jax.tree_util.tree_leaves(given, is_leaf=lambda leaf: isinstance(leaf, Moments)):
        if not isinstance(one, Moments) or one.about.form is None:
            skip(one.about.problem if isinstance(one, Moments) and one.about.problem == "shape" else "loss")
            continue
        array = jax.device_get(one.array)
        for vector in array.reshape(-1, array.shape[-1]):
            yield one.about.name, one.about.form, vector, None


def ready(given: Any) -> bool:
    """Whether nobody would wait for it."""
    return all(getattr(one, "is_ready", lambda: True)() for one in jax.tree_util.tree_leaves(given))
