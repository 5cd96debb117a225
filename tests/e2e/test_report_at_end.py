"""`reports: {at_end: html}`: the page of a run is there when it has ended, without anybody's asking."""
import re

import pytest

from tests.e2e.test_every_rule import chosen
from tests.e2e.test_recovery import wait_until
from tests.reference import frames, tables
from tests.support.program import run_cli
from tests.support.telemetry import JournalWriter, journal_events
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


def test_a_page_that_cannot_be_written_is_told(ended, tmp_path):
    (tmp_path / "taken").write_text("")
    program = ended(tmp_path / "taken")
    assert "cannot be written" in program.wait_for("report_failed", timeout=60)["error"]
    status, data = wait_until(lambda: told(tmp_path), 30, "what is said of the report")
    assert status == "Error" and "cannot be written" in data["reason"]
    assert 'tocsin_reports_total{result="failed"} 1' in program.get("/metrics")[1]
