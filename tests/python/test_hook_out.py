"""A wrong `out=` is an error that names the forms, and never a folder."""
import os
import warnings

import pytest

import tocsin


@pytest.fixture(autouse=True)
def here(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for variable in ("TOCSIN_OUT", "TOCSIN_BROKERS", "TOCSIN_CONFIG"):
        monkeypatch.delenv(variable, raising=False)
    return tmp_path


def refused(**watch):
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        hook = tocsin.watch(**watch)
    assert not hook.enabled
    hook.log(loss=1)
    hook.step()
    hook.close()
    assert os.listdir(".") == []
    (one,) = [str(one.message) for one in said]
    return one


WRONG = [
    ("localhost:9092", "kafka://localhost:9092"), ("kafka:9092", "kafka://kafka:9092"), ("a:9092,b:9092", "kafka://a:9092,b:9092"),
    ("[::1]:9092", "kafka://[::1]:9092"), ("kafka:/x", "kafka://x"), ("kafka//x", "kafka://x"), ("kafka:x:9092", "kafka://x:9092"),
    ("Kafka://x:1", "kafka://x:1"), ("kafka:///x", "kafka://x"), ("kafka://", None), ("kafka://x:1/topic", "kafka://x:1"),
    ("kafka://x:99999", None), ("http://x:9092", "kafka://x:9092"), ("https://x/y", "kafka://x"), ("tcp://x:9092", "kafka://x:9092"),
    ("redis://x", None), ("s3://bucket/x", None), ("file:///data/x", "/data/x"), ("file:/data", "/data"), ("C:\\x", None), ("C:/x", None),
    ("\\\\host\\share", None), ("", None), ("  ", None), (" data", "data"), ("~/runs", None), ("http:/x", "kafka://x")]


@pytest.mark.parametrize("given, meant", WRONG)
def test_what_is_no_place_names_the_forms_and_the_nearest(given, meant):
    said = refused(out=given)
    assert f'out "{given}"' in said and "kafka://host:9092[,host:9092]" in said and "directory" in said
    assert (f'did you mean "{meant}"?' in said) if meant else "did you mean" not in said


@pytest.mark.parametrize("given, meant", [pair for pair in WRONG if pair[0]])
def test_the_variable_is_judged_alike(monkeypatch, given, meant):
    monkeypatch.setenv("TOCSIN_OUT", given)
    said = refused()
    assert f'TOCSIN_OUT "{given}"' in said and (not meant or meant in said)


@pytest.mark.parametrize("given, meant", [("kafka://x:9092", "x:9092"), ("x:0", None), ("/data", "data"), ("http://x:1/y", "x:1")])
def test_the_variable_of_brokers_takes_brokers(monkeypatch, given, meant):
    monkeypatch.setenv("TOCSIN_BROKERS", given)
    said = refused()
    assert f'TOCSIN_BROKERS "{given}"' in said and "host:9092[,host:9092]" in said and (not meant or f'"{meant}"' in said)


@pytest.mark.parametrize("given", ["./localhost:9092", "data", "data/of:today", "kafka", "kafka/x", "run.1", "a b", "größe"])
def test_a_directory_is_one_whatever_it_is_called(tmp_path, given):
    hook = tocsin.watch(out=given)
    assert hook.enabled and hook.stats()["out"] == given
    hook.log(loss=1)
    hook.step()
    hook.close()
    assert (tmp_path / given / "telemetry.db").exists()


def test_a_path_object_and_bytes_that_are_no_text_are_directories(tmp_path):
    for given in (tmp_path / "p", os.fsdecode(bytes(tmp_path) + b"/\xff")):
        hook = tocsin.watch(out=given)
        assert hook.enabled, hook.stats()
        hook.close()
        assert os.path.isdir(given)


def test_a_file_is_no_place(tmp_path):
    (tmp_path / "f").write_text("x")
    with pytest.warns(RuntimeWarning, match='out "f": a file; give'):
        assert not tocsin.watch(out="f").enabled


def test_a_journal_of_the_file_is_judged_alike_and_is_never_a_folder(tmp_path):
    (tmp_path / "tocsin.yaml").write_text("transport:\n  journal: localhost:9092\n")
    with pytest.warns(RuntimeWarning, match=r"tocsin.yaml:2:12: error: journal \"localhost:9092\""):
        hook = tocsin.watch(config="tocsin.yaml", out="data")
    assert hook.enabled
    hook.close()
    assert not (tmp_path / "localhost:9092").exists()
