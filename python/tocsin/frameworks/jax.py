"""JAX: statistics are computed inside the compiled step and returned from it::

    import tocsin.jax
    training = tocsin.jax.watch(job="mnist")

    @jax.jit
    def step(params, opt_state, batch):
        loss, grads = jax.value_and_grad(loss_fn)(params, batch)
        updates, opt_state = optimizer.update(grads, opt_state, params)
        told = {"gradients": tocsin.jax.statistics(grads), "weights": tocsin.jax.statistics(params)}
        return optax.apply_updates(params, updates), opt_state, loss, told

    for batch in batches:
        params, opt_state, loss, told = step(params, opt_state, batch)
        training.step(loss=loss, **told)
        if training.should_stop():
            break
    training.close()

With optax nothing has to be returned: ``optimizer = tocsin.jax.recorded(optax.adam(1e-3))`` keeps the
statistics in its state, and ``training.step(loss=loss, state=opt_state)`` finds them there.
"""

from typing import Any, Dict, Iterator, List, NamedTuple, Optional, Tuple

import jax
from jax import numpy as jnp

from tocsin.hook import emit
from tocsin.hook.commands import StopRequest
from tocsin.ledger.loop_ledger import LoopLedger
from tocsin.library import abi
from .callback import Watcher
from .jax_ledger import Moments, ledger, ready, vectors

__all__ = ["COLUMNS", "Moments", "Training", "ledger", "recorded", "statistics", "watch"]

# One number each, in this order; counts are exact up to 2**24 elements of a tensor without x64.
COLUMNS = ("count", "sum", "sumsq", "m2", "abs_sum", "min", "max", "nan", "posinf", "neginf",
           "zero", "negative")


def statistics(tree: Any, when: Any = True) -> Any:
    """For each array of a tree the columns of docs/statistics.md, as an array of 12 numbers. To be
    called inside the compiled step. ``when``: a traced flag; where it is false zeros are given, and
    nothing is computed."""
    def of(leaf: Any) -> Any:
        leaf = jnp.asarray(leaf)
        if when is True:
            return _columns(leaf)
        return jax.lax.cond(when, _columns, lambda _: jnp.zeros(len(COLUMNS), _wide(leaf)), leaf)

    return jax.tree_util.tree_map(of, tree)


def _wide(leaf: Any) -> Any:
    return jnp.float64 if leaf.dtype == jnp.float64 else jnp.float32


def _columns(leaf: Any) -> Any:
    wide = _wide(leaf)
    if leaf.size == 0:
        return jnp.zeros(len(COLUMNS), wide)
    values = jnp.abs(leaf) if jnp.iscomplexobj(leaf) else leaf
    values = values.astype(wide).reshape(-1)
    sums = (values.sum(), jnp.square(values).sum(), jnp.square(values - values.mean()).sum(),
            jnp.abs(values).sum(), values.min(), values.max())
    counts = (jnp.isnan(values).sum(), jnp.isposinf(values).sum(), jnp.isneginf(values).sum(),
              (values == 0).sum(), (values < 0).sum())
    return jnp.stack([jnp.asarray(column, wide) for column in (values.size, *sums, *counts)])


# ---- optax

class Recorded(NamedTuple):
    """State of :func:`recorded`."""

    updates: Any      # how many there were
    step: Any         # of `gradients`: the number of the update they are of
    gradients: Any    # statistics
    inner: Any


def recorded(optimizer: Any, every: int = 10) -> Any:
    """The same optax transformation, with statistics of the gradients that it is given, at every
    ``every``-th update, in its state."""
    def init(params: Any) -> Recorded:
        empty = jax.tree_util.tree_map(
            lambda leaf: jnp.zeros(len(COLUMNS), _wide(jnp.asarray(leaf))), params)
        return Recorded(jnp.zeros((), jnp.int32), jnp.full((), -1, jnp.int32), empty,
                        optimizer.init(params))

    def update(gradients: Any, state: Recorded, params: Any = None, **more: Any) -> Any:
        due = state.updates % every == 0
        fresh = statistics(gradients, due)
        kept = jax.tree_util.tree_map(lambda new, old: jnp.where(due, new, old), fresh,
                                      state.gradients)
        updates, inner = optimizer.update(gradients, state.inner, params, **more)
        step = jnp.where(due, state.updates, state.step)
        return updates, Recorded(state.updates + 1, step, kept, inner)

    optax = __import__("optax")
    return optax.GradientTransformationExtraArgs(init, update)


