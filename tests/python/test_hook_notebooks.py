"""Notebooks and sweeps: cells run again, models that are let go, runs that follow each other in one process."""
from tests.support.hook_support import Telemetry
from tests.support.small_model import backward, make

import tocsin


def test_models_are_held_weakly_so_that_twenty_sweeps_leave_one(out):
    import gc
    import weakref

    models = []
    for _ in range(20):
        model, optimizer = make()
        hook = tocsin.watch(model, optimizer, out=out)
        hook.log(loss=backward(model, optimizer))
        optimizer.step()
        models.append(weakref.ref(model))
        models += [weakref.ref(parameter) for parameter in model.parameters()]
    del model, optimizer
    gc.collect()
    assert [model for model in models if model() is not None] == []
    hook.log(loss=1.0)  # nothing ends the steps any more: hook.step() counts
    hook.step()
    hook.close()
    assert Telemetry(out).steps() == list(range(21))


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
