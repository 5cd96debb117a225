"""`tocsin config diff`: what a new configuration changes, and which issues that fire would be told to others."""
import json

from tests.support.program import run_cli
from tests.support.telemetry import JournalWriter, scalar

BASE = """
transport: {{journal: {journal}}}
rules: [exploding_tensor]
route: {route}
receivers:
  people: {{webhook: {{url: 'http://127.0.0.1:9/', allow_private: [127.0.0.0/8], shadow: true}}}}
  others: {{webhook: {{url: 'http://127.0.0.1:9/', allow_private: [127.0.0.0/8], shadow: true}}}}
http: {{listen: '127.0.0.1:0'}}
"""


def test_issues_that_fire_move_with_their_route(server, tmp_path):
    journal = tmp_path / "journal"

    def config(name, route):
        path = tmp_path / f"{name}.yaml"
        path.write_text(BASE.format(journal=journal, route=route))
        return path
    old = config("old", "{receiver: people, group_by: [job]}")
    other = config("other", "{receiver: people, group_by: [job], routes: [{matchers: ['job=\"b\"'], receiver: others}]}")
    regrouped = config("regrouped", "{receiver: people, group_by: [rule]}")
    slower = config("slower", "{receiver: people, group_by: [job], group_interval: 7m}")
    program = server(old)
    program.wait_for("ready")
    for job in ("a", "b"):
        JournalWriter(journal).append(*(scalar(job, "loss", "NaN" if step == 3 else 1.0, step, job=job) for step in range(5)))
        program.wait_for("issue_fired", job=job)

    def diff(new, *arguments):
        code, out, err = run_cli("config", "diff", old, new, *arguments, "-o", "json")
        assert code in (0, 1), err
        return code, json.loads(out)
    assert diff(old, "--live") == (0, {"changed": [], "firing": 2, "moves": []})
    code, found = diff(other, "--live")
    assert code == 1 and found["changed"] == ["route"] and found["firing"] == 2
    assert [(move["job"], move["lost"], move["gained"], move["regrouped"]) for move in found["moves"]] == [
        ("b", ["people/webhook"], ["others/webhook"], [])]
    code, found = diff(regrouped, "--live")
    assert {move["job"]: move["regrouped"] for move in found["moves"]} == {"a": ["people/webhook"], "b": ["people/webhook"]}
    assert diff(slower, "--live") == (1, {"changed": ["route"], "firing": 2, "moves": []})
    assert diff(other) == (1, {"changed": ["route"]})
    code, out, _ = run_cli("config", "diff", old, other, "--live")
    assert "differ: route\n1 of 2 firing issues would move\n" in out and "  newly told: others/webhook" in out


def test_a_broken_file_and_a_missing_journal_are_told_apart(tmp_path):
    good = tmp_path / "good.yaml"
    good.write_text(BASE.format(journal=tmp_path / "none", route="{receiver: people}"))
    bad = tmp_path / "bad.yaml"
    bad.write_text("route: {receiver: 5x, group_wait: soon}\n")
    assert run_cli("config", "diff", good, bad)[0] == 3
    assert run_cli("config", "diff", good, good)[0] == 0
    code, _, err = run_cli("config", "diff", good, good, "--live")
    assert code == 4 and "no journal" in err
