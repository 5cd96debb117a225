"""What a script tells of its own course: that it goes on, and what is not to be watched any more."""

from typing import Any, Mapping, Optional

from ._contain import contained
from ._process import say

_WRONG_CALLS = {
    "no_step_end": "values were logged again and again in one step that nobody ended: call hook.step() once per update, or give "
                   "watch() the optimizer; if it has it, the optimizer makes no updates",
    "empty_steps": "thousands of steps were ended per second with nearly nothing in them: hook.step() belongs once per update",
}


class Steering:
    """Of a :class:`tocsin.Hook`."""

    @contained()
    def report_progress(self, expect_next_in: Optional[float] = None) -> None:
        """The loop goes on, and will be heard of again within so many seconds: by steps, values, or another call.
        ``stalled_training_rule`` heeds it, with its ``grace`` on top: before a long evaluation it keeps quiet, and
        after a short promise it tells of a hang sooner than its ``threshold``. It holds until the next call; None
        takes it back. For code that seldom runs, not for every step."""
        seconds = 0.0 if expect_next_in is None else float(expect_next_in)
        if not seconds >= 0 or (expect_next_in is not None and seconds == 0):
            raise ValueError(f"expect_next_in is {expect_next_in!r}: expected seconds, more than 0, or None")
        self.standing.promised(seconds)  # type: ignore[attr-defined]
        self._client.lifecycle({"event": "heartbeat", "expect_next_in": seconds})  # type: ignore[attr-defined]

    @contained()
    def alert(self, title: str, text: str = "", level: Any = "INFO", wait_duration: Any = 60.0) -> None:
        """People are told of it like of any other issue (``script_alert``: by mail, webhook, … as the routes say).
        ``level``: ``INFO``, ``WARN``, ``ERROR``, or a severity. ``wait_duration``, seconds or a ``timedelta``: not told
        again under this title before that is over. Title and text are cut at 200 and 4,000 bytes, and a minute has
        30 alerts; what is not told is counted in ``stats()["alerts"]``. From any thread."""
        self._alerts.say(title, text, level, wait_duration)  # type: ignore[attr-defined]

    @contained()
    def unwatch(self, model: Any = None) -> None:
        """Lets go of a model and its optimizers (None: of all that are watched): hooks are taken out, and its updates
        end no steps any more. The run goes on; ``watch()`` attaches again."""
        for adapter in self.sink.adapters():  # type: ignore[attr-defined]
            if model is None or getattr(adapter, "parts", tuple)()[:1] == (model,):
                self.sink.let_go(adapter)  # type: ignore[attr-defined]

    def say_wrong_calls(self, counters: Mapping[str, Any]) -> None:
        """What the library saw of the loop's calls, as a line on stderr; it is an issue (``training_preflight``) as well."""
        text = _WRONG_CALLS.get(counters.get("wrong_calls", ""))
        if text is not None:
            say(text)
