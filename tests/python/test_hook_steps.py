"""The parts of the hook below its API: the step clock, the queue for a device, the sink that adapters are written against."""
import pathlib
import re

import pytest

from tests.support.hook_support import Telemetry, wire

import tocsin  # noqa: E402 (the line above puts the package on the path)
from tocsin.loop.step_arrows import ENDS, EVENTS, FRESH, HELD, LOGGED, STATES  # noqa: E402
from tocsin.loop.steps import PATIENCE, StepClock  # noqa: E402
from tocsin.tensors.device_queue import DeviceQueue  # noqa: E402

ROOT = pathlib.Path(__file__).resolve().parents[2]


class Said:
    """Stands for the client: keeps what the clock says."""

    def __init__(self):
        self.words, self.still, self.quiet = [], False, False

    def step_end(self, flags):
        self.words.append(("end", flags))
        return self.still

    def set_mode(self, mode):
        self.words.append(("mode", mode))


class Event:
    def __init__(self):
        self.done = False

    def query(self):
        return self.done

    def synchronize(self):
        self.done = True


@pytest.fixture
def client():
    return Said()


@pytest.fixture
def queue():
    return DeviceQueue()


@pytest.fixture
def clock(client, queue):
    return StepClock(client, queue)


# state before, arrow, state after, steps that end
ARROWS = [
    (FRESH, "logged", LOGGED, 0), (FRESH, "end_update", HELD, 0), (FRESH, "end_step", FRESH, 1), (FRESH, "begin_update", FRESH, 0),
    (FRESH, "close", FRESH, 0),
    (LOGGED, "logged", LOGGED, 0), (LOGGED, "end_update", FRESH, 1), (LOGGED, "end_step", FRESH, 1), (LOGGED, "begin_update", LOGGED, 0),
    (LOGGED, "close", LOGGED, 0),
    (HELD, "logged", FRESH, 1), (HELD, "end_update", HELD, 0), (HELD, "end_step", FRESH, 1), (HELD, "begin_update", FRESH, 1),
    (HELD, "close", FRESH, 1),
]


@pytest.mark.parametrize("before, arrow, after, ends", ARROWS)
def test_every_arrow_of_the_step_clock(clock, client, before, arrow, after, ends):
    clock.state = before
    getattr(clock, arrow)()
    assert clock.state is after
    assert client.words == [("end", 0)] * ends


def two_drivers(clock):
    """The second of two, of which the first leads."""
    parts = clock.parts = Said(), Said()
    for part in parts:
        clock.drive(part)
    return parts[1]


def logs_a_name_again(clock, state):
    two_drivers(clock)
    clock.begin_update(clock.parts[0])
    clock.end_update(clock.parts[0])
    clock.will_log(["loss"])
    clock.state = state
    clock.will_log(["loss"])


def updates_of_several(clock, state):
    second = two_drivers(clock)
    clock.state = state
    clock.end_update(second)


def goes_on(clock, state):
    second = two_drivers(clock)
    clock.state = state
    clock.begin_update(second)


def by(name, *given):
    def call(clock, state):
        clock.state = state
        getattr(clock, name)(*given)
    return call


CALLS = {"log": by("logged"), "log_again": logs_a_name_again, "update": by("end_update"), "update_of_several": updates_of_several,
         "go_on": goes_on, "close": by("close"), "forward": by("begin_forward"), "name_mode": by("leave_for", "eval"),
         "change_mode": by("change_mode", "eval"), "step": by("end_step")}


@pytest.mark.parametrize("event", EVENTS)
@pytest.mark.parametrize("state", STATES)
def test_every_call_takes_the_arrow_of_its_event(clock, client, state, event):
    CALLS[event](clock, state)
    after = EVENTS[event][state]
    assert clock.state == (FRESH if after is ENDS else after)
    assert [word for word in client.words if word[0] == "end"] == [("end", 0)] * (after is ENDS)


