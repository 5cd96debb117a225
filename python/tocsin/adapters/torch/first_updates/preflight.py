"""What the first updates of a model show: parts of it that do not train."""

from typing import Any, Dict, List, Optional, Sequence, Set, Tuple

from tocsin.adapters.torch.models.state import state_matters
from tocsin.adapters.torch.optimizers.kept import KeptGradient
from tocsin.adapters.torch.optimizers.zero import held
from tocsin.loop.sink import Sink
from .clipping import SENTENCES, Clipping
from .fresh import FrozenFresh, mark
from .lag import parameters_of_targets
from .loss_weight import LossWeight
from .norms import Norms, SENTENCE as BUFFERS
from .order import Order
from .order_words import findings
from .scaler_order import ScalerOrder
from .settings import betas_swapped, decay_negative, dropouts, dropouts_in_eval

CHECKS = 22  # kinds of findings that tell() looks for
UPDATES = 3  # looked at: a part that has no gradient in one of them may have one in the next
_MAX_NAMES, _SHOWN = 20, 5


class Preflight:
    """Of one model and its optimizer. ``look()`` is called at each update until it says True."""

    def __init__(self, sink: Sink, model: Any, optimizer: Any) -> None:
        self._updates = 0
        self._fresh = FrozenFresh()
        try:
            self._fresh.look(model)
        except Exception as error:  # noqa: BLE001
            sink.failed("preflight", error)
        self._without: Optional[Set[int]] = None  # parameters that never had a gradient, by id()
        self._evaluating = True
        self._kept, self._clipping = KeptGradient(), Clipping(sink)
        self._order = None if optimizer is None else Order(sink, optimizer)
        self._scaler = ScalerOrder(sink) if optimizer is not None and sink.wants_ledger else None
        self._weight = LossWeight(sink) if optimizer is not None and sink.wants_ledger else None
        self._norms = Norms()
        self._dropouts: List[str] = []
        self._silent: Optional[List[str]] = None  # dropouts in eval state, at each update so far
        self._others: Dict[int, Any] = {}  # parameters that this optimizer does not hold, as they were

    def look(self, model: Any, optimizer: Any) -> bool:
        """Whether enough was seen. Gradients are there, and not used yet."""
        without = {id(parameter) for parameter in trainable(optimizer) if parameter.grad is None}
        self._without = without if self._without is None else self._without & without
        self._evaluating = self._evaluating and model is not None and not model.training
        if self._updates == 0 and self._evaluating:
            self._evaluating = state_matters(model)
        if self._updates == 0 and model is not None:
            own = {id(parameter) for parameter in trainable(optimizer)}
            self._others = {id(parameter): mark(parameter) for parameter in model.parameters()
                            if parameter.requires_grad and id(parameter) not in own}
        if self._updates == 0:
            self._dropouts = dropouts(model)
        silent = dropouts_in_eval(model, {id(parameter) for parameter in trainable(optimizer)}) if self._silent != [] else []
        self._silent = silent if self._silent is None else [name for name in self._silent if name in silent]
        self._kept.update(optimizer, trainable(optimizer))
        self._clipping.update(optimizer, trainable(optimizer))
        if self._order is not None:
            self._order.update(optimizer, trainable(optimizer))
        if self._scaler is not None:
            self._scaler.update(optimizer)
        if self._weight is not None:
            self._weight.update(self._updates == 0)
        if self._updates > 0:
            self._norms.look()
        elif model is not None:
            self._norms.begin(model)
        self._updates += 1
        if self._updates >= UPDATES:
            self.end()
        return self._updates >= UPDATES

    def end(self) -> None:
        """What was replaced and hooked for it is put back."""
        for part in (self._clipping, self._order, self._scaler, self._weight):
            if part is not None:
                part.end()

    def tell(self, sink: Sink, model: Any, optimizer: Any, names: Dict[int, str],
             others: Sequence[Tuple[Any, Any]], sharded: bool) -> None:
        """Says what was found. ``names`` of the model's parameters by id(); ``others``: the models and
        optimizers that are watched, this one's among them."""
        what = _name_of(model)
        told: List[Dict[str, Any]] = []
        words: List[str] = []

        def find(kind: str, found: Sequence[str], count: int, text: str) -> None:
            told.append({"kind": kind, "model": what, "count": count,
                         "names": list(found[:_MAX_NAMES])})
            words.append(text + _listed(found, count))

        updated = {id(parameter) for _, other in others if other is not None
                   for parameter in trainable(other)}
        if model is not None:
            targets = parameters_of_targets(model, updated)
            unheld = [parameter for parameter in _unique(model.parameters())
                      if parameter.requires_grad and id(parameter) not in updated and id(parameter) not in targets]
            moved = [names[id(parameter)] for parameter in unheld if self._has_moved(parameter)]
            idle = [names[id(parameter)] for parameter in unheld if not self._has_moved(parameter)]
            if moved:
                words.append(f"{_count(moved, 'trainable ')} of {what} {_are(moved)} updated by an "
                             "optimizer that is not watched, watch(model, optimizer) takes it too"
                             + _listed(moved, len(moved)))
            if idle:
                find("no_optimizer", idle, len(idle), f"{_count(idle, 'trainable ')} of {what} "
                     f"{_are(idle)} in no watched optimizer, and "
                     f"{'does' if len(idle) == 1 else 'do'} not change")
            known = {id(parameter) for other, _ in others if other is not None
                     for parameter in other.parameters()}
            foreign = [parameter for parameter in trainable(optimizer) if id(parameter) not in known]
            if foreign:
                find("foreign_parameters", [], len(foreign), f"the optimizer of {what} holds "
                     f"{_count(foreign)} that the model does not have")
        # A rank may hold nothing of a sharded parameter.
        cleared = self._order is not None and self._order.cleared()
        without = [] if sharded or cleared else [names.get(id(parameter), "without a name")
                                      for parameter in trainable(optimizer)
                                      if id(parameter) in (self._without or ())]
        if without:
            find("no_gradient", without, len(without), f"{_count(without)} of {what} got no gradient")
        for kind, listed, count, text in [] if self._order is None or sharded else findings(
                self._order, self._scaler, self._weight, what, names, sink.plan.get("accumulation")):
            find(kind, listed, count, text)
        norms = self._norms.names()
        if norms:
            find("buffers_kept", norms, len(norms), BUFFERS.format(what, len(norms)))
        if self._kept.kept() and not sharded:
            find("gradients_kept", [], 0, f"gradients of {what} are never cleared, so each update sums all gradients since "
                 "the first: call optimizer.zero_grad()")
        clipped = self._clipping.kind()
        if clipped is not None:
            find(clipped, [], 0, SENTENCES[clipped].format(what))
        betas = betas_swapped(optimizer)
        if betas is not None:
            find("betas_swapped", [str(one) for one in betas], 2, f"the optimizer of {what} cannot converge: its first beta must be "
                 "below the square root of the second (are they in the wrong order?)")
        decay = decay_negative(optimizer)
        if decay is not None:
            find("decay_negative", [str(decay)], 1, f"the optimizer of {what} pushes weights away from zero: its weight decay is negative")
        fresh = self._fresh.names()
        if fresh:
            find("frozen_fresh", fresh, len(fresh), f"{_count(fresh, 'frozen ')} of {what} {'has' if len(fresh) == 1 else 'have'} "
                 "freshly initialised values (were pretrained weights not loaded?)")
        if self._dropouts:
            find("dropout_high", self._dropouts, len(self._dropouts), f"{len(self._dropouts)} of the dropouts of {what} drop nine tenths "
                 "or more of their input (is it the share to keep?)")
        if self._silent:
            find("parts_in_eval", self._silent, len(self._silent), f"{len(self._silent)} of the dropouts of {what} "
                 f"{_are(self._silent)} in evaluation mode during training (call train() after from_pretrained())")
        if self._evaluating:
            find("eval_mode", [], 0, f"{what} is trained in evaluation mode")
        if not told:  # for the run card
            told.append({"kind": "kept", "model": what, "count": CHECKS, "names": []})
        sink.preflight(told, words)

    def _has_moved(self, parameter: Any) -> bool:
        """An optimizer that we do not see has changed it since the first update."""
        before = self._others.get(id(parameter))
        return before is not None and mark(parameter) != before


def trainable(optimizer: Any) -> List[Any]:
    """An optimizer's parameters, each once."""
    return [parameter for parameter in _unique(held(optimizer)) if parameter.requires_grad]


def _unique(parameters: Any) -> List[Any]:
    return list({id(parameter): parameter for parameter in parameters}.values())


def _name_of(model: Any) -> str:
    for inner in ("_orig_mod", "module"):
        model = getattr(model, inner, model)
    return "the model" if model is None else type(model).__name__


def _count(items: Sequence[Any], what: str = "") -> str:
    return f"{len(items)} {what}parameter{'' if len(items) == 1 else 's'}"


def _are(items: Sequence[Any]) -> str:
    return "is" if len(items) == 1 else "are"


def _listed(names: Sequence[str], count: int) -> str:
    shown = list(names[:_SHOWN])
    if not shown:
        return ""
    more = f" and {count - len(shown)} more" if count > len(shown) else ""
    return ": " + ", ".join(shown) + more
