"""Issues as another producer writes them: events in the journal's topic `issues` (docs/events.md)."""
import json
import time

from tests.support.journal import append, records


def at(seconds):
    return time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(seconds)) + f".{int(seconds % 1 * 1e6):06d}Z"


def issue_record(labels, status="firing", annotations=None, began=None, **data):
    now = time.time()
    data = {"status": status, "labels": labels, "annotations": annotations or {}, "starts_at": at(began or now),
            "expiry": "explicit", **data}
    if status == "resolved":
        data["ends_at"] = at(now)
    heads = {"ce_specversion": "1.0", "ce_type": "dev.tocsin.issue.v1", "ce_source": "/test", "ce_id": str(time.time_ns()),
             "ce_time": at(now), "content-type": "application/json"}
    return ("issues", "", json.dumps(data), [(name, value.encode()) for name, value in heads.items()])


def raise_issues(journal, *issues):
    """issues: (labels, keywords of issue_record()); all in one transaction."""
    append(journal, *(issue_record(labels, **more) for labels, more in issues))


def deliveries(journal):
    """(integration, state, class, code) of every record of `router-deliveries`, oldest first."""
    found = [json.loads(record["value"]) for record in records(journal, "router-deliveries")]
    return [(one["integration"], one["state"], one["class"], one["code"]) for one in found]