def test_the_library_has_the_same_table():
    text = (ROOT / "collectors/hook/abi/step_arrows.h").read_text()
    enums = [re.findall(r"^  (\w+)", body, re.M) for body in re.findall(r"enum class \w+ : std::uint8_t \{(.*?)\n\};", text, re.S)]
    rows = [re.findall(r"S::(\w+)", row) for row in re.findall(r"\{S::.*?\}", text)]
    assert enums == [[*STATES, ENDS], list(EVENTS)]
    assert rows == [[arrows[state] for state in STATES] for arrows in EVENTS.values()]


def test_where_nothing_is_due_nobody_asks_until_something_changes(clock, client):
    assert not clock.quiet()
    client.still = True
    clock.logged()
    clock.end_update()
    assert clock.quiet()
    clock.ahead = 1  # the library's present step is another
    assert not clock.quiet()
    clock.ahead = 0
    parts = Said(), Said()
    for part in parts:
        clock.drive(part)  # whose turn it is has to be asked
    assert not clock.quiet()


@pytest.mark.parametrize("state, ends", [(FRESH, 0), (LOGGED, 0), (HELD, 1)])
def test_another_mode_begins_another_step(clock, client, state, ends):
    clock.state = state
    clock.change_mode("eval")
    assert clock.state is FRESH and clock.mode == "eval"
    assert client.words == [("end", 0)] * ends + [("mode", 2)]


def test_beside_a_driver_a_step_of_training_is_not_counted_twice(clock, client):
    driver = Said()
    clock.drive(driver)
    clock.end_step()
    assert client.words == []
    clock.end_step(skipped=True)
    clock.change_mode("eval")
    clock.end_step()
    assert client.words == [("end", 1), ("mode", 2), ("end", 0)]


@pytest.fixture
def loop(clock, client):
    """A loop of two optimizers in one word: capital letters update, small ones log. Gives the steps that had ended after each."""
    parts = {"D": Said(), "G": Said()}
    for part in parts.values():
        clock.drive(part)

    def run(words, names=None):
        ended = []
        for word in words:
            if word in parts:
                clock.begin_update(parts[word])
                clock.end_update(parts[word])
            elif word == ".":
                clock.end_step()
            else:
                clock.will_log([word])
                clock.logged()
            ended.append(len(client.words))
        return ended
    run.parts = parts
    return run


@pytest.mark.parametrize("words, ended", [
    ("dDgGdDgG", [0, 0, 0, 1, 1, 1, 1, 2]),        # each logs before its own update
    ("dgDGdgDG", [0, 0, 0, 1, 1, 1, 1, 2]),        # all is logged before the first
    ("DGdDGd", [0, 0, 1, 1, 1, 2]),                # after the last
    ("DdGgDdGg", [0, 0, 0, 1, 1, 1, 1, 2]),        # each after its own
    ("DGDGD", [0, 0, 1, 1, 2]),                    # nothing is logged
    ("DDDGDDDG", [0, 1, 2, 2, 3, 4, 5, 5]),        # three of the leader's for one of the other's: the leader counts
    ("dDdDdDgG", [0, 0, 1, 1, 2, 2, 2, 3]),        # a name that comes again is of the next step
    ("DGGDGG", [0, 0, 0, 1, 1, 1]),                # two of the other's
    ("DG.DG.", [0, 0, 1, 1, 1, 2]),                # hook.step() once in a loop
])
def test_two_optimizers_of_a_loop_share_one_clock(loop, words, ended):
    assert loop(words) == ended


def test_the_script_may_name_the_optimizer_that_counts_or_count_itself(client, queue):
    for step_by, ended in (("generator", [0, 0, 0, 1, 1, 2]), ("manual", [0] * 6)):
        client.words.clear()
        clock = StepClock(client, queue, step_by)
        critic, generator = Said(), Said()
        clock.drive(critic, "critic")
        clock.drive(generator, "generator")
        counts = []
        for driver in (generator, critic, critic, generator, critic, generator):
            clock.begin_update(driver)
            clock.end_update(driver)
            counts.append(len(client.words))
        assert counts == ended, step_by
    clock.end_step()
    clock.end_step()
    assert len(client.words) == 2


def test_a_leader_that_the_script_has_given_up_is_not_waited_for(loop, client):
    steps = loop("G" * (PATIENCE + 10))[-1]
    assert 5 < steps < 10
    del loop.parts["D"]
    assert loop("GGG")[-1] >= steps + 2


