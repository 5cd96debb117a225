"""watch() called again: what belongs to the run and comes late is said, not lost in silence."""

import warnings

import pytest

import tocsin


@pytest.mark.parametrize("late", [{"capture": {"every": "1 step"}}, {"labels": {"team": "nlp"}}, {"out": "elsewhere"}, {"rules": "default"},
                                  {"stop": True}, {"config": "tocsin.yaml"}], ids=lambda one: next(iter(one)))
def test_settings_of_a_run_come_with_its_first_watch(out, late):
    hook = tocsin.watch(out=out, run="r", job="j")
    with pytest.warns(RuntimeWarning, match=f"{next(iter(late))}=.* changes nothing"):
        assert tocsin.watch(run="r", **late) is hook
    assert hook.enabled and hook.stats()["hook_errors_total"] == {"watch": 1}


def test_the_same_settings_again_are_no_news(out):
    settings = {"out": out, "capture": {"every": "1 step"}, "labels": {"team": "nlp"}}
    hook = tocsin.watch(job="j", **settings)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert tocsin.watch(**{**settings, "labels": dict(settings["labels"])}) is hook
        assert tocsin.watch() is hook


def test_a_warning_of_watch_names_the_line_that_called_it(out, tmp_path):
    with pytest.warns(RuntimeWarning) as told:  # no such file, no mapping of labels, no rules that could stop
        hook = tocsin.watch(out=out, job="places", config=str(tmp_path / "tocsin.yaml"), labels=3, stop="error")
        tocsin.watch(capture="losses")  # comes late
        tocsin.watch(model=object(), optimizer=3)
    hook.close()
    assert [one.filename for one in told] == [__file__] * len(told)
    assert {word for one in told for word in ("labels=", "stop=", "no file", "capture=") if word in str(one.message)} == {
        "labels=", "stop=", "no file", "capture="}


def test_a_warning_of_a_hook_that_is_off_names_the_line_that_called_watch():
    with pytest.warns(RuntimeWarning, match="tocsin is off") as told:
        tocsin.watch(out="no\0path")
    assert [one.filename for one in told] == [__file__]
