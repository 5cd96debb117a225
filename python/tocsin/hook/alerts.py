"""What a script wants people to hear: ``hook.alert()``, at most once per title within a time."""

import collections
import threading
import time
from typing import Any, Deque, Dict, Tuple

from tocsin.library import abi
from tocsin.process.contain import Errors

MAX_TITLE, MAX_TEXT = 200, 4000  # bytes
MOST_A_MINUTE = 30  # of all titles: a receiver is a person
# Titles that are remembered: a title with a number in it is another one each time.
MAX_TITLES = 1000
MINUTE = 60.0

LEVELS = {"INFO": "info", "WARN": "warning", "WARNING": "warning", "ERROR": "error", "CRITICAL": "critical"}


class Alerts:
    """Of one hook. ``counts``: ``told``; ``waiting``, within ``wait_duration`` of the same title; ``too_many`` in a minute."""

    def __init__(self, client: abi.Client, errors: Errors) -> None:
        self._client, self._errors = client, errors
        self._lock = threading.Lock()
        # Per title: until when it waits, and how often it was not told since it was told last.
        self._titles: "collections.OrderedDict[str, Tuple[float, int]]" = collections.OrderedDict()
        self._recent: Deque[float] = collections.deque(maxlen=MOST_A_MINUTE)
        self.counts: Dict[str, int] = {}

    def say(self, title: Any, text: Any, level: Any, wait_duration: Any) -> None:
        wait = self._seconds(wait_duration)
        name = _cut(" ".join(str(title).split()), MAX_TITLE)
        severity = self._severity(level)
        with self._lock:
            count = self._admit(name, wait, time.monotonic())
        if count:
            self._client.report({"event": "preflight", "findings": [
                {"kind": "alert", "title": name, "text": _cut(str(text), MAX_TEXT), "level": severity, "count": count}]})

    def _admit(self, title: str, wait: float, now: float) -> int:
        """0: not now; else how often it was said since it was told last, this time included."""
        until, held = self._titles.pop(title, (0.0, 0))
        full = len(self._recent) == MOST_A_MINUTE and now - self._recent[0] < MINUTE
        reason = "waiting" if now < until else "too_many" if full else "told"
        self.counts[reason] = self.counts.get(reason, 0) + 1
        if reason == "told":
            self._recent.append(now)
        self._titles[title] = (now + wait, 0) if reason == "told" else (until, held + 1)
        while len(self._titles) > MAX_TITLES:
            self._titles.popitem(last=False)
        return held + 1 if reason == "told" else 0

    def _seconds(self, given: Any) -> float:
        """A time that is none is said in ``stats()``, too."""
        try:
            seconds = float(given.total_seconds() if hasattr(given, "total_seconds") else given)
        except (TypeError, ValueError):
            seconds = -1.0
        if seconds >= 0:
            return seconds
        self._errors.add("alert", ValueError(f"wait_duration is {given!r}: expected seconds, 0 or more, or a timedelta; taken as {MINUTE:g}"))
        return MINUTE

    def _severity(self, level: Any) -> str:
        """A level that is none is said in ``stats()``, and the alert is told all the same."""
        word = str(getattr(level, "value", level)).upper()
        if word not in LEVELS:
            self._errors.add("alert", ValueError(f"level is {level!r}: expected INFO, WARN, ERROR or CRITICAL; told as WARN"))
        return LEVELS.get(word, "warning")


def _cut(text: str, most: int) -> str:
    """Whole characters of at most so many bytes; what is no character (half a surrogate) becomes ``?``."""
    return text.encode("utf-8", "replace")[:most].decode("utf-8", "ignore")