# ---- the loop

class Training:
    """One loop. Nothing here raises. Values are read when the device has them: at the sampled steps
    this waits for the step."""

    def __init__(self, options: Dict[str, Any]) -> None:
        self._watcher = Watcher(options)
        self._watcher.open(None, [])
        self._ledger = LoopLedger(self._watcher)
        self._told = -1  # the update whose gradients were told last

    @property
    def stopped(self) -> Optional[StopRequest]:
        return self._watcher.stopped

    def step(self, *, gradients: Any = None, weights: Any = None, state: Any = None,
             ledger: Any = None, **scalars: Any) -> None:
        """An update is done. ``gradients`` and ``weights``: what :func:`statistics` gave; ``state``: of
        an optimizer with :func:`recorded` in it. ``ledger``: what :func:`ledger` gave; without scalars it is read
        only if nobody needs to wait for it. ``scalars``: ``loss=…`` and the like."""
        watcher = self._watcher
        if not watcher.active:
            return
        sink = watcher.hook.sink
        watcher.log(scalars)
        with sink.guard("jax"):
            due = sink.publishes(False) and sink.wants()
            if due:
                sink.publish_lent(None, 0)
                rows: List[Any] = []
                for tree, role in ((gradients, "gradient"), (weights, "weight")):
                    rows += self._rows(tree, role)
                if rows:
                    sink.publish_rows_now(rows)
            found = None if state is None else _recorded_in(state)
            if found is not None and int(found.step) != self._told:
                self._told = int(found.step)
                rows = self._rows(found.gradients, "gradient")
                if rows:
                    sink.publish_rows_now(rows)
        if ledger is not None and (scalars or ready(ledger)):
            self._ledger.tell(lambda wanted: vectors(ledger, self._ledger.skip))
        watcher.hook.step()

    def evaluated(self, *, ledger: Any = None, **scalars: Any) -> None:
        """A batch, or all, of an evaluation: a step in mode ``eval``."""
        if self._watcher.active:
            self._watcher.hook.set_mode("eval")
            self._watcher.log(scalars)
            if ledger is not None:
                self._ledger.tell(lambda wanted: vectors(ledger, self._ledger.skip), training=False)
            self._watcher.hook.step()
            self._watcher.hook.set_mode("train")

    def wants_ledger(self) -> bool:
        """Whether the ledger is measured at the step that comes now: for ``ledger(…, when=…)``."""
        return self._ledger.wanted()

    def should_stop(self) -> Optional[StopRequest]:
        return self._watcher.asked()

    def close(self) -> None:
        """Ends the run's record; as stopped, if a stop was seen."""
        self._watcher.end()

    def _rows(self, tree: Any, role: str) -> List[abi.Row]:
        out = []
        for name, columns in _named(tree):
            if role == "gradient":
                name, kind = "gradient/" + name, role
            else:
                kind = "bias" if name.rsplit("/", 1)[-1] in ("bias", "b") else role
            values = dict(zip(COLUMNS, jax.device_get(columns).tolist()))
            if values["count"] > 0:
                identity = self._watcher.hook.sink.tensor(name, dtype="float32", role=kind)
                out.append(emit.row(identity, name, values))
        return out


def watch(**options: Any) -> Training:
    """``options`` are those of :func:`tocsin.watch` (``out``, ``run``, ``job``, …)."""
    return Training(options)


def _named(tree: Any) -> Iterator[Tuple[str, Any]]:
    """(path, array) of a tree: ``dense/kernel``."""
    if tree is None:
        return
    for path, leaf in jax.tree_util.tree_flatten_with_path(tree)[0]:
        parts = [str(getattr(part, "key", getattr(part, "name", getattr(part, "idx", part))))
                 for part in path]
        yield "/".join(parts) or "value", leaf


def _recorded_in(state: Any) -> Optional[Recorded]:
    found = [one for one in jax.tree_util.tree_leaves(
        state, is_leaf=lambda one: isinstance(one, Recorded)) if isinstance(one, Recorded)]
    return found[0] if found else None
