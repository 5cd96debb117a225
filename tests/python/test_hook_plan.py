"""What a training has planned: found at PyTorch's schedulers, said by the script; and what the rule `budget` makes of it."""
import copy
import functools
import inspect
import math
import pickle
import threading

import pytest
import torch
from tests.support.hook_support import Telemetry
from torch import nn
from torch.optim import lr_scheduler as schedulers

import tocsin
from tocsin.adapters.torch.surroundings import schedule_ends

STEPS = {name: vars(one)["step"] for name, one in vars(schedulers).items() if isinstance(one, type) and "step" in vars(one)}


def job(rate=0.1):
    torch.manual_seed(0)
    net = nn.Sequential(nn.Linear(8, 16), nn.ReLU(), nn.Linear(16, 4))
    return net, torch.optim.SGD(net.parameters(), rate)


def train(hook, net, optimizer, updates, scheduler=None, every=1, batches=1):
    """`every`: updates per scheduler step; `batches`: scheduler steps, then, per update."""
    for number in range(updates):
        x = torch.randn(32, 8)
        loss = nn.functional.cross_entropy(net(x), (x[:, 0] > 0).long() + 2 * (x[:, 1] > 0).long())
        optimizer.zero_grad()
        loss.backward()
        hook.log(loss=loss)
        optimizer.step()
        if scheduler is not None and (number + 1) % every == 0:
            for _ in range(batches):
                scheduler.step()


def planned(out):
    """The newest of each field."""
    telemetry, found = Telemetry(out), {}
    for name in telemetry.names.values():
        if name.startswith("ledger/plan/"):
            found[name[len("ledger/plan/"):]] = telemetry.scalars(name)[-1][2]
    return found


def told(hook):
    hook.close()
    assert not hook.stats()["hook_errors_total"], hook.stats()
    assert {name: vars(one)["step"] for name, one in vars(schedulers).items() if isinstance(one, type) and "step" in vars(one)} == STEPS
    return [(one["kind"], one.get("text")) for one in hook.issues() if one["rule"] == "budget" and one["status"] == "firing"]


# ---- where schedules end


def transformers_linear(step, *, num_warmup_steps, num_training_steps):
    return max(0.0, 1 - step / num_training_steps)


transformers_linear.__module__ = "transformers.optimization"


def closure(num_training_steps):
    return lambda step: 1 - step / num_training_steps


def of_old_transformers(num_training_steps):
    def lr_lambda(step):
        return 1 - step / num_training_steps
    return lr_lambda


def sequence(optimizer):
    return schedulers.SequentialLR(optimizer, [schedulers.LinearLR(optimizer, 0.1, total_iters=5), schedulers.CosineAnnealingLR(optimizer, 40)], [5])


ENDS = {
    "one cycle": (lambda o: schedulers.OneCycleLR(o, 0.1, total_steps=50), (50, 0.04 / 1e4)),
    "one cycle of epochs": (lambda o: schedulers.OneCycleLR(o, 0.1, epochs=5, steps_per_epoch=7), (35, 0.04 / 1e4)),
    "cosine": (lambda o: schedulers.CosineAnnealingLR(o, 30), (30, 0)),
    "cosine to a tenth": (lambda o: schedulers.CosineAnnealingLR(o, 30, eta_min=0.01), (30, 0.1)),
    "warm-up": (lambda o: schedulers.LinearLR(o, 0.1, total_iters=9), (9, 1)),
    "linear to zero": (lambda o: schedulers.LinearLR(o, 1.0, 0.0, total_iters=9), (9, 0)),
    "constant": (lambda o: schedulers.ConstantLR(o, 0.1, total_iters=9), (9, 1)),
    "warm-up, then cosine": (sequence, (45, 0)),
    "a partial that knows": (lambda o: schedulers.LambdaLR(o, functools.partial(transformers_linear, num_warmup_steps=3, num_training_steps=70)), (70, 0)),
    "a closure that knows": (lambda o: schedulers.LambdaLR(o, closure(60)), (60, 1)),
    "a closure of long ago": (lambda o: schedulers.LambdaLR(o, of_old_transformers(60)), (60, 1)),
    "a function of the script's": (lambda o: schedulers.LambdaLR(o, lambda step: 0.9 ** step), None),
    "restarts": (lambda o: schedulers.CosineAnnealingWarmRestarts(o, 10), None),
    "cycles": (lambda o: schedulers.CyclicLR(o, 0.01, 0.1), None),
    "steps": (lambda o: schedulers.StepLR(o, 10), None),
    "exponential": (lambda o: schedulers.ExponentialLR(o, 0.9), None),
    "plateaus": (schedulers.ReduceLROnPlateau, None),
    "warm-up times exponential": (lambda o: schedulers.ChainedScheduler(
        [schedulers.LinearLR(o, 0.1, total_iters=5), schedulers.ExponentialLR(o, 0.9)]), None),
    "warm-up times cosine": (lambda o: schedulers.ChainedScheduler(
        [schedulers.LinearLR(o, 0.1, total_iters=5), schedulers.CosineAnnealingLR(o, 50)]), (50, 0)),
}
if hasattr(schedulers, "PolynomialLR"):
    ENDS["polynomial"] = (lambda o: schedulers.PolynomialLR(o, 12, 2.0), (12, 0))


