"""Profiles of Python functions: taken by the hook around a part of the loop, sent, and found by step, time, mode and part of the job."""
import contextlib
import sys
import time
import types

import pytest

import tocsin
from tocsin.analysis import NoProfilerData, PyinstrumentAnalysis, PythonProfileAnalysis, cProfileAnalysis, create_trial
from tocsin.smdebug.profiler.analysis.python_profile_analysis import cProfileAnalysis as by_the_original


def inner(times):
    return sum(range(10)) + times


def outer(times):
    for _ in range(times):
        inner(times)


@pytest.fixture(scope="module")
def trained(tmp_path_factory):
    """(directory, times of the end of each part): 3 calls before the loop, step+1 calls in steps 2 and 3, 7 in an evaluation, 5 behind the loop."""
    out = str(tmp_path_factory.mktemp("profiles") / "run1")
    hook = tocsin.watch(out=out, run="r", job="profiled")
    with hook.python_profile():
        outer(3)
    for step in range(5):
        with hook.python_profile(phase="update") if step in (2, 3) else contextlib.nullcontext():
            outer(step + 1)
            hook.log(loss=1.0)
            hook.step()
    middle = time.time()
    with hook.mode("eval"), hook.python_profile():
        outer(7)
        hook.step()
    with hook.python_profile():
        outer(5)
    assert not hook.stats()["hook_errors_total"]
    hook.close()
    return out, middle


def calls(stats, name="inner"):
    return {one.name: one.calls for one in stats.function_stats_list if one.file == __file__}.get(name)


def test_each_is_listed(trained):
    rows = list(cProfileAnalysis(trained[0]).list_profile_stats())
    assert [(row["start_mode"], row["start_step"], row["end_step"], row["phase"]) for row in rows] == \
        [("train", 0, 0, ""), ("train", 2, 3, "update"), ("train", 3, 4, "update"), ("eval", 0, 1, ""), ("train", 5, 5, "")]
    assert cProfileAnalysis(trained[0]).list_available_node_ids() == ["worker_0"] and {row["profiler"] for row in rows} == {"cprofile"}


def test_by_step(trained):
    analysis = cProfileAnalysis(create_trial(trained[0]))
    assert calls(analysis.fetch_profile_stats_by_step(2)) == 3 and calls(analysis.fetch_profile_stats_by_step(3)) == 4
    both = analysis.fetch_profile_stats_by_step(2, 4, phase="update")
    assert calls(both) == 7 and calls(both, "outer") == 2
    (told,) = (one for one in both.function_stats_list if one.name == "inner" and one.file == __file__)
    assert told.primitive_calls == 7 and 0 < told.own <= told.cumulative and told.function_name == f"{__file__}:{told.line}(inner)"
    assert [(name, count) for _, _, name, count in told.callers] == [("outer", 7)]
    assert calls(analysis.fetch_profile_stats_by_step(0, 1, mode="eval")) == 7
    with pytest.raises(NoProfilerData, match=r"between the steps 8 and 9 of train: `with hook.python_profile\(\"cprofile\"\):`"):
        analysis.fetch_profile_stats_by_step(8)


def test_by_time_mode_and_part_of_the_job(trained):
    out, middle = trained
    analysis = cProfileAnalysis(out)
    assert calls(analysis.fetch_profile_stats_by_time(0, middle)) == 3 + 3 + 4
    assert calls(analysis.fetch_profile_stats_by_time(middle, time.time())) == 7 + 5
    assert calls(analysis.fetch_profile_stats_between_modes("eval", "eval")) == 7 and calls(analysis.fetch_pre_step_zero_profile_stats()) == 3
    assert {key: calls(stats) for key, stats in analysis.fetch_profile_stats_by_training_phase().items()} == \
        {("eval", "eval"): 7, ("train", "train"): 3 + 3 + 4 + 5}
    assert {part: calls(stats) for part, stats in analysis.fetch_profile_stats_by_job_phase().items()} == \
        {"initialization": 3, "training_loop": 3 + 4 + 7, "finalization": 5}
    with pytest.raises(NoProfilerData, match=r"profile before hook.close\(\)"):
        analysis.fetch_post_hook_close_profile_stats()
    with pytest.raises(NoProfilerData):
        analysis.fetch_profile_stats_by_step(2, node_id="worker_9")


