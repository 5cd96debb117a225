"""MXNet's Gluon blocks, as the original's hook takes them: ``register_block``."""

import sys
from typing import Any


def register(hook: Any, block: Any) -> None:
    if not hasattr(block, "register_forward_pre_hook"):
        raise TypeError(f"register_block: a Gluon block, not {type(block).__name__}")
    if type(block).__name__.endswith("Loss"):
        block.register_forward_hook(lambda block, inputs, output: _loss(hook, output))
    else:
        block.register_forward_pre_hook(Steps(hook))


def _loss(hook: Any, output: Any) -> None:
    if hook.enabled:
        with hook.sink.guard("register_block"):
            hook.log(loss=float(output.mean().asscalar()))


class Steps:
    """The block is applied while gradients are recorded: what the step before has computed is read, and ends."""

    def __init__(self, hook: Any) -> None:
        self._hook = hook
        self._begun = False

    def __call__(self, block: Any, inputs: Any) -> None:
        hook = self._hook
        autograd = getattr(sys.modules.get("mxnet"), "autograd", None)
        if not hook.enabled or autograd is None or not autograd.is_recording():
            return
        with hook.sink.guard("register_block"):
            if self._begun:
                self._values(block)
                hook.step()
            self._begun = True

    def _values(self, block: Any) -> None:
        if not self._hook.should_save_step():
            return  # asnumpy() waits for the arrays
        for name, parameter in block.collect_params().items():
            role = "bias" if name.endswith("bias") else "weight"
            self._hook.emit(name, parameter.data().asnumpy(), role=role)
            if parameter.grad_req != "null":
                self._hook.emit("gradient/" + name, parameter.grad().asnumpy(), role="gradient")

