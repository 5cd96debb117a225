"""Messages that do not reach people are told over what still works."""
import os
import subprocess
import sys
import textwrap
import time

from tests.support.program import BUILD, ROOT
from tests.support.webhook_receiver import WebhookReceiver

CONFIG = """
transport: {{journal: {journal}}}
rules: [exploding_tensor]
route: {{receiver: people, group_wait: 0s}}
receivers:
  people:
    - webhook: {{format: alertmanager_v4, url: '{broken}', allow_private: [127.0.0.0/8]}}
    - webhook: {{format: alertmanager_v4, url: '{good}', allow_private: [127.0.0.0/8]}}
http: {{listen: '127.0.0.1:0'}}
"""

SCRIPT = """
import time
import tocsin
hook = tocsin.watch(run="r", job="nan")
for step in range(40):
    hook.log(loss=float("nan") if step >= 5 else 1.0)
    hook.step()
    time.sleep(0.02)
"""


def train(tmp_path, journal):
    path = tmp_path / "train.py"
    path.write_text(textwrap.dedent(SCRIPT))
    environment = {**os.environ, "TOCSIN_OUT": str(journal), "PYTHONPATH": str(ROOT / "python"),
                   "TOCSIN_LIBRARY": os.environ.get("TOCSIN_LIBRARY", str(BUILD / "collectors/hook/libtocsin_client.so.0"))}
    subprocess.run([sys.executable, path], env=environment, check=True, timeout=60)


def alerts(receiver, rule):
    return [alert for request in receiver.accepted() for alert in (request["json"] or {}).get("alerts", [])
            if alert["labels"].get("rule") == rule]


def test_a_receiver_that_refuses_us_is_told_of_by_the_others(server, tmp_path):
    journal = tmp_path / "journal"
    with WebhookReceiver() as broken, WebhookReceiver() as good:
        broken.answer(401, times=1000)
        one = server(CONFIG.format(journal=journal, broken=broken.url, good=good.url))
        one.wait_for("ready")
        train(tmp_path, journal)
        end = time.monotonic() + 20
        while not alerts(good, "delivery_config") and time.monotonic() < end:
            time.sleep(0.1)
        told = alerts(good, "delivery_config")
        assert told, [request["json"] for request in good.accepted()]
        assert told[0]["status"] == "firing" and told[0]["labels"]["receiver"] == "people"
        assert "401" in told[0]["annotations"]["summary"], told[0]
        assert alerts(good, "exploding_tensor"), "and what was to be told in the first place"
        # The refused one is told of its own trouble too, in vain, and that makes no further issue.
        assert len({alert["labels"]["integration"] for alert in told}) == 1
