"""What a person does on the page of an issue, in a real browser: acknowledge, silence, decide on a stop, stop the run."""
import json
import os
import subprocess
import sys
import textwrap
import urllib.request

import pytest

from tests.e2e.test_insights import SCRIPT, asked
from tests.support.hook_support import wait_for
from tests.support.program import BUILD, ROOT
from tests.support.webhook_receiver import WebhookReceiver

OPERATOR, STOPPER = "night-shift-0123456789", "guard-0123456789abcdef"
CONFIG = """
transport: {{journal: {journal}}}
cluster: lab
capture: {{every: 1 steps, collections: [gradients, losses]}}
rules: [{{use: exploding_tensor, actions: [{actions}]}}]
route: {{receiver: people, group_wait: 0s, group_interval: 5s, group_by: [job]}}
receivers:
  people: {{webhook: {{url: '{url}', allow_private: [127.0.0.0/8]}}}}
  stop: {{stop_training: {{armed: true, mode: checkpoint_then_stop, approval: 'rule="exploding_tensor"'}}}}
http:
  listen: '127.0.0.1:0'
  auth:
    tokens:
      - {{name: night-shift, role: operator, token_file: {operator}}}
      - {{name: guard, role: stopper, token_file: {stopper}}}
"""


class Job:
    """A training script that goes on until it is asked to stop, and the page of its issue."""

    def __init__(self, server, tmp_path, actions=""):
        for name, token in (("operator", OPERATOR), ("stopper", STOPPER)):
            (tmp_path / name).write_text(token)
            (tmp_path / name).chmod(0o600)
        self.hook = WebhookReceiver()
        self.hook.__enter__()
        self.server = server(CONFIG.format(journal=tmp_path / "journal", url=self.hook.url, actions=actions,
                                           operator=tmp_path / "operator", stopper=tmp_path / "stopper"))
        self.server.wait_for("ready")
        script = tmp_path / "train.py"
        script.write_text(textwrap.dedent(SCRIPT).replace("range(900)", "range(4000)"))
        environment = {**os.environ, "TOCSIN_OUT": str(tmp_path / "journal"), "PYTHONPATH": str(ROOT / "python"),
                       "TOCSIN_LIBRARY": os.environ.get("TOCSIN_LIBRARY", str(BUILD / "collectors/hook/libtocsin_client.so.0"))}
        self.process = subprocess.Popen([sys.executable, script, tmp_path / "last.ckpt"], env=environment)

        def troubled():  # the store may only be being made
            status, text = self.server.get("/api/v1/runs")
            return [one for one in json.loads(text)["items"] if one["headline"]] if status == 200 else []
        (run,) = wait_for(troubled, 20)
        self.path = "/issues/{key}/{episode}".format(**run["headline"])
        self.uid = run["uid"]

    @property
    def base(self):
        return f"http://{self.server.wait_for('started')['http']}"

    def changes(self):
        request = urllib.request.Request(self.base + "/api/v1/audit", headers={"Authorization": f"Bearer {OPERATOR}"})
        with urllib.request.urlopen(request, timeout=10) as answer:
            return [(one["what"], one["who"]) for one in json.load(answer)["items"]]

    def close(self):
        self.process.kill()
        self.process.wait()
        self.hook.__exit__(None, None, None)


@pytest.fixture
def job(server, tmp_path):
    made = []

    def start(actions=""):
        made.append(Job(server, tmp_path, actions))
        return made[0]
    yield start
    for one in made:
        one.close()


def opened(browser, job, width=1440, theme="light"):
    page = browser.new_context(viewport={"width": width, "height": 900}, color_scheme=theme).new_page()
    page.goto(job.base + job.path)
    page.wait_for_selector("#act")
    return page


def signed_in(page, button, token):
    page.click(f"#act button:has-text('{button}')")
    page.fill("#act input[type=password]", token)
    page.click("#act button:has-text('Sign in')")
    page.wait_for_selector("#act form.deed")


def pictured(page, name):
    screens = ROOT / "build" / "screens"
    screens.mkdir(parents=True, exist_ok=True)
    page.screenshot(path=screens / f"{name}.png")
    width = page.viewport_size["width"]
    assert page.evaluate("document.documentElement.scrollWidth") <= width, f"{name} is wider than the window"


