"""`tocsin schema` and `tocsin check` refuse the same: every key that the schema knows, with values of every kind.

Each document holds hundreds of keys; what `check` says is told apart by its path. What a JSON Schema cannot say is
listed in BEYOND_A_SCHEMA: relations between two keys, and the meaning of a text."""
import itertools
import json
import re

import jsonschema
import pytest
import yaml

from tests.support.program import run_cli

VALUES = [-1, 0, 1, 3, 0.5, 10 ** 12, "x", "5m", "10MiB", "", True, [], ["x"], {}, {"x": 1}, "1", "0.5", "-1", "1e-3",
          "1000000000000", "+1", "abc1", None]
ITEMS = 2000  # rules, or receivers, of one document
BEYOND_A_SCHEMA = re.compile("|".join([
    # relations of two keys
    r"must be (less|greater) than", r"this rule needs", r"username is missing", r"without tls: true", r"belong together",
    r"give either receiver or receivers", r"two rules are called", r"is used twice", r"must not be above", r"is longer than",
    r"belongs to (a )?transport", r"^transport: \w+ needs ", r"expected one of bearer_token, basic_auth and oauth2", r"take the other credentials out",
    r"belongs to format", r"the hook decides at 0.5", r"one type of importance only", r"without a prefix the run of the issue", r"that needs transport\.kafka", r"expected up to 249 letters", r"needs one number, or as many",
    # names that another section gives
    r'^rule "[^"]*" names receiver "[^"]*", which does not exist',
    r"no receiver is called", r"there is no receiver", r"^needs a `route`", r"use must be the name of a rule",
    # texts with a grammar of their own
    r"expected a URL", r"expected environment, none, or a URL", r"which Prometheus keeps for itself", r"a label has a name", r"is no network", r"is no mail address", r"directories that begin with /", r"must be IP:PORT", r"at character \d+", r"is no whole number",
    r"expected a topic", r"endpoint must be https://", r"to must be topic, a directory", r"a topic to publish to", r"expected at least one (address|name)", r"label name must not be empty",
    r"expected host:port", r"expected a port from", r"expected \[address\]", r"expected letters, digits and", r"expected a region", r"is kept for AWS",
    r"server_name is the name of a host", r"a username cannot have a colon",
    r"unknown mode", r"no argument for repetition", r"expected label=value", r"is no JSON once it is filled in",
    r"the webhook secret is not", r"expected up to 64 letters", r"expected 32 characters", r"is no percentage", r"is no number$", r"token_values must not be empty", r"name a topic$",
    r"No such configuration property", r"expected a text such as v0", r"expected a name such as USR1", r"cannot stand in for itself",
    r"expected the member ID of a user", r"expected scheme and host alone", r"^missing key .integrations?.:", r"of type slack (has this key|names)",
    r"needs http\.external_url", r"posts by an incoming webhook", r"no integration of type",
    r"expected never, always, or label=value", r"beside token", r"a webhook has its own channel", r'"(url|token)_file" \(a (webhook|bot)\)',
    r"is no number: expected \+<country>", r"expected at least one number", r"expected AC and 32", r'"auth_token_file"', r"expected either from or messaging", r"cannot answer in a thread", r"^missing key .aws.: region", r"expected arn:aws:sns",
    r"no built-in collection is named", r"unknown statistic", r"expected at least one collection", r"expected a name or a regular expression", r"no argument for",
    r"an absolute path", r"expected slurm or scancel", r"is outside of bounds", r"expected \[low, high\]",
    r"100 letters, digits, _, - or \.", r"expected a number, or a list of",
    # what lies between the bounds, and a quoted number beside a bound that is no whole one
    r"must be (?=[^,]*(\.|e-))(> )?[0-9.e-]+ … (< )?[0-9.e-]+, found",
    r"window must be 0 or more than 100", r"axis 0 holds the images",
    # durations and sizes within bounds: a pattern knows their form
    r"must be [0-9]+ ?([KMGT]i)?B … [0-9]+ ?([KMGT]i)?B",
    r"must be (>=? |[0-9])[^,]*[0-9](ns|us|ms|s|m|h|d)\b",
]))
# What a rule or an action cannot be made without.
RULE_BASE = {name: {"collection_names": ["weights"]} for name in ("all_zero", "tensor_variance", "unchanged_tensor")}
RULE_BASE["similar_across_runs"] = {"other_trial": "0190a1b2-0000-7000-8000-000000000000", "collection_names": ["weights"]}
ACTION_BASE = {name: {"url": "http://x.example"} for name in ("webhook", "alertmanager", "slack")}
ACTION_BASE["adjust"] = {"name": "lr", "value": 1}


@pytest.fixture(scope="module")
def schema():
    code, out, _ = run_cli("schema")
    assert code == 0
    return json.loads(out)


def refused(tmp_path, document):
    """Paths of the errors of `check`."""
    path = tmp_path / "t.yaml"
    path.write_text(yaml.safe_dump(document, sort_keys=False))
    code, out, err = run_cli("check", "--format", "json", path)
    assert code in (0, 3), err
    return {item["path"]: item["message"] for item in json.loads(out) if item["grade"] == "error"}


