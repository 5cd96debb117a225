"""Steps that functions of the library carry on while the clock is lent to them: told as the same steps done in Python."""
import gc
import os
import random
import threading
import weakref

import pytest
import torch
from tests.support.hook_support import Telemetry, wire

import tocsin
from tocsin.adapters.torch.movement import update_watch
from tocsin.library import lane
from tocsin.loop.step_arrows import ENDS, EVENTS, FRESH, STATES

FUSED = {"fused": True} if "fused" in torch.optim.SGD.__init__.__code__.co_varnames else {}


@pytest.fixture(autouse=True)
def nobody_looks_at_updates(monkeypatch):
    """Which updates are looked at depends on times, and the first are done in Python (test_hook_movement.py)."""
    monkeypatch.setattr(update_watch, "Movement", lambda sink: None)


class Job:
    """A loop with a dozen habits, of which each step has some."""

    def __init__(self, out, seed, dropout, **watch):
        torch.manual_seed(0)
        layers = [torch.nn.Linear(4, 3), torch.nn.Dropout(0.1)] if dropout else [torch.nn.Linear(4, 3), torch.nn.ReLU()]
        self.model = torch.nn.Sequential(*layers)
        self.fused = FUSED if seed % 2 else {}
        # The updates that a scaler leaves out are the kernel's own (leaves_an_update_out()), where there is one.
        self.optimizer = torch.optim.SGD(self.model.parameters(), lr=0.1, **self.fused)
        self.chance = random.Random(seed)
        self.hook = tocsin.watch(self.model, self.optimizer, out=out, run=f"lease{seed}",
                                 capture={"every": "7 steps", "overhead": "100%"}, **watch)
        self.lent = 0
        self.other = None

    def run(self, steps):
        for _ in range(steps):
            for habit in self.chance.choices(self.RARE, k=1) if self.chance.random() < 0.2 else ():
                habit(self)
            self.step()
            self.lent += self.hook.sink.clock._lent
        self.hook.close()

    def step(self, closure=False):
        chance, hook = self.chance, self.hook
        self.optimizer.zero_grad()
        loss = self.model(torch.ones(2, 4)).square().mean()
        loss.backward()
        way = chance.randrange(6)
        if way in (0, 1):
            hook.log(loss=loss)
        if way == 1:
            hook.log({"loss": loss, "metric": 0.5})
        if way == 2:
            hook.log({"metric": 2}, step=3, more=torch.tensor(7))
        self.optimizer.step(*((lambda: loss,) if closure else ()))
        if chance.random() < 0.5:
            assert hook.should_stop() is None
        if way in (3, 4):
            hook.log(loss=loss, step=5)
        if way == 4:
            hook.log(loss=loss.item())

    # ---- what is rare

    def changes_rate(self):
        self.optimizer.param_groups[0]["lr"] *= 0.5

    def says_rate_again(self):
        self.optimizer.param_groups[0]["lr"] = float(str(self.optimizer.param_groups[0]["lr"]))

    def rate_of_another_kind(self):
        self.optimizer.param_groups[0]["lr"] = 1 if self.optimizer.param_groups[0]["lr"] != 1 else 0.25

    def evaluates(self):
        self.model.eval()
        with torch.no_grad():
            self.model(torch.ones(2, 4))
        self.hook.log(accuracy=0.5)
        self.hook.step()
        self.model.train()

    def evaluates_by_name(self):
        with self.hook.mode("eval"):
            self.hook.log(accuracy=0.25)
            self.hook.step()

    def steps_by_hand(self):
        self.hook.log(loss=1.0)
        self.hook.step()

    def with_a_closure(self):
        self.step(closure=True)

    def leaves_an_update_out(self):
        if FUSED and not self.fused:
            return
        self.optimizer.found_inf = torch.tensor(1.0)
        self.step()
        del self.optimizer.found_inf

    def updates_twice(self):
        self.optimizer.step()

    def saves(self):
        self.hook.save_tensor("mine", torch.ones(3))

    def looks(self):
        assert self.hook.sink.clock.state in STATES

    def logs_what_is_no_number(self):
        with pytest.warns(RuntimeWarning) if not self.hook.errors.counts else _nothing():
            self.hook.log(loss="much", metric=1.0)
            self.hook.log(loss=torch.ones(2))

    def trains_in_the_eval_state(self):
        self.model.eval()
        self.step()
        self.model.train()

    def many(self):
        self.hook.log({f"one{i}": float(i) for i in range(12)})

    def raises_in_the_model(self):
        with pytest.raises(RuntimeError):
            self.model(torch.ones(2, 5))

    def second_optimizer(self):
        if self.other is None:
            model = torch.nn.Linear(2, 1)
            self.other = model, torch.optim.SGD(model.parameters(), lr=0.1)
            tocsin.watch(*self.other, name="second")
        model, optimizer = self.other
        model(torch.ones(1, 2)).sum().backward()
        optimizer.step()

    def is_wanted(self):
        """By another thread, also in the middle of an update."""
        wanted = self.chance.random() < 0.5
        clock = self.hook.sink.clock
        thread = threading.Thread(target=clock.keep, args=(wanted,))
        if self.chance.random() < 0.5:
            hook = self.optimizer.register_step_post_hook(lambda *_: thread.start()) \
                if hasattr(self.optimizer, "register_step_post_hook") else None
            self.model(torch.ones(2, 4)).sum().backward()
            self.optimizer.step()
            if hook is not None:
                hook.remove()
        if thread.ident is None:
            thread.start()
        thread.join()

    RARE = (changes_rate, says_rate_again, rate_of_another_kind, evaluates, evaluates_by_name, steps_by_hand, with_a_closure,
            leaves_an_update_out, updates_twice, saves, looks, logs_what_is_no_number, trains_in_the_eval_state, many,
            raises_in_the_model, is_wanted)


