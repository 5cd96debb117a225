"""Times of phases: names of spans and of their arguments."""

import json
from typing import Any, Dict, Mapping, Optional, Tuple

from tocsin.library import abi
from tocsin.process.contain import Errors

# Distinct ones; each is a name that every reader keeps.
MAX_NAMES = MAX_ARGUMENTS = MAX_TRACKS = 1000
REST = "(others)"  # the name of what comes beyond


class Spans:
    def __init__(self, client: abi.Client, errors: Errors) -> None:
        self._client = client
        self._errors = errors
        self._names = 0
        self._ids: Dict[Tuple[int, str], int] = {}
        self._arguments = self._tracks = 0

    def add(self, name: str, start: int, duration: int, args: Mapping[str, Any], track: Optional[str] = None) -> None:
        """``start`` and ``duration`` in nanoseconds; duration -1: an instant. ``track``: None: ``phase``."""
        if (abi.NAME_SPAN, name) not in self._ids and name != REST:
            if self._names >= MAX_NAMES:
                self._errors.add("span", ValueError(
                    f"more than {MAX_NAMES} names, the rest is recorded as {REST}: "
                    "give values that change as arguments"))
                name = REST
            else:
                self._names += 1
        arguments = self._arguments_id(args) if args else 0
        where = 0 if track is None else self._track_id(track)
        self._client.span(self._id(abi.NAME_SPAN, name), where, start, duration, arguments)

    def _id(self, kind: int, text: str) -> int:
        found = self._ids.get((kind, text))
        if found is None:
            found = self._ids[(kind, text)] = self._client.name(kind, text)
        return found

    def _track_id(self, track: str) -> int:
        if (abi.NAME_TRACK, track) not in self._ids:
            if self._tracks >= MAX_TRACKS:
                raise ValueError(f"more than {MAX_TRACKS} tracks: a track is a place where spans follow each other")
            self._tracks += 1
        return self._id(abi.NAME_TRACK, track)

    def _arguments_id(self, args: Mapping[str, Any]) -> int:
        text = json.dumps(args, default=str)
        if (abi.NAME_SPAN_ARGS, text) not in self._ids:
            if self._arguments >= MAX_ARGUMENTS:
                return 0
            self._arguments += 1
        return self._id(abi.NAME_SPAN_ARGS, text)
