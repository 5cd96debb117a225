"""Lightning (``lightning`` or ``pytorch_lightning``)::

    from tocsin.lightning import TocsinCallback
    trainer = Trainer(..., callbacks=[TocsinCallback()])

Watches the module and its optimizers, logs the loss of every update (of every batch in validation)
and what the module logs, and ends training when a rule asks for it.
"""

import math
import os
import sys
from time import time_ns
from typing import Any, Dict, List, Optional, Set

from tocsin.hook.commands import StopRequest
from tocsin.loop.phases import PASSES, without_passes
from tocsin.process.callers import any_named
from .callback import Watcher, loss_of, scalars
from .copies import Copyable
from .monitors import Monitors

if "lightning.pytorch" in sys.modules or "pytorch_lightning" not in sys.modules:
    from lightning.pytorch.callbacks import Callback
else:
    from pytorch_lightning.callbacks import Callback


class TocsinCallback(Copyable, Callback):
    """``options`` are those of :func:`tocsin.watch` (``out``, ``run``, ``job``, ``capture``, …).

    After training ``stopped`` is the :class:`tocsin.StopRequest` that ended it, or None.
    """

    _carried = ("_from_environment",)

    def __init__(self, **options: Any) -> None:
        super().__init__()
        said = options.pop("phases", True)
        mine = PASSES | {"optimizer"}
        self._timed = frozenset(mine if said is True else () if said is False else mine.intersection(
            [said] if isinstance(said, str) else said))
        # Of the module's own forward() a Trainer on one device calls only what training_step() calls.
        self._watcher = Watcher({**options, "phases": without_passes(said)})
        self._since: Dict[str, int] = {}  # phase that goes on -> when it began
        self._losses: List[Any] = []  # of the micro-batches since the last update
        self._updates = 0
        self._resumed: Dict[str, Any] = {}
        self._of_training: Set[str] = set()  # names of metrics: the Trainer keeps all in one place
        self._of_validation: Set[str] = set()
        self._from_environment = False
        self._monitors = Monitors()

    @property
    def state_key(self) -> str:
        """Of the callback's place in a checkpoint: a script's own and the entry point's are two."""
        return type(self).__qualname__ + ("(environment)" if self._from_environment else "")

    @property
    def stopped(self) -> Optional[StopRequest]:
        return self._watcher.stopped

    # ---- begin and end

    def on_train_start(self, trainer: Any, pl_module: Any) -> None:
        mine = [one for one in trainer.callbacks if isinstance(one, TocsinCallback)]
        if mine[0] is not self:  # an entry point added one, the script another
            return
        self._updates = trainer.global_step
        self._watcher.open(pl_module, trainer.optimizers, int(self._resumed.get("train", 0)))
        if self._watcher.active:
            with self._watcher.hook.sink.guard("lightning"):
                self._plan(trainer, pl_module)
            phases = self._watcher.hook.sink.phases
            self._timed = phases.wanted(self._timed)
            if "initialization" in self._timed:
                self._since["initialization"] = phases.take_opened()

    def _plan(self, trainer: Any, pl_module: Any) -> None:
        """What the Trainer will do: with manual optimization it counts batches, whatever they update."""
        if trainer.fast_dev_run:
            return
        stops = any_named(trainer.callbacks, "EarlyStopping", "Timer")
        updates = trainer.estimated_stepping_batches if pl_module.automatic_optimization else math.inf
        self._watcher.hook.sink.plan.say(
            updates=updates if 0 < updates < math.inf else None, accumulation=trainer.accumulate_grad_batches,
            epochs=trainer.max_epochs if trainer.max_steps < 0 and (trainer.max_epochs or 0) > 0 else None, early_stopping=float(stops))

    def on_train_end(self, trainer: Any, pl_module: Any) -> None:
        if self._watcher.active and self._watcher.wants_checkpoint():
            path = os.path.join(trainer.default_root_dir, f"stopped-at-{trainer.global_step}.ckpt")
            try:
                with self._watcher.hook.checkpointing():
                    trainer.save_checkpoint(path)  # all ranks take part
                self._watcher.checkpoint = path
            except Exception as error:  # noqa: BLE001
                self._watcher.hook.errors.add("lightning", error)
        self._watcher.end()

    def on_exception(self, trainer: Any, pl_module: Any, exception: BaseException) -> None:
        self._watcher.fail(exception)

    def state_dict(self) -> Dict[str, Any]:
        if self._watcher.active:
            return dict(self._watcher.hook.state_dict().get("steps", {}))
        return {}

    def load_state_dict(self, state_dict: Dict[str, Any]) -> None:
        self._resumed = dict(state_dict)

    # ---- times of phases

    def _begin(self, phase: str) -> None:
        if phase in self._timed:
            self._since[phase] = time_ns()

    def _end(self, phase: str) -> None:
        began = self._since.pop(phase, 0)
        if began and self._watcher.active:
            sink = self._watcher.hook.sink
            with sink.guard("lightning"):
                sink.phases.of(phase)(began, time_ns() - began)

    def on_train_batch_start(self, trainer: Any, pl_module: Any, batch: Any, batch_idx: int) -> None:
        self._end("initialization")
        self._begin("forward")

    def on_before_backward(self, trainer: Any, pl_module: Any, loss: Any) -> None:
        self._end("forward")
        self._begin("backward")

    def on_after_backward(self, trainer: Any, pl_module: Any) -> None:
        self._end("backward")

    def on_before_optimizer_step(self, trainer: Any, pl_module: Any, optimizer: Any) -> None:
        if pl_module.automatic_optimization:  # else one may follow another
            self._begin("optimizer")

    def on_validation_start(self, trainer: Any, pl_module: Any) -> None:
        self._begin("evaluation")

    # ---- steps

    def on_train_batch_end(self, trainer: Any, pl_module: Any, outputs: Any, batch: Any,
                           batch_idx: int) -> None:
        self._end("optimizer")
        if self._watcher.active:
            with self._watcher.hook.sink.guard("lightning"):
                self._say(trainer, outputs)
        stop = self._watcher.asked() is not None
        if trainer.strategy.reduce_boolean_decision(stop, all=False):
            self._watcher.agreed = True
            trainer.should_stop = True

    def _say(self, trainer: Any, outputs: Any) -> None:
        loss = loss_of(outputs)
        if loss is not None:
            self._losses.append(loss)
        if trainer.global_step == self._updates:
            return  # a micro-batch
        self._updates = trainer.global_step
        values: Dict[str, Any] = {}
        losses, self._losses = self._losses, []
        if losses:
            values["loss"] = sum(losses[1:], losses[0]) / len(losses)
        if self._updates % max(trainer.log_every_n_steps, 1) == 0:
            metrics = scalars(trainer.callback_metrics, self._of_validation)
            self._of_training.update(metrics)
            values = {**metrics, **values}
        if values:
            self._watcher.log(values)
        else:
            self._watcher.hook.sink.clock.close()

    # ---- validation

    def on_validation_batch_end(self, trainer: Any, pl_module: Any, outputs: Any, batch: Any,
                                batch_idx: int, dataloader_idx: int = 0) -> None:
        if not trainer.sanity_checking:
            self._watcher.evaluated(loss_of(outputs))

    def on_validation_end(self, trainer: Any, pl_module: Any) -> None:
        self._end("evaluation")
        if not trainer.sanity_checking:
            metrics = scalars(trainer.callback_metrics, self._of_training)
            self._of_validation.update(metrics)
            self._watcher.log(metrics)
            if self._watcher.active:
                with self._watcher.hook.sink.guard("monitors"):
                    self._monitors.lightning(self._watcher.hook.sink, trainer, pl_module)


def callbacks() -> List[Any]:
    """For the entry point ``lightning.pytorch.callbacks_factory``: a callback without a line in the
    script, only where the environment says where telemetry goes."""
    wanted = any(os.environ.get(name) for name in ("TOCSIN_RUN", "TOCSIN_OUT", "TOCSIN_BROKERS"))
    if not wanted:
        return []
    callback = TocsinCallback()
    callback._from_environment = True
    return [callback]
