"""What must hold of the engine where the reference has nothing to compare with."""
import json

import pytest

from tests.reference import compare, engine, judging, known, random_streams, shards, story

ORDERS = {"ids/" + family: rule for family, (rule, _) in random_streams.FAMILIES.items()
          if not getattr(judging.module(rule), "CLOCK", False)
          and rule not in ("similar_across_runs", "family_baseline")}  # how far another run has come by then follows from the log alone


@pytest.fixture(scope="module")
def judge():
    with engine.Engine() as one:
        yield one


def by_worker(records):
    """The same records, all of one worker before those of the next; times stay, so that nobody seems idle."""
    out = sorted(records, key=lambda record: record["rank"])
    return [{**record, "at": max(one["at"] for one in records)} for record in out]


@pytest.mark.parametrize("name", known.parameters(ORDERS))
def test_the_order_of_workers_does_not_change_an_event(judge, name):
    for seed in range(25):
        rules, records = random_streams.make(name.partition("/")[2], seed)
        if len({record["rank"] for record in records}) < 2:
            continue
        mixed = judge.judge(rules, compare.renumbered(records))
        apart = judge.judge(rules, by_worker(compare.renumbered(records)))
        assert sorted(engine.ids(mixed)) == sorted(engine.ids(apart)), f"seed {seed}"


IDS = {"unique/" + family: rule for family, (rule, _) in random_streams.FAMILIES.items()}


@pytest.mark.parametrize("name", known.parameters(IDS))
def test_no_two_events_have_one_id(judge, name):
    for seed in range(30):
        rules, records = random_streams.make(name.partition("/")[2], seed)
        ids = engine.ids(judge.judge(rules, records))
        assert len(set(ids)) == len(ids), f"seed {seed}: {sorted(one for one in set(ids) if ids.count(one) > 1)}"


RESTARTS = {"restart/" + family: rule for family, (rule, _) in random_streams.FAMILIES.items()}


@pytest.mark.parametrize("name", known.parameters(RESTARTS))
def test_a_restart_changes_nothing(judge, name):
    for seed in range(12):
        rules, records = random_streams.make(name.partition("/")[2], seed)
        chance = story.chance("restart", name, seed)
        broken = list(records)
        for _ in range(chance.randint(1, 3)):
            broken.insert(chance.randrange(1, len(broken) + 1), {"kind": "restart", "budget": chance.choice((200, 1 << 20))})
        assert judge.judge(rules, broken) == judge.judge(rules, records), f"seed {seed}"


SHARDS = {"shards/" + family: rule for family, (rule, _) in random_streams.FAMILIES.items()}


def events_of_rules(answer):
    """Ids; what the engine itself says of lost frames it says of each shard."""
    return sorted(issue["id"] for issue in answer["issues"] if issue["rule"] != "telemetry_gap")


@pytest.mark.parametrize("name", known.parameters(SHARDS))
def test_a_run_over_four_shards_has_the_events_of_a_run_of_one(judge, name):
    """But for rules that join tensors: they judge none of it, and say so."""
    for seed in range(20):
        rules, records = random_streams.make(name.partition("/")[2], seed)
        whole, spread = judge.judge(rules, records), judge.judge(rules, shards.spread(records, 4))
        if any("spread over 4 shards" in one["reason"] for one in spread["statuses"]):
            continue
        assert events_of_rules(spread) == events_of_rules(whole), f"seed {seed}"


JSON = {f"json/{family}": random_streams.FAMILIES[family][0]
        for family in ("loss_original", "loss_tocsin", "overfit_modes", "overfit_boosting")}


ODD = {"nan": "NaN", "inf": "Infinity", "-inf": "-Infinity"}


def says_all(records):
    """One worker, of whose steps none is without a value: without step-ends such a step is not seen."""
    steps = {kind: {(record["mode"], record["step"]) for record in records if record["kind"] == kind}
             for kind in ("scalars", "step_end", "summary")}
    return records[0]["world"] == 1 and steps["scalars"] == steps["step_end"] and not steps["summary"]


def as_json(records):
    """The scalars alone, as a producer sends them that knows nothing of frames, steps' ends or a run's."""
    out = []
    for record in records:
        if record["kind"] == "scalars":
            metrics = [{"job": "reference", "run": "case", "name": name, "role": role, "mode": record["mode"], "step": step,
                        "global_step": global_step, "value": ODD.get(str(value), value)}
                       for name, role, step, global_step, value in record["rows"]]
            out.append({"kind": "json", "text": json.dumps(metrics), "at": record["at"]})
    return out


def told(answer):
    """Events that speak neither of the run's end nor of lost frames, of which JSON knows nothing."""
    return sorted(issue["id"] for issue in answer["issues"]
                  if issue["resolution"] != "job_ended" and issue["rule"] != "telemetry_gap")


