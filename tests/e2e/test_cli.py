"""The command line as a person meets it: help, errors with their place, exit codes."""
import json
import re

import jsonschema
import pytest
import yaml

from tests.support.program import ROOT, run_cli

GOOD = ("transport: {journal: ./data}\nrules: [exploding_tensor]\n"
        "route: {receiver: board}\nreceivers: {board: {publish_metric: {}}}\n")


def check(tmp_path, text, *flags, env=None):
    path = tmp_path / "t.yaml"
    path.write_text(text)
    code, out, err = run_cli("check", path, *flags, env=env)
    return code, out.replace(str(tmp_path) + "/", ""), err


def test_help_names_every_command_and_the_exit_codes():
    code, out, _ = run_cli("--help")
    assert code == 0
    for word in ("up", "collect", "evaluate", "route", "check", "topics", "schema", "version", "77"):
        assert word in out


def test_version_is_printed():
    code, out, _ = run_cli("version")
    assert code == 0 and out.startswith("tocsin ")


def test_an_unknown_command_is_a_usage_error():
    code, _, err = run_cli("upp")
    assert code == 2 and "upp" in err


def test_a_good_file_is_ok(tmp_path):
    code, out, _ = check(tmp_path, GOOD)
    assert code == 0, out
    assert out == "t.yaml: ok\n"


@pytest.mark.parametrize("text, where, words", [
    ("rulez: []\n", "t.yaml:1:1", 'unknown key "rulez"; did you mean "rules"?'),
    ("rules: [explodng_tensor]\n", "t.yaml:1:9", 'exploding_tensor'),
    ("rules:\n  - use: vanishing_gradient\n    with: {treshold: 1}\n", "t.yaml:3:12", 'did you mean "threshold"?'),
    ("rules:\n  - use: vanishing_gradient\n    with: {threshold: small}\n", "t.yaml:3:23", "expected a number"),
    ("rules:\n  - use: vanishing_gradient\n    with: {threshold: -1}\n", "t.yaml:3:23", "> 0"),
    ("log: {level: loud}\n", "t.yaml:1:14", "one of debug, info, warn, error"),
    ("cluster: a\ncluster: b\n", "t.yaml:2:1", "duplicate key"),
    ("route: {receiver: sombody}\nreceivers: {somebody: {publish_metric: {}}}\n", "t.yaml:1:", "somebody"),
    ("receivers: {a: {webhok: {url: 'http://x'}}}\n", "t.yaml:1:", "webhook"),
    ("rules:\n  - {use: exploding_tensor, actions: [stp]}\nreceivers: {stop: {stop_training: {}}}\n", "t.yaml:", "stop"),
    ("route:\n  receiver: a\n  routes: [{matchers: ['severity=~\"(\"']}]\nreceivers: {a: {publish_metric: {}}}\n", "t.yaml:3:", ""),
    ("transport: {kafka: {bootstrap.servers: x, no.such.property: 1}}\n", "t.yaml:1:", "no.such.property"),
    ("transport: {kafka: {bootstrap.servers: x}, journal: d}\n", "t.yaml:1:", "exactly one of"),
    ("a: [1, 2\n", "t.yaml:", "not valid YAML"),
    ("rules:\n  - {use: exploding_tensor, actions: [page, stp]}\nreceivers: {page: {mqtt: {host: h}}, stop: {stop_training: {}}}\n",
     "t.yaml:2:45", 'did you mean "stop"?'),
    ("route:\n  receiver: a\n  routes:\n    - matchers: ['job=a', 'job=b\"']\nreceivers: {a: {publish_metric: {}}}\n", "t.yaml:4:27", "character"),
    ("transport:\n  kafka:\n    bootstrap.server: x\n", "t.yaml:3:23", 'did you mean "bootstrap.servers"?'),
    ("rules:\n  - use:\n\nlog: {}\n", "t.yaml:2:5", "use must be the name of a rule"),
    ("include: nowhere.yaml\n", "t.yaml:1:10", "no file matches"),
])
def test_each_error_names_place_and_remedy(tmp_path, text, where, words):
    code, out, _ = check(tmp_path, text)
    assert code == 3, out
    assert any(line.startswith(where) and words in line for line in out.splitlines()), out


