"""The words of the Python package are those of the program: codes, roles, collections."""
import json
import os
import subprocess

import pytest

from tocsin import wire
from tocsin.library import abi, vocabulary


@pytest.fixture(scope="module")
def words():
    binary = os.environ.get("TOCSIN_BINARY", "build/release/app/tocsin")
    return json.loads(subprocess.run([binary, "schema", "vocabulary"], check=True, capture_output=True, text=True).stdout)


def test_the_package_carries_the_programs_words(words):
    assert vocabulary.MODES == words["modes"]
    assert vocabulary.DTYPES == words["dtypes"]
    assert vocabulary.ROLES == words["roles"]
    assert list(vocabulary.COLLECTIONS) == [one["name"] for one in words["collections"]]
    asked = [one["request"] for one in words["statistics"] if one["request"]]
    assert list(vocabulary.STATISTICS) == list(dict.fromkeys(asked))


def test_the_reference_codec_states_the_same_codes(words):
    assert wire.DTYPES == words["dtypes"]
    assert wire.ROLES == words["roles"]
    assert {"global": wire.GLOBAL, "train": wire.TRAIN, "eval": wire.EVAL, "predict": wire.PREDICT} == words["modes"]


def test_the_reference_codec_has_the_columns_of_the_table(words):
    columns = [one["name"] for one in words["statistics"] if one["form"] == "column"]
    assert [name for name, _ in wire.COLUMNS[wire.SUMMARY]] == columns


def test_every_role_may_be_stated_by_a_script(words):
    assert abi.ROLES == words["roles"] and len(abi.ROLES) == 18


def test_frameworks_dtypes_have_codes(words):
    assert set(abi.DTYPES.values()) <= set(words["dtypes"].values())
    assert abi.DTYPES["bfloat16"] == words["dtypes"]["bf16"]
