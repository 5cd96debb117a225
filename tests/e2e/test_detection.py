"""The bench of detection quality, a small part of it: trainings recorded by the hook, judged by the deployed engine."""
import subprocess
import sys

import pytest
import torch

from bench.detection import harm, judge, record, report
from bench.detection.corpus import sets
from bench.detection.corpus.recipes import faults_of_evaluations, faults_of_noise
from bench.detection.corpus.scripts import glyphs, shapes, support


@pytest.fixture(scope="module")
def runs(tmp_path_factory):
    """Two jobs, each healthy and with a fault or two."""
    out = str(tmp_path_factory.mktemp("detection"))
    for jobs, faults in (("mlp_adam", "rate_zero,input_nan"), ("boost_classes", "rate_zero")):
        done = subprocess.run([sys.executable, "-m", "bench.detection.record", "--out", out, "--jobs", jobs, "--seeds", "1",
                               "--faults", faults], capture_output=True, text=True, check=False, timeout=120)
        assert done.returncode == 0, done.stderr
    return report.load(out, {job: judge.judge(f"{out}/{job}") for job in ("mlp_adam", "boost_classes")})


def test_healthy_runs_are_quiet_and_faults_are_told_in_time(runs):
    figures = report.Figures(runs, "tocsin", judge.default_group())
    assert len(figures.healthy) == 2 and len(figures.faulty) == 3
    assert [(run.job, one) for run in figures.healthy for one in run.fired("tocsin", judge.default_group())] == []
    assert [(run.job, run.fault) for run in figures.missed] == []
    assert figures.quick >= 2 and max(figures.delays) <= 10


def test_the_fault_is_known_by_its_sign(runs):
    [nan] = [run for run in runs if run.fault == "input_nan"]
    twin = next(run for run in runs if run.job == nan.job and run.fault is None)
    told = report.beyond(nan, twin, "tocsin", None)
    assert "exploding_tensor" in {one["rule"] for one in told}
    assert min(one["step"] for one in told) >= nan.onset == 0.4 * nan.steps


def test_the_tables_hold_every_run_and_rule(runs):
    default = judge.default_group()
    assert "exploding_tensor" in default and "training_preflight" in default
    tables = [report.summary(runs, default), report.per_job(runs, default), report.per_fault(runs, default), report.per_rule(runs)]
    for table in tables:
        widths = {line.count("|") for line in table.splitlines()}
        assert len(widths) == 1, table
    assert "| `input_nan` | 1 of 1 |" in tables[2] and "| mlp_adam | tuning | 1 |" in tables[1]


def test_the_upper_end_of_a_share():
    assert report.at_most(0, 299) == pytest.approx(0.00997, abs=2e-5)  # 1 − 0.05^(1/299)
    assert report.at_most(0, 1) == pytest.approx(0.95)
    assert report.at_most(1, 2) == pytest.approx(0.95**0.5)  # 1 − p² = 0.05
    assert report.at_most(2, 2) == 1.0


def test_both_ends_of_the_interval_of_a_share():
    low, high = report.wilson(10, 100)
    assert low == pytest.approx(0.0552, abs=1e-4) and high == pytest.approx(0.1744, abs=1e-4)  # Wilson 1927, worked by hand
    assert report.wilson(0, 100) == (0.0, pytest.approx(0.0370, abs=1e-4))
    assert report.wilson(0, 0) == (0.0, 1.0)


def test_a_slow_fault_that_never_showed_is_left_out():
    note = {"run": "a", "job": "mlp_adam", "fault": "overfits", "seed": 0, "steps": 400, "every": 10, "slow": True}
    healthy = report.Run({**note, "run": "h", "fault": None, "onset": 0, "slow": False}, [])
    late, early = (report.Run({**note, "onset": at}, []) for at in (360, 359))
    assert not late.came_about and early.came_about
    assert len(report.Figures([healthy, late, early], "tocsin", None).faulty) == 1


def _passed(fault, values, onset=0, slow=False):
    note = {"run": fault or "h", "job": "mlp_adam", "fault": fault, "seed": 0, "steps": 100, "every": 10, "slow": slow, "onset": onset,
            "passes": [[at * 20, value] for at, value in enumerate(values)]}
    return report.Run(note, [])


