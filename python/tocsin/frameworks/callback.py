"""What the callbacks of trainers have in common: opening the hook, stopping, ending."""

import sys
from typing import Any, Callable, Dict, Iterable, Mapping, Optional, Set, Tuple

from tocsin.hook.commands import StopRequest
from tocsin.hook.hook import Hook
from tocsin.hook.watching import watch
from tocsin.loop.step_arrows import LOGGED
from tocsin.process import lifetime

_CHECKPOINT = "checkpoint_then_stop"


class Watcher:
    """One training of a trainer. Nothing here raises: what goes wrong is counted by the hook."""

    def __init__(self, options: Mapping[str, Any]) -> None:
        """``options``: of ``watch()``."""
        self._options = dict(options)
        self._own = False  # the hook was opened here, and ends here
        self.hook: Optional[Hook] = None
        self.stopped: Optional[StopRequest] = None
        self.checkpoint: Optional[str] = None  # written after the stop was asked for
        self._metrics: Set[str] = set()
        self.agreed = False  # all ranks leave, because one is asked to

    @property
    def active(self) -> bool:
        return self.hook is not None and self.hook.enabled

    def open(self, model: Any, optimizers: Any, steps: int = 0) -> None:
        """``steps``: updates that a checkpoint brings along."""
        before = lifetime.open_hook()
        own = self._own and self.hook is before  # a trainer that begins once more, say with less memory
        self.stopped = self.checkpoint = None
        self.agreed = False
        self._metrics.clear()
        self.hook = None  # of a training before this one, and closed: an estimator may be fitted again
        for optimizer in optimizers:
            self.hook = watch(model, optimizer, **self._options)
        if self.hook is None:
            self.hook = watch(model, **self._options)
        self._own = own or self.hook is not before
        if steps > 0 and self.active and self.hook.step_number == 0:
            self.hook.load_state_dict({"steps": {"train": steps}, "global_step": steps})

    def asked(self) -> Optional[StopRequest]:
        """The stop that is wanted of this process; from then on it is known as ``stopped``."""
        if self.active and self.stopped is None:
            self.stopped = self.hook.should_stop()
        return self.stopped

    def wants_checkpoint(self) -> bool:
        return self.stopped is not None and self.stopped.mode == _CHECKPOINT

    def end(self) -> None:
        """The trainer has left its loop."""
        if not self.active:
            return
        if self.agreed:
            self.asked()  # this rank's client may have read the command a moment later
        if self.stopped is not None:
            self.hook.acknowledge_stop(checkpoint=self.checkpoint)
        if self._own:
            self.hook.close()

    def fail(self, error: BaseException) -> None:
        """The trainer ends with what was raised."""
        if self.active and self._own:
            self.hook.close(**lifetime.ending_of(type(error), error))

    def log(self, values: Mapping[str, Any]) -> None:
        if self.active and values:
            self.hook.log(values)

    def log_metrics(self, values: Mapping[str, Any], roles: Mapping[str, str]) -> None:
        """The same for metrics; ``roles`` says what each new name is: ``loss`` where it is to become small."""
        if self.active:
            with self.hook.sink.guard("metrics"):
                for name in values:
                    if name not in self._metrics:
                        self._metrics.add(name)
                        self.hook.sink.scalar(name, roles.get(name, "metric"))
            self.log(values)

    def tensors(self, named: Callable[[], Iterable[Tuple[str, Any, str]]]) -> None:
        """Statistics of arrays, given as (name, array, role), when any are due at this step: only then
        is ``named`` called, since most frameworks copy an array to hand it out."""
        if not self.active:
            return
        sink = self.hook.sink
        with sink.guard("tensors"):
            if not sink.publishes(False) or not sink.wants():
                return
            sink.publish_lent(None, 0)  # what copying costs is the framework's
            for name, value, role in named():
                sink.publish_tensor(name, value, None, role=role)

    def evaluated(self, loss: Any) -> None:
        """A batch of an evaluation. Its step stays open: what is logged after the last one is part of
        it, and another mode ends it."""
        if not self.active or loss is None:
            return
        with self.hook.sink.guard("evaluation"):
            self.hook.sink.catch_up()
            if self.hook.sink.clock.state is LOGGED:
                self.hook.step()
        self.hook.log(loss=loss)


def scalars(values: Mapping[str, Any], without: Any = ()) -> Dict[str, Any]:
    """Of what a trainer logs, what is a number or a tensor of one element."""
    return {name: value for name, value in values.items() if name not in without
            and (isinstance(value, (int, float)) or getattr(value, "numel", lambda: 0)() == 1)}


def loss_of(output: Any) -> Any:
    """The loss in what a model or a training step gives back, detached, or None."""
    get = getattr(output, "get", None)
    loss = get("loss") if callable(get) else getattr(output, "loss", None)
    if loss is None and hasattr(output, "detach"):
        loss = output
    if getattr(loss, "numel", lambda: 0)() != 1:
        return None
    return loss.detach()


def any_rank(flag: bool, device: Any) -> bool:
    """Whether the flag is set on any rank of torch.distributed: all then leave at the same step. A
    collective: every rank calls it at the same place."""
    distributed = getattr(sys.modules.get("torch"), "distributed", None)
    if distributed is None or not distributed.is_available() or not distributed.is_initialized() \
            or distributed.get_world_size() == 1:
        return flag
    votes = sys.modules["torch"].tensor(float(flag), device=device)
    distributed.all_reduce(votes)
    return bool(votes)