@pytest.mark.parametrize("name", ENDS)
def test_where_a_scheduler_ends(name):
    make, expected = ENDS[name]
    found = schedule_ends.end_of(make(torch.optim.SGD(job()[0].parameters(), 0.1, momentum=0.9)))
    assert found == (None if expected is None else pytest.approx(expected))


def test_a_function_of_the_script_is_never_called_for_it():
    called = []
    scheduler = schedulers.LambdaLR(job()[1], closure_that_counts(called, 60))
    before = len(called)
    assert schedule_ends.end_of(scheduler) == (60, 1) and len(called) == before


def closure_that_counts(called, num_training_steps):
    def schedule(step):
        called.append(step)
        return 1 - step / num_training_steps
    return schedule


# ---- how often they step


@pytest.mark.parametrize("early", [True, False], ids=["made before watch()", "made after it"])
@pytest.mark.parametrize("every, batches, length, expected", [
    (1, 1, 40, {"stride": 1, "length": 40, "schedule": 40, "lowest": 0}),
    (10, 1, 6, {"stride": 10, "length": 6, "schedule": 60, "lowest": 0}),
    (1, 4, 240, {"stride": 0.25, "length": 240, "schedule": 60, "lowest": 0}),
])
def test_the_schedule_arrives_in_updates(out, early, every, batches, length, expected):
    net, optimizer = job()
    scheduler = schedulers.CosineAnnealingLR(optimizer, length) if early else None
    hook = tocsin.watch(net, optimizer, out=out, rules="default")
    scheduler = scheduler or schedulers.CosineAnnealingLR(optimizer, length)
    train(hook, net, optimizer, 60 if every > 1 or batches > 1 else 40, scheduler, every, batches)
    assert told(hook) == []
    assert planned(out) == pytest.approx(expected)


def test_a_resumed_schedule_has_its_whole_length(out):
    net, optimizer = job()
    scheduler = schedulers.CosineAnnealingLR(optimizer, 100)
    for _ in range(60):
        optimizer.step()
        scheduler.step()
    saved = copy.deepcopy((scheduler.state_dict(), optimizer.state_dict()))
    net, optimizer = job()
    scheduler = schedulers.CosineAnnealingLR(optimizer, 100)
    hook = tocsin.watch(net, optimizer, out=out, rules="default")
    hook.plan(updates=100)
    scheduler.load_state_dict(saved[0])
    optimizer.load_state_dict(saved[1])
    train(hook, net, optimizer, 40, scheduler)
    assert told(hook) == []
    assert planned(out) == {"updates": 100, "stride": 1, "length": 100, "schedule": 100, "lowest": 0}


def test_updates_that_mixed_precision_leaves_out_first_are_no_epochs(out):
    """Accelerate does not step the scheduler then."""
    net, optimizer = job()
    scheduler = schedulers.CosineAnnealingLR(optimizer, 60)
    hook = tocsin.watch(net, optimizer, out=out, rules="default")
    hook.plan(updates=64, epochs=2)
    train(hook, net, optimizer, 4)
    train(hook, net, optimizer, 60, scheduler)
    assert told(hook) == []
    assert planned(out)["stride"] == 1


def test_parts_of_a_schedule_are_no_schedules_of_their_own(out):
    net, optimizer = job()
    hook = tocsin.watch(net, optimizer, out=out, rules="default")
    train(hook, net, optimizer, 60, sequence(optimizer))
    hook.close()
    assert planned(out) == {"stride": 1, "length": 45, "schedule": 45, "lowest": 0}


