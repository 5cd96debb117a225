"""What the ledger sees of the models that a hook watches: whole numbers that they are given, and, where the script's loss
calls no function of torch, what their outputs are compared with.

A model and its parts get a hook on their forward pass. These are taken out again at the second update where loss functions are
called and the model's input is no whole numbers, so most models have none; and else while loss calls are passed over. Where
none is called, a sampled step has a hook on the model's output: z and its gradient G tell targets of cross-entropies
(adapters/torch/models/targets.py), and of a squared error t = z − N·G/(2s), if N²·mean(G²)/(4·L) = s with the loss L that
``backward()`` is called on. s is 1, or for sums the number of units or elements; it is checked each time, and believed the
third time in a row.
"""

import sys
import threading
import weakref
from typing import Any, Callable, Dict, List, Optional, Tuple

from tocsin.adapters.torch.models.copies import Hook, uncount
from tocsin.adapters.torch.models.modules import _compiling, _is_loss, _root_of, _tensors, is_compiled
from tocsin.adapters.torch.models.phases import can_be_timed
from tocsin.adapters.torch.models.scripting import hide_from_scripting, show_to_scripting
from tocsin.adapters.torch.models.targets import IGNORED, LOGITS, SWITCHES, _fits, _on_host, read_targets
from tocsin.tensors.torch_staging import Arrival
from .calls import Arguments

MAX_PARTS = 16  # of a model, that are applied by themselves
RESTS = 2  # passes in a row whose loss calls are passed over, after which a model's hooks are taken out
TRIES = 3  # gradients that tell nothing in a row, and none is asked for any more; or that tell a squared error
_EXACT = 1e-3
_OTHERS = ("label", "target", "mask", "position", "type", "cache", "len")  # what else is whole numbers, by a part of its name


