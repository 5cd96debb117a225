"""A part of a process that cannot work says so alike in `/-/ready`, in an issue that people get, and in `tocsin status`; all
other parts go on."""
import datetime
import re

import pytest

from tests.e2e.test_recovery import wait_until
from tests.support.program import run_cli
from tests.support.telemetry import JournalWriter, journal_events, scalar
from tests.support.webhook_receiver import WebhookReceiver

CONFIG = """
transport: {{journal: {journal}}}
rules: [exploding_tensor]
route: {{receiver: people, group_wait: 0s, group_by: [rule]}}
receivers: {{people: {{webhook: {{format: alertmanager_v4, url: '{url}', allow_private: [127.0.0.0/8]}}}}}}
http: {{listen: '127.0.0.1:0'}}
"""
PAGE = 16384


def alerts(people, rule):
    return [alert for request in people.accepted() for alert in (request["json"] or {}).get("alerts", [])
            if alert["labels"].get("rule") == rule]


def rows(program):
    return float(re.search(r"^tocsin_rules_rows_total (\S+)$", program.get("/metrics")[1], re.M).group(1))


@pytest.mark.alone
def test_a_damaged_page_of_the_telemetry_is_told_and_routing_goes_on(server, tmp_path):
    journal = tmp_path / "journal"
    with WebhookReceiver() as people:
        config = CONFIG.format(journal=journal, url=people.url)
        program = server(config)
        program.wait_for("ready")
        writer = JournalWriter(journal)
        writer.append(*[scalar("one", "loss", 1.0, step) for step in range(2000)])
        wait_until(lambda: rows(program) >= 2000, 30, "all is judged")
        assert program.stop() == 0
        file = journal / "telemetry.db"
        before = file.stat().st_size
        writer.append(*[scalar("one", "loss", 1.0, step) for step in range(2000, 8000)])
        after = file.stat().st_size
        assert after - before > 20 * PAGE, "the records lie in the file"
        with open(file, "r+b") as damaged:
            for page in range(before // PAGE + 4, after // PAGE - 2):
                damaged.seek(page * PAGE)
                damaged.write(b"\xa5" * PAGE)
        program = server(config)
        wait_until(lambda: program.get("/-/ready")[0] == 503 and "damaged" in program.get("/-/ready")[1], 40, "it is not ready")
        assert "evaluate" in program.get("/-/ready")[1]
        told = wait_until(lambda: alerts(people, "stage_stands_still"), 60, "people hear of it")
        assert told[0]["labels"]["stage"] == "evaluate" and "damaged" in told[0]["annotations"]["summary"]
        assert "stage_stands_still" in run_cli("status", "--out", journal)[1].split("unhealthy")[1]
        assert program.get("/-/ready")[0] == 503
        # It asks less and less often, instead of starting over as fast as it can.
        times = [datetime.datetime.fromisoformat(event["ts"][:26]) for event in program.all("stage_started_over")]
        seconds = (times[-1] - times[0]).total_seconds()
        print(f"started over {len(times)} times in {seconds:.0f} s")
        assert len(times) < 20 + seconds
        assert program.stop() == 0
    assert [one for _, one, _ in journal_events(journal, "issues") if one.get("rule") == "stage_stands_still"]