def test_a_fault_that_did_no_harm_makes_no_faulty_run():
    twin = _passed(None, [2.0, 1.2, 1.0, 1.0, 1.0])
    as_good, worse, once = (_passed("rate_jumps", values, 40) for values in
                            ([2.0, 1.2, 1.05, 1.05, 1.05], [2.0, 1.2, 1.15, 1.15, 1.15], [2.0, 1.2, 1.35, 0.9, 0.9]))
    before, broken, itself = (_passed("rate_jumps", [2.0, 1.9, 1.0, 1.0, 1.0], 40), _passed("rate_jumps", [2.0, 1.2, float("nan"), 1.0, 1.0], 40),
                              _passed("evaluated_in_training", [2.0, 1.2, 1.0, 1.0, 1.0]))
    assert [harm.harmless(run, twin) for run in (as_good, worse, once, before, broken, itself)] == [True, False, False, True, False, False]
    turned, flat = (_passed("overfits", values, 40, slow=True) for values in ([2.0, 1.0, 1.2, 1.2, 1.3], [2.0, 1.2, 1.0, 1.01, 1.02]))
    assert not harm.harmless(turned, twin) and harm.harmless(flat, twin)
    assert len(report.Figures([twin, as_good, worse, once], "tocsin", None).faulty) == 2


def test_a_healthy_run_that_gets_worse_again_is_none():
    good, bad = _passed(None, [2.0, 1.2, 1.0, 1.3, 1.09]), _passed(None, [2.0, 1.2, 1.0, 1.2, 1.3, 1.2])
    assert not harm.turned(good) and harm.turned(bad)
    assert report.Figures([bad], "tocsin", None).healthy == [] and len(report.Figures([good], "tocsin", None).healthy) == 1


def test_a_recording_without_evaluations_counts_as_it_is():
    twin, run = _passed(None, []), _passed("rate_jumps", [])
    assert not harm.harmless(run, twin)


def test_every_fault_is_made_by_a_job():
    names = [record.fault_names(name) for name in record.job_names()]
    assert all(names) and len(set().union(*names)) >= 25
    assert {record.is_tuning(name) for name in record.job_names()} == {True, False}


def test_an_unknown_job_is_refused_by_name(tmp_path):
    done = subprocess.run([sys.executable, "-m", "bench.detection.record", "--out", str(tmp_path), "--jobs", "mlp_adm"],
                          capture_output=True, text=True, check=False, timeout=60)
    assert done.returncode == 2 and "there is no job mlp_adm" in done.stderr and "mlp_adam" in done.stderr


@pytest.mark.parametrize("name", ["sentences", "ratings", "nodes", "queue"])
def test_a_job_of_the_seventh_set_draws_its_faults_from_those_that_can_be_made_there(name):
    chosen = record.fault_names(name)
    assert len(chosen) == faults_of_noise.EACH == len(set(chosen)) and not set(chosen) & faults_of_noise.UNFIT.get(name, set())
    made = 0
    for one in chosen:
        try:
            record.faults.FAULTS[one].change(record.jobs.recipe(name, 0), torch.Generator().manual_seed(1))
        except LookupError:  # words have no unit
            continue
        made += 1
    assert made >= 10


def test_faults_of_the_seventh_set_begin_where_they_say():
    made = record.jobs.recipe("survives", 0)
    for one in ("samples_repeated", "units_change"):
        record.faults.FAULTS[one].change(made, torch.Generator())
    repeated, units = made.on_batch
    x, y = made.split.x[:4], made.split.y[:4]
    assert [one.tolist() for one in repeated(0, x, y)] == [[x[0].tolist()] * 4, [y[0].tolist()] * 4]
    late = int(record.faults.FAULTS["units_change"].onset * made.steps)
    assert torch.equal(units(late - 1, x, y)[0], x) and torch.equal(units(late, x, y)[0], x * 1000)
    with pytest.raises(LookupError):  # words have no unit
        record.faults.FAULTS["units_change"].change(record.jobs.recipe("comments", 0), torch.Generator())


@pytest.mark.parametrize("name", ["clicks", "rotates", "beliefs", "unscheduled", "inducing"])
def test_a_job_of_the_eighth_set_draws_its_faults_from_those_that_can_be_made_there(name):
    chosen = record.fault_names(name)
    assert len(chosen) == faults_of_evaluations.EACH == len(set(chosen)) and not set(chosen) & faults_of_evaluations.UNFIT.get(name, set())
    for one in chosen:
        record.faults.FAULTS[one].change(record.jobs.recipe(name, 0), torch.Generator().manual_seed(1))


