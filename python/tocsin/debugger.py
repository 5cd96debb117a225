"""Rule objects as a script for Amazon SageMaker Debugger makes them, and the configuration that says the same:

    from tocsin.debugger import CollectionConfig, Rule, configuration, rule_configs, write

    rules = [
        Rule.sagemaker(rule_configs.vanishing_gradient(), rule_parameters={"threshold": "1e-8"}),
        Rule.custom(name="big_gradient", source="my_rules.py", rule_to_invoke="BigGradient",
                    rule_parameters={"threshold": "20.0"}, collections_to_save=[CollectionConfig("gradients")],
                    actions=rule_configs.StopTraining()),
    ]
    write("tocsin.yaml", rules, transport={"kafka": {"bootstrap.servers": "kafka:9092"}})

Nothing is started by this: ``tocsin check`` says what is wrong with the file, ``tocsin up`` runs it, and the hook reads from it what
to capture. What only the cloud service needs (image, instance type, volume, paths of S3) is taken and left out.
"""

import json
import os
import re
from typing import Any, Dict, Iterable, List, Optional, Sequence, Tuple, Union

_NUMBER = re.compile(r"[-+]?(\d+\.?\d*|\.\d+)([eE][-+]?\d+)?\Z")
_LISTS = ("collection_names", "tensor_regex", "include_regex", "modes", "workers")


def _value(name: str, text: Any) -> Any:
    """What a text of the original spells: there every parameter is one."""
    if not isinstance(text, str):
        return text
    if name in _LISTS:
        return [part.strip() for part in text.split(",") if part.strip()]
    if text.strip().lower() in ("true", "false"):
        return text.strip().lower() == "true"
    if _NUMBER.match(text.strip()):
        number = float(text)
        return int(text) if re.match(r"[-+]?\d+\Z", text.strip()) else number
    return text


class CollectionConfig:
    """A collection to be saved: ``include_regex``, ``exclude_regex``, ``save_interval``, ``save_steps``, ``start_step``,
    ``end_step`` (the first three of the last four also per mode, ``train.save_interval``), ``reductions``."""

    _MODES = ("train", "eval", "predict", "global")
    # What is always there, and by which statistic the rest is measured.
    _ALWAYS = {"min", "max", "mean", "std", "variance", "sum", "l1", "l2", "abs_min", "abs_max", "abs_mean", "abs_std",
               "abs_variance", "abs_sum", "abs_l1", "abs_l2"}
    _ASKED = {"median": "median", "prod": "prod", "abs_median": "median", "abs_prod": "prod"}

    def __init__(self, name: str, parameters: Optional[Dict[str, Any]] = None) -> None:
        self.name = name
        self.parameters = dict(parameters or {})
        self.body: Dict[str, Any] = {}
        for key, value in self.parameters.items():
            self._read(key, value)

    def _read(self, key: str, value: Any) -> None:
        mode, _, plain = key.rpartition(".")
        if mode and mode not in self._MODES:
            raise ValueError(f"collection {self.name}: unknown mode {mode!r} in {key!r}")
        if key in ("include_regex", "exclude_regex"):
            self.body["include" if key == "include_regex" else "exclude"] = _value("include_regex", value)
        elif plain == "save_interval" and mode:
            every = self.body.setdefault("every", {})
            if not isinstance(every, dict):
                raise ValueError(f"collection {self.name}: give save_interval for all modes or for each, not both")
            every[mode] = f"{int(value)} steps"
        elif key == "save_interval":
            if isinstance(self.body.get("every"), dict):
                raise ValueError(f"collection {self.name}: give save_interval for all modes or for each, not both")
            self.body["every"] = f"{int(value)} steps"
        elif key == "save_steps":
            self.body["steps"] = [int(step) for step in str(value).split(",") if step.strip()]
        elif key in ("start_step", "end_step"):
            self.body[key] = int(value)
        elif key == "reductions":
            names = [name.strip() for name in str(value).split(",") if name.strip()]
            unknown = [name for name in names if name not in self._ALWAYS and name not in self._ASKED]
            if unknown:
                raise ValueError(f"collection {self.name}: unknown reductions {', '.join(unknown)}")
            asked = sorted({self._ASKED[name] for name in names if name in self._ASKED})
            if asked:
                self.body["statistics"] = asked
        elif key == "save_raw_tensor" and not _value(key, value):
            pass
        else:
            raise ValueError(f"collection {self.name}: {key!r} has no counterpart; known: include_regex, exclude_regex, "
                             "save_interval, <mode>.save_interval, save_steps, start_step, end_step, reductions")


