"""Whether a PyTorch model computes anything else in its eval state than in its training state."""

from typing import Any

_OWN = "torch.nn."


def state_matters(model: Any) -> bool:
    """A model without dropout and running statistics need not be told of ``eval()``, and many scripts do
    not: its flag ``training`` says nothing then. Of modules that are not PyTorch's own it counts that
    their ``forward`` looks at the flag."""
    modules = getattr(model, "modules", None)
    return modules is None or any(_differs(module) for module in modules())


def _differs(module: Any) -> bool:
    kind = type(module)
    if not kind.__module__.startswith(_OWN):
        code = getattr(getattr(kind, "forward", None), "__code__", None)
        return code is not None and "training" in code.co_names
    if getattr(module, "track_running_stats", False) or kind.__name__ == "RReLU":
        return True
    share = getattr(module, "p" if "Dropout" in kind.__name__ else "dropout", 0)
    return isinstance(share, (int, float)) and share > 0
