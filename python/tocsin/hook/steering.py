"""What a script tells of its own course: that it goes on, and what is not to be watched any more."""

from typing import Any, Mapping, Optional

from tocsin.process.contain import contained
from tocsin.process.facts import say

_WRONG_CALLS = {
    "no_step_end": "values were logged again and again in one step that nobody ended: call hook.step() once per update, or give "
                   "watch() the optimizer; if it has it, the optimizer makes no updates",
    "empty_steps": "thousands of steps were ended per second with nearly nothing in them: hook.step() belongs once per update",
}


class Steering:
    """Of a :class:`tocsin.Hook`."""

    @contained()
    def report_progress(self, expect_next_in: Optional[float] = None) -> None:
        """Promise that the loop will be heard of again within ``expect_next_in`` seconds.

        A step, a value or another call of ``report_progress`` keeps the promise. The rule ``stalled_training_rule`` waits
        that long, plus its ``grace``. So it stays quiet during a long evaluation, and after a short promise it finds a
        hang sooner than its ``threshold``. The promise holds until the next call; None withdraws it. Call it before an
        evaluation or once per epoch, not in every step.
        """
        seconds = 0.0 if expect_next_in is None else float(expect_next_in)
        if not seconds >= 0 or (expect_next_in is not None and seconds == 0):
            raise ValueError(f"expect_next_in is {expect_next_in!r}: expected seconds, more than 0, or None")
        self.standing.promised(seconds)  # type: ignore[attr-defined]
        self._client.lifecycle({"event": "heartbeat", "expect_next_in": seconds})  # type: ignore[attr-defined]

    @contained()
    def alert(self, title: str, text: str = "", level: Any = "INFO", wait_duration: Any = 60.0) -> None:
        """Notify people: an issue ``script_alert`` goes where the routes send it (docs/hook/alerts.md).

        ``level``: ``INFO``, ``WARN``, ``ERROR``, or a severity. ``wait_duration``: seconds or a ``timedelta`` during which
        the same title is not sent again. The title is cut at 200 bytes and the text at 4,000. At most 30 alerts per minute
        are sent; ``stats()["alerts"]`` counts the rest. You may call it from any thread.
        """
        self._alerts.say(title, text, level, wait_duration)  # type: ignore[attr-defined]

    @contained()
    def unwatch(self, model: Any = None) -> None:
        """Detach from a model and its optimizers, or from all of them with None.

        Their updates end no steps any more. The run goes on, and ``watch()`` attaches again.
        """
        for adapter in self.sink.adapters():  # type: ignore[attr-defined]
            if model is None or getattr(adapter, "parts", tuple)()[:1] == (model,):
                self.sink.let_go(adapter)  # type: ignore[attr-defined]

    def say_wrong_calls(self, counters: Mapping[str, Any]) -> None:
        """What the library saw of the loop's calls, as a line on stderr; it is an issue (``training_preflight``) as well."""
        text = _WRONG_CALLS.get(counters.get("wrong_calls", ""))
        if text is not None:
            say(text)