@pytest.mark.parametrize("name", known.parameters(JSON))
def test_json_and_frames_give_the_same_events(judge, name):
    judged = 0
    for seed in range(300):
        rules, records = random_streams.make(name.partition("/")[2], seed)
        if not says_all(records):
            continue
        judged += 1
        assert told(judge.judge(rules, as_json(records))) == told(judge.judge(rules, records)), f"seed {seed}"
    assert judged > 5


def losses(values, mode="train", spacing=1):
    """One worker that logs these losses, `spacing` steps apart."""
    worker = story.Worker()
    worker.start()
    for i, value in enumerate(values):
        worker.enter(mode, i * spacing)
        worker.scalars(("loss", value))
        worker.step_end()
    worker.end()
    return story.interleave([worker])


FEW = {
    "few/forty boosting rounds that stand still": ([0.69] * 40, "global", 1),
    "few/one log per epoch that stands still": ([2.3] * 12, "train", 1),
    "few/one log per hundred steps that stands still": ([2.3] * 12, "train", 100),
}


@pytest.mark.parametrize("name", known.parameters(dict.fromkeys(FEW, "loss_not_decreasing")))
def test_a_job_with_few_points_is_judged(judge, name):
    values, mode, spacing = FEW[name]
    answer = judge.judge([{"use": "loss_not_decreasing"}], losses(values, mode, spacing))
    assert [issue["kind"] for issue in answer["issues"] if issue["status"] == "firing"] == ["stuck"]


@pytest.mark.parametrize("values", ([0.9 ** i for i in range(40)], [0.69 * 0.98 ** i for i in range(12)]))
def test_a_job_with_few_points_that_learns_is_left_alone(judge, values):
    answer = judge.judge([{"use": "loss_not_decreasing"}], losses(values, "global"))
    assert answer["issues"] == []


@pytest.mark.parametrize("name", known.parameters({"message/the last step stands with its own mode": "stalled_training_rule"}))
def test_the_stall_message_names_a_step_that_was(judge, name):
    worker = story.Worker()
    worker.start()
    for mode, steps in (("train", 300), ("eval", 4)):
        for _ in range(steps):
            worker.enter(mode)
            worker.scalars(("loss", 1.0))
            worker.step_end()
    worker.now += 100 * story.SECOND
    worker.heartbeat()
    answer = judge.judge([{"use": "stalled_training_rule", "with": {"threshold": 60}}], story.interleave([worker]))
    [issue] = answer["issues"]
    assert "train step 299" in issue["summary"] or "eval step 3" in issue["summary"], issue["summary"]


GAP = "gap/the same step in two modes is two events"


@pytest.mark.parametrize("name", known.parameters({GAP: "all_zero"}))
def test_lost_frames_at_one_step_of_two_modes_are_two_events(judge, name):
    worker = story.Worker()
    worker.start()
    for mode, steps in (("predict", 6), ("train", 6)):
        for step in range(steps):
            worker.enter(mode)
            worker.scalars(("loss", 1.0))
            if step == 1:
                worker.records.pop()  # never arrives
            worker.step_end()
    worker.end()
    answer = judge.judge([{"use": "all_zero", "with": {"tensor_regex": ["loss"]}}], story.interleave([worker]))
    gaps = [issue["id"] for issue in answer["issues"] if issue["rule"] == "telemetry_gap"]
    assert len(gaps) == 4 and len(set(gaps)) == 4, "raised and resolved in either mode"


def spiky(chance, after):
    """A noisy loss that falls, and from step 300 on what `after` says."""
    falling = [2.0 * 0.999 ** i * chance.uniform(0.95, 1.05) for i in range(300)]
    return falling + [after(i) * chance.uniform(0.95, 1.05) for i in range(80)]


SPIKES = {
    "spike/stays": (lambda i: 40.0, {False}),
    "spike/recovers": (lambda i: 40.0 if i < 8 else 1.5, {True}),
    "spike/none": (lambda i: 1.45, set()),
}


@pytest.mark.parametrize("name", known.parameters(dict.fromkeys(SPIKES, "loss_spike")))
def test_a_spike_is_told_from_noise_and_from_what_passes(judge, name):
    after, transient = SPIKES[name]
    for seed in range(10):
        values = spiky(story.chance(name, seed), after)
        answer = judge.judge([{"use": "loss_spike"}], losses(values))
        firing = [issue for issue in answer["issues"] if issue["status"] == "firing"]
        assert {issue["kind"] == "transient" for issue in firing} == transient, f"seed {seed}"
        assert all(300 <= issue["step"] <= 330 for issue in firing), f"seed {seed}"


def test_all_known_faults_are_tests():
    from tests.reference import tables
    names = {*tables.load(), *(f"random/{family}" for family in random_streams.FAMILIES), *ORDERS, *IDS, *RESTARTS, *SHARDS, *JSON, *FEW, *SPIKES, GAP,
             "message/the last step stands with its own mode"}
    assert set(known.faults()) <= names
