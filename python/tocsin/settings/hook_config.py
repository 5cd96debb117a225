"""The hook's configuration as SageMaker Debugger writes it: its classes, its parameters, its JSON file.

    from tocsin import CollectionConfig, DebuggerHookConfig
    tocsin.watch(model, optimizer, capture=DebuggerHookConfig(
        hook_parameters={"train.save_interval": "100"},
        collection_configs=[CollectionConfig("gradients", {"reductions": "mean,l2"})]))

``capture=`` takes these, a dictionary or a ``.json`` file with the same keys; without ``capture`` the file that
SMDEBUG_CONFIG_FILE_PATH names. What a parameter becomes: docs/collections.md. A parameter that does not exist, or a
value that it does not take, is refused with the nearest name; one that has no meaning here is a warning.
"""

import difflib
import json
import os
import re
from typing import Any, Dict, Iterable, List, Mapping, NamedTuple, Optional, Tuple, Union

from tocsin.library.vocabulary import COLLECTIONS, MODES

INTERVAL = 500  # the original's default; of XGBoost 10
INTERVAL_XGBOOST = 10

_SAVE = ("save_interval", "save_seconds", "save_steps", "start_step", "end_step")
_SAVE_BY_MODE = tuple(f"{mode}.{key}" for mode in MODES for key in _SAVE)
_COLLECTION = ("include_regex", "exclude_regex", "reductions", "save_raw_tensor", "save_shape", "save_histogram",
               *_SAVE, *_SAVE_BY_MODE)
_HOOK = ("dry_run", "save_all", "include_workers", "export_tensorboard", "tensorboard_dir", *_COLLECTION)
_TOP = ("LocalPath", "S3OutputPath", "S3Path", "HookParameters", "CollectionConfigurations")
# Other parts of the original's job description, and where their like stands here.
_ELSEWHERE = {"DebugRuleConfigurations": "rules are `rules=` of watch(), or of the configuration that tocsin.debugger.read_job() makes of them",
              "TensorBoardOutputConfig": "nothing is written for TensorBoard",
              "ProfilerConfig": "tocsin collect samples the system, hook.phase() times steps",
              "ProfilerRuleConfigurations": "rules are `rules=` of watch(), or of the configuration"}
# What the statistics beyond the base columns are asked for by; the other reductions follow from the columns.
_REQUESTS = ("median", "prod", "abs_min", "abs_median", "abs_prod")
_FREE = ("min", "max", "mean", "std", "variance", "sum", "l1", "l2", "abs_max", "abs_mean", "abs_std", "abs_variance",
         "abs_sum", "abs_l1", "abs_l2", "l1_norm", "l2_norm", "abs_l1_norm", "abs_l2_norm")
REDUCTIONS = (*_FREE, *_REQUESTS)
# Collections that the presets of the original's rules bring along.
_PRESETS = {"relu_input": r".*relu_input", "relu_output": r".*relu_output",
            "input_image": r".*hybridsequential0_input_0", "input_sequence": r".*embedding0_input_0"}
_NOTHING_HERE = {"sm_metrics": "scalars are logged with hook.log()", "tensorflow_summaries": "summaries are not read"}

Parameters = Optional[Mapping[str, Any]]


class SaveConfigMode:
    """When something is saved in one mode."""

    def __init__(self, save_interval: int = INTERVAL, start_step: int = 0, end_step: Optional[int] = None,
                 save_steps: Optional[Iterable[int]] = None) -> None:
        self.save_interval, self.start_step = save_interval, start_step
        self.end_step, self.save_steps = end_step, list(save_steps or ())

    def should_save_step(self, step: int) -> bool:
        inside = step >= self.start_step and (self.end_step is None or step < self.end_step)
        return step in self.save_steps or (inside and step % self.save_interval == 0)

    def parameters(self, prefix: str = "") -> Dict[str, Any]:
        given = {"save_interval": self.save_interval, "start_step": self.start_step, "end_step": self.end_step,
                 "save_steps": self.save_steps or None}
        return {prefix + key: value for key, value in given.items() if value is not None}


