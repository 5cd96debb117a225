"""The process of one rule: ``python -m tocsin.rules.worker``, started by tocsin (docs/rules/python.md).

Requests come on descriptor 3 and are answered there, one by one: a length (u32, little-endian) and JSON.
What the rule prints goes to tocsin's log.
"""

import importlib.abc
import importlib.util
import inspect
import json
import logging
import os
import resource
import socket
import struct
import sys
import traceback
from typing import Any, Dict, List, Optional, Set, Type

from tocsin.exceptions import MissingData
from tocsin.reading.raw import RawTensors
from . import saving
from .recording import create_trial, unscaled
from .rule import Rule
from .trial import Row, SavedStep, Trial, mode_of

PROTOCOL = 1
DESCRIPTOR = 3
MOST_BYTES = 64 << 20
_LINES = 12  # of a traceback, its last
_WAIT = 2.0  # seconds, for elements of a completed step: they come on a topic of their own


class RuleFileError(Exception):
    """The file cannot be used; the text says why."""


class _AsRead(importlib.abc.SourceLoader):
    """A file as it was when its version was settled, whatever stands there now."""

    def __init__(self, path: str, content: str) -> None:
        self._path, self._content = path, content

    def get_filename(self, fullname: str) -> str:
        del fullname
        return self._path

    def get_data(self, path: str) -> bytes:
        if path != self._path:
            raise OSError(path)  # nothing compiled is kept
        return self._content.encode()


def find_rules(source: str, content: Optional[str] = None) -> Dict[str, Type[Rule]]:
    """The rules that a file defines, in its order. ``content``: what was read of it."""
    sys.path.insert(0, os.path.dirname(source))
    loader = None if content is None else _AsRead(source, content)
    spec = importlib.util.spec_from_file_location("tocsin_rule_file", source, loader=loader)
    if spec is None or spec.loader is None:
        raise RuleFileError(f"{source} is no Python file")
    module = importlib.util.module_from_spec(spec)
    sys.modules["tocsin_rule_file"] = module
    spec.loader.exec_module(module)
    return {name: one for name, one in vars(module).items()
            if inspect.isclass(one) and issubclass(one, Rule) and one is not Rule and one.__module__ == module.__name__}


def choose(rules: Dict[str, Type[Rule]], wanted: str, source: str) -> Type[Rule]:
    if wanted:
        if wanted not in rules:
            raise RuleFileError(f"{source} has no rule {wanted}; it has {', '.join(rules) or 'none'}")
        return rules[wanted]
    if len(rules) != 1:
        raise RuleFileError(f"{source} has {len(rules) or 'no'} rules"
                            + (f" ({', '.join(rules)}): name one of them with `class`" if rules else
                               ": derive a class from tocsin.rules.Rule"))
    return next(iter(rules.values()))


class Session:
    """One rule object for one run."""

    def __init__(self, kind: Type[Rule], parameters: Dict[str, Any], request: Dict[str, Any],
                 place: Optional[Dict[str, Any]] = None) -> None:
        """``place``: where the runs' elements are, as ``out`` and ``config`` of the hook."""
        self.trial = Trial(request.get("job") or request["run"], request["run"])
        if place and any(place.values()):
            self.trial.read_elements_with(RawTensors(request["run"].split("/")[0], **place), _WAIT)
        self.names: Dict[str, Dict[str, Any]] = {}
        arguments = dict(parameters)
        others = [create_trial(path) for path in arguments.pop("other_trials", None) or []]
        if others or _takes(kind, "other_trials"):
            arguments["other_trials"] = others
        if _takes(kind, "action_str"):
            arguments.setdefault("action_str", "")  # the original's service gave it; its rules may ask for it
        self.rule = kind(self.trial, **arguments)
        self.rule.rule_name = request.get("rule") or self.rule.rule_name
        self.saved = ""
        self._said: Set[type] = set()
        if request.get("saved"):
            self.saved = request["saved"]
            self.rule.load(saving.value_of(self.saved))

    def step(self, request: Dict[str, Any]) -> Dict[str, Any]:
        self.names.update(request.get("names", {}))
        self.trial.world_size = request.get("world_size", 0)
        self.trial.keep(request["kept"])
        self.trial.add(self._saved_step(request))
        if not request["judge"]:
            return {"type": "result", "outcome": "ok"}
        try:
            issues = self.rule.evaluate(request["global_step"])
        except MissingData as missing:
            self._say_once(request["global_step"], missing)
            return self._remembering({"type": "result", "outcome": "insufficient_data"})
        for one in issues:
            if one["key"] and self.trial.has_tensor(one["key"]):
                one["label"] = "tensor"
        return self._remembering({"type": "result", "outcome": "hit" if issues else "ok", "issues": issues})

    def _say_once(self, step: int, missing: MissingData) -> None:
        """Steps that cannot be judged count neither way, so a rule that lacks something for ever would be quiet for ever."""
        if type(missing) not in self._said:
            self._said.add(type(missing))
            logging.getLogger("tocsin.rules").warning("%s cannot judge step %s: %s (said once)", self.rule.rule_name, step, missing)

    def _remembering(self, answer: Dict[str, Any]) -> Dict[str, Any]:
        saved = saving.text_of(self.rule.save())
        if saved != self.saved:
            self.saved = answer["saved"] = saved
        return answer

    def _saved_step(self, request: Dict[str, Any]) -> SavedStep:
        rows: Dict[str, Dict[str, Row]] = {}
        for row in request["rows"]:
            about = self.names[row["n"]]
            name = about["name"]
            rows.setdefault(name, {})[row["w"]] = _row_of(row)
            self.trial.describe(name, row["role"], about.get("collections", ()), about.get("shape", ()))
        return SavedStep(mode_of(request["mode"]), request["step"], request["global_step"], request["time"], rows)