class Action:
    """Who is told, or what is done, when a rule raises an issue: a receiver of the configuration."""

    def __init__(self, receiver: str, body: Dict[str, Any]) -> None:
        self.receiver, self.body = receiver, body


class ActionList(list):
    """Several of them."""

    def __init__(self, *actions: Action) -> None:
        super().__init__(actions)


class _Configs:
    """``rule_configs.<rule>()``: a built-in rule by its name here or in the original. ``tocsin rules list`` has them."""

    ActionList = ActionList

    @staticmethod
    def StopTraining(training_job_prefix: Optional[str] = None, armed: bool = True) -> Action:
        """Stops the run whose rule it is, as in the original: ``armed=False`` only says what it would do."""
        if training_job_prefix is not None:
            raise ValueError("a rule stops its own run: runs are not found by the prefix of a name")
        return Action("stop_training" if armed else "stop_training_dry", {"stop_training": {"armed": armed}})

    @staticmethod
    def Email(address: str) -> Action:
        """The mail server stands in the section ``receivers`` or in the defaults of the integration: docs/actions/email.md."""
        return Action("email_" + re.sub(r"\W+", "_", address), {"email": {"to": [address]}})

    @staticmethod
    def SMS(phone_number: str) -> Action:
        raise NotImplementedError(f"no text message to {phone_number}: there is no SMS gateway here. Send a webhook to one: "
                                  "rule_configs.Webhook(url)")

    @staticmethod
    def Webhook(url: str) -> Action:
        return Action("webhook_" + re.sub(r"\W+", "_", url), {"webhook": {"url": url}})

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_"):
            raise AttributeError(name)
        return lambda **parameters: {"use": name, "with": parameters}


rule_configs = _Configs()

Actions = Union[None, str, Action, Sequence[Union[str, Action]]]


class Rule:
    """One item of ``rules:``. Made by ``Rule.sagemaker`` or ``Rule.custom``."""

    def __init__(self, item: Dict[str, Any], collections: Sequence[CollectionConfig], actions: Actions) -> None:
        self.collections_to_save = list(collections)
        self.actions: List[Union[str, Action]] = [actions] if isinstance(actions, (str, Action)) else list(actions or [])
        self.item = {key: value for key, value in item.items() if value not in (None, {}, [])}
        names = [one if isinstance(one, str) else one.receiver for one in self.actions]
        if names:
            self.item["actions"] = names

    @property
    def name(self) -> str:
        return self.item.get("name") or self.item.get("use") or self.item["class"]

    @classmethod
    def sagemaker(cls, base_config: Dict[str, Any], name: Optional[str] = None,
                  rule_parameters: Optional[Dict[str, Any]] = None,
                  collections_to_save: Iterable[CollectionConfig] = (), actions: Actions = None,
                  other_trials: Optional[str] = None, **service: Any) -> "Rule":
        """A built-in rule. ``rule_parameters`` may be texts, as they always are in the original; ``other_trials`` is the uid of
        the run that others are compared with. The name must differ where a rule is there twice."""
        _service_only("Rule.sagemaker", service)
        given = {**base_config.get("with", {}), **(rule_parameters or {})}
        if other_trials is not None:
            given["other_trials"] = other_trials
        given.pop("base_trial", None)
        return cls({"use": base_config["use"], "name": name, "with": {key: _value(key, one) for key, one in given.items()}},
                   list(collections_to_save), actions)

    @classmethod
    def custom(cls, name: str, image_uri: Optional[str] = None, instance_type: Optional[str] = None,
               volume_size_in_gb: Optional[int] = None, source: Optional[str] = None, rule_to_invoke: Optional[str] = None,
               rule_parameters: Optional[Dict[str, Any]] = None, collections_to_save: Iterable[CollectionConfig] = (),
               actions: Actions = None, other_trials: Sequence[str] = (), severity: Optional[str] = None,
               **service: Any) -> "Rule":
        """A rule in a Python file of one's own (docs/rules/python.md). ``rule_to_invoke``: the class; may be left out where the
        file has one rule. ``other_trials``: recorded directories."""
        del image_uri, instance_type, volume_size_in_gb  # it runs beside the engine
        _service_only("Rule.custom", service)
        if not source:
            raise ValueError(f"rule {name}: source is the file with the rule")
        given = {key: _value(key, one) for key, one in (rule_parameters or {}).items() if key != "base_trial"}
        if other_trials:
            given["other_trials"] = list(other_trials)
        collections = list(collections_to_save)
        return cls({"name": name, "type": "python", "source": str(source), "class": rule_to_invoke, "with": given,
                    "severity": severity, "collections_to_save": [one.name for one in collections]}, collections, actions)