class SaveConfig:
    """The same in all modes, or ``SaveConfig({ModeKeys.TRAIN: SaveConfigMode(…), …})``."""

    def __init__(self, save_interval: Union[int, Mapping[Any, Any]] = INTERVAL, start_step: int = 0,
                 end_step: Optional[int] = None, save_steps: Optional[Iterable[int]] = None) -> None:
        self.modes: Dict[str, SaveConfigMode] = {}
        if isinstance(save_interval, Mapping):
            for mode, one in save_interval.items():
                self.modes[_word(mode)] = one if isinstance(one, SaveConfigMode) else SaveConfigMode(**one)
            save_interval = INTERVAL
        self.plain = SaveConfigMode(save_interval, start_step, end_step, save_steps)

    def should_save_step(self, mode: Any, step: int) -> bool:
        return self.modes.get(_word(mode), self.plain).should_save_step(step)

    def parameters(self) -> Dict[str, Any]:
        if not self.modes:
            return self.plain.parameters()
        out: Dict[str, Any] = {}
        for mode, one in self.modes.items():
            out.update(one.parameters(f"{mode}."))
        return out


class ReductionConfig:
    """Which reductions; ``abs_reductions`` and ``abs_norms`` without their prefix."""

    def __init__(self, reductions: Iterable[str] = (), abs_reductions: Iterable[str] = (), norms: Iterable[str] = (),
                 abs_norms: Iterable[str] = (), save_raw_tensor: bool = False, save_shape: bool = False) -> None:
        self.reductions = [*reductions, *(f"abs_{one}" for one in abs_reductions), *norms,
                           *(f"abs_{one}" for one in abs_norms)]
        self.save_raw_tensor, self.save_shape = save_raw_tensor, save_shape

    def parameters(self) -> Dict[str, Any]:
        out: Dict[str, Any] = {"reductions": self.reductions}
        out.update({key: True for key in ("save_raw_tensor", "save_shape") if getattr(self, key)})
        return out


class CollectionConfig:
    """A collection by name, and its parameters as texts."""

    def __init__(self, name: str, parameters: Parameters = None, collection_parameters: Parameters = None) -> None:
        self.name = name
        self.parameters = dict(parameters or collection_parameters or {})


class DebuggerHookConfig:
    """``s3_output_path`` is accepted for scripts that give one; where telemetry goes is ``out`` of ``watch()``."""

    def __init__(self, s3_output_path: Optional[str] = None, container_local_output_path: Optional[str] = None,
                 hook_parameters: Parameters = None, collection_configs: Iterable[Any] = ()) -> None:
        self.s3_output_path = s3_output_path
        self.container_local_output_path = container_local_output_path
        self.hook_parameters = dict(hook_parameters or {})
        self.collection_configs = list(collection_configs or ())


class Read(NamedTuple):
    """``capture``: as the library takes it, or None; ``out``: the local path it names; ``warnings``."""

    capture: Any
    out: Optional[str]
    warnings: List[str]


def read(given: Any, xgboost: bool = False) -> Read:
    """What ``watch(capture=…)`` was given, in the library's words. ``ValueError`` with every problem."""
    if isinstance(given, (str, os.PathLike)) and str(given).endswith(".json"):
        with open(given, encoding="utf-8") as file:
            given = json.load(file)
    if isinstance(given, (SaveConfig, ReductionConfig)):
        given = DebuggerHookConfig(hook_parameters=given.parameters(),
                                   collection_configs=[CollectionConfig(one) for one in ("gradients", "weights", "biases")])
    elif isinstance(given, CollectionConfig):
        given = DebuggerHookConfig(collection_configs=[given])
    elif isinstance(given, (list, tuple)):
        if any(not isinstance(one, str) for one in given):
            given = DebuggerHookConfig(collection_configs=list(given))
        else:
            return Read({"collections": list(given)}, None, [])
    translator = _Translator(xgboost)
    if isinstance(given, Mapping):
        if not _is_original(given):
            return Read(dict(given), None, [])
        given = translator.document(given)
    if not isinstance(given, DebuggerHookConfig):
        return Read(given, None, [])
    capture = translator.hook(given)
    if translator.problems:
        raise ValueError("; ".join(translator.problems))
    return Read(capture, given.container_local_output_path, translator.warnings)


def collection_body(name: str, parameters: Parameters) -> Tuple[Dict[str, Any], List[str]]:
    """One collection as it stands in ``capture.collections``, and warnings. Where no interval is stated, that of ``capture`` counts.
    ``ValueError`` with every problem."""
    translator = _Translator(False)
    given = translator.checked(name, parameters, _COLLECTION)
    if translator.problems:
        raise ValueError("; ".join(translator.problems))
    body = translator.body(name, given, {})
    if not any(key.rsplit(".", 1)[-1] in ("save_interval", "save_seconds") for key in given):
        del body["every"]
    return body, translator.warnings


def _is_original(given: Mapping[str, Any]) -> bool:
    return any(key in given for key in (*_TOP, *_ELSEWHERE, "DebugHookConfig", "DebuggerHookConfig"))