def _row_of(row: Dict[str, Any]) -> Row:
    if "v" in row:
        return Row(float(row["v"]), None, {})
    columns = unscaled(tuple(float(one) for one in row["s"]), float(row.get("d", 1)))
    return Row(None, columns, {name: float(value) for name, value in row.get("x", {}).items()})


def _takes(kind: Type[Rule], argument: str) -> bool:
    return argument in inspect.signature(kind.__init__).parameters


class Worker:
    def __init__(self) -> None:
        self._parameters: Dict[str, Any] = {}
        self._kind: Optional[Type[Rule]] = None
        self._sessions: Dict[int, Session] = {}
        self._place: Optional[Dict[str, Any]] = None

    def answer(self, request: Dict[str, Any]) -> Optional[Dict[str, Any]]:
        for gone in request.get("forget", ()):
            self._sessions.pop(gone, None)
        kind = request["type"]
        if kind == "hello":
            return self._hello(request)
        if kind == "open":
            assert self._kind is not None
            self._sessions[request["session"]] = Session(self._kind, self._parameters, request, self._place)
            return {"type": "result", "outcome": "ok"}
        if kind == "step":
            return self._sessions[request["session"]].step(request)
        return None  # bye

    def _hello(self, request: Dict[str, Any]) -> Dict[str, Any]:
        if request.get("protocol") != PROTOCOL:
            raise RuleFileError(f"tocsin speaks protocol {request.get('protocol')}, this package {PROTOCOL}: install "
                                "the package of the same version")
        self._parameters = request.get("parameters", {})
        self._place = request.get("elements")
        found = find_rules(request["source"], request.get("content"))
        if not request.get("list"):
            self._kind = choose(found, request.get("class", ""), request["source"])
            _check_arguments(self._kind, self._parameters)
        return {"type": "ready", "classes": list(found)}


def _check_arguments(kind: Type[Rule], parameters: Dict[str, Any]) -> None:
    known = inspect.signature(kind.__init__).parameters
    if any(one.kind is inspect.Parameter.VAR_KEYWORD for one in known.values()):
        return
    for name in parameters:
        if name not in known and name != "other_trials":
            takes = [one for one in known if one not in ("self", "base_trial")]
            raise RuleFileError(f"{kind.__name__} takes no argument {name}; it takes {', '.join(takes) or 'none'}")


def _about_memory(error: BaseException) -> str:
    """What to do where the address space was too small, which libraries say in words of their own."""
    words = ("failed to map segment", "cannot allocate memory", "can't start new thread")
    if not isinstance(error, MemoryError) and not any(one in str(error).lower() for one in words):
        return ""
    most = resource.getrlimit(resource.RLIMIT_AS)[0]
    if most == resource.RLIM_INFINITY:
        return ""
    return f"\nIts process may have {most / (1 << 30):.3g} GiB of address space: options.memory gives it more"


def last_lines(error: BaseException) -> str:
    if isinstance(error, RuleFileError):
        return str(error)
    lines = traceback.format_exception(type(error), error, error.__traceback__)
    here = os.path.dirname(__file__)
    shown: List[str] = [line for part in lines for line in part.rstrip("\n").split("\n")]
    own = [at for at, line in enumerate(shown) if here in line]  # frames of this package say nothing
    start = own[-1] + 2 if own and own[-1] + 2 < len(shown) else 0
    return "\n".join(shown[start:][-_LINES:])[-4000:] + _about_memory(error)


def serve(connection: socket.socket) -> None:
    worker = Worker()
    stream = connection.makefile("rwb")
    own = os.getpid()
    while True:
        head = stream.read(4)
        if len(head) < 4:
            return
        size = struct.unpack("<I", head)[0]
        try:
            answer = worker.answer(json.loads(stream.read(size)))
        except BaseException as error:  # what a rule does must not end its process in silence
            answer = {"type": "error", "error": last_lines(error)}
        if os.getpid() != own:
            os._exit(0)  # a fork of the rule's that came back: its parent answers, and every request has one answer
        if answer is None:
            return
        data = json.dumps(answer).encode()
        if len(data) > MOST_BYTES:
            data = json.dumps({"type": "error", "error": f"the rule remembers too much: {len(data)} bytes"}).encode()
        stream.write(struct.pack("<I", len(data)) + data)
        stream.flush()


def main() -> None:
    logging.basicConfig(stream=sys.stderr, level=logging.INFO, format="%(levelname)s %(name)s %(message)s")
    with socket.socket(fileno=DESCRIPTOR) as connection:
        serve(connection)


if __name__ == "__main__":
    main()