def test_faults_of_the_eighth_set_change_what_they_say():
    change = {one.name: one.change for one in record.faults.FAULTS.values()}
    made = record.jobs.recipe("speaks", 0)
    x, y, held = made.split.x.clone(), made.split.held_y.clone(), made.split.held_x.clone()
    for one in ("held_raw", "held_permuted", "batch_tiny", "gradients_late"):
        change[one](made, torch.Generator().manual_seed(1))
    assert torch.equal(made.split.held_x, held * 8 + 8) and torch.equal(made.split.x, x) and made.batch == 2
    names = [made.split.held_y[y == kind].unique().tolist() for kind in range(8)]
    assert sorted(sum(names, [])) == list(range(8)) and names != [[kind] for kind in range(8)]
    with pytest.raises(LookupError):
        change["batch_tiny"](made, torch.Generator())
    weight = torch.nn.Parameter(torch.zeros(1))
    optimizer, used = torch.optim.SGD([weight], 1.0), []
    for step in range(30):
        weight.grad = torch.tensor([float(step)])
        made.before_update[-1](step, None, optimizer)
        used.append(int(weight.grad))
    assert used == [0] * 21 + list(range(1, 10))
    letters = record.jobs.recipe("rotates", 0)
    change["unshifted"](letters, torch.Generator())
    assert torch.equal(letters.on_batch[-1](0, letters.split.x, letters.split.y)[1], letters.split.x)


@pytest.mark.parametrize("part", sets.SETS["eleventh"].parts(), ids=lambda part: part.__name__.rsplit(".", 1)[-1])
def test_a_job_of_the_eleventh_set_has_faults_that_are_explained(part):
    words = {**support.WORDS, **glyphs.WORDS}
    for name in part.TUNING:
        assert name in record.job_names() and not record.is_tuning(name) and f"\n{name} " in part.__doc__
        assert 5 <= len(part.fault_names(name)) == len(set(part.fault_names(name))) <= 9 and set(part.fault_names(name)) <= set(words)


@pytest.mark.parametrize("part", sets.SETS["twelfth"].parts(), ids=lambda part: part.__name__.rsplit(".", 1)[-1])
def test_a_job_of_the_twelfth_set_has_faults_that_are_explained(part):
    for name in part.TUNING:
        assert name in record.job_names() and not record.is_tuning(name) and f"\n{name} " in part.__doc__
        faults = part.fault_names(name)
        assert 6 <= len(faults) == len(set(faults)) <= 9 and set(faults) <= set(shapes.ALL_WORDS)


def test_shapes_and_phrases_of_the_twelfth_set_are_what_they_say():
    images, kinds, masks, boxes = shapes.shapes(3, 50, (0, 5))
    assert images.shape == masks.shape == (50, 1, 16, 16) and set(kinds.tolist()) == {0, 5} and boxes.shape == (50, 3)
    assert float(images[masks > 0].mean()) > float(images[masks == 0].mean()) + 50 and 0 < float(masks.mean()) < 0.5
    one, other = shapes.phrases(1, 40), shapes.phrases(1, 40, tongue=1)
    assert one.shape == (40, 14) and int(one.min()) >= 1 and int(one.max()) <= 15 and not torch.equal(one, other)


def test_no_two_jobs_have_one_name():
    names = [*record.jobs.JOBS, *(name for part in record.LOOPS for name in part.TUNING), *record.few_rounds.job_names()]
    assert len(names) == len(set(names)) == len(record.job_names())


def test_every_job_is_in_exactly_one_set():
    of_sets = [name for one in sets.SETS for name in record.jobs_of(one)]
    assert len(of_sets) == len(set(of_sets)) and set(of_sets) == set(record.job_names())


def test_faults_of_the_eleventh_set_change_what_they_say():
    y = torch.arange(900) % 3
    changed = glyphs.labelled(y, "class_random", 3)
    assert torch.equal(changed[y != 1], y[y != 1]) and 60 < int((changed[y == 1] == 1).sum()) < 140
    rates = {}
    for fault in (None, "schedule_ends_early", "warmup_endless"):
        optimizer = torch.optim.SGD([torch.nn.Parameter(torch.zeros(1))], 1.0)
        scheduler = glyphs.warmed(optimizer, 100, 10, fault)
        rates[fault] = []
        for _ in range(100):
            rates[fault].append(optimizer.param_groups[0]["lr"])
            optimizer.step()
            scheduler.step()
    assert rates[None][0] == 0 and max(rates[None]) == rates[None][10] == 1 and min(rates[None][1:]) > 0
    assert rates["schedule_ends_early"][:11] == rates[None][:11] and not any(rates["schedule_ends_early"][20:])
    assert max(rates["warmup_endless"]) < 0.06