class Models:
    """Of one ledger."""

    def __init__(self, sink: Any, asks: Callable[[], bool], calls: Callable[[], int], found: Callable[[Arguments, Any], None],
                 looked_at: Callable[[Any], bool], passes_over: Callable[[], int]) -> None:
        """``asks``: whether this step is measured; ``calls``: of loss functions so far; ``found``: is given a call, and a
        function that ends a wait. All three for training. ``passes_over``: how many of the next loss calls surely are not measured."""
        self.sink, self._asks, self._calls, self._found, self._looked_at = sink, asks, calls, found, looked_at
        self._passes_over = passes_over
        self._followed: List["Followed"] = []
        self._input: Callable[[], Any] = _nobody
        self.rooted = False  # a watched model was applied as a whole: its passes are seen
        self._left = TRIES
        self._squared = 0  # in a row
        self._pending = False  # an output waits for its gradient
        self._loss: Any = None  # that backward() goes on of
        self._replaced = False

    def follow(self, model: Any) -> "Followed":
        """Another model is watched, until ``end()`` of what is given back."""
        if is_compiled(model) or not can_be_timed(model):
            return Followed([])
        root = _root_of(model)
        parts = [one for one in root.children() if not _is_loss(one) and can_be_timed(one)][:MAX_PARTS]
        hooked = [root, *parts]
        uncount(model, hooked)
        followed = Followed(hooked)
        followed.hook(lambda one: _Passed(weakref.ref(self), followed, one is root))
        self._followed.append(followed)
        return followed

    def wake(self, calls: int) -> None:
        """The loss call that follows may be measured; ``calls``: of a step. A model whose pass of this step was not seen may be compiled
        by now, and hooks that come back would have it compiled again."""
        for followed in self._followed:
            if 0 < followed.left <= calls:
                followed.wake()

    def detach(self) -> None:
        for followed in self._followed:
            followed.end()
        self._followed = []
        self._input = _nobody
        if self._replaced:
            self._replaced = False
            _watch_backward(self, False)

    def input(self) -> Any:
        """Whole numbers that the model was given last, as far as they live."""
        return self._input()

    # ---- a pass

    def passed(self, followed: "Followed", root: bool, module: Any, given: Tuple[Any, ...], named: Dict[str, Any], output: Any) -> None:
        """The model, or a part of it, was applied."""
        sink = self.sink
        if not sink.active:
            return
        if module.training and self._passes_over():
            self._input = _nobody  # what an earlier pass was given is not this one's
            return
        if self._looked_at(given):
            return
        whole = _whole_number(given, named)
        if whole is not None:  # of a part, too: a model that computes its own loss has not ended when that is called
            self._input = weakref.ref(whole)
        if followed.rooted and not root:
            return
        followed.rooted = followed.rooted or root
        self.rooted = self.rooted or root
        if not module.training or not sys.modules["torch"].is_grad_enabled() or sink.clock.position()[1] < 1:
            return
        if self._calls() or self._left <= 0:
            if whole is None and self._input() is None:
                self.detach()
        elif self._asks():
            self._ask(output)

    def _ask(self, output: Any) -> None:
        told = [one for one in _tensors(output) if _fits(one) and one.numel() <= 1 << 16]
        if not told:
            return
        if not self._replaced:
            self._replaced = True
            _watch_backward(self, True)
        output = min(told, key=lambda one: one.dim() > 2)
        kept, whole, self._pending = output.detach(), output.shape, True

        def arrived(gradient: Any) -> None:
            if not self._pending:
                return  # of a part before the one whose gradient came first
            self._pending = False
            with self.sink.guard("ledger"):
                if self.sink.active and gradient.shape == whole:
                    self._read_later(kept, gradient.detach())

        output.register_hook(arrived)

    def _read_later(self, output: Any, gradient: Any) -> None:
        loss = self._loss
        if not output.is_cuda:
            self._read(output, gradient, None if loss is None else float(loss), True)
            return
        torch = sys.modules["torch"]
        (moved,), _ = _on_host([(output, gradient)])
        kept = torch.full((), float("nan"), pin_memory=True) if loss is None else torch.empty((), dtype=loss.dtype, pin_memory=True)
        if loss is not None:
            kept.copy_(loss, non_blocking=True)
        event = torch.cuda.Event()
        event.record(torch.cuda.current_stream(output.device))
        self.sink.queue.put(lambda: self._read(*moved, float(kept), False), after=Arrival(event))

    def _read(self, output: Any, gradient: Any, loss: Optional[float], now: bool) -> None:
        torch = sys.modules["torch"]
        with torch.no_grad():
            if not bool(torch.isfinite(gradient).all() & (gradient != 0).any()):
                return
            given = self._classes(output, gradient) or self._squared_error(output, gradient, loss)
        if given is None:
            self._left -= 1 if self._left <= TRIES else 0
        elif given is not _WAIT:
            self._left = TRIES + 1
            self._found(given, now)

    @staticmethod
    def _classes(output: Any, gradient: Any) -> Any:
        found = read_targets(output, gradient)
        if found is None or found.loss not in (LOGITS, SWITCHES):
            return None
        targets = found.targets.reshape(-1)
        if found.loss == LOGITS:
            return Arguments("cross_entropy", (found.predictions.reshape(len(targets), -1), targets), {})
        kept = targets != IGNORED
        return Arguments("binary_cross_entropy_with_logits", (
            found.predictions.reshape(-1)[kept][:, None], targets[kept][:, None].to(found.predictions.dtype)), {})

    def _squared_error(self, output: Any, gradient: Any, loss: Optional[float]) -> Any:
        scale = None if loss is None else squared_error(output, gradient, loss)
        self._squared = 0 if scale is None else self._squared + 1
        if scale is None:
            return None
        if self._squared < TRIES:
            return _WAIT
        targets = output.double() - gradient.double() * (output.numel() / (2 * scale))
        return Arguments("mse_loss", (output.double(), targets), {})


