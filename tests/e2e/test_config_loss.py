"""The configuration of a running program is lost in part: emptied, cut off, deleted. Nobody can mean that: what was read
before judges on, an issue that fires stays open, and people, `/metrics`, the log and `tocsin status` hear of it."""
import os
import re
import subprocess
import sys
import textwrap
import time

import pytest

from tests.e2e.test_recovery import wait_until
from tests.support.program import BUILD, ROOT, run_cli
from tests.support.telemetry import journal_events
from tests.support.webhook_receiver import WebhookReceiver

CONFIG = """\
transport: {{journal: {journal}}}
http: {{listen: '127.0.0.1:0'}}
receivers:
  people: {{webhook: {{format: alertmanager_v4, url: '{url}', allow_private: [127.0.0.0/8]}}}}
route: {{receiver: people, group_wait: 0s, group_interval: 1s, group_by: [rule]}}
include: ['conf.d/*.yaml']
rules:
  - use: exploding_tensor
    with: {{cooldown: 1h}}
  - use: overfit
"""

SCRIPT = """
import time
import tocsin
hook = tocsin.watch(run="r", job="j")
for step in range(2000):
    hook.log(loss=float("nan") if step > 5 else 1.0)
    hook.step()
    time.sleep(0.05)
"""


class Running:
    """A program with a job whose loss is NaN, of which people have been told."""

    def __init__(self, server, people, folder):
        self.people, self.journal, self.file = people, folder / "journal", folder / "tocsin.yaml"
        self.included = folder / "conf.d" / "more.yaml"
        self.included.parent.mkdir()
        self.included.write_text("rules:\n  - use: loss_spike\n")
        self.file.write_text(CONFIG.format(journal=self.journal, url=people.url))
        self.program = server(self.file)
        self.program.wait_for("ready")
        script = folder / "train.py"
        script.write_text(textwrap.dedent(SCRIPT))
        environment = {**os.environ, "TOCSIN_OUT": str(self.journal), "PYTHONPATH": str(ROOT / "python"),
                       "TOCSIN_LIBRARY": os.environ.get("TOCSIN_LIBRARY", str(BUILD / "collectors/hook/libtocsin_client.so.0"))}
        self.job = subprocess.Popen([sys.executable, script], env=environment, stderr=subprocess.DEVNULL)
        wait_until(lambda: self.alerts("exploding_tensor"), 30, "people hear of the loss")

    def alerts(self, rule):
        return [alert for request in self.people.accepted() for alert in (request["json"] or {}).get("alerts", [])
                if alert["labels"].get("rule") == rule]

    def metric(self, name):
        return float(re.search(rf"^{name} (\S+)$", self.program.get("/metrics")[1], re.M).group(1))

    def resolved(self):
        return [data for _, data, _ in journal_events(self.journal, "issues") if data.get("status") == "resolved"
                and data.get("rule") == "exploding_tensor"]


@pytest.fixture
def running(server, tmp_path):
    with WebhookReceiver() as people:
        one = Running(server, people, tmp_path)
        yield one
        one.job.kill()
        one.job.wait(10)


def lose_the_end(one):
    text = one.file.read_text()
    one.file.write_text(text[:text.index("route:") + 8])


def lose_a_section(one):
    text = one.file.read_text()
    one.file.write_text(text[:text.index("receivers:")])


LOSSES = {
    "empty": lambda one: one.file.write_text(""),
    "only a comment": lambda one: one.file.write_text("# ours\n"),
    "cut in a line": lose_the_end,
    "cut behind a section": lose_a_section,
    "no rules": lambda one: one.file.write_text(one.file.read_text().split("rules:")[0] + "rules:\n"),
    "deleted": lambda one: one.file.unlink(),
    "included file empty": lambda one: one.included.write_text(""),
    "included folder away": lambda one: (one.included.unlink(), one.included.parent.rmdir()),
}


def test_what_was_read_before_stays_and_that_is_told(running):
    before = {path: path.read_text() for path in (running.file, running.included)}
    for number, (name, lose) in enumerate(LOSSES.items(), start=1):
        firing = sum(a["status"] == "firing" for a in running.alerts("configuration_refused"))
        lose(running)
        wait_until(lambda: len(running.program.all("configuration_not_reloaded")) == number, 40, f"{name}: refused")
        assert running.metric("tocsin_config_last_reload_successful") == 0
        told = wait_until(lambda: [a for a in running.alerts("configuration_refused") if a["status"] == "firing"][firing:], 20,
                          f"{name}: people hear of it")
        assert ".yaml" in told[0]["annotations"]["summary"]
        assert "configuration_refused" in run_cli("status", "--out", running.journal)[1].split("unhealthy")[1]
        assert running.program.get("/-/ready")[0] == 200  # what was read before is at work
        for path, text in before.items():  # mended
            path.parent.mkdir(exist_ok=True)
            path.write_text(text)
        wait_until(lambda: running.metric("tocsin_config_last_reload_successful") == 1, 30, f"{name}: mended")
        wait_until(lambda: sum(a["status"] == "resolved" for a in running.alerts("configuration_refused")) >= number, 30,
                   f"{name}: people hear that it is mended")
    assert not running.resolved() and not any(a["status"] == "resolved" for a in running.alerts("exploding_tensor"))


def test_an_editor_that_replaces_the_file_makes_no_noise(running):
    text = running.file.read_text()
    for number in range(4):
        other = running.file.with_suffix(".swp")
        running.file.rename(running.file.with_suffix(".bak"))  # a moment without the file
        other.write_text(text + f"# {number}\n")
        time.sleep(0.3)
        os.replace(other, running.file)
    running.program.wait_for("configuration_reloaded")
    assert not running.program.all("configuration_not_reloaded") and not running.program.all("configuration_error")


def test_a_rule_that_is_taken_out_ends_its_issues_as_that(running):
    running.file.write_text(running.file.read_text().replace("  - use: exploding_tensor\n    with: {cooldown: 1h}\n", ""))
    running.program.wait_for("configuration_reloaded", removed="exploding_tensor")
    wait_until(running.resolved, 20, "the issue ends")
    assert [one["resolution"] for one in running.resolved()] == ["rule_removed"]
    over = wait_until(lambda: [a for a in running.alerts("exploding_tensor") if a["status"] == "resolved"], 20, "people hear why")
    assert "removed" in str(over[0]["annotations"])
