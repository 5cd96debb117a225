"""A person asks a running job for more on its page, and by the API: captures of chosen steps, a trace, where its ranks stand."""
import json
import os
import subprocess
import sys
import textwrap
import urllib.error
import urllib.request

import pytest

from tests.e2e.test_insights import asked
from tests.e2e.test_page_acts import OPERATOR, pictured
from tests.support.hook_support import wait_for
from tests.support.program import BUILD, ROOT, run_cli

VIEWER = "passer-by-0123456789abc"
CONFIG = """
transport: {{journal: {journal}}}
cluster: lab
capture: {{every: 100000 steps, collections: [losses]}}
rules: [exploding_tensor]
http:
  listen: '127.0.0.1:0'
  auth:
    tokens:
      - {{name: night-shift, role: operator, token_file: {operator}}}
      - {{name: passer-by, role: viewer, token_file: {viewer}}}
"""

SCRIPT = """
import os, sys, time
import torch
import tocsin
torch.set_num_threads(1)
torch.manual_seed(0)
model = torch.nn.Linear(8, 1)
optimizer = torch.optim.SGD(model.parameters(), 0.001)
hook = tocsin.watch(model, optimizer, run="r", job="digits",
                    capture={"overhead": "100%"})  # on a busy machine the grid would widen
print("open", hook.run, flush=True)
enough, hold = sys.argv[1:]
while not os.path.exists(enough):
    while os.path.exists(hold) and os.environ["RANK"] == "1":
        time.sleep(0.05)
    optimizer.zero_grad()
    model(torch.randn(4, 8)).square().mean().backward()
    optimizer.step()
    time.sleep(0.02)
hook.close()
"""


class Training:
    """Two ranks that go on until they are told it is enough; rank 1 stands still while the file `hold` is there."""

    def __init__(self, server, tmp_path):
        for name, token in (("operator", OPERATOR), ("viewer", VIEWER)):
            (tmp_path / name).write_text(token)
            (tmp_path / name).chmod(0o600)
        self.journal, self.enough, self.hold = tmp_path / "journal", tmp_path / "enough", tmp_path / "hold"
        self.server = server(CONFIG.format(journal=self.journal, operator=tmp_path / "operator", viewer=tmp_path / "viewer"))
        self.server.wait_for("ready")
        self.base = f"http://{self.server.wait_for('started')['http']}"
        script = tmp_path / "train.py"
        script.write_text(textwrap.dedent(SCRIPT))
        environment = {key: value for key, value in os.environ.items() if not key.startswith("TOCSIN_") or key == "TOCSIN_LIBRARY"}
        environment.setdefault("TOCSIN_LIBRARY", str(BUILD / "collectors/hook/libtocsin_client.so.0"))
        environment.update(TOCSIN_OUT=str(self.journal), PYTHONPATH=str(ROOT / "python"), TOCSIN_QUIET="1", TOCSIN_LAUNCH="both", WORLD_SIZE="2")
        self.ranks = [subprocess.Popen([sys.executable, script, self.enough, self.hold], env={**environment, "RANK": str(rank)},
                                       stdout=subprocess.PIPE, text=True) for rank in range(2)]
        self.uid = [rank.stdout.readline().split()[1] for rank in self.ranks][0]

        def goes_on():
            status, text = self.server.get("/api/v1/runs")
            return status == 200 and [one for one in json.loads(text)["items"] if one["world_size"] == 2 and (one["step"] or 0) > 20]
        assert wait_for(goes_on, 30)

    def post(self, path, body, token=OPERATOR, once=""):
        headers = {"Authorization": f"Bearer {token}", "Content-Type": "application/json", **({"Idempotency-Key": once} if once else {})}
        request = urllib.request.Request(f"{self.base}/api/v1/runs/{self.uid}{path}", json.dumps(body).encode(), headers)
        try:
            with urllib.request.urlopen(request, timeout=20) as answer:
                return answer.status, json.load(answer)
        except urllib.error.HTTPError as error:
            return error.code, json.load(error)

    def answers(self, command):
        found = [one for one in asked(self.server, f"/api/v1/commands?run={self.uid}")["items"] if one["command_id"] == command]
        return {one["rank"]: one for one in found[0]["answers"]} if found else {}

    def changes(self):
        request = urllib.request.Request(self.base + "/api/v1/audit", headers={"Authorization": f"Bearer {OPERATOR}"})
        with urllib.request.urlopen(request, timeout=10) as answer:
            return [one for one in json.load(answer)["items"]]

    def rows(self, name, statistic):
        """(rank, step) of the captured rows of a tensor that have the statistic."""
        told = subprocess.run([sys.executable, "-c", "import json, sys\nfrom tocsin.reading import Tensors\n"
                               "print(json.dumps([[row['rank'], row['step']] for row in Tensors(sys.argv[1]).get(sys.argv[2]) if sys.argv[3] in row]))",
                               self.journal, name, statistic], env={**os.environ, "PYTHONPATH": str(ROOT / "python")}, capture_output=True, text=True, check=True)
        return sorted(map(tuple, json.loads(told.stdout)))

    def close(self):
        self.hold.unlink(missing_ok=True)
        self.enough.touch()
        for rank in self.ranks:
            try:
                rank.wait(30)
            finally:
                rank.kill()