def test_all_errors_come_in_one_go(tmp_path):
    code, out, _ = check(tmp_path, "rulez: []\nlog: {level: loud}\nhttp: {lisen: x}\n")
    assert code == 3
    errors = [line for line in out.splitlines() if ": error: " in line]
    assert [line.split(":")[1] for line in errors] == ["1", "2", "3"]


def test_errors_as_json_for_editors(tmp_path):
    code, out, _ = check(tmp_path, "rulez: []\n", "--format", "json")
    assert code == 3
    assert [item for item in json.loads(out) if item["grade"] == "error"][0]["line"] == 1


SILENT = ("rules: [exploding_tensor]\nroute: {receiver: board, routes: [{matchers: 'sevrity=\"error\"'}]}\n"
          "receivers: {board: {publish_metric: {}}}\n")


def test_a_silent_alarm_is_a_warning_that_strict_refuses(tmp_path):
    code, out, _ = check(tmp_path, SILENT)
    assert code == 0
    assert out.startswith('t.yaml:2:46: warning: no rule gives its issues a label "sevrity"; did you mean "severity"?')
    assert out.endswith("t.yaml: ok, 1 warning\n")
    assert check(tmp_path, SILENT, "--strict")[0] == 3
    assert check(tmp_path, SILENT, "--format", "github")[1].startswith("::warning file=")
    # What jobs may bring is only noted.
    code, out, _ = check(tmp_path, SILENT.replace("sevrity", "project"), "--strict")
    assert code == 0 and "note" in out


def test_check_and_up_look_at_the_same_file_by_default(tmp_path):
    (tmp_path / "elsewhere.yaml").write_text("rulez: []\n")
    code, out, _ = run_cli("check", env={"TOCSIN_CONFIG": str(tmp_path / "elsewhere.yaml")})
    assert code == 3 and "elsewhere.yaml:1:1: error" in out
    code, _, err = run_cli("up", env={"TOCSIN_CONFIG": str(tmp_path / "elsewhere.yaml")})
    assert code == 3 and "elsewhere.yaml:1:1: error" in err


def test_up_logs_what_keeps_an_alarm_silent(server, tmp_path):
    program = server(f"transport: {{journal: {tmp_path / 'd'}}}\n" + "http: {listen: '127.0.0.1:0'}\n" + SILENT)
    doubt = program.wait_for("configuration_doubtful")
    assert doubt["at"].endswith(".yaml:4:46") and "severity" in doubt["problem"]


def test_a_secret_is_never_echoed(tmp_path):
    _, out, err = check(tmp_path, "receivers: {a: {webhook: {url: 'http://x', secret: hunter2-canary}}}\n")
    assert "hunter2-canary" not in out + err


def test_the_schema_accepts_the_examples():
    validator = the_schema()
    examples = sorted((ROOT / "config" / "examples").glob("*.yaml"))
    assert examples
    for path in examples:
        errors = [f"{path.name}: {e.message} at {list(e.path)}" for e in validator.iter_errors(yaml.safe_load(path.read_text()))]
        assert not errors, errors


def the_schema():
    code, out, _ = run_cli("schema")
    assert code == 0
    jsonschema.Draft7Validator.check_schema(json.loads(out))
    return jsonschema.Draft7Validator(json.loads(out))