class _nothing:
    def __enter__(self):
        return None

    def __exit__(self, *_):
        return None


def told(out):
    """All that does not depend on the time, by kind of row."""
    telemetry = Telemetry(out)
    scalars, ends, spans, rows = [], [], [], []
    for frame in telemetry.frames:
        mode = frame.header["mode"]
        for row in frame.rows:
            if frame.kind == wire.SCALAR:
                scalars.append((mode, row["step"], telemetry.names[row["name"]], row["value"]))
            elif frame.kind == wire.STEP_END:
                ends.append((mode, row["step"], row["global_step"], row["flags"] if "flags" in row else None))
            elif frame.kind == wire.SPAN:
                spans.append((mode, row["step"], telemetry.names[row["name"]]))
            elif frame.kind == wire.SUMMARY:
                rows.append((mode, frame.header["step"], telemetry.names[row["name"]], row["sum"], row["meta"]))
    return scalars, ends, sorted(spans), rows


def done(monkeypatch, tmp_path, seed, native, second=False, dropout=False):
    out = str(tmp_path / ("native" if native else "python"))
    with monkeypatch.context() as patch:
        if not native:
            patch.setattr(lane, "native", lambda library, handle: None)
        job = Job(out, seed, dropout)
        if second:
            job.RARE = (*Job.RARE, Job.second_optimizer)
        job.run(120)
    assert not native or second or job.lent > 20, job.lent
    assert native or not job.lent
    return told(out), job.hook.errors.counts


@pytest.mark.parametrize("seed", range(12))
def test_what_a_run_says_is_the_same(tmp_path, monkeypatch, seed):
    native = done(monkeypatch, tmp_path, seed, True, second=seed % 4 == 3, dropout=seed % 2 == 1)
    python = done(monkeypatch, tmp_path, seed, False, second=seed % 4 == 3, dropout=seed % 2 == 1)
    for mine, theirs in zip(native[0], python[0]):
        assert mine == theirs
    assert native[1] == python[1]


def lent(out):
    """A job whose next steps are done by the library."""
    job = Job(out, 0, False)
    for _ in range(9):
        job.optimizer.zero_grad()
        job.model(torch.ones(2, 4)).square().mean().backward()
        job.optimizer.step()
    assert job.hook.sink.clock._lent
    return job


# Events that functions of the library take, and how a loop causes each. An update ends from those states alone that its begin leaves.
CAUSES = {"log": lambda job: job.hook.log(loss=1.0), "forward": lambda job: job.model(torch.ones(2, 4)),
          "close": lambda job: adapter_of(job).around_update()[0](None)}


