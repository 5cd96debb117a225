"""Times of phases: names of spans and of their arguments."""

import json
from typing import Any, Dict, Mapping, Tuple

from . import _client

MAX_ARGUMENTS = 1000  # distinct ones; each is a name that every reader keeps


class Spans:
    def __init__(self, client: _client.Client) -> None:
        self._client = client
        self._ids: Dict[Tuple[int, str], int] = {}
        self._arguments = 0

    def add(self, name: str, start: int, duration: int, args: Mapping[str, Any]) -> None:
        """``start`` and ``duration`` in nanoseconds; duration -1: an instant."""
        arguments = self._arguments_id(args) if args else 0
        self._client.span(self._id(_client.NAME_SPAN, name), 0, start, duration, arguments)

    def _id(self, kind: int, text: str) -> int:
        found = self._ids.get((kind, text))
        if found is None:
            found = self._ids[(kind, text)] = self._client.name(kind, text)
        return found

    def _arguments_id(self, args: Mapping[str, Any]) -> int:
        text = json.dumps(args, default=str)
        if (_client.NAME_SPAN_ARGS, text) not in self._ids:
            if self._arguments >= MAX_ARGUMENTS:
                return 0
            self._arguments += 1
        return self._id(_client.NAME_SPAN_ARGS, text)