@pytest.mark.parametrize("width,theme", [(1440, "light"), (390, "dark")])
def test_an_issue_is_acknowledged_and_silenced_where_it_is_read(job, browser, width, theme):
    one = job()
    page = opened(browser, one, width, theme)
    page.click("#act button:has-text('Acknowledge')")
    # Who is nobody cannot do it, and is told why.
    page.wait_for_selector("#act >> text=This needs a token with the role operator (http.auth.tokens).")
    page.fill("#act input[type=password]", "wrong-wrong-wrong-wrong")
    page.click("#act button:has-text('Sign in')")
    page.wait_for_selector("#act [role=alert]:has-text('none of http.auth.tokens')")
    page.fill("#act input[type=password]", OPERATOR)
    page.click("#act button:has-text('Sign in')")
    page.wait_for_selector("#act form.deed")
    assert page.is_disabled("#act form.deed button[type=submit]"), "a word about it is needed"
    page.fill("#act form.deed input", "looking at the data loader")
    pictured(page, f"act-ack-{width}-{theme}")
    page.click("#act form.deed button[type=submit]")
    page.wait_for_selector("text=Acknowledged by night-shift.")
    (ack, *_) = wait_for(lambda: asked(one.server, "/api/v1/acks")["items"], 30)  # the view of the topic follows
    assert ack["by"] == "night-shift" and ack["note"] == "looking at the data loader" and ack["holds"]
    assert page.locator("#act button:has-text('Acknowledge')").count() == 0

    page.click("#act button:has-text('Silence')")
    page.wait_for_selector("text=matches 1 open issue now")
    assert f'run_uid="{one.uid}" rule="exploding_tensor"' in page.inner_text("#act code")
    page.fill("#act form.deed input", "known since noon")
    pictured(page, f"act-silence-{width}-{theme}")
    page.click("#act form.deed button[type=submit]")
    page.wait_for_selector("#act >> text=/Silenced by night-shift until .* UTC: known since noon/")
    (silence,) = asked(one.server, "/api/v1/silences")["items"]
    assert silence["comment"] == "known since noon"
    assert {("ack.set", "night-shift"), ("silence.set", "night-shift")} <= set(one.changes())

    page.click("#act button:has-text('Stop the run')")
    page.wait_for_selector("text=night-shift is operator. This needs a token with the role stopper")
    assert one.process.poll() is None


def test_a_run_is_stopped_by_its_name(job, browser):
    one = job()
    page = opened(browser, one)
    signed_in(page, "Stop the run", STOPPER)
    page.fill("#act form.deed input", "digit")
    assert page.is_disabled("#act form.deed button[type=submit]"), "half a name stops nothing"
    page.fill("#act form.deed input", "digits")
    pictured(page, "act-stop-1440-light")
    page.click("#act form.deed button[type=submit]")
    page.wait_for_selector("#act [role=status]:has-text('asked digits')")
    assert one.process.wait(20) == 77
    page.wait_for_selector("#done:has-text('Stop: stopped')", timeout=15000)
    done = page.inner_text("#done")
    assert "Asked by guard" in done and "last.ckpt" in done, done
    assert ("stop.requested", "guard") in one.changes()
    assert page.locator("#act button:has-text('Stop the run')").count() == 0


def test_a_stop_that_waits_is_decided_on_the_page(job, browser):
    one = job("stop")
    page = opened(browser, one)
    page.wait_for_selector("text=A stop waits for approval", timeout=15000)
    assert page.locator("#act button:has-text('Stop the run')").count() == 0, "one question at a time"
    signed_in(page, "Approve the stop", STOPPER)
    page.fill("#act form.deed input", "seen")
    pictured(page, "act-approve-1440-light")
    page.click("#act form.deed button[type=submit]")
    assert one.process.wait(20) == 77
    page.wait_for_selector("#done:has-text('Stop: stopped')", timeout=15000)
    assert ("stop.approved", "guard") in one.changes()


def test_on_this_machine_a_token_stands_in_a_file_and_may_come_in_the_address(server, tmp_path, browser):
    one = server(f"""
transport: {{journal: {tmp_path / "journal"}}}
rules: [{{use: exploding_tensor}}]
http: {{listen: '127.0.0.1:0'}}
""")
    one.wait_for("ready")
    base = f"http://{one.wait_for('started')['http']}"
    file = tmp_path / "journal" / "page-token"
    assert asked(one, "/api/v1/status")["token_file"] == str(file) and file.stat().st_mode & 0o777 == 0o600
    token = file.read_text().strip()
    page = browser.new_page()
    page.goto(f"{base}/system#token={token}")
    page.wait_for_selector("text=local: admin")
    assert page.url == f"{base}/system", "the token does not stay in the address"
    assert token not in json.dumps(one.events)
    one.stop()
    assert file.read_text().strip() == token, "a restart keeps it"
