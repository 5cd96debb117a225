"""Ranks of one launch are one trial, whatever second each of them opened in (tocsin.reading.launches, create_trial)."""

import sqlite3

import pytest

from tocsin import wire
from tocsin.reading.launches import NODE_AGENT
from tocsin.rules import create_trial

RUN = wire.run_uid("digits", "launches")
LOSS = wire.xxh64(b"loss")


class Log:
    """Records of a run's workers, in the order in which they were written."""

    def __init__(self, folder, world=2):
        self.folder, self.world, self.frames, self.sequence = folder, world, [], 0

    def head(self, rank, opened, attempt, **more):
        self.sequence += 1
        return wire.header(RUN, worker=f"worker_{rank}", rank=rank, world_size=self.world, incarnation=opened,
                           attempt=attempt, sequence=self.sequence, **more)

    def event(self, event, rank, opened, attempt, **more):
        self.frames.append(wire.encode_lifecycle(self.head(rank, opened, attempt), {"event": event, **more}))
        return self

    def start(self, rank, opened, attempt, key="elastic:1"):
        return self.event("start", rank, opened, attempt, launch=key, job="digits")

    def loss(self, rank, opened, attempt, step, value):
        self.frames.append(wire.encode_frame(
            self.head(rank, opened, attempt, step=step, global_step=step), wire.SCALAR,
            [{"name": LOSS, "step": step, "global_step": step, "time": step, "value": value, "meta": 4 << 8}]))
        return self

    def trial(self):
        self.frames.append(wire.encode_dictionary(self.head(0, 0, 1), [
            {"hash": LOSS, "type": 2, "dtype": 2, "role": 4, "name": "loss"},
            *({"hash": wire.xxh64(f"worker_{rank}".encode()), "type": 4, "name": f"worker_{rank}"} for rank in range(self.world))]))
        database = sqlite3.connect(self.folder / "telemetry.db")
        database.execute("CREATE TABLE telemetry(id INTEGER PRIMARY KEY, value BLOB)")
        database.executemany("INSERT INTO telemetry VALUES (?, ?)", list(enumerate(self.frames)))
        database.commit()
        database.close()
        return create_trial(str(self.folder))


@pytest.fixture
def log(tmp_path):
    return Log(tmp_path)


def test_two_ranks_opened_in_different_seconds_are_one_trial(log):
    log.start(0, 10, 1700000000).start(1, 11, 1700000001)
    for step in range(3):
        log.loss(0, 10, 1700000000, step, 3.0 - step).loss(1, 11, 1700000001, step, 4.0 - step)
    trial = log.event("end", 0, 10, 1700000000).event("end", 1, 11, 1700000001).trial()
    assert trial.workers() == ["worker_0", "worker_1"]
    assert trial.run == f"{RUN}/1700000000"
    assert trial.tensor("loss").values(worker="worker_1") == {0: 4.0, 1: 3.0, 2: 2.0}
    assert trial.loaded_all_steps


def test_a_trial_goes_on_until_its_last_rank_has_ended(log):
    trial = log.start(0, 10, 5).start(1, 11, 6).loss(0, 10, 5, 0, 1.0).loss(1, 11, 6, 0, 1.0).event("end", 0, 10, 5).trial()
    assert not trial.loaded_all_steps


def test_a_rank_that_starts_when_the_other_has_ended_is_of_the_same_launch(log):
    trial = log.start(0, 10, 5).loss(0, 10, 5, 0, 1.0).event("end", 0, 10, 5) \
        .start(1, 11, 6).loss(1, 11, 6, 0, 2.0).event("end", 1, 11, 6).trial()
    assert trial.workers() == ["worker_0", "worker_1"] and trial.loaded_all_steps


def test_the_same_key_for_a_second_launch_is_another_trial(log):
    log.start(0, 10, 5).start(1, 11, 5).loss(0, 10, 5, 0, 1.0).loss(1, 11, 5, 0, 1.0)
    trial = log.start(1, 21, 6).start(0, 22, 7).loss(0, 22, 7, 0, 8.0).loss(1, 21, 6, 0, 9.0).trial()
    assert trial.tensor("loss").values(worker="worker_0") == {0: 8.0}
    assert trial.workers() == ["worker_0", "worker_1"] and trial.run == f"{RUN}/6"


def test_another_key_is_another_launch_and_an_older_one_stays_where_it_was(log):
    log.start(0, 10, 5, "elastic:1").start(0, 20, 6, "elastic:2").loss(0, 20, 6, 0, 9.0)
    trial = log.start(1, 12, 5, "elastic:1").loss(1, 12, 5, 0, 1.0).trial()
    assert trial.run == f"{RUN}/6" and trial.workers() == ["worker_0"]


def test_a_rank_whose_start_was_lost_joins_the_newest_launch(log):
    trial = log.start(0, 10, 5).loss(0, 10, 5, 0, 1.0).loss(1, 11, 5, 0, 2.0).trial()
    assert trial.workers() == ["worker_0", "worker_1"]


def test_a_node_agent_opens_no_launch(log):
    log.event("heartbeat", NODE_AGENT, 1, 77)
    trial = log.start(0, 10, 5).loss(0, 10, 5, 0, 1.0).trial()
    assert trial.run == f"{RUN}/5"
