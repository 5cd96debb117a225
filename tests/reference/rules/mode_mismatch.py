"""40 mode_mismatch (detection quality, section 3), from the scalar `model_training` (the hook's) or `training` of a step: 1 while the model is in its training state.
Below 1 (the mean over workers) for `steps` train steps in a row, or 1 at every step of an evaluation pass."""
import math
import re

from tests.reference.history import last_step, mean, value
from tests.reference.judging import HIT, INSUFFICIENT, OK, Evaluation, selects, wants

DEFAULTS = {"steps": 3}
TOCSIN = {}
NEW = True


def chosen(p, row):
    if p["collection_names"] or p["tensor_regex"]:
        return selects(p, row)
    return bool(re.search(r"(^|[/.])(model_)?training$", row.name))


def evaluate(p, history):
    out, row = [], {}
    for points in history.passes():
        mode, found = points[0].mode, {}
        for point in points:
            for name, by_rank in point.values.items():
                rows = [pair for pair in by_rank if wants(p, pair[1], ("train", "eval")) and chosen(p, pair[1])]
                if rows:
                    found.setdefault(name, []).append((point.step, value(rows)))
        for name, values in sorted(found.items()):
            number = mean([one for _, one in values])
            outcome, kinds = OK, ("",)
            if not math.isfinite(number):
                outcome = INSUFFICIENT
            elif mode == "eval":
                outcome, kinds = (HIT, ("train_state_in_evaluation",)) if number >= 1 else (OK, ("",))
            else:
                row[name] = row.get(name, 0) + 1 if number < 1 else 0
                if row[name] >= p["steps"]:
                    outcome, kinds = HIT, ("eval_state_in_training",)
            out.append(Evaluation((("metric", name), ("mode", mode)), outcome, last_step(p, points), kinds))
    return out
