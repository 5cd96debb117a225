"""`reports: {at_end: html}`: the page of a run is there when it has ended, without anybody's asking, and people are told where."""
import json
import random
import re
import time

import pytest

from tests.e2e.test_every_rule import chosen, produce
from tests.e2e.test_recovery import wait_until
from tests.reference import frames, tables
from tests.reference.story import Worker
from tests.support.program import run_cli
from tests.support.telemetry import JournalWriter, journal_events, kafka_events
from tests.support.webhook_receiver import WebhookReceiver
from tocsin import wire

UID = str(wire.run_uid("e2e", "ends"))


def config(folder, reports):
    return (f"transport: {{journal: {folder}/journal}}\nhttp: {{listen: '127.0.0.1:0'}}\nreports: {{at_end: html, dir: {reports}}}\n"
            "rules: [{use: exploding_tensor, preset: original}]\n")


@pytest.fixture
def ended(server, tmp_path):
    """ended(reports) gives the program, which has judged a run that fired and ended."""
    def start(reports):
        one = server(config(tmp_path, reports))
        one.wait_for("ready")
        case = chosen()["exploding_tensor", True]
        JournalWriter(tmp_path / "journal").append(*[("telemetry", UID, frames.encode(record, UID)) for record in tables.records(case)])
        one.wait_for("job_ended")
        return one
    return start


def told(tmp_path):
    """What was said of the report: (status, data)."""
    found = [data for _, data, _ in journal_events(tmp_path / "journal", "issues") if data.get("rule") == "run_report"]
    return (found[-1]["status"], found[-1]) if found else None


def untimed(page):
    """Without the moment at which it was made."""
    return re.sub(r"\d{4}-\d\d-\d\d[T ]\d\d:\d\d:\d\d(\.\d+)?Z?", "TIME", page)


def test_the_page_is_that_of_the_command(ended, tmp_path):
    program = ended(tmp_path / "pages")
    path = program.wait_for("report_written", timeout=60)["path"]
    status, data = wait_until(lambda: told(tmp_path), 30, "what is said of the report")
    assert (status, data["summary"]["path"], data["summary"]["issues"]) == ("IssuesFound", path, 1)
    [page] = (tmp_path / "pages").iterdir()
    assert str(page) == path and page.name == f"reference-{UID[:8]}-1.html"
    code, out, err = run_cli("report", UID, "-c", tmp_path / "tocsin-0.yaml", "--html", "-")
    assert code == 0, err
    assert untimed(page.read_text()) == untimed(out)
    assert 'tocsin_reports_total{result="written"} 1' in program.get("/metrics")[1]
    assert program.stop() == 0, "in time"


def test_a_page_that_cannot_be_written_is_told(ended, tmp_path):
    (tmp_path / "taken").write_text("")
    program = ended(tmp_path / "taken")
    assert "cannot be written" in program.wait_for("report_failed", timeout=60)["error"]
    status, data = wait_until(lambda: told(tmp_path), 30, "what is said of the report")
    assert status == "Error" and "cannot be written" in data["reason"]
    assert 'tocsin_reports_total{result="failed"} 1' in program.get("/metrics")[1]


def failing(folder, kafka, topic, uid):
    """A run that is sound and fails."""
    worker = Worker(start=time.time_ns())  # of runs that ended days ago the router forgets what there was
    worker.start()
    for _ in range(3):
        worker.enter("train")
        worker.scalars(("loss", 1.0))
        worker.step_end()
    worker.end(outcome="failed")
    produce(kafka, topic, uid, folder, worker.records)


def test_pages_are_written_and_told_on_kafka_through_kills(server, kafka, tmp_path):
    """What is told of the failed run again and again names its page, as soon as there is one: the page of each run, once."""
    prefix = f"pages{random.randrange(10**9)}"
    runs = [str(wire.run_uid("pages", str(number))) for number in range(4)]
    names = {uid: f"reference-{uid[:8]}-1.html" for uid in runs}
    with WebhookReceiver() as people:
        text = json.dumps({
            "transport": {"kafka": {"bootstrap.servers": kafka}}, "topics": {"prefix": prefix, "partitions": 3},
            "engine": {"threads": 1, "idle_after": "1000h", "lost_after": "1000h"}, "http": {"listen": "127.0.0.1:0"},
            "reports": {"at_end": "html", "dir": str(tmp_path / "pages"), "url": "https://reports.example/runs"},
            "rules": [{"use": "exploding_tensor"}],
            "route": {"receiver": "people", "group_by": ["run_uid"], "group_wait": "0s", "group_interval": "1s", "repeat_interval": "1s"},
            "receivers": {"people": {"webhook": {"format": "alertmanager_v4", "url": people.url, "allow_private": ["127.0.0.0/8"]}}}})

        def told():
            """Run → the pages that messages about it named."""
            out = {}
            for request in people.accepted():
                for alert in request["json"]["alerts"]:
                    if "report" in alert["annotations"]:
                        out.setdefault(alert["labels"]["run_uid"], set()).add(alert["annotations"]["report"])
            return out

        def written():
            """[(run, status, address)] of what was said of pages."""
            return sorted((data["run"]["uid"], data["status"], data["summary"]["url"])
                          for _, data, _ in kafka_events(kafka, f"{prefix}.issues.v1") if data.get("rule") == "run_report")

        program = server(text)
        program.wait_for("ready", timeout=90)
        for number, uid in enumerate(runs):
            failing(tmp_path / f"run-{number}", kafka, f"{prefix}.telemetry.v1", uid)
            # In the seconds between its end and its page; behind its page; at whatever moment that is; not at all.
            if number < 2:
                program.wait_for("job_ended" if number == 0 else "report_written", timeout=90)
            if number < 3:
                program.kill()
                program = server(text)
        expected = {uid: {f"https://reports.example/runs/{name}"} for uid, name in names.items()}
        wait_until(lambda: len(told()) == len(runs), 180, "messages that name the page of every run")
        assert told() == expected
        assert written() == sorted((uid, "IssuesFound", *expected[uid]) for uid in runs)
        assert sorted(path.name for path in (tmp_path / "pages").iterdir()) == sorted(names.values())
