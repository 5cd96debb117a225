"""Notebooks and sweeps: cells run again, models that are let go, runs that follow each other in one process."""
from tests.support.hook_support import Telemetry
from tests.support.small_model import backward, make

import tocsin


def trained(model, optimizer, hook, steps=2):
    for _ in range(steps):
        hook.log(loss=backward(model, optimizer))
        optimizer.step()


def test_models_are_held_weakly_so_that_twenty_sweeps_leave_one(out):
    import gc
    import weakref

    models = []
    for _ in range(20):
        model, optimizer = make()
        hook = tocsin.watch(model, optimizer, out=out)
        trained(model, optimizer, hook, 1)
        models.append(weakref.ref(model))
        models += [weakref.ref(parameter) for parameter in model.parameters()]
    del model, optimizer
    gc.collect()
    assert [model for model in models if model() is not None] == []
    hook.log(loss=1.0)  # nothing ends the steps any more: hook.step() counts
    hook.step()
    hook.close()
    telemetry = Telemetry(out)
    assert len(telemetry.lifecycles("start")) == 20 and [end["outcome"] for end in telemetry.lifecycles("end")] == ["completed"] * 20


def test_a_cell_that_is_run_again_is_another_training_from_step_0(out):
    """Its loss begins anew: in the same run this was a jump."""
    model, optimizer = make()
    first = tocsin.watch(model, optimizer, out=out, job="nb", labels={"team": "a"})
    trained(model, optimizer, first, 3)
    model.itself = [model]  # a cycle, as hooks on a module make one
    model, optimizer = make()
    second = tocsin.watch(model, optimizer)  # what is not said is as it was
    assert second is not first and not first.enabled and second.run != first.run and second.job == "nb"
    assert second.step_number == 0
    trained(model, optimizer, second, 2)
    second.close()
    telemetry = Telemetry(out)
    assert [start["labels"] for start in telemetry.lifecycles("start")] == [{"team": "a"}] * 2
    assert telemetry.steps() == [0, 1, 2, 0, 1]


def test_a_named_run_whose_cell_is_run_again_is_started_again(out):
    model, optimizer = make()
    first = tocsin.watch(model, optimizer, out=out, run="exp1")
    trained(model, optimizer, first)
    model, optimizer = make()
    second = tocsin.watch(model, optimizer, out=out, run="exp1")
    assert second is not first and second.run == first.run and second.step_number == 0
    second.close()


def test_what_goes_on_is_the_same_run(out):
    """Another optimizer of the same model, a second model, a model that the script lets go and watches again."""
    model, optimizer = make()
    hook = tocsin.watch(model, optimizer, out=out)
    trained(model, optimizer, hook)
    optimizer = type(optimizer)(model.parameters(), lr=0.01)  # the first one is gone, its model is not
    assert tocsin.watch(model, optimizer) is hook
    second, second_optimizer = make()
    assert tocsin.watch(second, second_optimizer) is hook
    del second, second_optimizer
    hook.unwatch()
    del model, optimizer
    model, optimizer = make()
    assert tocsin.watch(model, optimizer) is hook
    hook.close()


def test_several_ranks_go_on(out, monkeypatch):
    """One rank's collector may have been faster than another's: none of them begins a run alone."""
    monkeypatch.setenv("RANK", "0")
    monkeypatch.setenv("WORLD_SIZE", "2")
    monkeypatch.setenv("LOCAL_WORLD_SIZE", "2")
    model, optimizer = make()
    hook = tocsin.watch(model, optimizer, out=out, run="both")
    trained(model, optimizer, hook)
    model, optimizer = make()
    assert tocsin.watch(model, optimizer, run="both") is hook
    hook.close()


def test_another_job_ends_the_former_run_and_lets_its_optimizers_go(out):
    model, optimizer = make()
    first = tocsin.watch(model, optimizer, out=out, job="a")
    first.log(loss=backward(model, optimizer))
    optimizer.step()
    assert tocsin.watch(out=out, job="a") is first is tocsin.watch(out=out)  # the same, or nothing said
    again, second_optimizer = make()
    second = tocsin.watch(again, second_optimizer, out=out + "2", job="b")
    assert second is not first and second is tocsin.get_hook() and not first.enabled and second.enabled
    assert "step" not in optimizer.__dict__
    backward(model, optimizer)
    optimizer.step()
    second.log(loss=backward(again, second_optimizer))
    second_optimizer.step()
    third = tocsin.watch(again, second_optimizer, out=out + "3", run="named")
    assert third is not second and third is tocsin.watch(run="named")
    third.close()
    for directory, job in ((out, "a"), (out + "2", "b")):
        telemetry = Telemetry(directory)
        assert telemetry.steps() == [0] and telemetry.lifecycles("start")[0]["job"] == job
        assert [end["outcome"] for end in telemetry.lifecycles("end")] == ["completed"]


def test_a_cell_that_raised_fails_its_own_run_and_not_the_next(out, monkeypatch):
    """A notebook keeps what a cell raised in sys.last_value, for ever."""
    import sys

    def raised(error):
        monkeypatch.setattr(sys, "last_type", type(error), raising=False)
        monkeypatch.setattr(sys, "last_value", error, raising=False)

    raised(ValueError("in an earlier cell"))
    first = tocsin.watch(out=out, job="a")
    second = tocsin.watch(out=out + "2", job="b")
    raised(RuntimeError("bad batch"))
    third = tocsin.watch(out=out + "3", job="c")
    third.close()
    ends = [Telemetry(directory).lifecycles("end")[0] for directory in (out, out + "2")]
    assert ends[0]["outcome"] == "completed" and not first.enabled
    assert ends[1]["outcome"] == "failed" and ends[1]["error"] == "RuntimeError: bad batch" and not second.enabled
