"""The ledger's sums of calls in host memory, by NumPy: a call of torch takes longer than what it computes of a few numbers.

The same as classes.py and rows.py have, which compute all else, and everything where torch was
built without NumPy. Tests compare both.
"""

import math
import sys
from typing import Any, Dict

from .by_class import add_on_host, table_of

MOST = 1 << 14  # numbers that are computed with in binary64
ANY = 1 << 62
TIE, FAR = 1e-6, 1e30  # as in rows.py

_found: Any = False


def numpy_of(tensor: Any, most: int = 0) -> Any:
    """NumPy, if it can read this tensor of at most so many numbers (0: ``MOST``); else None."""
    global _found
    if _found is False:
        try:
            sys.modules["torch"].zeros(1).numpy()
            _found = sys.modules.get("numpy")
        except Exception:  # noqa: BLE001
            _found = None
    return None if tensor.device.type != "cpu" or tensor.numel() > (most or MOST) else _found


def compare(np: Any, straight: Any, crossed: Any, differ: Any) -> Dict[str, float]:
    """Of pairs, as arrays."""
    straight, crossed = straight.astype("d"), crossed.astype("d")
    differ = differ & (straight == straight) & (crossed == crossed)
    near, far = np.minimum(straight, FAR), np.minimum(crossed, FAR)
    changed = differ & (np.abs(far - near) > TIE * np.abs(far))
    known = differ & (near < FAR) & (far < FAR)
    return {"pairs": float(np.count_nonzero(changed)), "wins": float(np.count_nonzero(changed & (near < far))),
            "straight": float(straight[known].sum()), "crossed": float(crossed[known].sum())}


def spread(np: Any, values: Any) -> float:
    """The mean over columns of the variance over rows, times their number."""
    if values.size <= MOST:
        values = values.astype("d")
    values = values - values.sum(0) / values.shape[0]
    return float(np.einsum("ij,ij->i", values, values).sum(dtype="d")) / max(values.shape[1], 1)


class HostClasses:
    """A label for each row of scores. Many scores are not widened, and their logarithms are torch's."""

    def __init__(self, given: Any, scores: Any, target: Any, rows: Any) -> None:
        """``scores``, ``target``: tensors of the rows that count."""
        self._given, self._rows = given, rows
        self._many = scores if scores.numel() > MOST else None
        self._scores, self._target = scores.numpy(), target.numpy()
        if self._many is None:
            self._scores = self._scores.astype("d")
        weight = given.values.get("weight")
        self._weight = None if weight is None else weight.detach().cpu().numpy().astype("d")
        self._smoothing = float(given.values.get("label_smoothing", 0.0))

    def told(self, np: Any, torch: Any, state: Dict[str, Any], learns: bool, rough: float, certain: int) -> Dict[str, float]:
        """As _Classes.told()."""
        with np.errstate(all="ignore"):
            return self._told(np, torch, state, learns, rough, certain)

    def _told(self, np: Any, torch: Any, state: Dict[str, Any], learns: bool, rough: float, certain: int) -> Dict[str, float]:
        given, scores, target, half = self._given, self._scores, self._target, self._rows.half
        count, classes = scores.shape
        logs = scores
        if given.name == "cross_entropy" and self._many is not None:
            logs = torch.log_softmax(self._many, 1).numpy()
        elif given.name == "cross_entropy":
            logs = scores - scores.max(1, keepdims=True)
            logs = logs - np.log(np.exp(logs).sum(1, keepdims=True))
        place = np.arange(count)
        flat = self._flat(logs)
        own = logs[place, target].astype("d")
        loss = flat - self._found(own, target)
        others, mine = target[half:2 * half], target[:half]
        swapped = np.concatenate((others, mine))
        exchanged = logs[place[:2 * half], swapped].astype("d")
        crossed = (flat if isinstance(flat, float) else flat[:2 * half]) - self._found(exchanged, swapped)
        pair = compare(np, loss[:half] + loss[half:2 * half], crossed[:half] + crossed[half:], mine != others)
        here = np.bincount(target, minlength=classes)
        before = state.get("counts")
        known = here * 0.0 if before is None else before.numpy()
        share = (known if self._weight is None else known * self._weight) + 0.5
        share = share / share.sum() * (1 - self._smoothing) + self._smoothing / classes
        shares = np.log(share)
        trivial = self._flat(shares[None]) - self._found(shares[target], target)
        if learns:
            state["counts"] = torch.from_numpy(known + here)
        factor = 1.0
        if self._weight is not None and given.reduction() == "mean":
            factor = float(count / self._weight[target].sum())
        answer = scores.argmax(1)
        answers, table = np.bincount(answer, minlength=classes), table_of(torch, state, learns, classes, "cpu")
        if table is not None:
            add_on_host(np, table.numpy(), target, half, own, exchanged, answer, here, answers)
        out = {"samples": float(count), "loss": float(loss.sum()) * factor, "trivial": float(trivial.sum()) * factor,
               "past": float(np.count_nonzero(known) > 1), **pair, "output_spread": spread(np, scores),
               "target_spread": count - float(here @ here) / count, "one_target": float(here.max() == count),
               "right": float(np.count_nonzero(answer == target)),
               "answers": float(answers.max()), "labels": float(here.max())}
        out["straight"], out["crossed"] = out["straight"] * factor, out["crossed"] * factor
        if given.name == "cross_entropy" and classes >= 2:
            out["ceiling"] = math.log(math.e + classes - 1) - 1
            out["_ceiling"] = float(count >= certain and scores.min() >= 0 and scores.max() <= 1
                                    and np.abs(scores.sum(1) - 1).max() < rough)
        return out

    def _flat(self, logs: Any) -> Any:
        """Of each row what smoothing adds, whatever the label."""
        if not self._smoothing:
            return 0.0
        return (logs.sum(1, dtype="d") if self._weight is None else logs @ self._weight) * (-self._smoothing / self._scores.shape[1])

    def _found(self, logs: Any, target: Any) -> Any:
        """The part of the label, whose weight goes with it."""
        logs = logs if self._weight is None else logs * self._weight[target]
        return logs * (1 - self._smoothing) if self._smoothing else logs
