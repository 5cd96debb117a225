"""What a script wants people to hear: what is told, how often, and that nothing reaches the training."""
import datetime
import enum
import threading
import warnings

import pytest
from tests.support.hook_support import Telemetry

import tocsin
from tocsin.hook import alerts as _alerts


class Level(enum.Enum):  # as another tool's
    WARN = "WARN"


@pytest.fixture
def clock(monkeypatch):
    """A clock that stands until it is moved."""
    class Clock:
        now = 1000.0

        def monotonic(self):
            return self.now
    one = Clock()
    monkeypatch.setattr(_alerts, "time", one)
    return one


def alerts(out):
    return [finding for record in Telemetry(out).lifecycles("preflight") for finding in record["findings"] if finding["kind"] == "alert"]


def said(out, *keys):
    return [tuple(one[key] for key in keys) for one in alerts(out)]


def test_an_alert_is_a_record(out):
    hook = tocsin.watch(out=out)
    hook.alert("Low accuracy", f"It is {0.31}.", level="WARN")
    hook.alert("No text")
    hook.alert("of an enumeration", level=Level.WARN)
    hook.alert("of ours", level="error")
    hook.close()
    assert said(out, "title", "text", "level", "count") == [
        ("Low accuracy", "It is 0.31.", "warning", 1), ("No text", "", "info", 1), ("of an enumeration", "", "warning", 1), ("of ours", "", "error", 1)]
    assert hook.stats()["alerts"] == {"told": 4}


def test_a_title_waits_and_another_does_not(out, clock):
    hook = tocsin.watch(out=out)
    hook.alert("a", "1", wait_duration=10)
    hook.alert("a", "2", wait_duration=0)  # what the one that was told said of its wait counts
    hook.alert("b", "3")
    clock.now += 9.9
    hook.alert("a", "4")
    clock.now += 0.2
    hook.alert("a", "5", wait_duration=datetime.timedelta(minutes=5))
    clock.now += 299
    hook.alert("a", "6")
    clock.now += 2
    hook.alert("a", "7")
    assert hook.stats()["alerts"] == {"told": 4, "waiting": 3}
    hook.close()
    assert said(out, "text", "count") == [("1", 1), ("3", 1), ("5", 3), ("7", 2)]


def test_a_minute_has_so_many(out, clock):
    hook = tocsin.watch(out=out)
    for number in range(_alerts.MOST_A_MINUTE + 5):
        hook.alert(f"step {number}", wait_duration=0)
    assert hook.stats()["alerts"] == {"told": _alerts.MOST_A_MINUTE, "too_many": 5}
    clock.now += 61
    hook.alert("step 30")
    assert hook.stats()["alerts"]["told"] == _alerts.MOST_A_MINUTE + 1
    hook.close()
    assert alerts(out)[-1]["count"] == 2


def test_titles_are_forgotten_in_the_end(out):
    hook = tocsin.watch(out=out)
    for number in range(_alerts.MAX_TITLES + 50):
        hook.alert(f"step {number}")
    assert len(hook._alerts._titles) == _alerts.MAX_TITLES
    hook.close()


def test_long_and_strange_texts_are_cut(out):
    hook = tocsin.watch(out=out)
    hook.alert("two\nlines \x00" + "€" * 100, "€" * 3000)
    hook.alert("half a surrogate \ud800", "\udfff")
    hook.alert(7, None)
    hook.close()
    first, second, third = alerts(out)
    assert first["title"].startswith("two lines \x00€") and len(first["title"].encode()) <= _alerts.MAX_TITLE
    assert first["text"] == "€" * (_alerts.MAX_TEXT // 3)
    assert (second["title"], second["text"]) == ("half a surrogate ?", "?")
    assert (third["title"], third["text"]) == ("7", "None")


class Unspeakable:
    def __str__(self):
        raise RuntimeError("no")


def test_nothing_reaches_the_training(out):
    hook = tocsin.watch(out=out)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        hook.alert("told all the same", level="SHOUTING", wait_duration="soon")
        hook.alert("and this", wait_duration=float("nan"))
        hook.alert(Unspeakable())
    assert hook.stats()["hook_errors_total"] == {"alert": 4}
    hook.close()
    hook.alert("afterwards")
    assert said(out, "title", "level") == [("told all the same", "warning"), ("and this", "info")]


def test_from_many_threads_one_is_told(out):
    hook = tocsin.watch(out=out)
    threads = [threading.Thread(target=hook.alert, args=("a",)) for _ in range(16)]
    for one in threads:
        one.start()
    for one in threads:
        one.join()
    assert hook.stats()["alerts"] == {"told": 1, "waiting": 15}
    hook.close()
    assert len(alerts(out)) == 1


def test_a_hook_that_is_off_says_nothing(out, monkeypatch):
    monkeypatch.setenv("TOCSIN_DISABLED", "1")
    hook = tocsin.watch(out=out)
    hook.alert("a")
    assert "alerts" not in hook.stats()
