"""What a booster of XGBoost says of itself, in numbers: its parameters, the trees of a round, what its features contribute."""

import json
import math
from typing import Any, Dict, Iterable, Iterator, List, Tuple

import numpy

# Columns of a tree as `trees_to_dataframe` calls them; of splits only those of the second line. Names of features are texts and
# do not travel.
_OF_NODES = (("Node", "nodeid"), ("Cover", "cover"))
_OF_SPLITS = (("Yes", "yes"), ("No", "no"), ("Missing", "missing"), ("Split", "split_condition"), ("Gain", "gain"))
TREE_COLUMNS = ("Tree", *(name for name, _ in (*_OF_NODES, *_OF_SPLITS)))


def hyperparameters(config: str) -> Dict[str, float]:
    """``hyperparameters/<name>`` of all numbers in what ``Booster.save_config()`` gives; of a name that stands there twice the first.
    Texts are none, but for the objective, which stands in a name: ``hyperparameters/objective/binary:logistic`` is 1."""
    found: Dict[str, float] = {}
    if objective(config):
        found[f"hyperparameters/objective/{objective(config)}"] = 1.0
    for name, value in _leaves(json.loads(config).get("learner", {})):
        try:
            number = float(value)
        except (TypeError, ValueError):
            continue
        if math.isfinite(number):
            found.setdefault(f"hyperparameters/{name}", number)
    return found


def objective(config: str) -> str:
    """``binary:logistic``; empty where the booster does not say."""
    name = json.loads(config).get("learner", {}).get("objective", {}).get("name")
    return name if isinstance(name, str) else ""


def shrinks(config: str) -> bool:
    """Whether each tree takes the same share of what is left, and what is left has a size: not of linear boosters, not where trees
    drop out, and not of orders (``rank:…``), which small steps change as well as large ones."""
    learner = json.loads(config).get("learner", {})
    booster = learner.get("gradient_booster", {}).get("name", learner.get("learner_train_param", {}).get("booster"))
    return booster == "gbtree" and not objective(config).startswith("rank:")


def _leaves(node: Any, name: str = "") -> Iterator[Tuple[str, Any]]:
    if isinstance(node, dict):
        for key, below in node.items():
            yield from _leaves(below, str(key))
    elif isinstance(node, list):
        for below in node:
            yield from _leaves(below, name)
    else:
        yield name, node


def tree_columns(dumps: Iterable[str]) -> Dict[str, Any]:
    """``trees/<column>``: one array per column over the nodes of all trees, given as their JSON dumps with statistics."""
    columns: Dict[str, List[float]] = {name: [] for name in TREE_COLUMNS}
    for number, dump in enumerate(dumps):
        waiting = [json.loads(dump)]
        while waiting:  # a chain may be deeper than Python's stack
            node = waiting.pop()
            columns["Tree"].append(number)
            for name, key in (*_OF_NODES, *_OF_SPLITS):
                if isinstance(node.get(key), (int, float)):  # a split by categories has a list as its condition
                    columns[name].append(node[key])
            waiting.extend(node.get("children", ()))
    return {f"trees/{name}": numpy.asarray(values) for name, values in columns.items() if values}


def contributions(shap: Any, features: Iterable[str]) -> Iterator[Tuple[str, Any, str]]:
    """Of the contributions that ``predict(…, pred_contribs=True)`` gives, per sample (and class) and feature with the bias last: a tensor
    ``average_shap/<feature>`` per feature, whose columns are the means of contributions and of magnitudes, and all of them once as
    ``full_shap/contributions``."""
    without_bias = shap[..., :-1]
    for number, feature in enumerate(features):
        yield f"average_shap/{feature}", without_bias[..., number], "other"
    yield "full_shap/contributions", without_bias, "shap"