@pytest.mark.parametrize("text", [
    "rulez: []\n",
    "rules: [explodng_tensor]\n",
    "rules: [{use: explodng_tensor}]\n",
    "rules: [{use: vanishing_gradient, threshold: 1}]\n",
    "rules: [{use: vanishing_gradient, with: {treshold: 1}}]\n",
    "rules: [{use: vanishing_gradient, with: {threshold: small}}]\n",
    "rules: [{use: vanishing_gradient, with: {threshold: -1}}]\n",
    "rules: [{use: vanishing_gradient, with: {patience: 3}}]\n",
    "rules: [{use: overfit, severity: eror}]\n",
    "rules: [{use: overfit, with: {severity: eror}}]\n",
    "rules: [{use: overfit, with: {modes: [trian]}}]\n",
    "rules: [{use: overfit, preset: theirs}]\n",
    "rules: [{name: no_use}]\n",
    "capture: {evry: 10 steps}\n",
    "capture: {every: ten steps}\n",
    "capture: {every: {trian: 10}}\n",
    "capture: {workers: some}\n",
    "capture: {overhead: 2}\n",
    "capture: {collections: {weights: {evry: 10}}}\n",
    "capture: {collections: {mine: {roles: [gradeint]}}}\n",
    "collect: {collectors: [cpuu]}\n",
    "engine: {commit_interval: 300}\n",
    "engine: {commit_interval: 5 minutes}\n",
    "engine: {max_runs: 0}\n",
    "engine: {max_runs: '-1'}\n",
    "topics: {prefix: ''}\n",
    "transport: {kafka: localhost}\n",
    "rules: [{use: vanishing_gradient, with: {threshold: '-1'}}]\n",
    "receivers: {a: {webhok: {url: 'http://x'}}}\n",
    "receivers: {a: {webhook: {}}}\n",
    "receivers: {a: {webhook: {url: 'http://x', secrt: y}}}\n",
    "receivers: {a: {stop_training: {armed: yes please}}}\n",
    "receivers: {a: {stop_training: {mode: halt}}}\n",
    "receivers: {a: [{publish_metric: {nonsense: 1}}]}\n",
    "log: {level: loud}\n",
    "collect: {network: {skp: [lo]}}\n",
    "collect: {disk: {every: 5}}\n",
    "route: {receiver: a, repeat_interval: 5 min}\nreceivers: {a: {}}\n",
    "route: {receiver: a, repeat_interval: [{untl: 1d, every: 4h}]}\nreceivers: {a: {}}\n",
    "transport: {kafka: {bootstrap.servers: x}, journal: d}\n",
    "route: {receiver: a, routes: [{routes: [{routes: [{group_wiat: 1s}]}]}]}\nreceivers: {a: {}}\n",
])
def test_schema_and_check_refuse_the_same(tmp_path, text):
    assert list(the_schema().iter_errors(yaml.safe_load(text))), text
    code, out, _ = check(tmp_path, text)
    assert code == 3, out


@pytest.mark.parametrize("text", [
    "rules: [overfit, {use: ExplodingTensor, with: }, {use: stalled_training}]\n",
    "rules: [{use: vanishing_gradient, with: {threshold: 1e-7, modes: train, cooldown: 1m30s}}]\n",
    "rules: [{use: overfit, severity: '${SEVERITY:-error}', with: {start_step: '${START:-3}'}}]\n",
    "log: {level: '${LEVEL:-info}'}\n",
    "capture: {every: {train: 10 steps, eval: 5m}, scalars: 1, overhead: 1%, collections: {weights: , m: {include: x}}}\n",
    "receivers: {a: {}, b: [{publish_metric: }, {publish_metric: {id: c}}]}\n",
    "collect: {network: {skip: [lo, 'veth*']}, disk: {every: 10s}}\n",
    "route: {receiver: a, repeat_interval: [{until: 1d, every: 4h}, {every: 1w}]}\nreceivers: {a: {publish_metric: }}\n",
    "engine: {commit_interval: '${INTERVAL:-1s}', threads: '${THREADS:-2}'}\n",
    "route: {receiver: a, routes: [{matchers: 'a=\"b\"', routes: [{matchers: 'c=\"d\"', routes: [{receiver: a}]}]}]}\n"
    "receivers: {a: {publish_metric: }}\n",
])
def test_schema_and_check_accept_the_same(tmp_path, text):
    errors = [e.message for e in the_schema().iter_errors(yaml.safe_load(text))]
    assert not errors, errors
    code, out, _ = check(tmp_path, text)
    assert code == 0, out


