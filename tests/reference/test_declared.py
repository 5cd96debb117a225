"""Rules over rules and over another run: engine and reference agree on random streams, whatever the order in which workers'
records come, and through restarts."""
import os

import pytest

from tests.reference import declared, engine, story
from tests.reference.history import History
from tests.reference.random_streams import common
from tocsin import wire

STREAMS = int(os.environ.get("TOCSIN_STREAMS", "80"))
SEED = int(os.environ.get("TOCSIN_SEED", "0"))
OTHER = "other"


def rules_of(chance):
    out = {name: {"kind": "row", "metric": name, "above": 0, "for": chance.choice((1, 1, 2)), "clear_after": chance.randint(1, 3)}
           for name in "abc"}
    more = {"for": 1, "clear_after": chance.randint(1, 3)}
    out["then"] = {"kind": "sequence", "sequence": chance.choice((["a", "b"], ["a", "b", "c"], ["a", "a"], ["b", "a"])),
                   "without": chance.choice(([], [], ["c"])), "within": chance.randint(1, 8),
                   "by": chance.choice(([], [], ["worker"])), **more}
    if "c" in out["then"]["sequence"]:
        out["then"]["without"] = []
    out["awaited"] = {"kind": "sequence", "sequence": ["a"], "without": ["b"], "within": chance.randint(1, 6), **more}
    out["lately"] = {"kind": "fired", "metric": "x", "above": 0, "fired": chance.choice("abc"),
                     "steps": chance.choice((None, 1, 2, 5)), **more}
    out["pieces"] = {"kind": "pieces", "metric": "x", "every": chance.choice((1, 2, 3, 7)), "above": chance.choice((0, 0.4, 0.9)), **more}
    out["worse"] = {"kind": "other", "metric": "x", "factor": 1, **more}
    return out


def streams(chance):
    """(records, the same in another order of workers)"""
    world = chance.choice((1, 1, 2, 3))
    alone = world > 1 and chance.random() < 0.4
    plan = chance.choice((common.train_only, common.train_and_eval, common.train_and_eval, common.global_only))
    schedule = plan(chance, chance.randint(5, 40))
    often = {name: chance.choice((0.05, 0.2, 0.5)) for name in "abcx"}
    runs = [None] + ([OTHER] if chance.random() < 0.8 else [])
    announced = len(runs) == 2 or chance.random() < 0.8
    workers = []
    for run in runs:
        for rank in range(world):
            worker = story.Worker(rank, world, run=run)
            worker.start()
            position = {}
            for mode, further in schedule:
                if alone and rank > 0 and mode in ("eval", "predict"):
                    continue
                position[mode] = position.get(mode, -1) + (further if mode in position else 1)
                worker.enter(mode, position[mode])
                if chance.random() < 0.9:
                    worker.scalars(*((name, chance.choice((1.0, 1.0, float("nan"))) if chance.random() < often[name] else 0.0,
                                      "metric") for name in "abcx" if chance.random() < 0.9))
                worker.step_end()
                if run == OTHER and chance.random() < 0.02:
                    break
            if announced:
                worker.end()
            workers.append(worker)
    first, second = ended_last(story.interleave(workers, chance)), ended_last(story.interleave(workers, chance))
    return (common.twice(chance, first) if chance.random() < 0.3 else first), second


def ended_last(records):
    """The run that is judged ends last: one that ends before the other has come as far is compared up to there."""
    def ends(record):
        return "run" not in record and record.get("body", {}).get("event") == "end"
    last = records[-1]["at"]
    return [one for one in records if not ends(one)] + [{**one, "at": last} for one in records if ends(one)]


def key(episode):
    return (episode.unit, episode.first, "end" if episode.resolved is None else episode.resolved)


def of_case(answer):
    """Without what is said of the other run."""
    return {**answer, "issues": [issue for issue in answer["issues"] if issue["labels"]["run_uid"] == engine.CASE]}


@pytest.fixture(scope="module")
def judge():
    with engine.Engine() as one:
        yield one


def test_engine_and_reference_agree(judge):
    raised = dict.fromkeys(("then", "awaited", "lately", "worse", "pieces"), 0)
    for seed in range(SEED, SEED + 5 * STREAMS):
        chance = story.chance("declared", seed)
        rules = rules_of(chance)
        records, turned = streams(chance)
        items = [declared.spelled(name, rule, wire.run_uid("reference", OTHER)) for name, rule in rules.items()]
        chance.shuffle(items)
        history = History(records)
        answer = judge.judge(items, records)
        assert "refused" not in answer, answer
        answer = of_case(answer)
        for name in rules:
            expected = sorted(map(key, declared.judge(rules, name, history)), key=str)
            given = sorted(map(key, engine.episodes(answer, name)), key=str)
            assert given == expected, f"seed {seed}, {name}: {rules[name]}\n{rules}"
            if name in raised:
                raised[name] += len(expected)
        mine = [issue["id"] for issue in answer["issues"] if issue["rule"] in raised]
        again = of_case(judge.judge(items, turned))
        assert sorted(mine) == sorted(issue["id"] for issue in again["issues"] if issue["rule"] in raised), f"seed {seed}"
        assert len(set(mine)) == len(mine)
    assert all(count > STREAMS for count in raised.values()), f"the streams say too little: {raised}"