def test_the_functions_with_most_calls_are_printed(trained, capsys):
    stats = by_the_original(trained[0]).fetch_profile_stats_by_step(2, 4)
    assert stats.top("ncalls", 1)[0].calls >= 7 and stats.top("cumtime", 1)[0].cumulative == max(one.cumulative for one in stats.function_stats_list)
    stats.print_top_n_functions("calls", 3)
    lines = capsys.readouterr().out.splitlines()
    assert len(lines) == 4 and lines[0].split() == ["calls", "primitive", "own", "s", "cumulative", "s", "function"]
    with pytest.raises(ValueError, match="expected one of own"):
        stats.top("speed")


def test_a_run_without_any_says_how_they_are_captured(tmp_path):
    hook = tocsin.watch(out=str(tmp_path), run="r", job="j")
    hook.step()
    hook.close()
    with pytest.raises(NoProfilerData, match=r"with hook.python_profile\(\"pyinstrument\"\):"):
        PyinstrumentAnalysis(str(tmp_path)).fetch_profile_stats_by_step(0)
    assert len(PythonProfileAnalysis(str(tmp_path)).list_profile_stats()) == 0


def test_samples_of_pyinstrument(tmp_path, monkeypatch):
    """Over a stand-in of its public interface: pyinstrument is no Debian package that the tests need."""
    session = {"duration": 2.0, "root_frame": {"function": "<module>", "file_path_short": "train.py", "line_no": 1, "time": 2.0, "children": [
        {"function": "fast", "file_path_short": "a.py", "line_no": 2, "time": 0.001, "children": []},
        {"function": "slow", "file_path_short": "b.py", "line_no": 3, "time": 1.5, "children": []}]}}
    package, renderers = types.ModuleType("pyinstrument"), types.ModuleType("pyinstrument.renderers")
    package.Profiler = lambda interval: types.SimpleNamespace(start=lambda: None, stop=lambda: {"interval": interval})
    renderers.JSONRenderer = lambda: types.SimpleNamespace(render=lambda given: __import__("json").dumps({**session, **given}))
    monkeypatch.setitem(sys.modules, "pyinstrument", package)
    monkeypatch.setitem(sys.modules, "pyinstrument.renderers", renderers)
    hook = tocsin.watch(out=str(tmp_path), run="r", job="j")
    with hook.python_profile("pyinstrument"):
        hook.step()
    hook.close()
    (stats,) = PyinstrumentAnalysis(str(tmp_path)).fetch_profile_stats_by_step(0)
    assert stats.json_stats["interval"] == 0.001
    assert stats.tree().splitlines() == ["2.000 s 100 % <module> (train.py:1)", "  1.500 s 75 % slow (b.py:3)"]


def test_a_profile_that_cannot_be_made_leaves_the_loop_alone(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "pyinstrument", None)
    hook = tocsin.watch(out=str(tmp_path), run="r", job="j")
    for given in (("pyinstrument",), ("cprofil",), ("cprofile", "wall")):
        with hook.python_profile(*given):
            inner(1)
    with hook.python_profile(), hook.python_profile():  # Python has one at a time, or several as of 3.12
        inner(1)
    with pytest.raises(KeyError), hook.python_profile():
        raise KeyError("the script's own")
    assert hook.stats()["hook_errors_total"]["python_profile"] >= 3
    hook.close()
    monkeypatch.setenv("TOCSIN_DISABLED", "1")
    off = tocsin.Hook()
    with off.python_profile():
        inner(1)
    assert not off.enabled and not off.errors.counts


def test_a_fault_before_the_block_leaves_the_loop_alone(tmp_path, monkeypatch):
    hook = tocsin.watch(out=str(tmp_path / "run1"), run="r", job="profiled")

    def broken():
        raise RuntimeError("no counters")
    monkeypatch.setattr(hook, "_moment", broken)
    done = []
    with hook.python_profile():
        done.append(inner(1))
    monkeypatch.undo()
    assert done and hook.stats()["hook_errors_total"]["python_profile"] == 1
    hook.close()
