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


NIGHTS = """
time_intervals:
  - {name: nights, intervals: [{times: [{start: "20:00", end: "24:00"}, {start: "00:00", end: "08:00"}], location: Europe/Berlin}]}
  - {name: office, intervals: [{times: [{start: "09:00", end: "17:00"}], weekdays: ["monday:friday"], location: Europe/Berlin}]}
"""


def test_who_is_told_at_a_time(tmp_path):
    config, cases = written(tmp_path)
    config.write_text(NIGHTS + config.read_text().replace("group_wait: 10s,", "group_wait: 10s, mute_time_intervals: [nights],")
                      .replace("receiver: chat}", "receiver: chat, active_time_intervals: [office]}"))

    def at(time, expected, *labels):
        code, out, err = run_cli("routes", "test", *labels, "--at", time, "--expect", expected, "-c", config)
        assert code == 0, out + err
        return out

    # 02:30 UTC is night in Berlin, 07:30 UTC is not: in winter it is 08:30 there.
    out = at("2026-11-27T02:30:00Z", "", "severity=critical")
    assert "muted at 2026-11-27T02:30:00.000Z by the time interval nights: nobody is told then" in out, out
    assert "muted" not in at("2026-11-27T07:30:00Z", "page,archive", "severity=critical")
    at("2026-11-27T08:30:00+01:00", "page,archive", "severity=critical")
    at("2026-11-27T12:00:00+01:00", "chat", "team=nlp")
    out = at("2026-11-28T12:00:00+01:00", "", "team=nlp")  # a Saturday
    assert "outside the time interval office" in out, out
    at("2026-11-28", "", "team=nlp")
    assert run_cli("routes", "test", "severity=critical", "--expect", "page,archive", "-c", config)[0] == 0, "without --at it is no matter"
    code, out, _ = run_cli("routes", "test", "severity=critical", "--at", "2026-11-28", "-o", "json", "-c", config)
    assert code == 0 and json.loads(out)["routes"][0]["muted_by"] == ["mute_time:nights"]
    code, _, err = run_cli("routes", "test", "severity=critical", "--at", "tonight", "-c", config)
    assert code == 2 and '"tonight" is no time: expected 2026-11-28T03:00:00Z' in err, err
    cases.write_text("""
tests:
  - {name: by day, labels: {severity: critical}, at: 2026-11-27T12:00:00Z, receivers: [page, archive]}
  - {name: by night, labels: {severity: critical}, at: 2026-11-27T23:00:00Z, receivers: []}
""")
    code, out, err = run_cli("routes", "test", "--file", cases, "-c", config)
    assert code == 0 and "2 cases, 0 failed" in out, out + err
    cases.write_text("tests:\n  - {labels: {a: b}, at: noon, receivers: []}\n")
    code, _, err = run_cli("routes", "test", "--file", cases, "-c", config)
    assert code == 3 and "cases.yaml:2" in err and '"noon" is no time' in err, err
