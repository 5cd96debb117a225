"""``create_trial("s3://bucket/prefix")``: raw tensors that hooks have put into a store, beside what was saved."""
import os

import numpy
import pytest

import tocsin
from tocsin.analysis import create_trial
from tocsin.exceptions import ElementsUnavailableForStep, InvalidWorker, StepNotYetAvailable, TensorUnavailable
from tocsin.reading.s3 import Bucket, StoreError
from tocsin.rules.trial import ModeKeys

pytest.importorskip("botocore")  # the store checks signatures as it makes them
from tests.support.s3 import Store  # noqa: E402 (after the line above)

STEPS = 3


@pytest.fixture(autouse=True)
def no_credentials(monkeypatch, tmp_path):
    for name in list(os.environ):
        if name.startswith("AWS_"):
            monkeypatch.delenv(name)
    monkeypatch.setenv("HOME", str(tmp_path / "home"))


@pytest.fixture
def store(monkeypatch):
    with Store() as one:
        for name, value in one.environment().items():
            monkeypatch.setenv(name, value)
        yield one


def value_of(name, step, shape, dtype):
    return (numpy.random.default_rng([len(name), step]).standard_normal(shape) * 50).astype(dtype)


SAVED = {"state": ((300, 1001), "f4"), "layer/weight": ((2, 3, 4), "f8"), "labels": ((17,), "i8"), "mask": ((5, 5), "?"), "half": ((9,), "f2")}


def run_into(out, to="s3://runs/a/b", **raw):
    """`state` is larger than a chunk, and lies between others."""
    with tocsin.watch(out=str(out), capture={"every": "1 step", "overhead": 1.0, "raw": {"to": to, **raw}}) as hook:
        for step in range(STEPS):
            for name, (shape, dtype) in SAVED.items():
                hook.save_tensor(name, value_of(name, step, shape, dtype), raw=True)
            hook.step()
    return hook.run


def test_what_was_saved_comes_back(store, tmp_path):
    store.page = 2  # the list comes in pieces
    run = run_into(tmp_path / "one")
    trial = create_trial("s3://runs/a/b")
    assert trial.run == run and trial.steps() == list(range(STEPS)) and trial.workers() == ["worker_0"] and trial.modes() == [ModeKeys.TRAIN]
    assert trial.tensor_names() == sorted(SAVED) and trial.tensor_names(regex="la") == ["labels", "layer/weight"]
    for name, (shape, dtype) in SAVED.items():
        for step in range(STEPS):
            found = trial.tensor(name).value(step)
            assert found.dtype == dtype and numpy.array_equal(found, value_of(name, step, shape, dtype)), (name, step)
            assert trial.tensor(name).shape(step) == shape
    assert store.refused == []


def test_a_large_tensor_is_not_read_for_its_name(store, tmp_path, monkeypatch):
    run_into(tmp_path / "one", chunk="64KiB")
    asked = []
    read = Bucket.read
    monkeypatch.setattr(Bucket, "read", lambda self, key, first, count: asked.append(count) or read(self, key, first, count))
    trial = create_trial("s3://runs/a/b")
    whole = sum(map(len, store.objects.values()))
    assert trial.tensor_names() == sorted(SAVED) and sum(asked) < whole / 2, "of 19 chunks of state only the first is read"
    begun = len(asked)
    trial.refresh()
    assert len(asked) == begun, "an object is looked into once"
    assert numpy.array_equal(trial.tensor("state").value(1), value_of("state", 1, *SAVED["state"]))


def test_a_run_is_chosen_and_steps_are(store, tmp_path):
    first, second = run_into(tmp_path / "one"), run_into(tmp_path / "two")
    assert create_trial("s3://runs/a/b").run == second, "which sent last"
    assert create_trial("s3://runs/a/b", run=first[:8]).run == first == create_trial(f"s3://runs/a/b/{first}/").run
    trial = create_trial("s3://runs", run=first, range_steps=(1, 2), name="mine")
    assert trial.steps() == [1] and trial.name == "mine"
    with pytest.raises(ValueError, match=f"s3://runs/a/b has no run ffffffff: it has .*{first}"):
        create_trial("s3://runs/a/b", run="ffffffff")