def test_two_schedules_that_take_turns_have_no_end(out):
    net, optimizer = job()
    hook = tocsin.watch(net, optimizer, out=out, rules="default")
    hook.plan(updates=80)
    train(hook, net, optimizer, 40, schedulers.LinearLR(optimizer, 0.5, total_iters=40))
    first = planned(out) if hook.flush() else {}
    keep = schedulers.CosineAnnealingLR(optimizer, 40)
    train(hook, net, optimizer, 40, keep)
    assert told(hook) == [] and first["schedule"] == 40


def test_what_follows_a_metric_says_so(out):
    net, optimizer = job()
    scheduler = schedulers.ReduceLROnPlateau(optimizer, patience=9, threshold=1e9)
    hook = tocsin.watch(net, optimizer, out=out, rules="default")
    for _ in range(70):
        train(hook, net, optimizer, 6)
        scheduler.step(1.0)
    assert optimizer.param_groups[0]["lr"] < 1e-6
    assert told(hook) == [] and planned(out) == {"follows_metric": 1}


def test_nothing_of_a_scheduler_is_altered(out):
    def course(watched):
        net, optimizer = job()
        hook = tocsin.watch(net, optimizer, out=out) if watched else None
        scheduler = sequence(optimizer)
        rates = []
        for _ in range(60):
            optimizer.step()
            scheduler.step()
            rates.append(optimizer.param_groups[0]["lr"])
        state = scheduler.state_dict()
        texts = (str(inspect.signature(scheduler.step)), type(scheduler).step.__qualname__, sorted(state), sorted(vars(scheduler)))
        pickle.loads(pickle.dumps(schedulers.StepLR))
        if hook is not None:
            told(hook)
        return rates, texts

    assert course(True) == course(False)


def test_an_error_of_a_scheduler_is_the_scripts(out):
    net, optimizer = job()
    optimizer = torch.optim.SGD(net.parameters(), 0.1, momentum=0.9)
    scheduler = schedulers.OneCycleLR(optimizer, 0.1, total_steps=10)
    hook = tocsin.watch(net, optimizer, out=out)
    with pytest.raises(ValueError):
        train(hook, net, optimizer, 20, scheduler)
    told(hook)


def test_another_thread_is_let_through(out):
    net, optimizer = job()
    scheduler = schedulers.CosineAnnealingLR(optimizer, 40)
    hook = tocsin.watch(net, optimizer, out=out)
    train(hook, net, optimizer, 3)
    thread = threading.Thread(target=lambda: [scheduler.step() for _ in range(40)])
    thread.start()
    thread.join()
    told(hook)
    assert planned(out) == {} and scheduler.last_epoch == 40


# ---- what the script says


def test_what_a_loop_of_its_own_says_is_sent_once_and_when_it_changes(out):
    net, optimizer = job()
    hook = tocsin.watch(net, optimizer, out=out, rules="default")
    hook.plan(updates=100, epochs=4, accumulation=2)
    train(hook, net, optimizer, 3)
    hook.plan(updates=100)
    hook.plan(epochs=5)
    train(hook, net, optimizer, 3)
    assert told(hook) == []
    telemetry = Telemetry(out)
    assert [value for _, _, value in telemetry.scalars("ledger/plan/updates")] == [100]
    assert [(step, value) for _, step, value in telemetry.scalars("ledger/plan/epochs")] == [(0, 4), (3, 5)]
    assert planned(out) == {"updates": 100, "epochs": 5, "accumulation": 2}


def test_an_evaluation_has_no_plan_and_one_step_one_value(out):
    net, optimizer = job()
    hook = tocsin.watch(net, optimizer, out=out)
    hook.set_mode("eval")
    hook.plan(updates=100)
    hook.step()
    hook.set_mode("train")
    hook.plan(epochs=3)
    hook.plan(epochs=4)
    train(hook, net, optimizer, 2)
    hook.close()
    rows = Telemetry(out).scalars("ledger/plan/epochs") + Telemetry(out).scalars("ledger/plan/updates")
    assert len({(mode, step) for mode, step, _ in rows[:2]}) == len(rows[:-1])
    assert {mode for mode, _, _ in rows} == {Telemetry(out).scalars("loss")[0][0]}


