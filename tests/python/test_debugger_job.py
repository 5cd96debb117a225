"""A job's description for Amazon SageMaker becomes a configuration that the program takes."""
import json
import os
import subprocess
import sys

import pytest

from tests.support.program import ROOT

from tocsin.debugger import read_job

# As the service's documentation has them: texts everywhere, a rule of the user's own by its file in S3.
JOB = {
    "TrainingJobName": "of no concern", "AlgorithmSpecification": {"TrainingImage": "x"},
    "DebugHookConfig": {"S3OutputPath": "s3://bucket/run", "HookParameters": {"save_interval": "100"},
                        "CollectionConfigurations": [{"CollectionName": "gradients", "CollectionParameters": {"save_interval": "50"}}]},
    "DebugRuleConfigurations": [
        {"RuleConfigurationName": "LossNotDecreasing", "RuleEvaluatorImage": "123.dkr.ecr/debugger-rules:latest", "InstanceType": "ml.t3.medium",
         "VolumeSizeInGB": 10, "RuleParameters": {"rule_to_invoke": "LossNotDecreasing", "diff_percent": "0.5", "num_steps": "20"}},
        {"RuleConfigurationName": "nan_stops", "RuleEvaluatorImage": "x", "RuleParameters": {
            "rule_to_invoke": "ExplodingTensor", "only_nan": "True",
            "action_json": '[{"name": "stoptraining", "training_job_prefix": "My-Job"}, {"name": "email", "endpoint": "ml@example.com"}]'}},
        {"RuleConfigurationName": "mine", "RuleEvaluatorImage": "x", "RuleParameters": {
            "source_s3_uri": "s3://bucket/rules/my_rules.py", "rule_to_invoke": "Big", "threshold": "20.5"}}],
    "ProfilerRuleConfigurations": [{"RuleConfigurationName": "ProfilerReport-1", "RuleEvaluatorImage": "x", "RuleParameters": {
        "rule_to_invoke": "ProfilerReport", "CPUBottleneck_cpu_threshold": "90"}}],
    "ProfilerConfig": {"ProfilingIntervalInMilliseconds": 1000, "S3OutputPath": "s3://x", "ProfilingParameters": {"DataloaderProfilingConfig": "{}"}},
    "TensorBoardOutputConfig": {"S3OutputPath": "s3://x"},
}
SOURCE = """
from tocsin.rules import Rule

class Big(Rule):
    def __init__(self, base_trial, threshold=1.0):
        super().__init__(base_trial)

    def invoke_at_step(self, step):
        return False
"""


def command(*arguments):
    return subprocess.run([sys.executable, "-m", "tocsin.debugger", *map(str, arguments)], text=True, capture_output=True, check=False, timeout=60,
                          env={**os.environ, "PYTHONPATH": str(ROOT / "python")})


def test_the_whole_document():
    with pytest.warns(RuntimeWarning) as said:
        made = read_job(JOB)
    assert made["rules"] == [
        {"use": "LossNotDecreasing", "name": "LossNotDecreasing", "with": {"diff_percent": 0.5, "num_steps": 20}},
        {"use": "ExplodingTensor", "name": "nan_stops", "with": {"only_nan": True}, "actions": ["stop_training", "email_ml_example_com"]},
        {"name": "mine", "type": "python", "source": "my_rules.py", "class": "Big", "with": {"threshold": 20.5}},
        {"use": "ProfilerReport", "name": "ProfilerReport-1", "with": {"CPUBottleneck_cpu_threshold": 90}}]
    assert made["receivers"] == {"stop_training": {"stop_training": {"armed": True}}, "email_ml_example_com": {"email": {"to": ["ml@example.com"]}}}
    assert made["collect"] == {"interval": "1000ms"}
    assert made["capture"]["every"] == "100 steps" and made["capture"]["collections"]["gradients"]["every"] == "50 steps"
    words = "\n".join(str(one.message) for one in said)
    for word in ("s3://bucket/rules/my_rules.py is not fetched", "training_job_prefix My-Job", "s3_output_path s3://bucket/run",
                 "ProfilingParameters", "TensorBoardOutputConfig"):
        assert word in words


def test_the_program_takes_what_the_command_prints(tmp_path):
    (tmp_path / "job.json").write_text(json.dumps(JOB))
    (tmp_path / "my_rules.py").write_text(SOURCE)
    done = command(tmp_path / "job.json")
    assert done.returncode == 0, done.stderr
    assert "warning: s3://bucket/rules/my_rules.py is not fetched: copy it to my_rules.py" in done.stderr
    text = done.stdout.replace('{"email": {"to": ["ml@example.com"]}}', '{"email": {"to": ["ml@example.com"], "from": "t@example.com", "host": "localhost", "port": 25}}')
    (tmp_path / "tocsin.yaml").write_text(f"transport: {{journal: {tmp_path / 'journal'}}}\nroute: {{receiver: stop_training}}\n" + text)
    checked = subprocess.run([os.environ["TOCSIN_BINARY"], "check", str(tmp_path / "tocsin.yaml")], capture_output=True, text=True, timeout=120, check=False)
    assert checked.returncode == 0, checked.stderr + checked.stdout + text


@pytest.mark.parametrize("rule, words", [
    ({"RuleParameter": {}}, ["unknown key RuleParameter of DebugRuleConfigurations[0]; did you mean RuleParameters?", "names no rule"]),
    ({"RuleConfigurationName": "a", "RuleParameters": {"action_json": "{stop"}}, ["is no JSON"]),
    ({"RuleConfigurationName": "a", "RuleParameters": {"action_json": "[3]"}}, ["something else than objects"]),
    (3, ["DebugRuleConfigurations[0] is no object"]),
])
def test_what_is_wrong_is_named(rule, words):
    with pytest.raises(ValueError) as raised:
        read_job({"DebugRuleConfigurations": [rule]})
    assert all(word in str(raised.value) for word in words), raised.value


def test_other_intervals_and_actions():
    with pytest.raises(ValueError, match="300 is none of 100, 200, 500"):
        read_job({"ProfilerConfig": {"ProfilingIntervalInMilliseconds": 300}})
    with pytest.warns(RuntimeWarning, match="action 'sms' has no counterpart"):
        made = read_job({"DebugRuleConfigurations": [{"RuleConfigurationName": "AllZero", "RuleParameters": {"action_json": '{"name": "sms"}'}}]})
    assert made == {"rules": [{"use": "AllZero", "name": "AllZero"}]}


def test_the_command_says_what_it_cannot_read(tmp_path):
    assert command().returncode == 2
    done = command(tmp_path / "nowhere.json")
    assert done.returncode == 1 and done.stderr.startswith("error: ") and "nowhere.json" in done.stderr
