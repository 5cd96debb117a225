"""Rule objects of a script for Amazon SageMaker Debugger: what they say is a configuration that the program takes."""
import datetime
import json
import os
import sqlite3
import subprocess

import pytest

from tests.support import journal
from tocsin.debugger import CollectionConfig, ProfilerRule, Rule, configuration, rule_configs, rule_job_summary, to_yaml, write

SOURCE = '''
from tocsin.rules import Rule

class Big(Rule):
    def __init__(self, base_trial, threshold=1.0):
        super().__init__(base_trial)
        self.threshold = threshold

    def invoke_at_step(self, step):
        return False

class Other(Rule):
    def invoke_at_step(self, step):
        return False
'''


def program():
    return os.environ["TOCSIN_BINARY"]


def check(path):
    return subprocess.run([program(), "check", str(path)], capture_output=True, text=True, timeout=120)


def test_what_they_say_the_program_takes(tmp_path):
    (tmp_path / "my_rules.py").write_text(SOURCE)
    rules = [
        Rule.sagemaker(rule_configs.vanishing_gradient(), rule_parameters={"threshold": "1e-8", "base_trial": "s3://x"}),
        Rule.sagemaker(rule_configs.exploding_tensor(), name="nan_only", actions=rule_configs.ActionList(
            rule_configs.StopTraining(), rule_configs.Webhook("https://example.com/x")),
            rule_parameters={"only_nan": "True", "collection_names": "weights, losses"}),
        ProfilerRule.sagemaker(rule_configs.ProfilerReport(), rule_parameters={"CPUBottleneck_cpu_threshold": "90"}),
        Rule.custom("mine", image_uri="1234.dkr/eval:latest", instance_type="ml.t3.medium", volume_size_in_gb=10,
                    source="my_rules.py", rule_to_invoke="Big", rule_parameters={"threshold": "20.5"},
                    collections_to_save=[CollectionConfig("gradients", {"save_interval": "50"})]),
    ]
    path = tmp_path / "tocsin.yaml"
    write(path, rules, transport={"journal": str(tmp_path / "journal")}, route={"receiver": "stop_training"})
    done = check(path)
    assert done.returncode == 0, done.stderr + path.read_text()
    assert "warning" not in done.stderr + done.stdout, done.stderr  # the rule in Python was started once


def test_a_wrong_one_is_named_by_the_program(tmp_path):
    path = tmp_path / "tocsin.yaml"
    write(path, [Rule.sagemaker(rule_configs.vanishing_gradientt())], transport={"journal": str(tmp_path / "journal")})
    done = check(path)
    assert done.returncode == 3 and "did you mean vanishing_gradient" in done.stderr + done.stdout


def test_texts_are_what_they_spell():
    item = Rule.sagemaker(rule_configs.all_zero(), rule_parameters={
        "threshold": "95.5", "start_step": "7", "tensor_regex": "a.*,b", "equal": "false", "name": "x"}).item
    assert item["with"] == {"threshold": 95.5, "start_step": 7, "tensor_regex": ["a.*", "b"], "equal": False, "name": "x"}


def test_collections_are_a_capture():
    rules = [Rule.sagemaker(rule_configs.overfit(), collections_to_save=[
        CollectionConfig("losses", {"train.save_interval": "10", "eval.save_interval": 1}),
        CollectionConfig("relu", {"include_regex": "relu.*,tanh", "save_steps": "0,5", "reductions": "mean,median,abs_max,abs_median"})])]
    assert configuration(rules)["capture"] == {"collections": {
        "losses": {"every": "10 steps", "eval": {"every": "1 steps"}, "predict": {"every": "500 steps"}, "global": {"every": "500 steps"}},
        "relu": {"include": ["relu.*", "tanh"], "steps": [0, 5], "statistics": ["median", "abs_median"]}}}
    again = Rule.sagemaker(rule_configs.overtraining(), collections_to_save=[CollectionConfig("losses")])
    with pytest.raises(ValueError, match="losses saved in different ways"):
        configuration([*rules, again])


def test_actions_are_receivers():
    stop = rule_configs.StopTraining()
    rules = [Rule.sagemaker(rule_configs.stalled_training_rule(), name="mail_first", rule_parameters={"threshold": "60"},
                            actions=rule_configs.Email("ml@example.com")),
             Rule.sagemaker(rule_configs.stalled_training_rule(), name="then_stop", rule_parameters={"threshold": "120"},
                            actions=rule_configs.ActionList(stop, "oncall"))]
    made = configuration(rules, receivers={"oncall": {"webhook": {"url": "https://example.com"}}})
    assert [item["actions"] for item in made["rules"]] == [["email_ml_example_com"], ["stop_training", "oncall"]]
    assert made["receivers"]["stop_training"] == {"stop_training": {"armed": True}}
    assert set(made["receivers"]) == {"email_ml_example_com", "stop_training", "oncall"}


@pytest.mark.parametrize("make, word", [
    (lambda: CollectionConfig("x", {"save_intervall": 3}), "did you mean save_interval"),
    (lambda: CollectionConfig("x", {"warmup.save_interval": 3}), "unknown parameter warmup.save_interval of x"),
    (lambda: CollectionConfig("x", {"reductions": "men"}), "no reduction: men"),
    (lambda: Rule.custom("mine"), "source is the file"),
    (lambda: configuration([Rule.sagemaker(rule_configs.overfit())] * 2), "two rules are called overfit"),
    (lambda: rule_configs.StopTraining(training_job_prefix="x"), "stops its own run"),
    (lambda: Rule.sagemaker(rule_configs.similar_across_runs(), other_trials_s3_input_paths=["s3://x"]), "not read from S3"),
])
def test_what_has_no_counterpart_is_said(make, word):
    with pytest.raises(ValueError, match=word):
        make()


