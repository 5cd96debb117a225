"""`tocsin routes`: the tree as it holds, where labels lead, and a table of cases for CI."""
import json

from tests.support.program import run_cli

CONFIG = """
transport: {{journal: {folder}/data}}
rules: [{{use: overfit, actions: [stop]}}]
route:
  receiver: oncall
  group_by: [job]
  routes:
    - {{id: page, matchers: ['severity="critical"'], receivers: [page, archive], group_wait: 10s, continue: true}}
    - {{id: nlp, matchers: ['team="nlp"', 'env!="dev"'], receiver: chat}}
receivers:
  oncall: {{publish_metric: {{}}}}
  page: {{publish_metric: {{when: 'rule="overfit"'}}}}
  archive: {{publish_metric: {{}}}}
  chat: {{publish_metric: {{}}}}
  stop: {{stop_training: {{armed: true}}}}
"""
CASES = """
tests:
  - {name: a critical issue pages, labels: {rule: nan, severity: critical}, receivers: [page, archive]}
  - {name: the team hears, labels: {team: nlp, step: 12}, receivers: [chat]}
  - {name: nobody else, labels: {team: nlp, env: dev}, receivers: [oncall]}
"""


def written(folder, cases=CASES):
    config, file = folder / "tocsin.yaml", folder / "cases.yaml"
    config.write_text(CONFIG.format(folder=folder))
    file.write_text(cases)
    return config, file


def test_the_tree_says_what_holds_and_what_is_inherited(tmp_path):
    config, _ = written(tmp_path)
    code, out, err = run_cli("routes", "tree", "-o", "json", "-c", config)
    assert code == 0, err
    nodes = {node["id"]: node for node in json.loads(out)}
    assert [node["depth"] for node in nodes.values()] == [0, 0, 1, 1]
    settings = {one["name"]: (one["value"], one["own"]) for one in nodes["page"]["settings"]}
    assert settings["group_wait"] == ("10s", True) and settings["group_by"] == ("[job]", False) and settings["repeat_interval"] == ("4h", False)
    assert nodes["page"]["receivers"] == ["page", "archive"] and nodes["page"]["continue"] and not nodes["nlp"]["continue"]
    code, out, _ = run_cli("routes", "tree", "-c", config)
    assert code == 0 and "group_wait 10s" in out and "inherited: group_by [job]" in out and "beside the tree" in out, out


def test_where_labels_lead(tmp_path):
    config, _ = written(tmp_path)
    code, out, _ = run_cli("routes", "test", "severity=critical", "team=nlp", "-o", "json", "-c", config)
    found = json.loads(out)
    assert code == 0 and [leaf["route_id"] for leaf in found["routes"]] == ["page", "nlp"]
    told = {one["id"]: one["told"] for leaf in found["routes"] for one in leaf["integrations"]}
    assert not next(value for name, value in told.items() if name.startswith("page")), "its `when` wants another rule"
    code, out, _ = run_cli("routes", "explain", "team=nlp", "env=dev", "-c", config)
    assert code == 0 and 'page: severity="critical" does not hold, the label is absent' in out
    assert 'nlp: env!="dev" does not hold, the value is "dev"' in out, out
    for expected, code in (("page,archive", 0), ("archive,page", 0), ("page", 1), ("", 1)):
        assert run_cli("routes", "test", "severity=critical", "--expect", expected, "-c", config)[0] == code, expected
    code, _, err = run_cli("routes", "test", "severity=critical", "--expect", "chat", "-c", config)
    assert code == 1 and "expected chat, got archive, page" in err
    assert run_cli("routes", "test", "-c", config)[0] == 2 and run_cli("routes", "test", "severity", "-c", config)[0] == 2


def test_a_table_of_cases(tmp_path):
    config, cases = written(tmp_path)
    code, out, err = run_cli("routes", "test", "--file", cases, "-c", config)
    assert code == 0 and "3 cases, 0 failed" in out, out + err
    config, cases = written(tmp_path, CASES.replace("[oncall]", "[chat]"))
    code, out, _ = run_cli("routes", "test", "--file", cases, "-c", config)
    assert code == 1 and "FAILED  nobody else" in out and "expected chat, got oncall" in out and 'env!="dev"' in out, out
    code, out, _ = run_cli("routes", "test", "--file", cases, "-o", "json", "-c", config)
    assert code == 1 and [one["passed"] for one in json.loads(out)] == [True, True, False]
    config, cases = written(tmp_path, "tests:\n  - {labels: {a: b}, reciever: [x]}\n")
    code, _, err = run_cli("routes", "test", "--file", cases, "-c", config)
    assert code == 3 and "cases.yaml:2" in err and "receivers" in err, err
