"""What is too long, or no text, is cut so that it shows, with one warning; the hook is on."""
import re
import subprocess
import sys
import warnings

import numpy
import pytest

from tests.support.hook_support import PACKAGE, ROOT, Telemetry, wire

import tocsin
from tocsin.library.texts import NAME_BYTES

MARK = re.compile("…#[0-9a-f]{8}$")


def watched(out, **watch):
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        hook = tocsin.watch(out=out, **watch)
        assert hook.enabled, hook.stats()
    return hook, [str(one.message) for one in said]


def started(out):
    return Telemetry(out).lifecycles("start")[0]


def test_the_limit_of_names_is_the_librarys():
    header = (ROOT / "core" / "limits.h").read_text()
    assert f"kNameBytes = {NAME_BYTES};" in header


@pytest.mark.parametrize("labels, changed", [
    ({"big": "x" * 5000}, "1 names or values"), ({"": "x"}, "1 names or values"), ({"a\\0b": "x"}, None), ({"a\0b": "x"}, "1 names or values"),
    ({"n" * 300: "x"}, "1 names or values"), ({f"l{i}": "x" for i in range(300)}, "labels are left out"), ({"team": "ok"}, None)])
def test_labels_beyond_the_limits_are_cut_with_one_warning(out, labels, changed):
    hook, said = watched(out, labels=labels)
    hook.close()
    assert len(said) == (0 if changed is None else 1) and all(changed in one for one in said), said
    kept = started(out)["labels"]
    assert 0 < len(kept) <= 40 and all(0 < len(name.encode()) <= 256 and "\0" not in name and len(value.encode()) <= 4096 for name, value in kept.items())
    if changed is None:
        assert kept == labels
    if len(labels) == 300:
        assert kept["labels_left_out"] == "261"


def test_a_long_job_is_cut_and_stays_the_same_run(out):
    job = "j" * 10_000
    hook, said = watched(out, job=job, run="r")
    assert len(said) == 1 and "job" in said[0] and len(hook.job.encode()) == 512 and MARK.search(hook.job)
    assert hook.run == str(wire.run_uid(job, "r")), "the uid is that of the whole name"
    assert tocsin.watch(job=job, run="r") is hook, "watched again it is the same"
    hook.close()
    assert started(out)["job"] == hook.job


def test_names_are_cut_with_a_mark_one_warning_and_a_count(out):
    hook, _ = watched(out)
    names = ["m" * 5000, "m" * 5001, "", "a\0b", "a\nb", "\ud800x"]
    with pytest.warns(RuntimeWarning, match="too long, or no text") as said:
        hook.log({name: 1.0 for name in names})
        hook.save_tensor("t" * 5000, numpy.ones(2), collection="c" * 5000)
        with hook.span("s" * 5000):
            pass
        hook.step()
    assert len(said) == 1
    hook.close()
    stats = hook.stats()
    assert stats["cut_names_total"] >= 8 and stats["hook_errors_total"] == {}
    kept = [entry["name"] for entry in Telemetry(out).entries.values()]
    assert all(0 < len(name.encode()) <= NAME_BYTES and "\0" not in name for name in kept)
    assert sum(bool(MARK.search(name)) for name in kept if name.startswith("m")) == 2, "two that begin alike stay two"
    assert "(no name)" in kept


@pytest.mark.parametrize("labels", [["a", "b"], 7, "team", [("a", "b")]])
def test_what_cannot_be_labels_is_one_warning_and_the_hook_is_on(out, labels):
    hook, said = watched(out, labels=labels)
    hook.close()
    if labels == [("a", "b")]:
        assert said == [] and started(out)["labels"] == {"a": "b"}
    else:
        assert len(said) == 1 and "labels=" in said[0]


def test_a_script_whose_name_is_no_text_is_watched(tmp_path):
    script = bytes(tmp_path) + b"/tr\xffain.py"
    with open(script, "w", encoding="ascii") as file:
        file.write("import tocsin\nhook = tocsin.watch(out='data', labels={'path': __file__})\nassert hook.enabled, hook.stats()\n"
                   "hook.log(loss=1)\nhook.step()\nhook.close()\n")
    result = subprocess.run([sys.executable, script], cwd=tmp_path, env={"PYTHONPATH": PACKAGE, "TOCSIN_LIBRARY": _library()},
                            capture_output=True, timeout=60)
    assert result.returncode == 0, result.stderr
    assert started(tmp_path / "data")["job"] == "tr\ufffdain"


def _library():
    from tests.support.hook_support import library
    return library()