@pytest.fixture
def training(server, tmp_path):
    made = []

    def start():
        made.append(Training(server, tmp_path))
        return made[0]
    yield start
    for one in made:
        one.close()


def test_two_steps_are_captured_by_all_ranks_at_once(training):
    one = training()
    body = {"collections": ["gradients"], "statistics": ["quantiles"], "steps": 2, "reason": "loss jumps"}
    status, tried = one.post("/capture?dry_run=true", body)
    assert status == 200 and tried["state"] == "dry_run" and tried["ranks"] == 2 and tried["cautions"], tried
    assert one.changes() == [], "nothing was written"
    assert one.post("/capture", body, VIEWER)[0] == 403
    status, told = one.post("/capture", body, once="a-first-key")
    assert status == 202 and told["until_step"] == told["from_step"] + 2, told
    assert one.post("/capture", body, once="a-first-key")[1] == told, "sent twice it is done once"
    assert wait_for(lambda: [answer["phase"] for answer in one.answers(told["command_id"]).values()] == ["ended"] * 2, 30), one.answers(told["command_id"])
    expected = [(0, told["from_step"]), (0, told["from_step"] + 1)]  # parameters are replicated: rank 0 captures (capture.workers)
    assert wait_for(lambda: one.rows("gradient/weight", "p75") == expected, 10), (one.rows("gradient/weight", "p75"), expected)
    (change,) = one.changes()
    assert (change["what"], change["who"], change["subject"]) == ("capture.requested", "night-shift", one.uid) and change["after"]["reason"] == "loss jumps"

    status, told = one.post("/capture", {"collections": ["gradients"], "statistics": ["quantiles"], "ranks": [0]})
    assert status == 202 and told["ranks"] == 1 and told["until_step"] == told["from_step"] + 1, "blank is one step"
    assert wait_for(lambda: one.answers(told["command_id"]).get(0, {}).get("phase") == "ended", 30)
    assert wait_for(lambda: one.rows("gradient/weight", "p75") == [*expected, (0, told["from_step"])], 10)
    assert set(one.answers(told["command_id"])) == {0}, "rank 1 was not asked"


def test_what_cannot_be_asked_is_said(training):
    one = training()
    for path, body, status, says in [
            ("/capture", {}, 400, "expected one of collections, pause, resume and end"),
            ("/capture", {"colections": ["x"]}, 400, 'unknown field "colections"; did you mean "collections"?'),
            ("/capture", {"collections": ["gradients"], "pause": True}, 400, "expected one of"),
            ("/capture", {"collections": ["gradients"], "ranks": [2]}, 400, "has the ranks 0 to 1, not 2"),
            ("/capture", {"collections": ["gradients"], "from_step": 0}, 409, "step 0 has passed"),
            ("/capture", {"collections": ["gradients"], "attempt": 7}, 409, "attempt 7 of digits"),
            ("/profile", {"steps": 10001}, 400, "steps: expected a whole number from 1 to 10000"),
            ("/profile", {"kind": "stack"}, 400, "kind: expected trace or stacks"),
            ("/profile", {"kind": "stacks", "steps": 2}, 400, "they belong to a trace")]:
        got, answer = one.post(path, body)
        assert got == status and says in answer["detail"], (path, body, got, answer)
    assert one.changes() == []


