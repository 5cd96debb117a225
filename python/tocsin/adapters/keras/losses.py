"""Which losses a compiled Keras model has, what each compares, and what is known of it."""

from typing import Any, Callable, Dict, List, Optional, Tuple

import keras

from tocsin.ledger.moments import Form

_KINDS = {"categorical_crossentropy": "cross_entropy", "sparse_categorical_crossentropy": "cross_entropy",
          "binary_crossentropy": "binary", "mean_squared_error": "squared", "mean_absolute_error": "absolute",
          "huber": "huber", "poisson": "poisson"}
# Have a number for each sample, but no constant that is the best.
_OTHERS = ("mean_absolute_percentage_error", "mean_squared_logarithmic_error", "log_cosh", "kl_divergence", "cosine_similarity",
           "hinge", "squared_hinge", "categorical_hinge", "binary_focal_crossentropy", "categorical_focal_crossentropy")


def name_of(loss: Any) -> str:
    """``sparse_categorical_crossentropy``; empty if the loss is none of Keras's own."""
    function = getattr(loss, "fn", None)
    own = type(loss).__module__.split(".")[0] == "keras" and getattr(function, "__module__", "").split(".")[0] == "keras"
    name = getattr(function, "__name__", "") if own else ""
    return name if name in _KINDS or name in _OTHERS else ""


def form_of(loss: Any, model: Any = None) -> Optional[Form]:
    """What is known of a loss of Keras's; None for all others, and along another axis than the last. ``model``: whose loss it is."""
    name, options = name_of(loss), dict(getattr(loss, "_fn_kwargs", {}))
    if not name or options.pop("axis", -1) != -1:
        return None
    if name in _OTHERS:
        return Form("other")
    return Form(_KINDS[name], from_logits=bool(options.get("from_logits", False)), delta=float(options.get("delta", 1.0)),
                smoothing=float(options.get("label_smoothing", 0.0)), squashed=_KINDS[name] == "binary" and _ends_in_sigmoid(model))


def _ends_in_sigmoid(model: Any) -> bool:
    """Whether the only output of a model is what a sigmoid has given, by its layers."""
    layers = getattr(model, "layers", None)
    outputs = getattr(model, "outputs", None)
    if not layers or not outputs or len(outputs) != 1:
        return False
    history = getattr(outputs[0], "_keras_history", None)
    last = getattr(history, "operation", None)
    last = layers[-1] if last is None else last
    return getattr(last, "activation", None) is keras.activations.sigmoid


def calls_of(model: Any, noted: Dict[str, Any], skip: Callable[[str], None]) -> List[Tuple[str, Any, Any, Any, Any]]:
    """(name of the call, loss, targets, outputs, weights) of each output that has a loss."""
    compiled = getattr(model, "_compile_loss", None)
    losses = getattr(compiled, "_flat_losses", None)
    if not losses:
        skip("loss")
        return []
    names = list(compiled.output_names or ())
    y, y_pred, given = noted.get("y"), noted["y_pred"], noted.get("sample_weight")
    found = []
    for number, one in enumerate(losses):
        path = tuple(one.path)
        outputs, targets = _at(y_pred, path, names, None), _at(y, path, names, number if len(losses) > 1 else None)
        if outputs is None or targets is None:
            skip("structure")
            continue
        weights = _at(given, path, names, None)
        weights = _with_mask(weights, getattr(outputs, "_keras_mask", None))
        ignored = getattr(one.loss, "_fn_kwargs", {}).get("ignore_class")
        if ignored is not None:
            weights = _without_class(targets, outputs, weights, ignored)
        name = name_of(one.loss) or "loss"
        found.append((f"{str(one.name).replace('/', '_')}.{name}" if len(losses) > 1 else name, one.loss, targets, outputs, weights))
    return found


def _at(value: Any, path: Tuple[Any, ...], names: List[Any], number: Optional[int]) -> Any:
    """What belongs to the output ``path`` (an index, a name, nothing: the only one). ``number``: of the loss, where targets
    are given for outputs with a loss only."""
    if not keras.tree.is_nested(value):
        return value
    if len(path) > 1:
        return None
    if not path:
        return _only(value)
    (key,) = path
    if isinstance(value, dict):
        key = names[key] if isinstance(key, int) and key < len(names) else key
        return value.get(key)
    key = names.index(key) if isinstance(key, str) and key in names else key
    if not isinstance(key, int):
        return None
    if number is not None and len(value) != len(names):
        key = number
    return value[key] if key < len(value) and not keras.tree.is_nested(value[key]) else None


def _only(value: Any) -> Any:
    flat = keras.tree.flatten(value)
    return flat[0] if len(flat) == 1 else None


def _with_mask(weights: Any, mask: Any) -> Any:
    if mask is None:
        return weights
    mask = keras.ops.cast(mask, "float32")
    if weights is None:
        return mask
    weights = keras.ops.cast(weights, "float32")
    while len(weights.shape) < len(mask.shape):
        weights = weights[..., None]
    return weights * mask if len(weights.shape) == len(mask.shape) else weights * mask[..., None]


def _without_class(targets: Any, outputs: Any, weights: Any, ignored: int) -> Any:
    if len(targets.shape) == len(outputs.shape) and targets.shape[-1] == 1:
        targets = targets[..., 0]
    kept = keras.ops.cast(targets != keras.ops.cast(ignored, targets.dtype), "float32")
    return _with_mask(weights, kept)