class _Translator:
    def __init__(self, xgboost: bool) -> None:
        self.problems: List[str] = []
        self.warnings: List[str] = []
        self._xgboost = xgboost

    def document(self, given: Mapping[str, Any]) -> DebuggerHookConfig:
        """The JSON file, or the part of a job's description that holds it."""
        for key, where in _ELSEWHERE.items():
            if given.get(key):
                self.warnings.append(f"{key} is not read by the hook: {where}")
        inner = given.get("DebugHookConfig", given.get("DebuggerHookConfig"))
        if inner is None:
            inner = {key: value for key, value in given.items() if key not in _ELSEWHERE}
        for key in inner:
            if key not in _TOP:
                self.problems.append(f"unknown key {key}{_near(key, _TOP)}")
        configs = inner.get("CollectionConfigurations") or []
        if isinstance(configs, Mapping):
            configs = [{"CollectionName": name, "CollectionParameters": body} for name, body in configs.items()]
        return DebuggerHookConfig(inner.get("S3OutputPath", inner.get("S3Path")), inner.get("LocalPath"),
                                  inner.get("HookParameters"), configs)

    def hook(self, given: DebuggerHookConfig) -> Dict[str, Any]:
        hook = self.checked("hook", given.hook_parameters, _HOOK)
        if given.s3_output_path:
            self.warnings.append(f"s3_output_path {given.s3_output_path} is not used: telemetry goes to `out` of watch()")
        for key in ("export_tensorboard", "tensorboard_dir"):
            if hook.get(key) not in (None, False):
                self.warnings.append(f"{key} is not honoured: python3 -m tocsin.tensorboard exports what was written, afterwards")
        collections: Dict[str, Any] = {}
        for one in given.collection_configs:
            name, parameters = self._named(one)
            if name is None:
                continue
            if name in _NOTHING_HERE:
                self.warnings.append(f"collection {name} is not captured: {_NOTHING_HERE[name]}")
                continue
            collections[name] = self.body(name, self.checked(name, parameters, _COLLECTION), hook)
        for name in ("metrics",) if self._xgboost else ("losses",):  # saved without being asked for
            collections.setdefault(name, self.body(name, {}, hook))
        patterns = hook.get("include_regex")
        if patterns:
            body = collections.setdefault("default", self.body("default", {}, hook))
            body["include"] = [*body.get("include", ()), *patterns]
        if hook.get("save_all"):
            collections.setdefault("all", {**self.body("all", {}, hook), "include": [".*"]})
        capture: Dict[str, Any] = {"every": self._every({}, hook, "train"), "collections": collections}
        if hook.get("dry_run"):
            capture["dry_run"] = True
        if "include_workers" in hook:
            capture["workers"] = hook["include_workers"]
        return capture

    def _named(self, one: Any) -> Tuple[Optional[str], Mapping[str, Any]]:
        if isinstance(one, str):
            return one, {}
        if isinstance(one, CollectionConfig):
            return one.name, one.parameters
        if isinstance(one, Mapping):
            if len(one) == 1 and isinstance(next(iter(one.values())), Mapping):  # without the usual wrapper
                name, body = next(iter(one.items()))
                return str(name), body.get("CollectionParameters", body)
            name = one.get("CollectionName", one.get("name"))
            body = one.get("CollectionParameters", one.get("parameters", {})) or {}
            if isinstance(name, str):
                return name, body
        self.problems.append(f"not a collection: {one!r}; expected CollectionName and CollectionParameters")
        return None, {}

    # ---- one collection

    def body(self, name: str, given: Mapping[str, Any], hook: Mapping[str, Any]) -> Dict[str, Any]:
        body: Dict[str, Any] = {}
        rules = {mode: self._rule(given, hook, mode) for mode in MODES}
        body.update(rules["train"])
        for mode, rule in rules.items():
            other = {key: rule.get(key, _UNSET[key]) for key in _UNSET if rule.get(key) != rules["train"].get(key)}
            if other:
                body[mode] = other
        patterns = given.get("include_regex") or ([_PRESETS[name]] if name in _PRESETS else [])
        if patterns:
            body["include"] = patterns
            for pattern in patterns:
                if pattern.isdigit():
                    self.warnings.append(f"include_regex {pattern} of {name} is a number: was save_interval meant?")
        elif name not in COLLECTIONS:
            self.warnings.append(f"collection {name} has no include_regex: only hook.save_tensor() fills it"
                                 f"{_near(name, COLLECTIONS)}")
        if given.get("exclude_regex"):
            body["exclude"] = given["exclude_regex"]
        reductions = given.get("reductions", hook.get("reductions"))
        statistics = [one for one in reductions or () if one in _REQUESTS]
        if given.get("save_histogram"):
            statistics.append("histogram")
        if statistics or reductions:
            body["statistics"] = statistics + (["delta"] if name == "weights" else [])
        if given.get("save_raw_tensor", hook.get("save_raw_tensor")):
            body["raw"] = True
        return body

    def _rule(self, given: Mapping[str, Any], hook: Mapping[str, Any], mode: str) -> Dict[str, Any]:
        rule: Dict[str, Any] = {"every": self._every(given, hook, mode)}
        for key, here in (("start_step", "start_step"), ("end_step", "end_step"), ("save_steps", "steps")):
            value = _strongest(given, hook, mode, (key,))[1]
            if value is not None:
                rule[here] = value
        return rule

    def _every(self, given: Mapping[str, Any], hook: Mapping[str, Any], mode: str) -> str:
        key, value = _strongest(given, hook, mode, ("save_interval", "save_seconds"))
        if value is None:
            value = INTERVAL_XGBOOST if self._xgboost else INTERVAL
        return f"{value}s" if key == "save_seconds" else f"{value} steps"

    # ---- values

    def checked(self, owner: str, given: Parameters, known: Iterable[str]) -> Dict[str, Any]:
        out: Dict[str, Any] = {}
        for key, value in dict(given or {}).items():
            if key not in known:
                self.problems.append(f"unknown parameter {key} of {owner}{_near(key, known)}")
                continue
            try:
                out[key] = self._value(owner, key.rsplit(".", 1)[-1], value)
            except ValueError as error:
                self.problems.append(f"{key} of {owner}: {value!r} is {error}")
        return out

    def _value(self, owner: str, key: str, value: Any) -> Any:
        if key in ("include_regex", "exclude_regex", "reductions"):
            words = [str(one) for one in value] if isinstance(value, (list, tuple)) else _split(str(value))
            return words if key != "reductions" else _reductions(words)
        if key == "save_steps":
            return [_integer(one, 0) for one in (value if isinstance(value, (list, tuple)) else _split(str(value)))]
        if key == "save_interval":
            return _integer(value, 1)
        if key == "end_step" and str(value).strip().lower() in ("", "none", "null"):
            return None
        if key in ("start_step", "end_step"):
            return _integer(value, 0)
        if key == "save_seconds":
            return _seconds(value)
        if key == "include_workers":
            if str(value).lower() not in ("one", "all", "auto"):
                raise ValueError("none of one, all, auto")
            return str(value).lower()
        return value if key == "tensorboard_dir" else _truth(value)