def squared_error(output: Any, gradient: Any, loss: float) -> Optional[float]:
    """s of the identity above; None: the loss is no squared error of this output."""
    if not loss > 0:
        return None
    count = output.numel()
    ratio = float((gradient.double() ** 2).mean()) * count * count / (4 * loss)
    for scale in (1.0, float(count // max(output.shape[0], 1)), float(count)):
        if abs(ratio / scale - 1) < _EXACT:
            return scale
    return None


_WAIT: Any = object()


class Followed:
    """One model: its hooks, which are taken out while loss calls are passed over."""

    def __init__(self, modules: List[Any]) -> None:
        self.rooted = False  # it was applied itself, so its parts are no models
        self._modules = [weakref.ref(one) for one in modules]
        self._hooks: List["_Passed"] = []
        self._handles: List[Any] = []
        self._thread = threading.get_ident()
        self._passed_over = 0  # passes of training, in a row
        self.rests = False  # hooks are taken out until ``wake()``
        self.left = 0  # loss calls to be passed over, at the newest pass of training

    def hook(self, hook_of: Callable[[Any], "_Passed"]) -> None:
        self._hooks = [hook_of(one()) for one in self._modules]
        self.wake()

    def pass_over(self, left: int) -> None:
        """The loss call that follows a pass of training is passed over, as so many are."""
        self.left = left
        self._passed_over += 1
        if self._passed_over == RESTS and threading.get_ident() == self._thread:  # not while another thread calls them
            self._take_out()
            self.rests = True

    def wake(self) -> None:
        """The loss call that follows may be measured."""
        if threading.get_ident() != self._thread:
            return
        self.rests, self._passed_over, self.left = False, 0, 0
        if self._handles:
            return
        modules = [(one(), hook) for one, hook in zip(self._modules, self._hooks)]
        hide_from_scripting(one for one, _ in modules)
        self._handles = [_register(one, hook) for one, hook in modules if one is not None]

    def end(self) -> None:
        self._take_out()
        if self._hooks:
            self._hooks = []
            show_to_scripting(one() for one in self._modules)

    def _take_out(self) -> None:
        for handle in self._handles:
            handle.remove()
        self._handles = []


class _Passed(Hook):
    __slots__ = ("_models", "_followed", "_root", "_compiling")

    def __init__(self, models: Callable[[], Optional[Models]], followed: Followed, root: bool) -> None:
        self._models, self._followed, self._root = models, followed, root
        self._compiling = _compiling()

    def __call__(self, module: Any, given: Any, *rest: Any) -> None:
        if self._compiling():
            return
        models = self._models()
        if models is None:
            return
        try:
            models.passed(self._followed, self._root, module, given, rest[0] if len(rest) > 1 else {}, rest[-1])
        except Exception as error:  # noqa: BLE001
            models.sink.failed("ledger", error)


def _register(module: Any, hook: _Passed) -> Any:
    try:
        return module.register_forward_hook(hook, with_kwargs=True)
    except TypeError:  # torch 1
        return module.register_forward_hook(hook)


def _whole_number(given: Tuple[Any, ...], named: Dict[str, Any]) -> Any:
    for name, value in (*(("", one) for one in given), *named.items()):
        if hasattr(value, "is_floating_point") and not any(one in name for one in _OTHERS) and value.dim() > 0 \
                and not value.is_floating_point() and not value.is_complex() and value.dtype is not sys.modules["torch"].bool:
            return value
    return None


_watching: List[Models] = []
_backward: Any = None


def _watch_backward(models: Models, on: bool) -> None:
    """``torch.Tensor.backward`` says which loss it goes on of, while there is a model whose loss calls no function of torch."""
    global _backward
    tensor = sys.modules["torch"].Tensor
    if on:
        if not _watching:
            _backward = tensor.backward
            tensor.backward = _instead_of(_backward)
        _watching.append(models)
        return
    if models in _watching:
        _watching.remove(models)
    if not _watching and getattr(tensor.backward, "__wrapped__", None) is _backward:
        tensor.backward = _backward


def _instead_of(backward: Any) -> Any:
    import functools

    @functools.wraps(backward)
    def instead(self: Any, *args: Any, **kwargs: Any) -> Any:
        for models in _watching:
            models._loss = self.detach() if models._pending and self.dim() == 0 else None
        try:
            return backward(self, *args, **kwargs)
        finally:
            for models in _watching:
                models._loss, models._pending = None, False

    return instead


def _nobody() -> None:
    return None
