"""`tocsin groups`: what is grouped, who was told, when each group is looked at next, and why it says nothing; the API says the same."""
import json

import pytest

from tests.support.on_call import ask, issue, router
from tests.support.program import run_cli
from tests.support.receiver import wait_for
from tests.support.webhook_receiver import WebhookReceiver


@pytest.fixture
def on_call(server, tmp_path):
    with WebhookReceiver() as hook:
        path = router(tmp_path, hook)
        config = json.loads(path.read_text())
        config["time_intervals"] = [{"name": "always", "intervals": [{"times": [{"start": "00:00", "end": "24:00"}]}]}]
        config["inhibit_rules"] = [{"name": "outage", "source_matchers": ["alertname=told"], "target_matchers": ["alertname=follows"], "equal": []}]
        config["route"]["routes"] += [
            {"matchers": ["alertname=patient"], "receiver": "r", "group_wait": "1h"},
            {"matchers": ["alertname=soon"], "receiver": "r", "group_wait": "6s"},
            {"matchers": ["alertname=night"], "receiver": "r", "mute_time_intervals": ["always"]}]
        path.write_text(json.dumps(config))
        program = server(path)
        program.wait_for("ready", timeout=60)
        yield program, hook, path


def groups(path, *words):
    """{alertname: group}"""
    code, found = ask("groups", "list", *words, config=path)
    assert code == 0
    return {one["labels"]["alertname"]: one for one in found}


def reasons(group):
    return [wait["reason"] for wait in group["waits"]]


def sentence(group, reason):
    [text] = [wait["text"] for wait in group["waits"] if wait["reason"] == reason]
    return text


def test_each_reason_why_a_group_waits_is_said(on_call):
    program, hook, path = on_call
    assert run_cli("groups", "list", "-c", path)[:2] == (0, "no groups: no issue is routed\n")
    for name in ("told", "patient", "night"):
        issue(path, name)
    hook.wait(1)
    wait_for(lambda: {"told", "patient", "night"} <= set(groups(path)), 20, "three groups")

    patient = groups(path)["patient"]
    assert reasons(patient) == ["group_wait"] and "(1h)" in sentence(patient, "group_wait")
    assert patient["next_look"] > patient["created_at"] and patient["last_flush"] is None and patient["integrations"] == []
    wait_for(lambda: "mute_time" in reasons(groups(path)["night"]), 20, "muted")
    assert sentence(groups(path)["night"], "mute_time") == "time interval always mutes the route"

    told = wait_for(lambda: "repeat_interval" in reasons(group := groups(path)["told"]) and group, 20, "nothing is new")
    assert reasons(told) == ["group_interval", "repeat_interval"]
    assert sentence(told, "group_interval") == "the group is looked at every group_interval (2s)"
    assert "nothing is new to hook" in sentence(told, "repeat_interval") and "(4h)" in sentence(told, "repeat_interval")
    assert told["integrations"][0]["told"][0]["arrived"] and told["next_look"] is not None

    issue(path, "follows")
    follows = wait_for(lambda: "inhibition" in reasons(group := groups(path).get("follows", {"waits": []})) and group, 20, "inhibited")
    assert sentence(follows, "inhibition") == "1 of 1 issue is inhibited by rule outage"
    assert run_cli("silence", "add", "alertname=told", "--for", "1h", "--comment", "test", "--author", "ada", "-c", path)[0] == 0
    silenced = wait_for(lambda: "silence" in reasons(group := groups(path)["told"]) and group, 20, "silenced")
    assert sentence(silenced, "silence").startswith("1 of 1 issue is silenced by sil_")
    [identity] = {line.split()[0] for line in run_cli("issues", "list", "-c", path)[1].splitlines() if "told is wrong" in line}
    assert run_cli("ack", identity, "--note", "mine", "--author", "ada", "-c", path)[0] == 0
    acked = wait_for(lambda: "ack" in reasons(group := groups(path)["told"]) and group, 20, "acknowledged")
    assert sentence(acked, "ack") == "1 of 1 issue is not repeated: acknowledged by ada"

    # What is chosen, and what is not there.
    assert set(groups(path, "--issue", identity)) == {"told"}
    assert set(groups(path, "--integration", "hook")) == {"told"}
    assert set(groups(path, "--route", patient["route"])) == {"patient"}
    assert run_cli("groups", "list", "--route", "nowhere", "-c", path)[:2] == (0, "no such group\n")

    # As text, for a person.
    code, out, _ = run_cli("groups", "list", "-c", path)
    rows = {line.split(":{")[1]: line for line in out.splitlines()[1:]}
    assert code == 0 and out.split()[:8] == ["HASH", "ISSUES", "NEXT", "LOOK", "WAITS", "FOR", "TOLD", "GROUP"]
    assert "group_wait" in rows['alertname="patient"}'] and " nobody " in rows['alertname="patient"}'] and "in 59 min" in rows['alertname="patient"}']
    assert " hook " in rows['alertname="told"}']
    code, out, _ = run_cli("groups", "show", told["hash"][:10], "-c", path)
    assert code == 0 and "acknowledged by ada: told is wrong" in out and "1 of 1 issue is silenced by" in out, out
    row = next(line for line in out.splitlines() if line.strip().startswith("hook "))
    assert row.split()[1] == "open" and identity in row, out
    code, out, err = run_cli("groups", "show", "ffff", "-c", path)
    assert code == 1 and out == "" and "tocsin groups list" in err

    # The API has the same, and with --output json the members are there.
    status, text = program.get(f"/api/v1/groups/{told['hash']}")
    there = json.loads(text)
    assert status == 200 and reasons(there) == reasons(groups(path)["told"]) and there["next_look"]
    code, shown = ask("groups", "show", told["hash"], config=path)
    assert code == 0 and shown["members"][0]["acked_by"] == "ada" and shown["members"][0]["silenced_by"], shown


def test_a_group_that_nobody_looks_at_is_said_to_be_overdue(on_call):
    program, hook, path = on_call
    issue(path, "soon")
    wait_for(lambda: "soon" in groups(path), 20, "a group")
    program.kill()
    assert not hook.records
    late = wait_for(lambda: "overdue" in reasons(group := groups(path)["soon"]) and group, 20, "overdue")
    assert "does a router run?" in sentence(late, "overdue") and late["next_look"] is None