_UNSET = {"every": None, "start_step": 0, "end_step": None, "steps": []}  # as `train` has it not, another mode may


def _reductions(words: List[str]) -> List[str]:
    for word in words:
        if word not in REDUCTIONS:
            raise ValueError(f"no reduction: {word}{_near(word, REDUCTIONS)}")
    return words


def _strongest(given: Mapping[str, Any], hook: Mapping[str, Any], mode: str, keys: Iterable[str]) -> Tuple[str, Any]:
    """The original's precedence: a plain key of the collection beats a mode's of the hook."""
    for place in (given, hook):
        for prefix in (f"{mode}.", ""):
            for key in keys:
                if place.get(prefix + key) is not None:
                    return key, place[prefix + key]
    return "", None


def _near(word: str, known: Iterable[str]) -> str:
    found = difflib.get_close_matches(word, list(known), 1)
    return f"; did you mean {found[0]}?" if found else ""


def _word(mode: Any) -> str:
    """``train`` of ``ModeKeys.TRAIN`` and of ``"train"``."""
    return str(getattr(mode, "name", mode)).lower()


def _split(text: str) -> List[str]:
    return [one.strip() for one in re.split(r",(?!\d*\})", text) if one.strip()]  # not at that of `a{1,3}`


def _integer(value: Any, least: int) -> int:
    try:
        number = int(str(value).strip())
    except ValueError:
        raise ValueError("no whole number") from None
    if number < least:
        raise ValueError(f"less than {least}")
    return number


def _seconds(value: Any) -> str:
    try:
        number = float(str(value).strip().rstrip("s"))
    except ValueError:
        raise ValueError("no number of seconds") from None
    if not 0 < number < 1e9:
        raise ValueError("no time")
    return f"{number:g}" if number >= 1e-3 else f"{number:.9f}"


def _truth(value: Any) -> bool:
    word = str(value).strip().lower()
    if word in ("true", "1", "yes", "on"):
        return True
    if word in ("false", "0", "no", "off", "none", ""):
        return False
    raise ValueError("neither true nor false")
