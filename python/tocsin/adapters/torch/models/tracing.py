"""When a PyTorch model is looked at and not run: compiled, traced, exported, transformed, applied with other parameters.

Hooks stand aside then: the graph is that of a model without hooks, nothing raises, and nothing of such a pass is published.
"""

import sys
from typing import Any, Callable

# Who runs a model for a graph of it, also once more to compare the two, or with parameters that are not its own.
_LOOKING = ("torch.jit._trace", "torch.onnx", "torch.export", "torch._export", "torch.fx._symbolic_trace", "torch.fx.experimental",
            "torch._functorch", "torch.nn.utils.stateless")
_STAND_INS = ("Proxy", "FakeTensor", "FunctionalTensor")
_MODES = ("PROXY", "FAKE", "FUNCTIONAL")


def looking() -> Callable[[Any], bool]:
    """A function of a hook's inputs: whether a compiler, a tracer or a transformation applies the module, or with what stands
    for tensors. Called at every pass, so it is quick; a compiler finds that it is constant."""
    torch = sys.modules["torch"]
    compiling = getattr(getattr(torch, "compiler", None), "is_compiling", bool)  # torch 1 has none: bool() is False
    tracing = getattr(torch._C, "_get_tracing_state", type(None))
    transformed = getattr(getattr(torch._C, "_functorch", None), "peek_interpreter_stack", type(None))
    mode = getattr(torch._C, "_get_dispatch_mode", _nothing)
    keys = [getattr(torch._C._TorchDispatchModeKey, name) for name in _MODES
            if hasattr(torch._C._TorchDispatchModeKey, name)] if hasattr(torch._C, "_TorchDispatchModeKey") else []
    modes_on, tensor = getattr(torch._C, "_len_torch_dispatch_stack", int), torch.Tensor

    def asked(given: Any) -> bool:
        if compiling() or tracing() is not None or transformed() is not None:
            return True
        if modes_on() and any(mode(key) is not None for key in keys):
            return True
        for value in given if type(given) is tuple else ():
            if value.is_meta if type(value) is tensor else _stands_for_one(value):
                return True
        return False

    return asked


def on_whose_behalf() -> bool:
    """Whether the pass that goes on is one of a tracer, an exporter or ``functional_call``, although tensors are real and
    nothing is recorded: the callers say so. Slower than looking(): for passes of which something would be published."""
    frame = sys._getframe(1)
    while frame is not None:
        name = frame.f_globals.get("__name__", "")
        if type(name) is str and name.startswith("torch.") and name.startswith(_LOOKING):
            return True
        frame = frame.f_back  # type: ignore[assignment]
    return False


def _stands_for_one(value: Any) -> bool:
    kind = type(value)
    return kind.__name__ in _STAND_INS and kind.__module__.startswith("torch.")


def _nothing(*_: Any) -> None:
    return None