class ProfilerRule(Rule):
    """The same, of rules about time and utilization."""


_SERVICE = {"other_trials_s3_input_paths", "s3_output_path", "local_output_path", "container_local_output_path",
            "container_arguments", "container_entrypoint"}


def _service_only(where: str, given: Dict[str, Any]) -> None:
    unknown = sorted(set(given) - _SERVICE)
    if unknown:
        raise TypeError(f"{where}() has no argument {unknown[0]!r}")
    if given.get("other_trials_s3_input_paths"):
        raise ValueError(f"{where}: runs are not read from S3; name them by other_trials")


def _merged(rules: Sequence[Rule]) -> Tuple[Dict[str, Any], Dict[str, Any]]:
    collections: Dict[str, Any] = {}
    receivers: Dict[str, Any] = {}
    for rule in rules:
        for one in rule.collections_to_save:
            if collections.setdefault(one.name, one.body) != one.body:
                raise ValueError(f"two rules want the collection {one.name} saved in different ways: {collections[one.name]} and {one.body}")
        for action in rule.actions:
            if isinstance(action, Action):
                receivers[action.receiver] = action.body
    return collections, receivers


def configuration(rules: Sequence[Rule], **sections: Any) -> Dict[str, Any]:
    """The configuration as a map: rules, the receivers of their actions, and what is to be captured; ``sections`` are added, and
    maps among them win over what the rules say."""
    names = [rule.name for rule in rules]
    twice = sorted({name for name in names if names.count(name) > 1})
    if twice:
        raise ValueError(f"two rules are called {twice[0]}: give one of them a name")
    collections, receivers = _merged(rules)
    out: Dict[str, Any] = {"rules": [rule.item for rule in rules]}
    if collections:
        out["capture"] = {"collections": collections}
    if receivers:
        out["receivers"] = receivers
    for name, section in sections.items():
        both = isinstance(section, dict) and isinstance(out.get(name), dict)
        out[name] = {**out[name], **section} if both else section
    return out


def to_yaml(rules: Sequence[Rule], **sections: Any) -> str:
    """The configuration as YAML: one line per rule and per entry of a section."""
    lines = []
    for name, section in configuration(rules, **sections).items():
        if isinstance(section, list):
            lines.append(f"{name}:")
            lines += ["  - " + json.dumps(item, ensure_ascii=False) for item in section]
        elif isinstance(section, dict) and section:
            lines.append(f"{name}:")
            lines += [f"  {json.dumps(key, ensure_ascii=False)}: {json.dumps(one, ensure_ascii=False)}" for key, one in section.items()]
        else:
            lines.append(f"{name}: {json.dumps(section, ensure_ascii=False)}")
    return "\n".join(lines) + "\n"


def write(path: Union[str, "os.PathLike[str]"], rules: Sequence[Rule], **sections: Any) -> None:
    """The same into a file, never half of one. Files of rules are named relative to it."""
    fresh = f"{os.fspath(path)}.new"
    with open(fresh, "w", encoding="utf-8") as file:
        file.write(to_yaml(rules, **sections))
    os.replace(fresh, path)
