"""A native rule through the program: loaded where the configuration allows it, told like any other."""
import json

import pytest

from tests.e2e.test_python_rules import record
from tests.support.program import BUILD, run_cli

LIBRARIES = BUILD.resolve() / "tests/unit/rules"


@pytest.fixture(scope="module")
def recorded(tmp_path_factory):
    folder = tmp_path_factory.mktemp("native") / "run"
    record(folder, [(500.0 if step == 12 else 1.0, 1.0) for step in range(15)])
    return folder


def judge(tmp_path, recorded, item, plugins, expect):
    rules = tmp_path / "rules.yaml"
    rules.write_text(json.dumps({"plugins": plugins, "rules": [item]}))
    code, out, err = run_cli("evaluate", "--from", recorded, "--rules", rules, "--format", "json")
    assert code == expect, out + err
    return json.loads(out) if code < 2 else err


def test_the_example_over_a_recording(tmp_path, recorded):
    item = {"name": "jump", "type": "native", "library": str(LIBRARIES / "libnorm_jump.so"), "with": {"warm_up": 5}}
    answer = judge(tmp_path, recorded, item, {"native": True}, expect=1)
    [issue] = [one for one in answer["issues"] if one["status"] == "firing"]
    assert issue["rule"] == "jump" and issue["step"] == 12 and issue["labels"]["tensor"] == "gradient/fc.weight"
    assert "is 500 times its mean so far" in issue["annotations"]["summary"]


def test_without_leave_nothing_is_loaded(tmp_path, recorded):
    item = {"library": str(LIBRARIES / "libnorm_jump.so")}
    assert "plugins: {native: true}" in judge(tmp_path, recorded, item, {}, expect=3)


def test_a_library_of_another_version(tmp_path, recorded):
    item = {"library": str(LIBRARIES / "libnative_wrong_abi.so")}
    assert "version 2 of the ABI" in judge(tmp_path, recorded, item, {"native": True}, expect=3)
