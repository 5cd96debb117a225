"""The loss functions of ``torch.nn.functional``, replaced while a hook is open.

Modules call them under these names, so loss modules come along. A name that a script imported before
(``from torch.nn.functional import cross_entropy``) is the script's own and is not seen. What is called in the place of a
function calls it with the same arguments and returns what it returns; afterwards it tells the open ledgers.

Straight through: while a compiler or a tracer looks, with functorch's transformations, and with arguments that override
torch functions (tensor subclasses, FX proxies). ``torch.jit.script`` compiles the function itself.
"""

import functools
import sys
import types
from typing import Any, Callable, Dict, List, Tuple

from tocsin.adapters.torch.first_updates.loss_weight import listening, tell as tell_weight
from .embeddings import NAMES as EMBEDDINGS

NAMES = ("cross_entropy", "nll_loss", "binary_cross_entropy", "binary_cross_entropy_with_logits", "mse_loss", "l1_loss",
         "smooth_l1_loss", "huber_loss", "gaussian_nll_loss", "poisson_nll_loss", "kl_div")

_open: List[Any] = []  # ledgers
_replaced: Dict[str, Tuple[Callable[..., Any], Callable[..., Any]]] = {}  # name -> (the function, what stands for it)


def tell(ledger: Any) -> None:
    """From now on ``ledger.called(name, args, kwargs)`` follows each call, as long as ``ledger.skip`` is 0;
    where it is not and gradients are recorded, it is lowered by one, and ``ledger.wakes()`` follows when that makes it 0. Calls that
    are given embeddings are followed by ``ledger.embedded(name, args, kwargs)``."""
    if not _open:
        _replace()
    _open.append(ledger)


def tell_no_more(ledger: Any) -> None:
    """The last one puts the functions back. One that somebody has replaced in between stays his."""
    if ledger in _open:
        _open.remove(ledger)
    if not _open:
        functional = sys.modules["torch"].nn.functional
        for name, (function, instead) in _replaced.items():
            if getattr(functional, name, None) is instead:
                setattr(functional, name, function)
        _replaced.clear()


def original(name: str) -> Callable[..., Any]:
    """The function of torch."""
    found = _replaced.get(name)
    return found[0] if found is not None else getattr(sys.modules["torch"].nn.functional, name)  # type: ignore[no-any-return]


def _replace() -> None:
    torch = sys.modules["torch"]
    for name in NAMES + EMBEDDINGS:
        function = getattr(torch.nn.functional, name, None)
        if isinstance(function, types.FunctionType):
            instead = _instead_of(torch, name, function)
            _replaced[name] = function, instead
            setattr(torch.nn.functional, name, instead)


def _instead_of(torch: Any, name: str, function: Any) -> Callable[..., Any]:
    compiling = _compiling(torch)
    overrides = torch.overrides.has_torch_function
    grad, plain = torch.is_grad_enabled, (torch.Tensor, torch.nn.Parameter)
    embedding = name in EMBEDDINGS

    @functools.wraps(function)
    def instead(*args: Any, **kwargs: Any) -> Any:
        if compiling():
            return function(*args, **kwargs)
        if overrides(args) or (kwargs and overrides(tuple(kwargs.values()))):
            result = _apart(name, function)(*args, **kwargs)
            if any(_overrides(one, plain) for one in (*args, *kwargs.values())):
                return result  # otherwise a mode does, such as that of a default device
        else:
            result = function(*args, **kwargs)
        for ledger in _open:
            if embedding:
                if grad():
                    ledger.embedded(name, args, kwargs)
            elif ledger.skip and grad():
                ledger.skip -= 1
                if not ledger.skip:
                    ledger.wakes()
            else:
                ledger.called(name, args, kwargs)
        if listening and not embedding:
            tell_weight(result, kwargs.get("reduction", "mean"))
        return result

    # As torch marks its own wrappers for torch.jit.script: it compiles the function, in the place of this one.
    setattr(instead, "__script_if_tracing_wrapper", True)
    setattr(instead, "__original_fn", function)
    return instead


def _overrides(value: Any, plain: Tuple[type, ...]) -> bool:
    return type(value) not in plain and hasattr(type(value), "__torch_function__")


def _apart(name: str, function: Any) -> Any:
    """The function, for arguments that override it: it hands itself to them by the name that stands in its module, and
    they know it, and not what stands in its place."""
    own = dict(function.__globals__, **{name: function})
    twin = types.FunctionType(function.__code__, own, function.__name__, function.__defaults__, function.__closure__)
    twin.__kwdefaults__ = function.__kwdefaults__
    return twin


def _compiling(torch: Any) -> Callable[[], bool]:
    """Whether a compiler traces; torch 1 has none: ``bool()`` is False."""
    return getattr(getattr(torch, "compiler", None), "is_compiling", bool)
