"""Each hand-worked case, judged by the engine and by the reference."""
import pytest

from tests.reference import compare, engine, judging, known, tables
from tests.reference.history import History

CASES = tables.load()


@pytest.fixture(scope="module")
def judge():
    with engine.Engine() as one:
        yield one


def assert_tells(summary, expected):
    assert engine.same(summary, expected), f"it tells {summary}"


@pytest.mark.parametrize("name", [name for name, (_, case) in CASES.items() if "refused" not in case])
def test_the_reference_agrees_with_the_table(name):
    rule, case = CASES[name]
    clock = getattr(judging.module(rule), "CLOCK", False)
    [item] = tables.rules(rule, case)
    episodes, status = judging.judge(item, History(tables.records(case)))
    assert compare.shown(rule, episodes) == compare.shown(rule, tables.expected(rule, case, clock))
    assert status == case["status"]
    if "tells" in case:
        history = History(tables.records(case))
        if hasattr(judging.module(rule), "tells"):
            assert engine.holds(case["tells"], compare.told(item, history)), f"it tells {compare.told(item, history)}"
        else:
            assert_tells(judging.module(rule).summary(history), case["tells"])


@pytest.mark.parametrize("name", known.parameters({name: rule for name, (rule, _) in CASES.items()}))
def test_the_engine_agrees_with_the_table(judge, name):
    rule, case = CASES[name]
    answer = judge.judge(tables.rules(rule, case), tables.records(case))
    if "refused" in case:
        assert case["refused"] in answer.get("refused", "")
        return
    assert "refused" not in answer
    clock = getattr(judging.module(rule), "CLOCK", False)
    assert compare.shown(rule, engine.episodes(answer, rule, clock)) == compare.shown(rule, tables.expected(rule, case, clock))
    assert engine.status(answer, rule) == case["status"]
    if "tells" in case:
        if hasattr(judging.module(rule), "tells"):
            assert engine.holds(case["tells"], engine.summary(answer, rule)), f"it tells {engine.summary(answer, rule)}"
        else:
            assert_tells(engine.summary(answer, rule), case["tells"])
    ids = engine.ids(answer)
    assert len(set(ids)) == len(ids), "several events have one id"


@pytest.mark.parametrize("rule", sorted({rule for rule, _ in CASES.values()}))
def test_it_has_a_case_that_fires_and_one_that_stays_quiet(rule):
    fires = {bool(case.get("expect")) for name, case in CASES.values() if name == rule and "refused" not in case}
    assert fires == ({False} if rule in tables.summing_up() else {True, False})


@pytest.mark.parametrize("rule", known.awaited())
def test_the_engine_still_lacks_what_is_awaited(judge, rule):
    answer = judge.judge([{"use": rule}], [])
    assert rule in answer.get("refused", ""), "it is there: take it out of awaited_rules.txt"
