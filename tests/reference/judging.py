"""What all rules share: parameters and presets, which rows a rule looks at, the life of a unit, and the status of a rule
(built-in rules 0.1, 0.3, 0.5)."""
import dataclasses
import importlib
import math
import pathlib
import re

OK, HIT, INSUFFICIENT, NOT_APPLICABLE, ERROR = "ok", "hit", "insufficient_data", "not_applicable", "error"

ROLES = {"weights": {"weight"}, "biases": {"bias"}, "gradients": {"gradient"}, "losses": {"loss"}, "metrics": {"metric"},
         "inputs": {"input"}, "outputs": {"output", "label", "prediction"}, "layers": {"activation_in", "activation_out"},
         "optimizer_variables": {"optimizer"}, "hyperparameters": {"hyperparameter"}, "ledger": {"ledger"}, "predictions": {"prediction"},
         "labels": {"label"}, "feature_importance": {"importance"}, "full_shap": {"shap"}, "trees": {"tree"}}
ALL_MODES = ("global", "train", "eval", "predict")
TRAINING = ("train", "global")
FLOATING = {"f32", "f64", "f16", "bf16", "f8_e4m3", "f8_e5m2", "c64", "c128", "unknown"}

SHARED = {"collection_names": (), "tensor_regex": (), "modes": (), "workers": (), "start_step": 0, "end_step": None,
          "min_hits": 1, "clear_after": 3, "max_open_units": 20}


@dataclasses.dataclass
class Evaluation:
    """One answer for one unit: what the evaluation of the unit came to, and where."""
    unit: tuple          # (("metric", "loss"), ("mode", "train")): the labels, without the kind
    outcome: str
    step: int            # or a time, for rules that judge by a clock
    kinds: tuple = ("",)
    mode: str = ""       # of the step, where the unit joins modes and its evaluations stand in several


@dataclasses.dataclass
class Episode:
    """An issue from its first report to its end; resolved None: it fired until the end of the run."""
    rule: str
    kind: str
    unit: tuple
    first: int
    resolved: int = None
    mode: str = ""


def parameters(rule, given, preset):
    """All effective parameters of a rule: shared, its own, those of the preset, and what was given."""
    own = dict(rule.DEFAULTS)
    own.update(rule.TOCSIN if preset == "tocsin" else {})
    unknown = set() if getattr(rule, "BRINGS", None) else set(given) - set(own) - set(SHARED) - {"cooldown", "severity"}
    if unknown:
        raise ValueError(f"unknown parameters {unknown}")
    known = {**SHARED, **own}  # a rule may have another min_hits
    typed = {name: _typed(known.get(name), value) for name, value in given.items()}
    return {**known, **typed, "preset": preset}


def _typed(default, value):
    """In the original every value is a text: it is taken as what it spells."""
    if isinstance(value, str) and isinstance(default, bool):
        return value.lower() == "true"
    if isinstance(value, str) and isinstance(default, (int, float)):
        return float(value.removesuffix("s"))  # also a duration in seconds
    return value


def selects(p, row, roles=(), everything=False):
    """Union of collections and patterns; the rule's own choice only when the user gives neither."""
    names, patterns = p["collection_names"], p["tensor_regex"]
    if not names and not patterns:
        return everything or row.known.role in roles
    for name in names:
        if name == "all" or row.known.role in ROLES.get(name, ()) or name in row.known.collections:
            return True
    return any(re.search(pattern, row.name) for pattern in patterns)


def wants(p, row, modes):
    """Modes, steps and workers that the rule considers."""
    workers = [one for one in p["workers"] if one != "all"]
    return (row.mode in (p["modes"] or modes) and p["start_step"] <= row.step
            and (p["end_step"] is None or row.step < p["end_step"]) and (not workers or row.worker in workers))


def row_unit(row):
    """Labels of a rule over one row."""
    return (("metric" if row.scalar else "tensor", row.name), ("mode", row.mode), ("worker", row.worker))


def settle(rule, p, evaluations):
    """(episodes, counts of outcomes, whether an issue was raised) of a rule's evaluations in their order. Repetitions of a
    firing issue are left out: how often it is told is a matter of its cooldown."""
    hits, clear, firing = {}, {}, {}
    episodes, counts = [], {}
    for one in evaluations:
        counts[one.outcome] = counts.get(one.outcome, 0) + 1
        if one.outcome == OK:
            hits[one.unit] = 0
            clear[one.unit] = clear.get(one.unit, 0) + 1
            if clear[one.unit] >= p["clear_after"]:
                for key in [key for key in firing if key[0] == one.unit]:
                    if (firing[key].mode, firing[key].first) != (one.mode, one.step):  # no end where it began
                        firing.pop(key).resolved = one.step
        elif one.outcome == HIT:
            clear[one.unit] = 0
            hits[one.unit] = hits.get(one.unit, 0) + 1
            if hits[one.unit] < p["min_hits"]:
                continue
            worker = dict(one.unit).get("worker")
            for kind in one.kinds:
                key = (one.unit, kind)
                others = sum(1 for unit, other in firing if other == kind and dict(unit).get("worker") == worker)
                if key in firing or others >= p["max_open_units"]:
                    continue
                firing[key] = Episode(rule, kind, one.unit, one.step, mode=one.mode)
                episodes.append(firing[key])
    return episodes, counts


def status(episodes, judged, ended):
    """Of a rule at the end of what was sent. `judged`: whether an evaluation was ok, or a hit that min_hits held back;
    `ended`: whether the run has announced its end."""
    if episodes:
        return "IssuesFound"
    return ("NoIssuesFound" if ended else "InProgress") if judged else "NoData"


def finite(*numbers):
    return all(math.isfinite(number) for number in numbers)


def module(rule):
    """The file of a rule."""
    return importlib.import_module(f"tests.reference.rules.{rule}")


def judged_by_the_clock():
    """Rules whose file says in `episodes` when an issue begins and ends: they evaluate nothing, the clock moves them."""
    names = (path.stem for path in (pathlib.Path(__file__).parent / "rules").glob("[a-z]*.py"))
    return {name for name in names if hasattr(module(name), "episodes")}


def judge(item, history):
    """(episodes, status) of one item of `rules:` over a whole case."""
    rule, name = module(item["use"]), item.get("name", item["use"])
    p = parameters(rule, item.get("with", {}), item.get("preset", "tocsin"))
    if hasattr(rule, "as_a_whole"):
        return rule.as_a_whole(p, history)
    if hasattr(rule, "episodes"):
        episodes = rule.episodes(name, p, history)
        return episodes, status(episodes, True, history.ended_at is not None)
    episodes, counts = settle(name, p, rule.evaluate(p, history))
    return episodes, status(episodes, counts.get(OK, 0) + counts.get(HIT, 0) > 0, history.ended_at is not None)
