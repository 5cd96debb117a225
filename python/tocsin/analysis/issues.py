"""Runs and issues that a server knows."""

import ast
import operator
from typing import Any, Callable, Dict, Iterator, List, Optional, Union

from .frame import Frame
from .http import Server
from .selection import query_of
from .served import ServedSource, ServedTrial

_OPERATORS: Dict[type, Callable[[Any, Any], bool]] = {
    ast.Eq: operator.eq, ast.NotEq: operator.ne, ast.Lt: operator.lt, ast.LtE: operator.le, ast.Gt: operator.gt, ast.GtE: operator.ge}
_FIELDS = ("uid", "job", "state", "outcome", "attempt", "world_size", "step", "open_issues", "issues", "rule", "severity")
_AROUND = 200  # steps before and behind an issue


class Record(Dict[str, Any]):
    """A row of a list; its fields are attributes too."""

    def __getattr__(self, name: str) -> Any:
        if name in self:
            return self[name]
        raise AttributeError(f"no field {name}: expected one of {', '.join(self)}")


class Issue(Record):
    """Of ``GET /api/v1/issues``."""

    def of(self, server: Server) -> "Issue":
        self.__dict__["_server"] = server
        return self

    def details(self) -> Record:
        """Deliveries, groups, the window that its rule judged, the run's other issues."""
        server: Server = self.__dict__["_server"]
        return Record(server.get(f"/api/v1/issues/{self['key']}/newest"))

    def evidence(self, around: int = _AROUND) -> Frame:
        """The metric that it is about, so many steps before and behind. ValueError: it is about something that a server keeps no curve of."""
        labels = self.get("labels") or {}
        name = labels.get("metric")
        if not name or self.get("step") is None:
            raise ValueError(f"{self['summary']} The server has no curve of it: open the directory of run {self['run']['uid']}")
        step = int(self["step"])
        asked = query_of(name, mode=self.get("mode"), workers=[self["worker"]] if self.get("worker") else None,
                         steps=(max(0, step - around), step + around + 1))
        return Frame(ServedSource(self.__dict__["_server"]), asked._replace(run=self["run"]["uid"]))


def _server(source: Union[str, Server], token: Optional[str]) -> Server:
    return source if isinstance(source, Server) else Server(str(source), token)


def runs(source: Union[str, Server], filter: Optional[str] = None, limit: Optional[int] = None,  # noqa: A002 (as the API calls it)
         token: Optional[str] = None) -> List[Record]:
    """Runs that a server knows, newest first, as ``GET /api/v1/runs`` gives them. ``filter``: for instance
    ``job == "digits" and open_issues > 0``, over uid, job, state, outcome, attempt, world_size, step, open_issues, issues, rule and severity
    (of the headline), and labels["team"]. Raises ValueError."""
    takes = _filter(filter) if filter else lambda _: True
    out: List[Record] = []
    for item in _server(source, token).all("/api/v1/runs"):
        if takes(item):
            out.append(Record(item))
            if limit is not None and len(out) >= limit:
                break
    return out


def issues(run: Union[ServedTrial, str, Server], source: Union[str, Server, None] = None, status: Optional[str] = None,
           token: Optional[str] = None) -> List[Issue]:
    """Issues of a run, the earliest first: of a trial of a server, or of a uid and the server's address."""
    if isinstance(run, ServedTrial):
        server, uid = run.source.server, run.run
    elif source is not None:
        server, uid = _server(source, token), str(run)
    else:
        raise ValueError("issues: expected a trial of a server, or issues(uid, source=\"http://…\")")
    found: Iterator[Dict[str, Any]] = server.all("/api/v1/issues", run=uid, status=status)
    return sorted((Issue(item).of(server) for item in found), key=lambda one: (one["starts_at"], one["key"]))


def _filter(text: str) -> Callable[[Dict[str, Any]], bool]:
    try:
        tree = ast.parse(text.strip(), mode="eval").body
    except SyntaxError as error:
        raise ValueError(f"{text}: expected for instance job == \"digits\" and step > 100") from error
    judge = _judge(tree, text)
    return lambda item: bool(judge(item))


def _judge(node: ast.AST, text: str) -> Callable[[Dict[str, Any]], Any]:
    if isinstance(node, ast.BoolOp):
        parts = [_judge(one, text) for one in node.values]
        every = all if isinstance(node.op, ast.And) else any
        return lambda item: every(part(item) for part in parts)
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Not):
        part = _judge(node.operand, text)
        return lambda item: not part(item)
    if isinstance(node, ast.Compare) and len(node.ops) == 1 and type(node.ops[0]) in _OPERATORS:
        left, right, compare = _judge(node.left, text), _judge(node.comparators[0], text), _OPERATORS[type(node.ops[0])]

        def compared(item: Dict[str, Any]) -> bool:
            one, other = left(item), right(item)
            return compare(one, other) if one is not None or compare in (operator.eq, operator.ne) else False
        return compared
    if isinstance(node, ast.Constant):
        return lambda _, value=node.value: value
    if isinstance(node, ast.Name) and node.id in _FIELDS:
        return lambda item, name=node.id: _field(item, name)
    if isinstance(node, ast.Subscript) and getattr(node.value, "id", "") == "labels":
        index = getattr(node.slice, "value", node.slice)
        label = index if isinstance(index, str) else getattr(index, "value", getattr(index, "s", None))
        return lambda item: item["labels"].get(label)
    raise ValueError(f"{text}: expected comparisons of {', '.join(_FIELDS)} or labels[\"…\"], joined by and, or, not")


def _field(item: Dict[str, Any], name: str) -> Any:
    if name in ("open_issues", "issues"):
        return item["issues"]["open" if name == "open_issues" else "total"]
    if name in ("rule", "severity"):
        return (item.get("headline") or {}).get(name)
    return item.get(name)
