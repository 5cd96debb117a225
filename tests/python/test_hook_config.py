"""The configuration of SageMaker Debugger, as scripts and jobs have it."""
import json

import numpy
import pytest

from tests.support.hook_support import Telemetry

import tocsin
from tocsin import CollectionConfig, DebuggerHookConfig, ReductionConfig, SaveConfig, SaveConfigMode, hook_config
from tocsin.modes import ModeKeys


def saved(out, name):
    """Steps at which a tensor was saved, by mode."""
    by_mode, telemetry = {}, Telemetry(out)
    for frame in telemetry.of_kind(1):
        for row in frame.rows:
            if telemetry.names[row["name"]] == name:
                by_mode.setdefault(frame.header["mode"], []).append(frame.header["step"])
    return by_mode


def run(out, steps=25, modes=("train",), names=("x",), **watch):
    hook = tocsin.watch(out=out, **watch)
    assert hook.enabled, hook.stats()
    for mode in modes:
        hook.set_mode(mode)
        for _ in range(steps):
            for name in names:
                hook.save_tensor(name, numpy.ones(3), collection=None)
            hook.step()
    hook.close()
    return hook


def config(hook_parameters=None, **collections):
    return DebuggerHookConfig(hook_parameters=hook_parameters,
                              collection_configs=[CollectionConfig(name, body) for name, body in collections.items()])


# The examples of the specification, and its order of precedence: collection and mode, collection, hook and mode, hook.
@pytest.mark.parametrize("hook_level, collection, train, evaluation", [
    ({}, {"save_interval": "10", "end_step": "20"}, [0, 10], [0, 10]),
    ({}, {"save_interval": "10", "end_step": "21"}, [0, 10, 20], [0, 10, 20]),
    ({}, {"save_steps": "3, 7"}, [0, 3, 7], [0, 3, 7]),
    ({}, {"save_steps": "0", "end_step": "0"}, [0], [0]),
    ({}, {"save_interval": 10, "start_step": "15"}, [20], [20]),
    ({"save_interval": "12"}, {}, [0, 12, 24], [0, 12, 24]),
    ({"save_interval": "12", "eval.save_interval": "20"}, {}, [0, 12, 24], [0, 20]),
    ({"eval.save_interval": "20"}, {"save_interval": "12"}, [0, 12, 24], [0, 12, 24]),
    ({"eval.save_interval": "20"}, {"save_interval": "12", "eval.save_interval": "24"}, [0, 12, 24], [0, 24]),
    ({"train.end_step": "5", "save_interval": "4"}, {}, [0, 4], [0, 4, 8, 12, 16, 20, 24]),
])
def test_saving_follows_the_originals_rule(out, hook_level, collection, train, evaluation):
    given = config(hook_level, mine={"include_regex": "^x", **collection})
    run(out, modes=("train", "eval"), capture=given)
    assert saved(out, "x") == {1: train, 2: evaluation}


def test_the_default_interval_is_the_originals(out):
    assert hook_config.read(config(mine={"include_regex": "x"})).capture["every"] == "500 steps"
    assert hook_config.read(config(mine={"include_regex": "x"}), xgboost=True).capture["every"] == "10 steps"


JOB = {"LocalPath": "PLACE", "S3OutputPath": "s3://bucket/run",
       "HookParameters": {"save_interval": "5", "include_workers": "all", "include_regex": "^y,^z{1,3}$"},
       "CollectionConfigurations": [
           {"CollectionName": "mine", "CollectionParameters": {"include_regex": ["^x{1,2}$"], "reductions": "mean,abs_max,median,l2_norm,abs_min,abs_median,abs_prod"}},
           {"CollectionName": "weights"}, {"relu_output": {"CollectionParameters": {"save_interval": "2"}}}]}


def test_a_jobs_json_file_is_read_where_the_original_looks_for_it(tmp_path, monkeypatch):
    place = str(tmp_path / "out")
    file = tmp_path / "debughookconfig.json"
    file.write_text(json.dumps(JOB).replace("PLACE", place))
    for variable in ("TOCSIN_OUT", "TOCSIN_BROKERS", "TOCSIN_CONFIG"):
        monkeypatch.delenv(variable, raising=False)
    monkeypatch.setenv("SMDEBUG_CONFIG_FILE_PATH", str(file))
    with pytest.warns(RuntimeWarning, match="s3_output_path s3://bucket/run"):
        hook = run(None, 6, names=("x", "y", "relu1_relu_output", "other"))
    assert hook.stats()["workers"] == "all" and hook.stats()["out"] == place
    assert saved(place, "x") == saved(place, "y") == {1: [0, 5]}
    assert saved(place, "relu1_relu_output") == {1: [0, 2, 4]} and saved(place, "other") == {}
    (x,) = [row for name, row in Telemetry(place).summaries().items() if name == "x"]
    assert x["extra"] == {1: 1.0, 17: 1.0, 18: 1.0, 19: 1.0}  # median, abs_min, abs_median, abs_prod; the others follow from the columns


