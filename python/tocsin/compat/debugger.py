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

import datetime
import json
import os
import re
import sqlite3
import sys
import warnings
from typing import Any, Dict, Iterable, List, Mapping, Optional, Sequence, Tuple, Union

from tocsin.reading import tensors
from tocsin.settings import hook_config
from . import job_description

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


class CollectionConfig(hook_config.CollectionConfig):
    """A collection to be saved, with the parameters of ``capture=`` (docs/collections.md)."""

    def __init__(self, name: str, parameters: hook_config.Parameters = None,
                 collection_parameters: hook_config.Parameters = None) -> None:
        super().__init__(name, parameters, collection_parameters)
        self.body, said = hook_config.collection_body(self.name, self.parameters)
        for one in said:
            warnings.warn(one, RuntimeWarning, stacklevel=2)


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
                  collections_to_save: Optional[Iterable[CollectionConfig]] = None, actions: Actions = None,
                  other_trials: Optional[str] = None, **service: Any) -> "Rule":
        """A built-in rule. ``rule_parameters`` may be texts, as they always are in the original; ``other_trials`` is the uid of
        the run that others are compared with. The name must differ where a rule is there twice."""
        _service_only("Rule.sagemaker", service)
        given = {**base_config.get("with", {}), **(rule_parameters or {})}
        if other_trials is not None:
            given["other_trials"] = other_trials
        given.pop("base_trial", None)
        return cls({"use": base_config["use"], "name": name, "with": {key: _value(key, one) for key, one in given.items()}},
                   list(collections_to_save or ()), actions)

    @classmethod
    def custom(cls, name: str, image_uri: Optional[str] = None, instance_type: Optional[str] = None,
               volume_size_in_gb: Optional[int] = None, source: Optional[str] = None, rule_to_invoke: Optional[str] = None,
               rule_parameters: Optional[Dict[str, Any]] = None,
               collections_to_save: Optional[Iterable[CollectionConfig]] = None, actions: Actions = None,
               other_trials: Optional[Sequence[str]] = None, severity: Optional[str] = None,
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
        collections = list(collections_to_save or ())
        return cls({"name": name, "type": "python", "source": str(source), "class": rule_to_invoke, "with": given,
                    "severity": severity, "collections_to_save": [one.name for one in collections]}, collections, actions)


class ProfilerRule(Rule):
    """The same, of rules about time and utilization."""


_SERVICE = {"other_trials_s3_input_paths", "s3_output_path", "local_output_path", "container_local_output_path",
            "container_arguments", "container_entrypoint", "instance_type", "volume_size_in_gb"}


def _service_only(where: str, given: Dict[str, Any]) -> None:
    unknown = sorted(set(given) - _SERVICE)
    if unknown:
        raise TypeError(f"{where}() has no argument {unknown[0]!r}")
    if given.get("other_trials_s3_input_paths"):
        raise ValueError(f"{where}: runs are not read from S3; name them by other_trials")


def read_job(document: Union[str, "os.PathLike[str]", Dict[str, Any]]) -> Dict[str, Any]:
    """The configuration that says what a job's description for the cloud service says (``CreateTrainingJob``, as a map or a JSON file):
    its rules, their actions, what its hook captures, how often the system is sampled. What has no like here is a warning by name;
    ``ValueError`` names everything that is wrong. ``python3 -m tocsin.debugger job.json`` prints it."""
    given = job_description.load(document)
    job = job_description.read(given)
    said, rules = list(job.warnings), []
    for one in job.rules:
        actions = [made for made in (_action(each, said) for each in one.actions) if made is not None]
        if one.source:
            rules.append(Rule.custom(one.name or one.rule, source=one.source, rule_to_invoke=one.rule,
                                     rule_parameters=one.parameters, actions=actions))
        else:
            rules.append(Rule.sagemaker({"use": one.rule}, name=one.name, rule_parameters=one.parameters, actions=actions))
    sections: Dict[str, Any] = {}
    hook = given.get("DebugHookConfig", given.get("DebuggerHookConfig"))
    if hook is not None:
        read = hook_config.read({"DebugHookConfig": hook})
        sections["capture"] = read.capture
        said += read.warnings
    if job.interval is not None:
        sections["collect"] = {"interval": job.interval}
    for one in said:
        warnings.warn(one, RuntimeWarning, stacklevel=2)
    return configuration(rules, **sections)


def _action(given: Mapping[str, Any], said: List[str]) -> Optional[Action]:
    """None, and a warning, where there is no such action."""
    kind = str(given.get("name", "")).lower()
    if kind == "stoptraining":
        if given.get("training_job_prefix"):
            said.append(f"training_job_prefix {given['training_job_prefix']}: a rule stops its own run, whatever it is called")
        return rule_configs.StopTraining()
    if kind == "email":
        return rule_configs.Email(str(given.get("endpoint", given.get("email_address", ""))))
    said.append(f"action {given.get('name')!r} has no counterpart; a webhook reaches an SMS gateway" if kind == "sms" else
                f"action {given.get('name')!r} is unknown: expected stoptraining, email or sms")
    return None


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
        if rule.item.get("with", {}).get("stop_training_on_fire") is True:  # the same as the action `stop`
            receivers.setdefault("stop", rule_configs.StopTraining().body)
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
    return _lines(configuration(rules, **sections))


def _lines(configured: Dict[str, Any]) -> str:
    lines = []
    for name, section in configured.items():
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


def rule_job_summary(directory: str = "./tocsin-data", run: Optional[str] = None) -> List[Dict[str, Any]]:
    """How the rules of a run stand, as an estimator's ``rule_job_summary()`` says it, of a directory that ``tocsin up`` writes: of each rule
    ``RuleConfigurationName``, ``RuleEvaluationJobArn`` (here the run's uid and the rule), ``RuleEvaluationStatus``, ``StatusDetails`` (the newest issue
    that fires, or why there is no data) and ``LastModifiedTime`` (UTC). ``run``: its uid or the beginning of it; None: the one that was told of last.
    On Kafka ``tocsin report`` says the same."""
    newest: Dict[Tuple[str, str], Dict[str, Any]] = {}
    found: Dict[Tuple[str, str], str] = {}
    told = ""
    for kind, when, data in _told(directory):
        uid = str(data.get("run", {}).get("uid", ""))
        if run is not None and not uid.startswith(run):
            continue
        which = uid, str(data.get("rule", ""))
        if kind == "dev.tocsin.rule.v1":
            newest.pop(which, None)  # the order is that of the newest
            newest[which] = {"status": data.get("status"), "reason": data.get("reason") or "", "missing": data.get("missing") or [], "time": when}
            told = uid
        elif data.get("status") == "firing":
            found[which] = str(data.get("annotations", {}).get("summary", ""))
    return [{"RuleConfigurationName": rule, "RuleEvaluationJobArn": f"{uid}/{rule}", "RuleEvaluationStatus": one["status"],
             "StatusDetails": _details(one, found.get((uid, rule), "")), "LastModifiedTime": one["time"]}
            for (uid, rule), one in newest.items() if uid == told]


def _details(one: Dict[str, Any], issue: str) -> str:
    if one["status"] == "IssuesFound" and issue:
        return issue
    missing = "; missing: " + ", ".join(one["missing"]) if one["missing"] else ""
    return (one["reason"] + missing).lstrip("; ")


def _told(directory: str) -> Iterable[Tuple[str, datetime.datetime, Dict[str, Any]]]:
    """Issues and statuses of rules, oldest first: (type, time, data)."""
    try:
        rows = list(tensors.rows(os.path.join(directory, "control.db"), "issues"))
    except (OSError, sqlite3.Error) as error:
        raise ValueError(f"{directory}: no journal of tocsin can be read there: {error}") from None
    for ts, value, headers in rows:
        kind = headers.get("ce_type", b"").decode()
        if kind in ("dev.tocsin.rule.v1", "dev.tocsin.issue.v1") and value:
            yield kind, datetime.datetime.fromtimestamp(ts / 1e9, datetime.timezone.utc), json.loads(value)


def _main(arguments: List[str]) -> int:
    if len(arguments) != 1 or arguments[0].startswith("-"):
        print("usage: python3 -m tocsin.debugger job.json > tocsin.yaml\n\njob.json: what a job is made of for the cloud service, "
              "with DebugRuleConfigurations, DebugHookConfig, …", file=sys.stderr)
        return 2
    warnings.showwarning = lambda message, *_, **__: print(f"warning: {message}", file=sys.stderr)
    try:
        configured = read_job(arguments[0])
    except (OSError, ValueError) as error:
        print(f"error: {error}", file=sys.stderr)
        return 1
    print(_lines(configured), end="")
    return 0


if __name__ == "__main__":
    sys.exit(_main(sys.argv[1:]))
