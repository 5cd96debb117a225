"""What a trainer stops by, or keeps its best state by: it should not come from the training set."""

import sys
from typing import Any, Iterable, List, Set

from tocsin.loop.sink import Sink


class Monitors:
    """Of one training; told once, as a finding of ``training_preflight``."""

    def __init__(self) -> None:
        self._told = False

    def tell(self, sink: Sink, model: Any, names: Iterable[str]) -> None:
        """``names``: metrics of the training set that decide."""
        found = sorted(set(names))
        if self._told or not found:
            return
        self._told = True
        what = type(model).__name__
        sink.preflight([{"kind": "monitors_training", "model": what, "count": len(found), "names": found[:20]}],
                       [f"the best state of {what} is chosen, or training is stopped, by a metric of the training set: "
                        + ", ".join(found[:5])])

    def keras(self, callback: Any, sink: Sink, model: Any, logs: Any) -> None:
        """A validation has ended, whose metrics are called ``val_…`` beside those of training. ``logs``: its own names."""
        if not self._told:
            self.tell(sink, model, [name for name in _decide(_beside(callback)) if name in logs])

    def lightning(self, sink: Sink, trainer: Any, module: Any) -> None:
        """A validation has ended. Names of both sets stand in the results of their loops."""
        epoch = trainer.fit_loop.epoch_loop
        validated, trained = _logged(epoch.val_loop._results), _logged(epoch._results)
        if validated and not self._told:
            self.tell(sink, module, [name for name in _decide(trainer.callbacks) if name in trained - validated])

    def transformers(self, sink: Sink, model: Any, args: Any, loaders: Any) -> None:
        """An evaluation has ended, whose metrics choose the best state."""
        trained, evaluated = (getattr(loaders.get(name), "dataset", None) for name in ("train_dataloader", "eval_dataloader"))
        if args.load_best_model_at_end and trained is not None and trained is evaluated:
            self.tell(sink, model, [args.metric_for_best_model or "loss"])


def _decide(callbacks: Iterable[Any]) -> Set[str]:
    """What callbacks of Keras and Lightning look at, to stop or to keep the best."""
    out = set()
    for one in callbacks:
        kinds = {kind.__name__ for kind in type(one).__mro__}
        monitor = getattr(one, "monitor", None)
        keeps = getattr(one, "save_best_only", getattr(one, "save_top_k", 0) not in (0, -1))
        if isinstance(monitor, str) and ("EarlyStopping" in kinds or ("ModelCheckpoint" in kinds and keeps)):
            out.add(monitor)
    return out


def _logged(results: Any) -> Set[str]:
    """Names under which Lightning gives out what was logged."""
    names = {metric.meta.name for metric in (results or {}).values()}
    return names | {name + end for name in names for end in ("_step", "_epoch")}


def _beside(callback: Any) -> List[Any]:
    """The callbacks of the list that calls this one: Keras keeps it in a local variable."""
    frame = sys._getframe(1)
    while frame is not None:
        callbacks = getattr(frame.f_locals.get("self"), "callbacks", None)
        if isinstance(callbacks, list) and any(one is callback for one in callbacks):
            return callbacks
        frame = frame.f_back  # type: ignore[assignment]
    return []
