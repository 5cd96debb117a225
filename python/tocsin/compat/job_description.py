"""The rules of a job's description for Amazon SageMaker (``CreateTrainingJob``), read for :mod:`tocsin.debugger`."""

import difflib
import json
import os
from typing import Any, Dict, Iterable, List, Mapping, NamedTuple, Optional, Union

_SECTIONS = ("DebugRuleConfigurations", "ProfilerRuleConfigurations")
_RULE = ("RuleConfigurationName", "RuleParameters", "RuleEvaluatorImage", "InstanceType", "VolumeSizeInGB", "LocalPath", "S3OutputPath")
_PROFILER = ("ProfilingIntervalInMilliseconds", "ProfilingParameters", "S3OutputPath", "DisableProfiler")
_NOT_PARAMETERS = ("rule_to_invoke", "source_s3_uri", "action_json", "base_trial")
_INTERVALS = (100, 200, 500, 1000, 5000, 60000)  # milliseconds, those of the original


class Stated(NamedTuple):
    """One rule of the document. ``source``: file of a rule of the user's own, or None; ``actions``: as it has them."""

    name: Optional[str]
    rule: str
    parameters: Dict[str, Any]
    source: Optional[str]
    actions: List[Mapping[str, Any]]


class Job(NamedTuple):
    rules: List[Stated]
    interval: Optional[str]  # of system samples, as `collect.interval` has it
    warnings: List[str]


def load(given: Union[str, "os.PathLike[str]", Mapping[str, Any]]) -> Mapping[str, Any]:
    """The document itself, or of the file that has it."""
    if isinstance(given, Mapping):
        return given
    with open(given, encoding="utf-8") as file:
        document = json.load(file)
    if not isinstance(document, Mapping):
        raise ValueError(f"{os.fspath(given)}: no object, but a {type(document).__name__}")
    return document


def read(document: Mapping[str, Any]) -> Job:
    """``ValueError`` with every problem."""
    reader = _Reader()
    rules = [found for section in _SECTIONS for number, one in enumerate(document.get(section) or [])
             for found in reader.rule(f"{section}[{number}]", one)]
    interval = reader.profiler(document.get("ProfilerConfig") or {})
    if document.get("TensorBoardOutputConfig"):
        reader.warnings.append("TensorBoardOutputConfig: nothing is written for TensorBoard")
    if reader.problems:
        raise ValueError("; ".join(reader.problems))
    return Job(rules, interval, reader.warnings)


class _Reader:
    def __init__(self) -> None:
        self.problems: List[str] = []
        self.warnings: List[str] = []

    def rule(self, where: str, given: Any) -> Iterable[Stated]:
        if not isinstance(given, Mapping):
            self.problems.append(f"{where} is no object")
            return
        self._known(where, given, _RULE)
        name, parameters = given.get("RuleConfigurationName"), dict(given.get("RuleParameters") or {})
        rule = parameters.get("rule_to_invoke") or name
        if not rule:
            self.problems.append(f"{where} names no rule: rule_to_invoke of RuleParameters, or RuleConfigurationName")
            return
        source = parameters.get("source_s3_uri")
        if source and "://" in source:
            local = source.rsplit("/", 1)[-1]
            self.warnings.append(f"{source} is not fetched: copy it to {local} beside the configuration")
            source = local
        actions = self._actions(where, parameters.get("action_json"))
        plain = {key: value for key, value in parameters.items() if key not in _NOT_PARAMETERS}
        yield Stated(name, rule, plain, source, actions)

    def _actions(self, where: str, text: Any) -> List[Mapping[str, Any]]:
        if not text:
            return []
        try:
            given = json.loads(text) if isinstance(text, str) else text
        except ValueError as error:
            self.problems.append(f"action_json of {where} is no JSON: {error}")
            return []
        listed = given if isinstance(given, list) else [given]
        if any(not isinstance(one, Mapping) for one in listed):
            self.problems.append(f"action_json of {where} holds something else than objects")
            return []
        return listed

    def profiler(self, given: Mapping[str, Any]) -> Optional[str]:
        self._known("ProfilerConfig", given, _PROFILER)
        if given.get("ProfilingParameters"):
            self.warnings.append("ProfilingParameters of ProfilerConfig: there is no profiler of operators; hook.phase() times the parts of a step")
        if given.get("DisableProfiler"):
            self.warnings.append("DisableProfiler: start no `tocsin collect`, or set `collect: {collectors: []}`")
        every = given.get("ProfilingIntervalInMilliseconds")
        if every is None:
            return None
        if every not in _INTERVALS:
            self.problems.append(f"ProfilingIntervalInMilliseconds: {every!r} is none of {', '.join(map(str, _INTERVALS))}")
        return f"{every}ms"

    def _known(self, where: str, given: Mapping[str, Any], known: Iterable[str]) -> None:
        for key in given:
            if key not in known:
                near = difflib.get_close_matches(str(key), list(known), 1)
                self.problems.append(f"unknown key {key} of {where}" + (f"; did you mean {near[0]}?" if near else ""))