def test_a_configuration_of_tocsin_stands_before_the_file(tmp_path, out, monkeypatch):
    monkeypatch.setenv("SMDEBUG_CONFIG_FILE_PATH", str(tmp_path / "nowhere.json"))
    (tmp_path / "tocsin.yaml").write_text("capture: {every: 3 steps, collections: {mine: {include: [x]}}}")
    with pytest.warns(RuntimeWarning, match="SMDEBUG_CONFIG_FILE_PATH .* is not read"):
        run(out, 5, config=str(tmp_path / "tocsin.yaml"))
    assert saved(out, "x") == {1: [0, 3]}


def test_a_file_that_is_not_there_is_said(tmp_path, monkeypatch):
    monkeypatch.setenv("SMDEBUG_CONFIG_FILE_PATH", str(tmp_path / "nowhere.json"))
    with pytest.warns(RuntimeWarning, match="nowhere.json"):
        assert not tocsin.watch(out=str(tmp_path)).enabled


def test_classes_of_the_library(out):
    save = SaveConfig({ModeKeys.TRAIN: SaveConfigMode(save_interval=4, end_step=9), ModeKeys.EVAL: SaveConfigMode(5, save_steps=[1])})
    assert [step for step in range(12) if save.should_save_step(ModeKeys.TRAIN, step)] == [0, 4, 8]
    assert save.should_save_step(ModeKeys.PREDICT, 500) and not SaveConfig(3).should_save_step(ModeKeys.TRAIN, 4)
    given = DebuggerHookConfig(hook_parameters={**save.parameters(), **ReductionConfig(["mean"], norms=["l2"], save_shape=True).parameters()},
                               collection_configs=[CollectionConfig("mine", collection_parameters={"include_regex": "x"})])
    run(out, 12, modes=("train", "eval"), capture=given)
    assert saved(out, "x") == {1: [0, 4, 8], 2: [0, 1, 5, 10]}


def test_short_forms(out):
    assert hook_config.read(SaveConfig(7)).capture["every"] == "7 steps"
    assert set(hook_config.read([CollectionConfig("weights")]).capture["collections"]) == {"weights", "losses"}
    assert hook_config.read({"DebugHookConfig": {"CollectionConfigurations": [{"CollectionName": "biases"}]},
                             "TrainingJobName": "of no concern"}).capture["collections"].keys() == {"biases", "losses"}
    assert hook_config.read({"every": "3 steps"}).capture == {"every": "3 steps"}
    assert tocsin.DebugHookConfig is DebuggerHookConfig


def test_seconds_between_saves(out):
    body = hook_config.read(config(mine={"include_regex": "x", "save_seconds": "30", "eval.save_interval": "2"})).capture["collections"]["mine"]
    assert body["every"] == "30s" and body["eval"] == {"every": "2 steps"}
    run(out, 5, capture=config(mine={"include_regex": "x", "save_seconds": "3600"}))
    assert saved(out, "x") == {1: [0]}


def test_a_raised_histogram_and_every_tensor(out):
    run(out, 1, names=("x", "anything"), capture=config({"save_all": "True"}, mine={"include_regex": "x", "save_histogram": "true"}))
    assert saved(out, "anything") == {1: [0]}
    assert any(tag == 3 for frame in Telemetry(out).of_kind(1) for tag, _ in frame.extensions)


@pytest.mark.parametrize("given, words", [
    (config({"save_intervall": "5"}), "unknown parameter save_intervall of hook; did you mean save_interval?"),
    (config(mine={"include_regexp": "x"}), "unknown parameter include_regexp of mine; did you mean include_regex?"),
    (config(mine={"trian.save_interval": "5"}), "did you mean train.save_interval?"),
    (config(mine={"reductions": "mean,l2norm"}), "no reduction: l2norm; did you mean l2_norm?"),
    (config(mine={"save_interval": "0"}), "less than 1"), (config(mine={"save_steps": "1,b"}), "no whole number"),
    (config({"include_workers": "some"}), "none of one, all, auto"), (config({"save_all": "maybe"}), "neither true nor false"),
    ({"HookParameter": {}, "LocalPath": "x"}, "unknown key HookParameter; did you mean HookParameters?"),
    ({"CollectionConfigurations": [3]}, "not a collection: 3"), (config(mine={"include_regex": "("}), "pattern"),
])
def test_what_is_wrong_is_refused_with_the_nearest_name(out, given, words):
    with pytest.warns(RuntimeWarning) as said:
        assert not tocsin.watch(out=out, capture=given).enabled
    assert any(words in str(one.message) for one in said), [str(one.message) for one in said]


@pytest.mark.parametrize("given, words", [
    (config({"export_tensorboard": "true"}), "export_tensorboard is not honoured"),
    (config(predictions={"include_regex": "500"}), "was save_interval meant?"), (config(tree={}), "did you mean trees?"),
    (config(sm_metrics={}), "collection sm_metrics is not captured"),
    ({"DebugHookConfig": {"LocalPath": "x"}, "DebugRuleConfigurations": [{}]}, "DebugRuleConfigurations is not read by the hook: rules are"),
])
def test_what_has_no_meaning_here_is_a_warning(out, given, words):
    with pytest.warns(RuntimeWarning) as said:
        hook = tocsin.watch(out=out, capture=given)
    assert hook.enabled and any(words in str(one.message) for one in said), [str(one.message) for one in said]


def test_sections_of_our_own_are_warned_of_too(out):
    with pytest.warns(RuntimeWarning, match="did you mean weights"):
        tocsin.watch(out=out, capture={"collections": {"weigths": {}}})