def test_a_running_job_is_followed(store, tmp_path):
    with tocsin.watch(out=str(tmp_path / "one"), capture={"every": "1 step", "overhead": 1.0, "raw": {"to": "s3://runs/a/b"}}) as hook:
        hook.save_tensor("state", numpy.arange(4), raw=True)
        hook.step()
        assert hook.get_tensor("state", 0) is not None  # it waits until it is there
        trial = create_trial("s3://runs/a/b")
        assert trial.steps() == [0] and not trial.loaded_all_steps
        with pytest.raises(StepNotYetAvailable):
            trial.tensor("state").value(1)
        hook.save_tensor("state", numpy.arange(5), raw=True)
        hook.step()
    trial.refresh()
    assert trial.steps() == [0, 1] and list(trial.tensor("state").value(1)) == [0, 1, 2, 3, 4] and trial.tensor("state").shape(0) == (4,)


def test_what_a_store_does_not_have_is_said(store, tmp_path):
    run_into(tmp_path / "one")
    trial = create_trial("s3://runs/a/b")
    state = trial.tensor("state")
    for ask in (lambda: trial.series("loss"), lambda: trial.plot("loss"), lambda: trial.live("loss"), lambda: state.reduction_value(0, "mean"), lambda: state.reduction_values(0),
                lambda: state.statistic(0, "nan")):
        with pytest.raises(ValueError, match="a store holds raw tensors only: for .* open the directory of the run"):
            ask()
    with pytest.raises(TensorUnavailable):
        trial.tensor("loss")
    with pytest.raises(InvalidWorker):
        state.value(0, worker="worker_7")
    with pytest.raises(ValueError, match="at: a store does not say"):
        create_trial("s3://runs/a/b", at=0)
    with pytest.raises(ValueError, match="s3://runs/elsewhere has no raw tensors; capture.raw.to"):
        create_trial("s3://runs/elsewhere")
    with pytest.raises(StoreError, match=r"HTTP status 404 \(NoSuchBucket\)"):
        create_trial("s3://other/a")
    with pytest.raises(ValueError, match="expected s3://bucket/prefix"):
        create_trial("s3:///a")


def test_what_was_damaged_is_named(store, tmp_path):
    run_into(tmp_path / "one")
    trial = create_trial("s3://runs/a/b")
    key, placed = trial.placed("state", trial._find(1, ModeKeys.TRAIN), "worker_0")
    whole = bytearray(store.objects[f"runs/{key}"])
    whole[placed.offset + placed.length // 2] ^= 1
    store.objects[f"runs/{key}"] = bytes(whole)
    with pytest.raises(ElementsUnavailableForStep, match="a chunk is damaged: bad_crc"):
        trial.tensor("state").value(1)
    assert trial.tensor("state").value(2).shape == (300, 1001)
    store.objects[f"runs/{key}"] = bytes(whole[:placed.offset + 40])
    with pytest.raises(ValueError, match="is damaged"):
        create_trial("s3://runs/a/b")


@pytest.mark.parametrize("kind", ["https", "session token", "a file of credentials", "nobody's"])
def test_credentials_are_those_of_the_hook(tmp_path, monkeypatch, kind):
    with Store(tls=tmp_path if kind == "https" else None, token="token/+=" if kind == "session token" else "") as store:
        for name, value in store.environment().items():
            monkeypatch.setenv(name, value)
        run_into(tmp_path / "one", region="eu-central-1")
        if kind == "a file of credentials":
            file = tmp_path / "home/.aws/credentials"
            file.parent.mkdir(parents=True)
            file.write_text("[default]\naws_access_key_id = no\naws_secret_access_key = no\n[train]\n"
                            f"aws_access_key_id={os.environ['AWS_ACCESS_KEY_ID']}\naws_secret_access_key = {os.environ['AWS_SECRET_ACCESS_KEY']}\n")
            monkeypatch.setenv("AWS_PROFILE", "train")
        if kind in ("a file of credentials", "nobody's"):
            monkeypatch.delenv("AWS_ACCESS_KEY_ID")
        if kind == "nobody's":
            with pytest.raises(ValueError, match="no credentials: neither AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY nor the profile default of"):
                create_trial("s3://runs/a/b")
            return
        monkeypatch.setenv("AWS_REGION", "eu-central-1")
        store.faults = [503, 500]  # asked again
        assert create_trial("s3://runs/a/b").steps() == list(range(STEPS)) and store.refused == ["Fault", "Fault"]
        if kind != "a file of credentials":
            monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "of-somebody-else")
            with pytest.raises(StoreError, match=r"HTTP status 403 \(SignatureDoesNotMatch\)") as raised:
                create_trial("s3://runs/a/b")
            assert "of-somebody-else" not in str(raised.value)