def test_unknown_arguments_and_text_messages_are_refused():
    with pytest.raises(TypeError, match="no argument 'sauce'"):
        Rule.custom("mine", sauce="x")
    with pytest.raises(NotImplementedError, match="Webhook"):
        rule_configs.SMS("+1234")


def test_arguments_as_a_script_for_the_service_gives_them(tmp_path):
    """Each may be left out by None, and what only the service needs is taken of built-in rules, too."""
    rules = [Rule.sagemaker(base_config=rule_configs.overfit(), name=None, container_local_output_path=None, s3_output_path="s3://x",
                            other_trials_s3_input_paths=None, rule_parameters=None, collections_to_save=None, actions=None),
             ProfilerRule.sagemaker(base_config=rule_configs.CPUBottleneck(threshold=60), name="cpu", instance_type="ml.t3.medium",
                                    volume_size_in_gb=10)]
    assert [rule.item for rule in rules] == [{"use": "overfit"}, {"use": "CPUBottleneck", "name": "cpu", "with": {"threshold": 60}}]
    assert Rule.custom("mine", source="x.py", collections_to_save=None, other_trials=None).item["name"] == "mine"
    path = tmp_path / "tocsin.yaml"
    write(path, rules, transport={"journal": str(tmp_path / "journal")}, route={"receiver": "x"}, receivers={"x": {"webhook": {"url": "https://example.com"}}})
    assert check(path).returncode == 0


def test_a_stop_that_a_parameter_asks_for_has_its_receiver(tmp_path):
    """`stop_training_on_fire` is translated into the stop action, which is a receiver."""
    stalled = Rule.sagemaker(rule_configs.stalled_training_rule(), rule_parameters={
        "threshold": "60", "stop_training_on_fire": "True", "training_job_name_prefix": "digits"})
    assert configuration([stalled])["receivers"] == {"stop": {"stop_training": {"armed": True}}}
    assert configuration([stalled], receivers={"stop": {"stop_training": {"armed": False}}})["receivers"] == {
        "stop": {"stop_training": {"armed": False}}}
    path = tmp_path / "tocsin.yaml"
    write(path, [stalled], transport={"journal": str(tmp_path / "journal")}, route={"receiver": "stop"})
    done = check(path)
    assert done.returncode == 0, done.stderr + path.read_text()


def test_how_rules_stand_is_told_as_an_estimator_does(tmp_path):
    def rule(uid, name, status, **more):
        return "dev.tocsin.rule.v1", {"rule": name, "status": status, "run": {"uid": uid, "attempt": 1}, **more}

    records = [
        rule("aaa1", "overfit", "InProgress"),
        rule("bbb2", "overfit", "NoData", reason="no input arrived", missing=["collection losses"]),
        rule("bbb2", "exploding_tensor", "InProgress"),
        ("dev.tocsin.issue.v1", {"rule": "exploding_tensor", "status": "firing", "run": {"uid": "bbb2"}, "annotations": {"summary": "w has NaN."}}),
        ("dev.tocsin.job.v1", {"phase": "ended"}),
        rule("bbb2", "exploding_tensor", "IssuesFound")]
    with sqlite3.connect(tmp_path / "control.db") as database:
        database.execute("CREATE TABLE issues(id INTEGER PRIMARY KEY, ts INTEGER, key BLOB, value BLOB, headers BLOB)")
        for number, (kind, data) in enumerate(records):
            database.execute("INSERT INTO issues VALUES(?, ?, ?, ?, ?)", (
                number, (1_767_323_045 + number) * 10**9, b"", json.dumps(data).encode(), journal.pack_headers([("ce_type", kind.encode())])))
    assert rule_job_summary(str(tmp_path)) == [
        {"RuleConfigurationName": "overfit", "RuleEvaluationJobArn": "bbb2/overfit", "RuleEvaluationStatus": "NoData",
         "StatusDetails": "no input arrived; missing: collection losses",
         "LastModifiedTime": datetime.datetime(2026, 1, 2, 3, 4, 6, tzinfo=datetime.timezone.utc)},
        {"RuleConfigurationName": "exploding_tensor", "RuleEvaluationJobArn": "bbb2/exploding_tensor", "RuleEvaluationStatus": "IssuesFound",
         "StatusDetails": "w has NaN.", "LastModifiedTime": datetime.datetime(2026, 1, 2, 3, 4, 10, tzinfo=datetime.timezone.utc)}]
    assert [one["RuleEvaluationStatus"] for one in rule_job_summary(str(tmp_path), "aaa")] == ["InProgress"]
    assert rule_job_summary(str(tmp_path), "ccc") == []
    with pytest.raises(ValueError, match="no journal of tocsin"):
        rule_job_summary(str(tmp_path / "none"))


def test_one_line_per_rule():
    text = to_yaml([Rule.sagemaker(rule_configs.overfit()), Rule.sagemaker(rule_configs.all_zero())], cluster="lab")
    assert text.splitlines() == ["rules:", '  - {"use": "overfit"}', '  - {"use": "all_zero"}', 'cluster: "lab"']
