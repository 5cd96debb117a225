"""Whether what is kept of a training is what was trained: checkpoints that lack parameters, and a best state that was never copied.

``torch.save`` and ``load_state_dict()`` are looked at while a hook is open; they do what they did before. Neither stands in a step.
"""

import collections
import functools
import sys
from typing import Any, Counter, Dict, List, Optional, Set, Tuple

from tocsin.adapters.torch.optimizers.zero import is_deepspeed
from tocsin.loop.sink import Sink
from tocsin.process.facts import say
from tocsin.process.replacing import Replacing
from tocsin.tensors.torch_names import is_sharded

_LOOKS = 8  # at checkpoints
_DEPTH, _ENTRIES, _MAX_NAMES = 6, 65_536, 20  # a data set that is saved is not gone through
LACKS = ("a checkpoint has the state of the optimizer of {}, but not {} of the parameters that it trains, save the modules that hold them too: {}")
NOT_COPIED = ("load_state_dict() of {} was given the tensors of the model itself and changes nothing, keep a good state as "
              "copy.deepcopy(model.state_dict())")


class Checkpoints(Replacing):
    """Of one hook."""

    def __init__(self, sink: Sink) -> None:
        super().__init__()
        self._sink = sink
        self._looks = 0
        self._told: Set[str] = set()
        with sink.guard("checkpoints"):
            kind = sys.modules["torch"].nn.Module
            self.replace(kind, "load_state_dict", self._around_loading(vars(kind)["load_state_dict"]))
        sink.attach(self)

    def around_saving(self, inner: Any) -> Any:
        @functools.wraps(inner)
        def save(*args: Any, **kwargs: Any) -> Any:
            if self._undo and self._sink.active and self._looks < _LOOKS:
                with self._sink.guard("checkpoints"):
                    self._looks += 1
                    self._saved(args[0] if args else kwargs.get("obj"))
            return inner(*args, **kwargs)

        return save

    # ---- torch.save

    def _saved(self, value: Any) -> None:
        found = _Content()
        if not found.add(value, 0) or not found.optimizers or not found.shapes:
            return
        for state in found.optimizers:
            lacking: List[Tuple[str, List[str]]] = []
            for adapter in self._sink.adapters():
                if not hasattr(adapter, "named_parameters"):
                    continue
                model, optimizer = adapter.parts()
                if optimizer is None or is_deepspeed(optimizer) or not _is_of(state, optimizer):
                    continue
                named = adapter.named_parameters()
                names = [] if is_sharded(model, [one for _, one in named]) else found.lacks(named)
                lacking.append(("the model" if model is None else type(model).__name__, names))
                if 2 * len(names) >= len(named):
                    lacking.append(("", []))  # the weights lie in a file of their own
            if lacking and all(names for _, names in lacking):
                what, names = lacking[0]
                self._tell("checkpoint_lacks", what, names, LACKS.format(what, len(names), ", ".join(names[:5])))

    # ---- load_state_dict

    def _around_loading(self, inner: Any) -> Any:
        @functools.wraps(inner)
        def load_state_dict(module: Any, state_dict: Any, *args: Any, **kwargs: Any) -> Any:
            if self._undo and self._sink.active:
                with self._sink.guard("checkpoints"):
                    self._loaded(module, state_dict)
            return inner(module, state_dict, *args, **kwargs)

        return load_state_dict

    def _loaded(self, module: Any, state: Any) -> None:
        models = [one.parts()[0] for one in self._sink.adapters() if hasattr(one, "named_parameters")]
        if not any(one is not None and (one is module or getattr(one, "module", None) is module) for one in models):
            return
        own = [(name, one) for name, one in module.named_parameters() if one.requires_grad]
        given = [state.get(name) if hasattr(state, "get") else None for name, _ in own]
        if own and self._sink.plan.updates_done() > 0 and all(_is_same(one, other) for (_, one), other in zip(own, given)):
            what = type(module).__name__
            self._tell("best_not_copied", what, [], NOT_COPIED.format(what))

    def _tell(self, kind: str, model: str, names: List[str], text: str) -> None:
        if kind not in self._told:
            self._told.add(kind)
            self._sink.preflight([{"kind": kind, "model": model, "count": len(names), "names": names[:_MAX_NAMES]}], [])
            say(text)


class _Content:
    """What a checkpoint holds: shapes of tensors, and states of optimizers."""

    def __init__(self) -> None:
        self.shapes: Counter[Tuple[int, ...]] = collections.Counter()
        self.places: Set[int] = set()
        self.optimizers: List[Any] = []
        self._left = _ENTRIES

    def add(self, value: Any, depth: int) -> bool:
        """False: something in it is not known, and may hold tensors."""
        torch = sys.modules["torch"]
        self._left -= 1
        if value is None or isinstance(value, (str, bytes, int, float, complex, torch.dtype, torch.device, torch.Size, type)):
            return True
        if depth > _DEPTH or self._left < 0 or (isinstance(value, (dict, list, tuple, set)) and len(value) > self._left):
            return False
        if isinstance(value, torch.Tensor):
            if value.layout is torch.strided and type(value) in (torch.Tensor, torch.nn.Parameter):
                self.shapes[tuple(value.shape)] += 1
                self.places.add(int(value.data_ptr()))
                return True
            return False
        if isinstance(value, torch.nn.Module):
            return self.add(value.state_dict(), depth + 1)
        if isinstance(value, torch.optim.Optimizer):
            return self.add(value.state_dict(), depth + 1)
        if isinstance(value, dict):
            if "param_groups" in value and "state" in value:
                self.optimizers.append(value)
                return True
            return all([self.add(one, depth + 1) for one in value.values()])
        if isinstance(value, (list, tuple, set)):
            return all([self.add(one, depth + 1) for one in value])
        if type(value).__name__ == "Namespace":
            return self.add(vars(value), depth + 1)
        return type(value).__module__.split(".")[0] in ("numpy", "pathlib", "datetime")

    def lacks(self, named: List[Tuple[str, Any]]) -> List[str]:
        """Names of parameters whose shape is not there as often as it is trained."""
        there, out = collections.Counter(self.shapes), []
        ordered = sorted(named, key=lambda one: int(one[1].data_ptr()) not in self.places)  # those that are surely there come first
        for name, one in ordered:
            shape = tuple(one.shape)
            if there[shape] > 0:
                there[shape] -= 1
            else:
                out.append(name)
        return out


def _is_of(state: Dict[str, Any], optimizer: Any) -> bool:
    """A saved state may be one of this optimizer: its groups are as long, and what it remembers is as large."""
    groups = state["param_groups"]
    if not isinstance(groups, list) or [len(one.get("params", ())) for one in groups] != [len(one["params"]) for one in optimizer.param_groups]:
        return False
    flat = [one for group in optimizer.param_groups for one in group["params"]]
    for key, kept in state["state"].items() if isinstance(state["state"], dict) else ():
        one: Optional[Any] = flat[key] if isinstance(key, int) and key < len(flat) else None
        if one is None or not isinstance(kept, dict):
            return False
        moments = [value for value in kept.values() if hasattr(value, "numel") and value.numel() > 1]
        if moments and all(int(value.numel()) != int(one.numel()) for value in moments):
            return False
    return True


def _is_same(one: Any, other: Any) -> bool:
    return hasattr(other, "data_ptr") and one.numel() > 0 and other.shape == one.shape and other.data_ptr() == one.data_ptr() != 0