def test_who_is_watched_after_the_first_update_begins_a_loop_of_its_own(clock, client):
    old, new = Said(), Said()
    clock.drive(old)
    clock.begin_update(old)
    clock.end_update(old)
    clock.drive(new)
    assert clock.drivers() == [new] and clock.simple
    for driver in (new, old, new, old, new):  # it goes on all the same: they share the steps
        clock.begin_update(driver)
        clock.end_update(driver)
    assert len(client.words) == 3 and not clock.simple


def test_steps_that_wait_for_a_device_are_counted_ahead_and_end_in_order(clock, client, queue):
    event = Event()
    queue.put(client.words.append, "value", after=event)
    clock.end_step()
    clock.change_mode("eval")
    clock.end_step()
    queue.drain()
    assert client.words == [] and clock.ahead == 2
    event.done = True
    queue.drain()
    assert client.words == ["value", ("end", 0), ("mode", 2), ("end", 0)] and clock.ahead == 0


def test_an_update_that_was_left_out_flags_its_own_step(clock, client, queue):
    clock.logged()
    clock.end_update(skipped=lambda: True)
    clock.end_update(skipped=lambda: True)
    clock.logged()  # the step was held open for this
    clock.logged()
    clock.end_update(skipped=lambda: False)
    event = Event()
    clock.logged()
    clock.end_update(skipped=lambda: event.done, after=event)
    assert client.words == [("end", 1), ("end", 1), ("end", 0)]
    queue.drain(wait=True)
    assert client.words[3:] == [("end", 1)]


def test_a_queue_that_is_told_to_waits(queue):
    words, first, second = [], Event(), Event()
    queue.put(words.append, 1, after=first)
    queue.put(words.append, 2)
    queue.put(words.append, 3, after=second)
    first.done = True
    queue.drain()
    assert words == [1, 2]
    queue.drain(wait=True)
    assert words == [1, 2, 3] and not queue.waiting


class Trainer:
    """A framework with callbacks, and an adapter written as the head of tocsin/sink.py says."""

    def __init__(self):
        self.before, self.after, self.losses = [], [], [0.5, 1.5]

    def fit(self, steps):
        for _ in range(steps):
            for call in self.before:
                call()
            for call in self.after:
                call()


class Adapter:
    def __init__(self, sink, trainer):
        self.sink, self.trainer, self.detached = sink, trainer, False
        trainer.before.append(self.before)
        trainer.after.append(self.after)
        sink.attach(self, ends_steps=True)

    def before(self):
        import numpy as np
        with self.sink.guard("trainer"):
            self.sink.begin_update()
            if self.sink.wants("mine"):
                self.sink.publish_tensor("per_sample", np.array(self.trainer.losses), collection="mine")
            if not self.sink.wants("losses"):
                raise ValueError("of the adapter's own")

    def after(self):
        with self.sink.guard("trainer"):
            self.sink.log({"loss": sum(self.trainer.losses)})
            self.sink.end_update()

    def detach(self):
        self.detached = True


def test_an_adapter_needs_nothing_but_the_sink(tmp_path):
    hook = tocsin.watch(out=str(tmp_path / "data"), capture={"every": "2 steps", "collections": {"losses": {}, "mine": {}}})
    trainer = Trainer()
    adapter = Adapter(hook.sink, trainer)
    with pytest.warns(RuntimeWarning, match="of the adapter's own"):
        trainer.fit(4)
    assert hook.sink.publishes(sharded=True) and hook.sink.publishes(sharded=False)
    hook.close()
    assert adapter.detached and not hook.sink.active
    assert hook.stats()["hook_errors_total"] == {"trainer": 2}  # steps 1 and 3, on which nothing is due
    telemetry = Telemetry(tmp_path / "data")
    assert telemetry.steps() == [0, 1, 2, 3]
    assert [step for _, step, _ in telemetry.scalars("loss")] == [0, 1, 2, 3]
    assert [frame.header["step"] for frame in telemetry.of_kind(wire.SUMMARY)] == [0, 2]
    assert telemetry.summaries(step=2)["per_sample"]["sum"] == 2.0
