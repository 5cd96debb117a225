"""What the best constant answer to the targets so far would be, per unit of an output.

=========  ============================================================  ==========================================
family     loss                                                          constant
=========  ============================================================  ==========================================
switch     binary cross-entropy, from probabilities or scores            share of ones, moved by ``pos_weight``
mean       squared error                                                 mean
median     absolute error                                                median of the last targets
root       Huber's and the smooth absolute error                         where their slopes cancel, of the last targets
normal     normal distribution                                           mean, and variance where outputs give it
rate       Poisson                                                       mean
shares     divergence from a distribution                                mean distribution
=========  ============================================================  ==========================================

The last targets are at most 256 rows, 16 of a call; where a sample has more than 512 units they are pooled. So are all of an
output whose samples change their size. Nothing is random, and nothing is waited for.
"""

from typing import Any, Dict, Optional, Tuple

from .host import numpy_of

MAX_APART = 512  # units with last targets of their own
MAX_KEPT = 1 << 14  # numbers of these
FEW, MANY = 32, 256  # rows of these
OF_A_CALL = 16
_NORMAL = 8  # samples that tell a variance
_HALVINGS = 32

Constant = Tuple[Any, Dict[str, Any]]  # (an output for each row, what it changes beside)


def constant_of(torch: Any, given: Any, state: Dict[str, Any], units: Any, family: str) -> Optional[Constant]:
    """None: there was no target before, or too few."""
    if not state.get("rows") or (family == "normal" and state["rows"] < _NORMAL):
        return None
    width = units.outputs.shape[1]
    if state["width"] not in (1, width):
        _pool(state)
    beside: Dict[str, Any] = {}
    if family in ("median", "root"):
        answer = _middle(torch, given, state, family)
    elif family == "switch":
        answer = _switch(torch, given, units, (state["sum"] + 0.5) / (state["weight"] + 1.0))
    elif family == "shares":
        share = (state["sum"] + 0.5) / (state["sum"] + 0.5).sum() * (units.targets.shape[1] if state["width"] == 1 else 1.0)
        answer = share.log()
        if state["width"] == 1:
            answer = answer - answer.new_tensor(float(width)).log()
    else:
        mean = state["sum"] / state["weight"]
        if family == "rate":
            mean = mean.maximum(0.5 / state["weight"])
            mean = mean.log() if given.values["log_input"] else mean
        elif family == "normal" and not state["given"]:
            mean_square = state["squares"] / state["weight"]
            variance = (mean_square - (state["sum"] / state["weight"]) ** 2).clamp(min=0)
            beside["var"] = variance.to(units.outputs.dtype).expand_as(units.outputs)
        answer = mean + state["pivot"] if family == "normal" else mean
    return answer.to(units.outputs.dtype).expand_as(units.outputs), beside


def learn(torch: Any, given: Any, state: Dict[str, Any], units: Any, family: str) -> None:
    """Adds the targets of a call. A number that is not finite is none."""
    targets = units.targets
    count, width = targets.shape
    if state.get("width") not in (None, 1, width):
        _pool(state)
    pooled = state.get("width") == 1 and width > 1
    state["rows"] = state.get("rows", 0) + count
    state.setdefault("width", width)
    if family in ("median", "root"):
        _keep(torch, state, targets, pooled)
        return
    values = targets.double()
    finite = values.isfinite()
    values = torch.where(finite, values, torch.zeros_like(values))
    weight = finite.double()
    if family == "switch" and "weight" in units.beside:
        weight = weight * units.beside["weight"]
    if family == "normal":
        state["given"] = not given.values["var"].requires_grad
        if "pivot" not in state:
            state["pivot"] = values.mean(0)
        values = values - state["pivot"]
    sums = {"sum": (values * weight).sum(0), "weight": weight.sum(0)}
    if family == "normal":
        sums["squares"] = (values * values * weight).sum(0)
    for name, one in sums.items():
        one = one.sum(0, keepdim=True) if pooled else one
        state[name] = state[name] + one if name in state else one


def _pool(state: Dict[str, Any]) -> None:
    """From now on all units have one constant."""
    for name in ("sum", "weight", "squares"):
        if name in state:
            state[name] = state[name].sum(0, keepdim=True)
    if "pivot" in state:
        state["pivot"] = state["pivot"].mean(0, keepdim=True)
    if "kept" in state:
        state["kept"] = state["kept"][:, :1].clone()
    state["width"] = 1


def _switch(torch: Any, given: Any, units: Any, share: Any) -> Any:
    weight = units.beside.get("pos_weight")
    if weight is not None:
        weight = weight[:1].double()
        share = weight * share / (weight * share + 1 - share)
    return share if given.name == "binary_cross_entropy" else share.log() - (1 - share).log()


def _keep(torch: Any, state: Dict[str, Any], targets: Any, pooled: bool) -> None:
    width = targets.shape[1]
    if width > MAX_APART or pooled:
        targets = targets.reshape(-1, 1)[::width + 1 if width > 1 else 1]
        if state["width"] != 1:
            state["width"] = 1
    size = max(FEW, min(MANY, MAX_KEPT // targets.shape[1]))
    apart = -(-targets.shape[0] // OF_A_CALL)
    some = targets[::apart]
    kept = state.get("kept")
    state["kept"] = some.clone() if kept is None else torch.cat((kept, some))[-size:]


def _middle(torch: Any, given: Any, state: Dict[str, Any], family: str) -> Any:
    kept = state["kept"]
    ordered = kept.sort(0)[0]
    count = ordered.shape[0]
    middle = (ordered[(count - 1) // 2] + ordered[count // 2]) / 2
    if family == "median":
        return middle
    bound = float(given.values["beta" if given.name == "smooth_l1_loss" else "delta"])
    if bound == 0.0:
        return middle
    low, high = ordered[0], ordered[-1]
    np = numpy_of(kept)
    if np is not None:
        return torch.from_numpy(_root(np, kept.numpy(), low.numpy(), high.numpy(), bound))
    for _ in range(_HALVINGS):
        half = (low + high) / 2
        up = (kept - half).clamp(-bound, bound).sum(0) > 0
        low, high = torch.where(up, half, low), torch.where(up, high, half)
    return (low + high) / 2


def _root(np: Any, kept: Any, low: Any, high: Any, bound: float) -> Any:
    for _ in range(_HALVINGS):
        half = (low + high) * 0.5
        up = np.minimum(np.maximum(kept - half, -bound), bound).sum(0) > 0
        low, high = np.where(up, half, low), np.where(up, high, half)
    return (low + high) * 0.5
