"""tocsin check: what is valid and most likely not meant, and how a file that is not YAML is explained."""
import pytest

from tests.support.program import run_cli

BASE = ("transport: {journal: ./data}\nrules: [exploding_tensor, overfit]\n"
        "receivers: {a: {publish_metric: {}}, b: {publish_metric: {}}, stop: {stop_training: {armed: true}}}\n")


def check(tmp_path, text, *flags):
    path = tmp_path / "t.yaml"
    path.write_text(text)
    code, out, err = run_cli("check", path, *flags)
    return code, (out + err).replace(str(tmp_path) + "/", "")


def warned(tmp_path, text):
    code, out = check(tmp_path, text)
    assert code == 0, out
    return [line for line in out.splitlines() if ": warning: " in line]


def routes(*lines):
    return BASE + "route:\n  receiver: a\n  routes:\n" + "".join(f"    - {line}\n" for line in lines)


@pytest.mark.parametrize("lines, where, words", [
    (["{matchers: ['rule=\"overfit\"'], receiver: b}", "{matchers: ['rule=\"overfit\"', 'job=\"x\"'], receiver: a}"], "t.yaml:8:", "no issue reaches this route: the route of line 7"),
    (["{matchers: ['severity=\"error\"'], receiver: b}", "{matchers: ['severity=\"error\"'], receiver: a}"], "t.yaml:8:", "no issue reaches this route"),
    (["{matchers: ['severity=~\"error|critical\"'], receiver: b}", "{matchers: ['severity=\"critical\"'], receiver: a}"], "t.yaml:8:", "no issue reaches this route"),
    (["{matchers: ['severity=~\"error|critical|warning\"'], receiver: b}", "{matchers: ['severity=~\"critical|error\"'], receiver: a}"], "t.yaml:8:", "no issue reaches this route"),
    (["{matchers: ['rule!=\"overfit\"'], receiver: b}", "{matchers: ['rule=\"exploding_tensor\"'], receiver: a}"], "t.yaml:8:", "no issue reaches this route"),
    (["{receiver: b}", "{matchers: ['rule=\"overfit\"'], receiver: a}"], "t.yaml:8:", "no issue reaches this route"),
    (["{receiver: b}"], "t.yaml:7:", "this route has no matchers and takes every issue"),
    (["{matchers: ['rule=\"overfit\"'], repeat_interval: 1m}"], "t.yaml:7:", "repeat_interval 1m is below group_interval 5m"),
    (["{matchers: ['rule=\"overfit\"'], group_interval: 6h}"], "t.yaml:7:", "repeat_interval 4h is below group_interval 6h"),
    (["{matchers: ['rule=\"overfit\"'], repeat_interval: [{until: 1d, every: 1m}, {every: 4h}]}"], "t.yaml:7:", "repeat_interval 1m is below group_interval"),
])
def test_routes_that_are_not_meant(tmp_path, lines, where, words):
    found = warned(tmp_path, routes(*lines))
    assert any(line.startswith(where) and words in line for line in found), found


@pytest.mark.parametrize("lines", [
    ["{matchers: ['rule=\"overfit\"'], receiver: b, continue: true}", "{matchers: ['rule=\"overfit\"'], receiver: a}"],
    ["{matchers: ['rule=\"overfit\"', 'job=\"x\"'], receiver: b}", "{matchers: ['rule=\"overfit\"'], receiver: a}"],
    ["{matchers: ['severity=\"error\"'], receiver: b}", "{matchers: ['severity=~\"error|critical\"'], receiver: a}"],
    ["{matchers: ['job=\"x\"'], receiver: b}", "{matchers: ['rule=\"overfit\"'], receiver: a}"],
    ["{matchers: ['rule=\"overfit\"'], repeat_interval: 5m}"],
])
def test_routes_that_are_right_are_not_warned_of(tmp_path, lines):
    found = warned(tmp_path, routes(*lines))
    told = ("no issue reaches", "has no matchers", "repeat_interval")
    assert not any(words in line for line in found for words in told), found


@pytest.mark.parametrize("receiver, words", [
    ("webhook: {url: 'https://x', tls: {ca_file: /nowhere/ca.pem}}", "no file /nowhere/ca.pem"),
    ("webhook: {url: 'https://x', tls: {cert_file: /nowhere/c.pem, key_file: /nowhere/k.pem}}", "/nowhere/k.pem"),
    ("mqtt: {host: h, tls: true, ca_file: /nowhere/ca.pem}", "no file /nowhere/ca.pem"),
    ("email: {to: [x@example.com], host: smtp, ca_file: /nowhere/ca.pem}", "no file /nowhere/ca.pem"),
    ("webhook: {url: 'https://x', secret_file: /nowhere/secret}", "no file /nowhere/secret"),
    ("email: {to: [x@example.com]}", "no `host`: mail is handed to localhost"),
])
def test_files_and_hosts_that_are_not_there(tmp_path, receiver, words):
    found = warned(tmp_path, f"rules: [overfit]\nroute: {{receiver: a}}\nreceivers:\n  a:\n    {receiver}\n")
    assert any(line.startswith("t.yaml:5:") and words in line for line in found), found


def test_files_of_the_transport_are_looked_for(tmp_path):
    found = warned(tmp_path, BASE.replace("{journal: ./data}", "{kafka: {bootstrap.servers: x, security.protocol: SSL, ssl.ca.location: /nowhere/ca.pem}}")
                   + "route: {receiver: a}\n")
    assert any("no file /nowhere/ca.pem" in line for line in found), found


def test_a_rule_named_like_an_issue_of_our_own_is_warned_of(tmp_path):
    text = "rules: [{name: delivery_dead, select: 'metric(\"loss\")', when: 'value > 1'}]\nroute: {receiver: a}\nreceivers: {a: {publish_metric: {}}}\n"
    assert any("also the name of an issue that Tocsin raises itself" in line for line in warned(tmp_path, text))


def test_a_mistyped_action_names_the_nearest_receiver(tmp_path):
    for typo in ("sotp", "stp", "stopp", "Stop"):
        code, out = check(tmp_path, BASE.replace("overfit]", f"{{use: overfit, actions: [{typo}]}}]") + "route: {receiver: a}\n")
        assert code == 3 and 'did you mean "stop"?' in out, out


@pytest.mark.parametrize("text, where, words", [
    ("labels:\n  note: loss: is NaN\n", "t.yaml:2:13", "put the value in quotes"),
    ("rules: [overfit\nroute: {receiver: a}\n", "t.yaml:1:8", "is never closed; add ]"),
    ("receivers:\n  a: {webhook: {url: x}\n", "t.yaml:2:6", "is never closed; add }"),
    ("rules:\n\t- overfit\n", "t.yaml:2:1", "indent it with spaces"),
])
def test_a_file_that_is_not_yaml_is_explained(tmp_path, text, where, words):
    code, out = check(tmp_path, text)
    assert code == 3 and out.startswith(where) and words in out, out


@pytest.mark.parametrize("key", ["mute_time_intervals", "active_time_intervals"])
def test_time_intervals_are_not_inherited(tmp_path, key):
    text = "time_intervals: [{name: nights, intervals: [{weekdays: [sunday]}]}]\n" + routes(
        f"{{matchers: ['rule=\"overfit\"'], {key}: [nights], routes: [{{matchers: ['job=\"x\"']%s}}]}}")
    [warning] = [line for line in warned(tmp_path, text % "") if "not inherited" in line]
    assert warning.startswith("t.yaml:8:") and "time intervals are not inherited: the route of line 8 below is told at all times" in warning
    assert not [line for line in warned(tmp_path, text % f", {key}: []") if "not inherited" in line]