def test_a_pause_is_seen_and_taken_back(training):
    one = training()
    status, told = one.post("/capture", {"pause": True, "reason": "the disk is full"})
    assert status == 202 and told["action"] == "capture/pause" and told["until_step"] is None, told
    assert wait_for(lambda: len(one.answers(told["command_id"])) == 2, 30)
    assert "capture paused by night-shift" in run_cli("status", "--from", one.journal)[1]
    status, told = one.post("/capture", {"resume": True})
    assert status == 202 and told["state"] == "withdrawn"
    assert wait_for(lambda: "paused" not in run_cli("status", "--from", one.journal)[1], 20)
    assert [change["what"] for change in one.changes()][::-1] == ["pause.requested", "pause.withdrawn"]


def opened(browser, one, width=1440, theme="light"):
    page = browser.new_context(viewport={"width": width, "height": 900}, color_scheme=theme).new_page()
    page.goto(f"{one.base}/runs/{one.uid}")
    page.wait_for_selector("#capture")
    return page


def chosen(page, button, sign_in=True):
    page.click(f"#capture .deeds button:text-is('{button}')")
    if sign_in:
        assert "This needs a token with the role operator (http.auth.tokens)." in page.inner_text("#capture")
        page.fill("#capture input[type=password]", OPERATOR)
        page.click("#capture button:has-text('Sign in')")
    page.wait_for_selector("#capture form.deed")


@pytest.mark.parametrize("width,theme", [(1440, "light"), (390, "dark")])
def test_each_rank_answers_on_the_page_and_who_has_not_is_named(training, browser, width, theme):
    one = training()
    page = opened(browser, one, width, theme)
    refused = []
    page.on("console", lambda line: refused.append(line.text) if line.type == "error" else None)
    page.on("pageerror", lambda error: refused.append(str(error)))
    chosen(page, "Capture more")
    page.wait_for_selector("#capture >> text=/would ask digits.*, at step [0-9]+/")
    assert "capture.max_overhead" in page.inner_text("#capture .cautions")
    page.fill("#capture input[name=statistics]", "quantiles")
    page.fill("#capture input[name=ranks]", "0, x")
    assert page.is_disabled("#capture form.deed button[type=submit]"), "that is no list of ranks"
    page.fill("#capture input[name=ranks]", "")
    page.fill("#capture input[name=reason]", "loss jumps")
    page.wait_for_selector("#capture >> text=/would ask digits.*, at step [0-9]+/")
    page.locator("#capture").scroll_into_view_if_needed()
    pictured(page, f"capture-form-{width}-{theme}")
    one.hold.touch()
    page.click("#capture form.deed button[type=submit]")
    page.wait_for_selector("#capture >> text=/1 of 2 ranks have answered. Rank 1 has not answered/", timeout=20000)
    assert page.wait_for_selector("#capture .answers li:has-text('rank 0')").inner_text().startswith("rank 0 worker_0: ")
    page.locator("#capture").scroll_into_view_if_needed()
    pictured(page, f"capture-waits-{width}-{theme}")
    one.hold.unlink()
    page.wait_for_selector("#capture .answers >> text=/2 of 2 ranks have answered/", timeout=30000)
    said = [asked(one.server, f"/api/v1/commands?run={one.uid}")["items"][0]][0]
    assert said["requested_by"] == "night-shift" and said["reason"]["summary"] == "loss jumps"

    chosen(page, "Where does it stand?", sign_in=False)
    page.click("#capture form.deed button[type=submit]")
    page.wait_for_selector("#capture .answers pre:has-text('train.py')", timeout=20000)
    assert not refused, refused


def test_a_trace_of_one_step_is_asked_for_on_the_page(training, browser):
    one = training()
    page = opened(browser, one)
    chosen(page, "Trace steps")
    page.wait_for_selector("#capture .cautions >> text=/host and GPU memory/")
    assert "One or two steps are advised" not in page.inner_text("#capture .cautions")
    page.fill("#capture input[name=steps]", "30")
    page.wait_for_selector("#capture .cautions >> text='One or two steps are advised: a trace of 30 steps is large.'")
    page.fill("#capture input[name=steps]", "")
    page.wait_for_selector("#capture .cautions:not(:has-text('advised'))")
    pictured(page, "capture-trace-form-1440-light")
    page.click("#capture form.deed button[type=submit]")
    page.wait_for_selector("#capture .answers >> text=/2 of 2 ranks have answered/", timeout=30000)
    page.wait_for_selector("#capture .answers li:has-text(': sent') >> nth=1", timeout=60000)
    told = page.inner_text("#capture .answers")
    assert told.count("tocsin.trace") == 2, told
    page.locator("#capture .answers").scroll_into_view_if_needed()
    pictured(page, "capture-trace-1440-light")
