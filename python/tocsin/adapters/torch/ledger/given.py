"""What watched models were given last: the tensors of the batch, by weak reference.

A model gets a hook before its forward pass, and its parts do until it was applied as a whole: a loop may apply parts and never the model
(``self.net(x)`` in a LightningModule). Of parts the one counts that a training step applies first.
"""

import sys
import weakref
from typing import Any, Callable, List, Optional, Tuple

from tocsin.adapters.torch.models.copies import Hook, uncount
from tocsin.adapters.torch.models.modules import _compiling, _is_loss, _root_of, is_compiled
from tocsin.adapters.torch.models.phases import can_be_timed
from tocsin.adapters.torch.models.scripting import hide_from_scripting, show_to_scripting
from .models import Followed

MAX_PARTS = 16  # of a model, that are applied by themselves
MAX_TENSORS = 4  # of a batch


class Given:
    """Of one ledger."""

    def __init__(self, sink: Any, looked_at: Callable[[Any], bool], passes_over: Callable[[], int]) -> None:
        """``passes_over``: how many of the next loss calls surely ask nobody for what the pass that begins now is given."""
        self.sink, self.passes_over, self._looked_at = sink, passes_over, looked_at
        torch = sys.modules["torch"]
        self._plain = torch.Tensor
        self._undo: List[Callable[[], None]] = []
        self.last: Tuple["weakref.ref[Any]", ...] = ()
        self.training = False  # the mode of the model that was given these
        self.passes = 0

    def tensors(self) -> List[Any]:
        """Of the last pass, in the order in which they were given; those that are alive."""
        return [one for one in (known() for known in self.last) if one is not None]

    def rows(self, count: int) -> List[Any]:
        """Those of them that have ``count`` rows."""
        return [one for one in self.tensors() if one.dim() > 0 and one.shape[0] == count]

    def follow(self, model: Any, passes: Followed) -> Callable[[], None]:
        """Another model is watched, until the function that is given back is called. ``passes``: its other hooks of the ledger, which
        rest while loss calls are passed over."""
        compiled = is_compiled(model)
        if not can_be_timed(model):
            return _nothing
        root = model if compiled else _root_of(model)
        parts = [] if compiled else [one for one in root.children() if not _is_loss(one) and can_be_timed(one)][:MAX_PARTS]
        hooked = [root, *parts]
        uncount(model, hooked)
        hide_from_scripting(hooked)
        followed = _Given(passes)
        handles = [_register(one, _Begins(self, followed, one, one is root)) for one in hooked]
        followed.drop = lambda: [handle.remove() for handle in handles[1:]]
        known = [weakref.ref(one) for one in hooked]

        def undo() -> None:
            for handle in handles:
                handle.remove()
            if handles:
                handles.clear()
                show_to_scripting(one() for one in known)

        self._undo.append(undo)
        return undo

    def detach(self) -> None:
        for undo in self._undo:
            undo()
        self._undo, self.last = [], ()

    def begins(self, followed: "_Given", is_root: bool, module: Any, args: Any, kwargs: Any) -> None:
        """A model, or a part of it, is applied; ``module``: a weak reference to it."""
        part = module()
        if part is None or not self.sink.active:
            return
        left = self.passes_over() if followed.rooted and part.training else 0
        if left:
            self.last = ()  # what an earlier pass was given is not this one's
            followed.passes.pass_over(left)
            return
        if self._looked_at(args):
            return
        followed.passes.wake()
        if is_root:
            if not followed.rooted:
                followed.rooted = True
                followed.drop()
        elif followed.rooted or not followed.is_first(module, part):
            return
        tensors = _tensors(self._plain, args, kwargs)
        self.last = tuple(weakref.ref(one) for one in tensors)
        self.training, self.passes = part.training, self.passes + 1


class _Begins(Hook):
    """Before a forward pass. Most are passed over: then it is one call, the first in milliseconds."""

    __slots__ = ("_given", "_followed", "_module", "_root", "_compiling")

    def __init__(self, given: Given, followed: "_Given", module: Any, root: bool) -> None:
        self._given, self._followed, self._module, self._root = weakref.ref(given), followed, weakref.ref(module), root
        self._compiling = _compiling()

    def __call__(self, module: Any, args: Any, kwargs: Any = None) -> None:
        if self._compiling():
            return
        given = self._given()
        if given is None:
            return
        passes = self._followed.passes
        if passes.rests and module.training:
            passes.left = given.passes_over()
            if passes.left:
                given.last = ()
                return
        try:
            given.begins(self._followed, self._root, self._module, args, kwargs)
        except Exception as error:  # noqa: BLE001
            given.sink.failed("ledger", error)


class _Given:
    """One model."""

    def __init__(self, passes: Followed) -> None:
        self.passes = passes
        self.rooted = False  # it was applied itself, so its parts are no models
        self.first: Optional["weakref.ref[Any]"] = None  # part that training applies first
        self.drop: Callable[[], Any] = _nothing

    def is_first(self, known: "weakref.ref[Any]", part: Any) -> bool:
        if self.first is None or self.first() is None:
            if not part.training:
                return False
            self.first = known
        return self.first() is part


def _tensors(plain: type, args: Any, kwargs: Any) -> List[Any]:
    """Ordinary ones in host or device memory, of nested values too."""
    out: List[Any] = []
    pending = [*args, *(kwargs or {}).values()]
    while pending and len(out) < MAX_TENSORS:
        value = pending.pop(0)
        if type(value) is plain:
            if value.layout is _strided() and value.device.type != "meta":
                out.append(value)
        elif isinstance(value, (tuple, list)):
            pending[:0] = value[:16]
        elif isinstance(value, dict) or (hasattr(value, "values") and hasattr(value, "keys")):
            pending[:0] = list(value.values())[:16]
    return out


def _strided() -> Any:
    return sys.modules["torch"].strided


def _register(module: Any, hook: Any) -> Any:
    try:
        return module.register_forward_pre_hook(hook, with_kwargs=True)
    except TypeError:  # torch 1
        return module.register_forward_pre_hook(hook)


def _nothing() -> None:
    pass