def below(errors, path):
    return [message for where, message in errors.items() if where == path or where.startswith((path + ".", path + "["))]


def leaves(node, path=()):
    """Keys that hold a value of their own."""
    if "$ref" in node:
        return
    if "properties" in node:
        for key, child in node["properties"].items():
            yield from leaves(child, path + (key,))
    elif path and not ("additionalProperties" in node and isinstance(node["additionalProperties"], dict)):
        yield path, node


def nested(path, value):
    for key in reversed(path):
        value = {key: value}
    return value


def merged(into, part):
    for key, value in part.items():
        if isinstance(value, dict) and isinstance(into.get(key), dict) and value:
            merged(into[key], value)
        else:
            into[key] = value
    return into


def differences(cases, errors):
    """cases: (path in the document, value, whether the schema accepts it)."""
    out = []
    for path, value, accepted in cases:
        found = below(errors, path)
        if accepted and found and all(BEYOND_A_SCHEMA.search(message) for message in found):
            continue
        if accepted == bool(found):
            out.append(f"{path}: {value!r}: schema {'accepts' if accepted else 'refuses'}, check {found or 'accepts'}")
    return out


def shapes(schema):
    item = next(one for one in schema["properties"]["rules"]["items"]["oneOf"] if "properties" in one)
    for shape in item["allOf"]:
        if "if" in shape and "use" in shape["if"]["properties"]:
            yield shape["if"]["properties"]["use"]["enum"][0], shape["then"]["properties"]["with"]


def test_parameters_of_rules(schema, tmp_path):
    rules, cases = [], []
    for name, shape in shapes(schema):
        validator = jsonschema.Draft7Validator(shape)
        for parameter in shape["properties"]:
            for value in VALUES:
                given = {**RULE_BASE.get(name, {}), parameter: value}
                cases.append((f"rules[{len(rules)}]", {name: given}, validator.is_valid(given)))
                rules.append({"use": name, "name": f"r{len(rules)}", "with": given})
    found = []
    for first in range(0, len(rules), ITEMS):
        errors = refused(tmp_path, {"rules": rules[first:first + ITEMS]})
        part = [(f"rules[{i}]", given, accepted) for i, (_, given, accepted) in enumerate(cases[first:first + ITEMS])]
        found += differences(part, errors)
    assert not found, f"{len(found)} of {len(cases)}:\n" + "\n".join(found[:400])


def test_keys_of_a_rule(schema, tmp_path):
    item = next(one for one in schema["properties"]["rules"]["items"]["oneOf"] if "properties" in one)
    validator = jsonschema.Draft7Validator(item)
    rules, cases = [], []
    for key in item["properties"]:
        for value in VALUES:
            rule = {"use": "overfit", "name": f"r{len(rules)}"}
            rule[key] = value
            cases.append((f"rules[{len(rules)}]", {key: value}, validator.is_valid(rule)))
            rules.append(rule)
    found = differences(cases, refused(tmp_path, {"rules": rules}))
    assert not found, f"{len(found)} of {len(cases)}:\n" + "\n".join(found[:400])


def test_settings_of_actions(schema, tmp_path):
    actions = next(one for one in schema["properties"]["receivers"]["additionalProperties"]["oneOf"] if "properties" in one)
    receivers, cases = {}, []
    for name, action in actions["properties"].items():
        validator = jsonschema.Draft7Validator(action)
        for path, _ in leaves(action):
            for value in VALUES:
                base = {} if name == "slack" and path[0] in ("url", "url_file") else ACTION_BASE.get(name, {})
                body = merged(json.loads(json.dumps(base)), nested(path, value))
                receiver = f"n{len(receivers)}"
                cases.append((f"receivers.{receiver}", {name: body}, validator.is_valid(body)))
                receivers[receiver] = {name: body}
    found, names = [], list(receivers)
    for first in range(0, len(names), ITEMS):
        part = names[first:first + ITEMS]
        found += differences(cases[first:first + ITEMS], refused(tmp_path, {"receivers": {name: receivers[name] for name in part}}))
    assert not found, f"{len(found)} of {len(cases)}:\n" + "\n".join(found[:400])


def without_twins(keys, file):
    """A secret is `x` or `x_file`, never both: without those in files, or without the others."""
    names = {path for path, _ in keys}
    twins = {path for path in names if path[-1].endswith("_file") and (*path[:-1], path[-1].removesuffix("_file")) in names}
    bases = {(*path[:-1], path[-1].removesuffix("_file")) for path in twins}
    return [(path, node) for path, node in keys if path not in (bases if file else twins)]


def test_every_other_key(schema, tmp_path):
    every = [(path, node) for path, node in leaves(schema) if path[0] not in ("rules", "receivers", "include")]
    found, count = [], 0
    for value, file in itertools.product(VALUES, (False, True)):
        keys = without_twins(every, file)
        document = {}
        for path, _ in keys:
            merged(document, nested(path, value))
        errors = refused(tmp_path, document)
        cases = [(".".join(path), value, jsonschema.Draft7Validator(node).is_valid(value)) for path, node in keys]
        found += differences(cases, errors)
        count += len(cases)
    assert not found, f"{len(found)} of {count}:\n" + "\n".join(found[:400])
