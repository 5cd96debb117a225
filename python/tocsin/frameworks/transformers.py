"""Hugging Face Transformers::

    from tocsin.transformers import TocsinCallback
    trainer = Trainer(..., callbacks=[TocsinCallback()])

Watches model and optimizer, logs the loss of every step (of every batch in evaluations) and what the
Trainer logs, and ends training when a rule asks for it.
"""

from typing import Any, List, Optional

from transformers import TrainerCallback

from tocsin.hook.commands import StopRequest
from .callback import Watcher, any_rank, loss_of, scalars
from .copies import Copyable
from .monitors import Monitors

# The hook has the first from the optimizer itself; the others say nothing about the training.
_NOT_LOGGED = ("learning_rate", "total_flos")


class TocsinCallback(Copyable, TrainerCallback):
    """``options`` are those of :func:`tocsin.watch` (``out``, ``run``, ``job``, ``capture``, …).

    After training ``stopped`` is the :class:`tocsin.StopRequest` that ended it, or None.
    """

    def __init__(self, **options: Any) -> None:
        self._watcher = Watcher(options)
        self._handle: Optional[Any] = None  # of the hook on the model's forward
        self._losses: List[Any] = []  # of the micro-batches since the last update
        self._summed = False  # they are shares of one loss
        self._monitors = Monitors()

    @property
    def stopped(self) -> Optional[StopRequest]:
        return self._watcher.stopped

    # ---- begin and end

    def on_train_begin(self, args: Any, state: Any, control: Any, model: Any = None,
                       optimizer: Any = None, **_: Any) -> None:
        self._watcher.open(model, [] if optimizer is None else [optimizer], state.global_step)
        self._release()
        if self._watcher.active:
            with self._watcher.hook.sink.guard("transformers"):
                self._plan(args, state)
        # A compiled model would break its graph for a hook; the Trainer's own average is logged then.
        if self._watcher.active and model is not None and not getattr(args, "torch_compile", False):
            self._handle = model.register_forward_hook(self._forward, with_kwargs=True)

    def _plan(self, args: Any, state: Any) -> None:
        self._watcher.hook.sink.plan.say(
            updates=state.max_steps if state.max_steps > 0 else None,
            epochs=args.num_train_epochs if args.max_steps <= 0 else None, accumulation=args.gradient_accumulation_steps,
            early_stopping=float(bool(args.load_best_model_at_end)))  # EarlyStoppingCallback asks for it

    def on_train_end(self, args: Any, state: Any, control: Any, **_: Any) -> None:
        self._release()
        self._watcher.end()

    def _release(self) -> None:
        if self._handle is not None:
            self._handle.remove()
        self._handle, self._losses = None, []

    # ---- steps

    def _forward(self, model: Any, args: Any, kwargs: Any, output: Any) -> None:
        if not self._watcher.active:  # a copy of the model has a copy of this callback, which watches nothing
            return
        with self._watcher.hook.sink.guard("transformers"):
            loss = loss_of(output) if not hasattr(output, "detach") else None
            if loss is not None:
                self._summed = kwargs.get("num_items_in_batch") is not None
                self._losses.append(loss)

    def _take_loss(self) -> Any:
        losses, self._losses = self._losses, []
        if not losses:
            return None
        total = sum(losses[1:], losses[0])
        return total if self._summed or len(losses) == 1 else total / len(losses)

    def on_step_begin(self, args: Any, state: Any, control: Any, **_: Any) -> None:
        """All has been said of the step before."""
        if self._watcher.active:
            self._watcher.hook.sink.clock.close()
            self._losses = []

    def on_pre_optimizer_step(self, args: Any, state: Any, control: Any, **_: Any) -> None:
        if not self._watcher.active:
            return
        sink = self._watcher.hook.sink
        with sink.guard("transformers"):
            sink.catch_up()
            loss = self._take_loss()
            if loss is not None:
                sink.publish_scalar("loss", loss)  # what the Trainer logs after the update is added

    def on_optimizer_step(self, args: Any, state: Any, control: Any, optimizer: Any = None,
                          **_: Any) -> None:
        """An update that mixed precision left out never reached the optimizer, and counts."""
        if self._watcher.active and getattr(optimizer, "step_was_skipped", False):
            self._watcher.hook.step(skipped=True)

    def on_step_end(self, args: Any, state: Any, control: Any, **_: Any) -> Any:
        stop = self._watcher.asked() is not None
        if any_rank(stop, args.device):
            self._watcher.agreed = True
            control.should_training_stop = True
            control.should_save = control.should_save or self._watcher.wants_checkpoint()
        return control

    def on_save(self, args: Any, state: Any, control: Any, **_: Any) -> None:
        if self._watcher.wants_checkpoint():
            self._watcher.checkpoint = f"{args.output_dir}/checkpoint-{state.global_step}"

    # ---- what is logged

    def on_log(self, args: Any, state: Any, control: Any, logs: Any = None, **_: Any) -> None:
        if not logs or "train_runtime" in logs:  # the summary: all steps are over
            return
        known = ("loss",) if self._handle is not None else ()
        self._watcher.log(scalars(logs, _NOT_LOGGED + known))

    def on_evaluate(self, args: Any, state: Any, control: Any, model: Any = None, **loaders: Any) -> None:
        if self._watcher.active:
            with self._watcher.hook.sink.guard("monitors"):
                self._monitors.transformers(self._watcher.hook.sink, model, args, loaders)

    def on_prediction_step(self, args: Any, state: Any, control: Any, **_: Any) -> None:
        self._watcher.evaluated(self._take_loss())