def adapter_of(job):
    return next(one for one in job.hook.sink.adapters() if hasattr(one, "around_update"))


def lent_in(out, state):
    job = lent(out)
    job.hook.log(loss=1.0)
    clock = job.hook.sink.clock
    clock.state = state
    adapter_of(job)._lend()
    assert clock._lent
    return job, clock.peek()[1]


def taken_back(job, number):
    """State and how many steps have ended; all was done by the library."""
    clock = job.hook.sink.clock
    assert clock._lent
    found = clock.state, clock.number - number
    job.hook.close()
    return found


@pytest.mark.parametrize("event", CAUSES)
@pytest.mark.parametrize("state", STATES)
def test_the_library_takes_the_arrows_of_the_table(out, state, event):
    job, number = lent_in(out, state)
    CAUSES[event](job)
    after = EVENTS[event][state]
    assert taken_back(job, number) == ((FRESH, 1) if after is ENDS else (after, 0))


@pytest.mark.parametrize("state", STATES)
def test_an_update_of_the_library_takes_the_arrows_of_the_table(out, state):
    job, number = lent_in(out, state)
    before, after = adapter_of(job).around_update()
    before(None)
    after()
    begun = EVENTS["close"][state]
    ended = EVENTS["update"][FRESH if begun is ENDS else begun]
    assert taken_back(job, number) == (FRESH if ended is ENDS else ended, (begun is ENDS) + (ended is ENDS))


def test_another_thread_that_looks_takes_nothing_back(out):
    job = lent(out)
    clock, moved = job.hook.sink.clock, []
    for _ in range(3):
        thread = threading.Thread(target=lambda: moved.append(job.hook.standing._moved()))
        thread.start()
        thread.join()
        assert clock._lent
        job.model(torch.ones(2, 4)).square().mean().backward()
        job.optimizer.step()
    assert moved[0] != moved[1] != moved[2]
    job.hook.close()


def test_another_thread_may_want_it_back(out):
    job = lent(out)
    clock, seen = job.hook.sink.clock, []
    ended, job.hook.sink.end_update = job.hook.sink.end_update, lambda *args: (seen.append(clock.number), ended(*args))
    for wanted in (True, False):
        thread = threading.Thread(target=clock.keep, args=(wanted,))
        thread.start()
        thread.join()
        for _ in range(3):
            job.model(torch.ones(2, 4)).square().mean().backward()
            job.optimizer.step()
        assert clock._lent != wanted
    assert seen == [9, 10, 11, 12, 14]  # 12: it is lent again after it; 14: captured
    job.hook.close()
    assert Telemetry(out).steps() == list(range(15))


def test_a_loop_that_ends_keeps_nothing_alive(out):
    job = lent(out)
    job.hook.log(loss=1.0)
    model, optimizer, hook = (weakref.ref(one) for one in (job.model, job.optimizer, job.hook))
    del job.model
    job.optimizer = None
    gc.collect()
    assert model() is None and optimizer() is None
    job.hook.log(loss=2.0)  # of a clock whose driver is gone
    assert job.hook.should_stop() is None
    job.hook.close()
    del job
    gc.collect()
    assert hook() is None


def test_a_forked_child_says_nothing(out):
    job = lent(out)
    read, write = os.pipe()
    child = os.fork()
    if child == 0:
        try:
            job.optimizer.step()
            job.hook.log(loss=1.0)
            os.write(write, b"fine" if job.hook.should_stop() is None and not job.hook.enabled else b"not")
        finally:
            os._exit(0)
    os.waitpid(child, 0)
    assert os.read(read, 4) == b"fine"
    job.optimizer.step()
    job.hook.close()
    assert Telemetry(out).steps() == list(range(10))
    os.close(read)
    os.close(write)


def test_an_error_of_the_script_goes_where_it_went(out):
    job = lent(out)
    with pytest.raises(TypeError):
        job.hook.log(1, 2)
    job.hook.log()
    job.hook.close()
    job.hook.log(loss=1.0)
    assert job.hook.should_stop() is None and not job.hook.errors.counts
