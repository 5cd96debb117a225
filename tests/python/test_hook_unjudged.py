"""Half of what an alarm needs is said to be half: nobody judges, stop= and issues() without rules."""
import fcntl
import os
import warnings

import pytest

from tests.support.hook_support import MODEL, run_script

import tocsin


def said_by(call):
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        result = call()
    return result, [str(one.message) for one in said]


def trained(out, capfd, **watch):
    hook = tocsin.watch(out=out, **watch)
    hook.log(loss=1.0)
    hook.step()
    hook.close()
    return hook.stats(), capfd.readouterr().err


def test_nobody_judges_is_one_line_and_a_field(out, capfd):
    stats, said = trained(out, capfd)
    assert stats["judged"] is False
    assert said.count("nobody judges") == 1 and out in said and "tocsin up" in said and "rules=" in said


def test_who_holds_the_group_of_the_engine_judges(out, capfd):
    os.makedirs(out)
    with open(os.path.join(out, "tocsin-rules.lock"), "w", encoding="ascii") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        stats, said = trained(out, capfd)
    assert stats["judged"] is True and "nobody judges" not in said
    stats, said = trained(out, capfd)  # the file stays, and its process is gone
    assert stats["judged"] is False and "nobody judges" in said


def test_rules_in_the_process_judge(out, capfd):
    stats, said = trained(out, capfd, rules="exploding_tensor")
    assert stats["judged"] is True and "nobody judges" not in said


def test_the_line_comes_while_the_run_goes_on(tmp_path):
    result = run_script(MODEL + """
import sys, time
hook = tocsin.watch(model, optimizer, out="data")
for _ in range(100):
    train(hook, 1)
    time.sleep(0.1)
    if hook.stats()["judged"] is not None: break
time.sleep(3)
print("before the end", file=sys.stderr)
hook.close()
""", tmp_path)
    assert result.returncode == 0, result.stderr
    assert result.stderr.count("nobody judges") == 1 and result.stderr.index("nobody judges") < result.stderr.index("before the end")


def test_a_cluster_that_is_away_is_no_answer(out, capfd, tmp_path):
    hook = tocsin.watch(out="kafka://127.0.0.1:1")
    hook.log(loss=1.0)
    hook.step()
    assert hook.stats()["judged"] is None
    hook.close(timeout=0.1)
    assert "nobody judges" not in capfd.readouterr().err


@pytest.mark.parametrize("stop", [True, "error", ["exploding_tensor"]])
def test_stop_without_rules_says_what_is_missing(out, stop):
    hook, said = said_by(lambda: tocsin.watch(out=out, stop=stop))
    assert hook.enabled and len(said) == 1 and "stop=" in said[0] and "rules=True" in said[0]
    hook.close()


@pytest.mark.parametrize("more", [{"stop": False}, {"stop": None}, {"rules": "exploding_tensor", "stop": True}])
def test_what_is_whole_says_nothing(out, more):
    hook, said = said_by(lambda: tocsin.watch(out=out, **more))
    hook.close()
    assert said == []


def test_issues_without_rules_say_once_what_is_missing(out):
    hook = tocsin.watch(out=out)
    found, said = said_by(lambda: hook.issues() + hook.issues())
    assert found == [] and len(said) == 1 and "rules=" in said[0]
    hook.close()