@pytest.mark.parametrize("wrong", [{"updates": -1}, {"updates": math.nan}, {"epochs": "many"}])
def test_what_is_no_plan_is_counted(out, wrong):
    hook = tocsin.watch(out=out)
    with pytest.warns(RuntimeWarning, match="plan"):
        hook.plan(**wrong)
    hook.close()
    assert hook.stats()["hook_errors_total"] == {"plan": 1}


# ---- what is told


def run(out, length, make, every=1, batches=1, **plan):
    net, optimizer = job()
    optimizer = torch.optim.SGD(net.parameters(), 0.1, momentum=0.9)
    scheduler = make(optimizer)
    hook = tocsin.watch(net, optimizer, out=out, rules="default")
    if plan:
        hook.plan(**plan)
    train(hook, net, optimizer, length, scheduler, every, batches)
    return told(hook)


FAULTS = {
    "epochs, stepped per update, and no plan": (345, lambda o: schedulers.LambdaLR(o, lambda s: min(1, s / 2) * max(0, 1 - s / 15)), 1, 1, {}, "ends_early"),
    "a floor that is nearly zero": (200, lambda o: schedulers.LambdaLR(o, lambda s: max(0.001, 1 - s / 15)), 1, 1, {}, "ends_early"),
    "steps of epochs": (300, lambda o: schedulers.StepLR(o, 10), 1, 1, {}, "ends_early"),
    "cosine of epochs per update": (60, lambda o: schedulers.CosineAnnealingLR(o, 15), 1, 1, {"updates": 345, "epochs": 15}, "per_epoch"),
    "one cycle of updates per epoch": (60, lambda o: schedulers.OneCycleLR(o, 0.1, total_steps=600), 20, 1, {"updates": 600, "epochs": 30}, "per_epoch"),
    "half of the plan": (60, lambda o: schedulers.CosineAnnealingLR(o, 100), 1, 1, {"updates": 200}, "ends_early"),
    "twice the plan": (60, lambda o: schedulers.CosineAnnealingLR(o, 200), 1, 1, {"updates": 100}, "unfinished"),
    "stepped per micro-batch": (60, lambda o: schedulers.OneCycleLR(o, 0.1, total_steps=400), 1, 4, {"updates": 400, "accumulation": 4}, "per_batch"),
    "as long as micro-batches": (60, lambda o: schedulers.OneCycleLR(o, 0.1, total_steps=400), 1, 1, {"updates": 100, "accumulation": 4}, "per_batch"),
    "all warm-up": (60, lambda o: schedulers.LinearLR(o, 0.1, total_iters=60), 1, 1, {"updates": 60}, "warmup_only"),
}


@pytest.mark.parametrize("name", FAULTS)
def test_a_budget_that_cannot_arrive_is_told(out, name):
    updates, make, every, batches, plan, kind = FAULTS[name]
    assert [found for found, _ in run(out, updates, make, every, batches, **plan)] == [kind]


TWINS = {
    "cosine": (lambda o: schedulers.CosineAnnealingLR(o, 120), 1),
    "one cycle": (lambda o: schedulers.OneCycleLR(o, 0.1, total_steps=121), 1),
    "warm-up and constant": (lambda o: schedulers.LinearLR(o, 0.1, total_iters=20), 1),
    "warm restarts": (lambda o: schedulers.CosineAnnealingWarmRestarts(o, 15), 1),
    "linear to zero": (lambda o: schedulers.LinearLR(o, 1.0, 0.0, total_iters=120), 1),
    "warm-up, then cosine": (lambda o: schedulers.SequentialLR(
        o, [schedulers.LinearLR(o, 0.1, total_iters=20), schedulers.CosineAnnealingLR(o, 100)], [20]), 1),
    "cosine of epochs per epoch": (lambda o: schedulers.CosineAnnealingLR(o, 12), 10),
    "steps per epoch": (lambda o: schedulers.StepLR(o, 5), 12),
    "cycles": (lambda o: schedulers.CyclicLR(o, 0.0, 0.1, step_size_up=10), 1),
    "another stage": (lambda o: schedulers.LambdaLR(o, lambda s: 1 if s < 30 else 0.001), 1),
    "no schedule": (lambda o: None, 1),
}


@pytest.mark.parametrize("plan", [{}, {"updates": 120, "epochs": 12}, {"updates": 120, "accumulation": 4}], ids=["no plan", "a plan", "accumulation"])
@pytest.mark.parametrize("name", TWINS)
def test_a_budget_that_fits_is_left_alone(out, name, plan):
    make, every = TWINS[name]
    assert run(out, 120, make, every, **plan) == []