def test_the_examples_pass_check():
    for path in sorted((ROOT / "config" / "examples").glob("*.yaml")):
        code, out, err = run_cli("check", path, env={
            "DEMO_JOURNAL": "/tmp/j", "DEMO_SMTP_PORT": "25", "DEMO_MQTT_PORT": "1883", "DEMO_HTTP_PORT": "0",
            "DEMO_WEBHOOK_URL": "http://127.0.0.1:80/", "DEMO_WEBHOOK_SECRET": "whsec_MDEyMzQ1Njc4OWFiY2RlZjAxMjM0NTY3ODlhYmNkZWY="})
        assert code == 0, out + err


def test_help_can_be_asked_for_in_words_and_what_is_missing_is_said():
    code, out, _ = run_cli("help", "rules")
    assert code == 0 and out == run_cli("rules", "--help")[1] and "Usage: tocsin rules" in out
    code, _, err = run_cli("rules")
    assert code == 2 and err == "tocsin rules: name a subcommand: list describe (see tocsin rules --help)\n"


def test_a_file_of_a_like_name_is_named(tmp_path):
    (tmp_path / "t.yaml").write_text(GOOD)
    code, out, err = run_cli("check", tmp_path / "t.yml")
    assert code == 3 and f"did you mean {tmp_path / 't.yaml'}?" in out + err


def test_rules_are_listed_and_described_with_both_presets():
    code, out, _ = run_cli("rules", "list")
    assert code == 0 and "exploding_tensor" in out
    code, out, _ = run_cli("rules", "describe", "loss_not_decreasing")
    assert code == 0 and "presets: tocsin smooths" in out
    code, out, _ = run_cli("rules", "describe", "course")
    assert code == 0 and "\nasks: Is the loss curve normal" in out
    code, out, _ = run_cli("rules", "describe", "poor_weight_initialization")
    assert code == 0 and re.search(r"^threshold +10000 \(preset original: 10\)", out, re.MULTILINE), out


def test_a_rule_that_must_be_told_what_to_judge_is_described_with_its_defaults():
    code, out, _ = run_cli("rules", "describe", "all_zero")
    assert code == 0 and re.search(r"^threshold +100  number", out, re.MULTILINE), out
    shared = out[out.index("\nas every rule: "):]
    assert "cooldown" in shared and "end_step" in shared


def test_topics_are_exported_for_other_tools(tmp_path):
    path = tmp_path / "t.yaml"
    path.write_text("transport: {kafka: {bootstrap.servers: 'k:9092'}}\n")
    for form, word in (("shell", "kafka-topics"), ("strimzi", "KafkaTopic"), ("terraform", "kafka_topic")):
        code, out, _ = run_cli("topics", "export", "--format", form, "-c", path)
        assert code == 0 and word in out and "tocsin.telemetry.v1" in out


def test_an_unreachable_broker_ends_with_exit_code_4(tmp_path):
    path = tmp_path / "t.yaml"
    path.write_text("transport: {kafka: {bootstrap.servers: '127.0.0.1:1'}}\nhttp: {listen: '127.0.0.1:0'}\n")
    code, _, err = run_cli("evaluate", "-c", path, "--start-timeout", "1")
    assert code == 4 and "127.0.0.1:1" in err


def test_missing_topics_are_named_with_the_command_that_creates_them(tmp_path, kafka):
    path = tmp_path / "t.yaml"
    path.write_text(f"transport: {{kafka: {{bootstrap.servers: '{kafka}'}}}}\n"
                    "topics: {prefix: absent, create: false}\nhttp: {listen: '127.0.0.1:0'}\nrules: [exploding_tensor]\n")
    code, _, err = run_cli("evaluate", "-c", path, "--start-timeout", "5")
    assert code == 1
    assert "absent.telemetry.v1" in err and "tocsin topics apply" in err
    code, out, _ = run_cli("topics", "plan", "-c", path)
    assert code == 1 and "missing  absent.telemetry.v1" in out
    code, out, err = run_cli("topics", "apply", "-c", path)
    assert code == 0, out + err
    code, out, _ = run_cli("topics", "plan", "-c", path)
    assert code == 0 and "ok       absent.telemetry.v1" in out
