"""Raw tensors in an S3-compatible store: signed as botocore signs, over TLS that is verified, and what happens where it
refuses or does not answer."""
import json
import os
import pathlib

import numpy
import pytest

import tocsin
from tests.support.hook_support import Telemetry, records, wire

pytest.importorskip("botocore")  # the store checks signatures as it makes them
from tests.support.s3 import Store  # noqa: E402 (after the line above)
from tocsin.raw import NoRawTensor, RawTensors  # noqa: E402

STEPS = 3


@pytest.fixture(autouse=True)
def no_credentials(monkeypatch, tmp_path):
    for name in list(os.environ):
        if name.startswith("AWS_"):
            monkeypatch.delenv(name)
    monkeypatch.setenv("HOME", str(tmp_path / "home"))


def use(monkeypatch, store, **more):
    for name, value in store.environment(**more).items():
        monkeypatch.setenv(name, value)


def saved(out, to="s3://runs/a/b", **raw):
    values = [numpy.random.default_rng(step).standard_normal((300, 500)).astype("f4") for step in range(STEPS)]
    hook = tocsin.watch(out=out, capture={"every": "1 step", "overhead": 1.0, "raw": {"to": to, **raw}})
    for value in values:
        hook.save_tensor("state", value, raw=True)
        hook.step()
    return hook, values


@pytest.mark.parametrize("kind", ["http", "https", "session token", "a file of credentials"])
def test_there_and_back(out, tmp_path, monkeypatch, kind):
    with Store(tls=tmp_path if kind == "https" else None, token="token/+=" if kind == "session token" else "") as store:
        use(monkeypatch, store)
        if kind == "a file of credentials":
            file = tmp_path / "home/.aws/credentials"
            file.parent.mkdir(parents=True)
            file.write_text("[default]\naws_access_key_id = no\naws_secret_access_key = no\n[train] \n"
                            f"aws_access_key_id={os.environ['AWS_ACCESS_KEY_ID']}\n"
                            f"aws_secret_access_key = {os.environ['AWS_SECRET_ACCESS_KEY']}\n")
            monkeypatch.setenv("AWS_PROFILE", "train")
            monkeypatch.delenv("AWS_ACCESS_KEY_ID")
            monkeypatch.delenv("AWS_SECRET_ACCESS_KEY")
        hook, values = saved(out, region="eu-central-1")
        for step, value in enumerate(values):
            assert numpy.array_equal(hook.get_tensor("state", step), value)
        hook.close()
        assert store.refused == [] and not hook.stats()["loss"]
        assert all(name.startswith(f"runs/a/b/{hook.run}/") for name in store.objects)
        with pytest.raises(NoRawTensor, match="raw: true"):
            RawTensors(run=hook.run, out=out).value("state", STEPS)
    uris = {wire.decode_frame(record["value"]).chunk["dataref"][2] for record in records(out, "tensors")}
    assert {uri[len("s3://"):] for uri in uris} == set(store.objects)


def test_what_the_store_refuses_is_counted_and_said_without_the_secret(out, monkeypatch, capfd):
    with Store() as store:
        use(monkeypatch, store, AWS_SECRET_ACCESS_KEY="of-somebody-else")
        hook, _ = saved(out)
        hook.close()
        said = capfd.readouterr().err
        assert hook.stats()["raw"]["skipped_total"]["refused"] == STEPS
        assert "HTTP status 403 (SignatureDoesNotMatch)" in said
        written = [path.read_bytes().decode("latin1") for path in pathlib.Path(out).iterdir()]
        for text in (said, json.dumps(hook.stats()), *written):
            assert "of-somebody-else" not in text
        assert Telemetry(out).steps() == list(range(STEPS))


def test_a_bucket_that_is_not_there_and_credentials_that_are_not(out, monkeypatch, capfd):
    with Store() as store:
        use(monkeypatch, store)
        saved(out, to="s3://others/x")[0].close()
        assert "HTTP status 404 (NoSuchBucket)" in capfd.readouterr().err
        monkeypatch.delenv("AWS_ACCESS_KEY_ID")
        saved(out)[0].close()
        assert "neither AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY nor the profile default of" in capfd.readouterr().err


def test_a_store_that_has_no_time_is_asked_again(out, monkeypatch):
    with Store() as store:
        use(monkeypatch, store)
        store.faults = [503]
        hook, values = saved(out)
        assert numpy.array_equal(hook.get_tensor("state", 2), values[2])
        hook.close(timeout=20)
        assert hook.stats()["raw"]["sent_total"] == STEPS


def test_a_certificate_that_nobody_vouches_for_is_refused(out, tmp_path, monkeypatch, capfd):
    with Store(tls=tmp_path) as store:
        use(monkeypatch, store)
        monkeypatch.delenv("AWS_CA_BUNDLE")
        hook, _ = saved(out)
        hook.close()
        assert hook.stats()["raw"]["skipped_total"]["refused"] == STEPS
        assert "certificate" in capfd.readouterr().err and not store.requests


def test_a_store_that_is_gone_costs_elements_and_nothing_else(out, monkeypatch, capfd):
    with Store() as store:
        use(monkeypatch, store)
    hook, _ = saved(out)
    hook.close(timeout=1)
    assert hook.stats()["raw"]["skipped_total"]["undelivered"] == STEPS
    assert f"{STEPS} undelivered" in capfd.readouterr().err
    assert Telemetry(out).steps() == list(range(STEPS))


def test_an_object_that_is_gone_or_damaged_is_said_to_be(out, monkeypatch):
    with Store() as store:
        use(monkeypatch, store)
        hook, _ = saved(out)
        hook.close()
        [name] = [name for name in store.objects if "-000000001-" in name]
        data = bytearray(store.objects[name])
        data[5000] ^= 1
        store.objects[name] = bytes(data)
        tensors = RawTensors(run=hook.run, out=out)
        with pytest.raises(NoRawTensor, match="bad_crc"):
            tensors.value("state", 1)
        del store.objects[name]
        with pytest.raises(NoRawTensor, match="NoSuchKey"):
            tensors.value("state", 1)
