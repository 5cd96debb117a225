"""What tests of the commands for whoever is on call share: a router with one webhook, issues, and the commands."""
import json
import time

from tests.support import journal
from tests.support.program import run_cli
from tests.support.receiver import wait_for


def at(seconds):
    return time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(seconds)) + f".{int(seconds % 1 * 1e6):06d}Z"


def router(folder, receiver, **more):
    """A configuration: one webhook `hook` of receiver `r`; the router's own trouble goes nowhere."""
    hook = {"id": "hook", "url": receiver.url, "allow_private": ["127.0.0.0/8"], "format": "native", **more}
    path = folder / "tocsin.yaml"
    path.write_text(json.dumps({
        "transport": {"journal": str(folder / "data")}, "http": {"listen": "127.0.0.1:0"},
        "receivers": {"r": {"webhook": hook}, "none": {}},
        "route": {"receiver": "r", "group_by": ["alertname"], "group_wait": "0s", "group_interval": "2s",
                  "routes": [{"matchers": ['rule=~"delivery_.*"'], "receiver": "none"}]}}))
    return path


def issue_event(name, status="firing", began=None):
    """(headers, data) of one issue of that name, as another producer writes it."""
    now = time.time()
    data = {"status": status, "labels": {"alertname": name, "rule": "r", "severity": "error"},
            "annotations": {"summary": f"{name} is wrong"}, "starts_at": at(began or now), "expiry": "explicit"}
    if status == "resolved":
        data["ends_at"] = at(now)
    heads = {"ce_specversion": "1.0", "ce_type": "dev.tocsin.issue.v1", "ce_source": "/test", "ce_id": f"evt_{name}_{time.time_ns()}",
             "ce_time": at(now), "content-type": "application/json"}
    return heads, data


def issue(config, name, status="firing", began=None, value=None):
    """Writes one to the journal; when. `value`: bytes in its place."""
    heads, data = issue_event(name, status, began)
    folder = json.loads(config.read_text())["transport"]["journal"]
    journal.append(folder, ("issues", "", value or json.dumps(data), [(key, one.encode()) for key, one in heads.items()]))
    return time.time()


def ask(*words, config):
    """(exit code, what --output json prints)."""
    code, out, err = run_cli(*words, "--output", "json", "-c", config)
    assert out, err
    return code, json.loads(out)


def history(config, *words):
    return ask("history", *words, config=config)[1]


def in_state(config, state, count=1, timeout=20):
    """The notifications in this state, once there are so many."""
    return wait_for(lambda: len(found := history(config, "--state", state)) >= count and found, timeout, f"{count} {state}")


def changes(folder):
    """[(who, what, subject)] of the journal's topic `router-audit`, oldest first."""
    entries = [json.loads(record["value"]) for record in journal.records(folder, "router-audit")]
    assert all(entry["by"] == "command" and entry["source"] for entry in entries), entries
    return [(entry["who"], entry["what"], entry["subject"]) for entry in entries]
