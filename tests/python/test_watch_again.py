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
