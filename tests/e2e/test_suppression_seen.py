"""Whatever keeps people from being told is seen everywhere with all its reasons; an end that is owed outlives kill -9."""
import datetime
import json
import re
import subprocess
import urllib.error
import urllib.request

import pytest

from tests.support.choosy import ChoosyReceiver
from tests.support.hook_support import wait_for
from tests.support.program import run_cli
from tests.support.telemetry import JournalWriter, scalar

WEBHOOK = "webhook: {{url: '{url}', allow_private: [127.0.0.0/8], secret: 'whsec_MDEyMzQ1Njc4OWFiY2RlZjAxMjM0NTY3ODlhYmNkZWY='"
CONFIG = """
transport: {{journal: {data}}}
rules:
  - exploding_tensor
  - {{name: high, select: 'metric("rate")', when: 'value > 5'}}
time_intervals:
  - {{name: always, intervals: [{{times: [{{start: '00:00', end: '24:00'}}]}}]}}
inhibit_rules:
  - {{name: nan-hides-rates, source_matchers: ['rule="exploding_tensor"'], target_matchers: ['rule="high"'], equal: []}}
route:
  receiver: people
  group_wait: 0s
  group_interval: 1s
  group_by: [job]
  routes:
    - {{matchers: ['job="night"'], mute_time_intervals: [always]}}
receivers:
  people: {{""" + WEBHOOK + """, resolve_when_suppressed: defer}}}}
http: {{listen: '127.0.0.1:0', auth: {{tokens: [{{name: shift, role: operator, token: 0123456789-of-the-shift}}]}}}}
"""


def broken(job):
    return [scalar(job, "loss", "NaN" if step == 3 else 1.0, step, job=job) for step in range(5)]


def well_again(job):
    return [scalar(job, "loss", 1.0, step, job=job) for step in range(5, 12)]


def fast(job):
    return [scalar(job, "rate", 9.0, step, job=job) for step in range(5)]


def kinds(program, job):
    return [event["kind"] for event in program.all("notification_decided") if f'job="{job}"' in event["group_key"]]


def issues(program, query=""):
    status, text = program.get(f"/api/v1/issues?status=firing{query}")
    assert status == 200, text
    return {one["job"]: one for one in json.loads(text)["items"]}


def groups(program, query=""):
    status, text = program.get(f"/api/v1/groups{query}")
    assert status == 200, text
    return json.loads(text)["items"]


@pytest.fixture
def config(tmp_path):
    """Of a router whose only integration delivers to a receiver that takes everything."""
    with ChoosyReceiver(lambda body: 200) as receiver:
        path = tmp_path / "t.yaml"
        path.write_text(CONFIG.format(data=tmp_path / "data", url=receiver.url))
        yield path


def up(server, config):
    program = server(config)
    program.wait_for("ready", timeout=90)
    return program


def test_every_reason_is_seen_by_command_api_and_amtool(server, config, tmp_path):
    assert run_cli("check", "-c", config)[0] == 0
    program = up(server, config)
    writer = JournalWriter(tmp_path / "data")
    for job in ("source", "night"):
        writer.append(*broken(job))
        program.wait_for("issue_fired", job=job, timeout=60)
    writer.append(*fast("target"))
    program.wait_for("issue_fired", job="target", timeout=60)
    code, out, err = run_cli("silence", "add", "--job", "target", "--for", "2h", "--comment", "known", "-c", config)
    assert code == 0, out + err
    silence = out.splitlines()[0]
    fingerprint = {}
    for line in run_cli("issues", "list", "-c", config)[1].splitlines()[1:]:
        fingerprint[next(job for job in ("source", "target", "night") if f" {job} " in line)] = line.split()[0]
    code, out, err = run_cli("ack", fingerprint["source"], "--note", "mine", "--author", "ada", "-c", config)
    assert code == 0, out + err

    # The API, with every reason and not only the first.
    assert wait_for(lambda: issues(program).get("source", {}).get("acked_by") == "ada", 30)
    seen = issues(program)
    assert seen["target"]["silenced_by"] == [silence]
    assert seen["target"]["inhibited_by"] == [{"rule": "nan-hides-rates", "source": seen["source"]["key"]}], "the source that fires for longest"
    assert seen["night"]["muted_by"] == ["always"] and seen["night"]["inhibited_by"] == []
    assert seen["source"]["silenced_by"] == seen["source"]["inhibited_by"] == seen["source"]["muted_by"] == []
    assert seen["source"]["flapping_since"] is None

    # The commands.
    status = run_cli("status", "-c", config)[1]
    [line] = [line for line in status.splitlines() if " high " in line]
    assert "silenced: inhibited by nan-hides-rates: " in line, status
    assert "muted by always: " in status and "acknowledged by ada: " in status, status
    by_job = {one["labels"]["job"]: one for one in json.loads(run_cli("status", "-c", config, "-o", "json")[1])["issues"]}
    assert by_job["target"]["silenced_by"] == [silence] and by_job["target"]["inhibited_by"] == seen["target"]["inhibited_by"], by_job["target"]
    listed = run_cli("issues", "list", "-c", config)[1]
    assert "silenced: inhibited by nan-hides-rates: " in listed and "muted by always: " in listed, listed
    shown = run_cli("issues", "show", fingerprint["target"], "-c", config)[1]
    assert "by rule nan-hides-rates, because of " in shown and "known" in shown, shown
    shown = run_cli("issues", "show", fingerprint["source"], "-c", config)[1]
    assert "people/webhook: " in shown and "next look" in shown and "ada" in shown, shown
    as_json = json.loads(run_cli("issues", "show", fingerprint["source"], "-c", config, "-o", "json")[1])
    [told] = as_json["groups"][0]["integrations"]
    assert as_json["acked_by"] == "ada" and told["told"][0]["key"] == seen["source"]["key"], as_json["groups"]

    # Debian's amtool, as somebody on call runs it.
    def amtool(*words):
        url = f"http://{program.wait_for('started')['http']}"
        done = subprocess.run(["amtool", f"--alertmanager.url={url}", "alert", "query", "-o", "json", *words],
                              capture_output=True, text=True, timeout=30, check=False)
        assert done.returncode == 0, done.stderr
        return {one["labels"]["job"]: one for one in json.loads(done.stdout)}
    assert set(amtool()) == {"source", "night"}, "what a silence or a rule holds back is left out unless one asks for it; amtool knows no muted ones"
    assert set(amtool("--inhibited", "--silenced")) == {"target", "night"}, "only what something holds back"
    held = amtool("--inhibited", "--silenced")["target"]["status"]
    assert held["state"] == "suppressed" and held["silencedBy"] == [silence] and len(held["inhibitedBy"]) == 1, held
    assert set(amtool("--silenced")) == {"night"}, "the target is inhibited too"
    muted = {one["labels"]["job"]: one["status"] for one in json.loads(program.get("/api/v2/alerts")[1])}["night"]
    assert muted["mutedBy"] == ["always"] and muted["state"] == "suppressed", muted
    assert program.stop() == 0


def test_an_end_that_is_owed_outlives_a_kill_and_is_told_once(server, config, tmp_path):
    program = up(server, config)
    writer = JournalWriter(tmp_path / "data")
    writer.append(*broken("source"))
    assert wait_for(lambda: kinds(program, "source") == ["open"], 60)
    code, out, err = run_cli("silence", "add", "--job", "source", "--for", "2h", "--comment", "known", "-c", config)
    assert code == 0, out + err
    silence = out.splitlines()[0]
    writer.append(*well_again("source"))
    program.wait_for("issue_resolved", job="source", timeout=60)
    owed = lambda: [end for group in groups(program) for one in group["integrations"] for end in one["owed"]]  # noqa: E731
    assert wait_for(lambda: len(owed()) == 1, 60), groups(program)
    assert kinds(program, "source") == ["open"], "a silence holds the end back: resolve_when_suppressed is defer"
    assert re.search(r'\ntocsin_router_ends_deferred_total\{integration="[^"]+"\} 1\n', program.get("/metrics")[1])
    [group] = groups(program)
    assert group["integrations"][0]["incident_open"] and group["integrations"][0]["told"] == [] and group["next_flush"]
    status, text = program.get(f"/api/v1/groups/{group['hash'][:12]}")
    assert status == 200 and json.loads(text)["key"] == group["key"]
    assert program.get("/api/v1/groups/none")[0] == 404

    program.kill()
    program = up(server, config)
    assert wait_for(lambda: len(owed()) == 1, 60), "it stands in the router's state"
    assert re.search(r"(?m)^tocsin_router_owed_resolves\{integration=\"[^\"]+\"\} 1$", program.get("/metrics")[1])
    assert run_cli("silence", "expire", silence, "-c", config)[0] == 0
    assert wait_for(lambda: kinds(program, "source") == ["close"], 60)
    assert wait_for(lambda: owed() == [], 30)

    program.kill()
    program = up(server, config)
    writer.append(*broken("another"))
    assert wait_for(lambda: kinds(program, "another") == ["open"], 60)
    assert kinds(program, "source") == [], "the close was told once"
    assert program.stop() == 0


def test_the_api_takes_every_silence_that_the_command_takes(server, config, tmp_path):
    program = up(server, config)
    JournalWriter(tmp_path / "data").append(*broken("source"))
    program.wait_for("issue_fired", job="source", timeout=60)
    tomorrow = (datetime.datetime.now(datetime.timezone.utc) + datetime.timedelta(days=1)).strftime("%A").lower()
    base = f"http://{program.wait_for('started')['http']}"

    def post(body):
        request = urllib.request.Request(f"{base}/api/v1/silences", json.dumps(body).encode(), {"Content-Type": "application/json", "Authorization": "Bearer 0123456789-of-the-shift"},
                                         method="POST")
        try:
            with urllib.request.urlopen(request, timeout=10) as answer:
                return answer.status, json.loads(answer.read())
        except urllib.error.HTTPError as error:
            return error.code, json.loads(error.read())
    status, made = post({"matcher_sets": ['{job="source"}', '{rule="high"}'], "recurrence": {"time_interval": "always"}, "comment": "known",
                         "announce_on_unmute": "reminder", "annotations": {"ticket": "OPS-7"}})
    assert status == 202, made
    row = made["silence"]
    assert row["in_force"] and row["recurrence"]["time_interval"] == "always" and len(row["matcher_sets"]) == 2 and row["annotations"] == {"ticket": "OPS-7"}
    assert issues(program)["source"]["silenced_by"] == [row["id"]]
    status, later = post({"matchers": '{job="source"}', "recurrence": {"intervals": [{"weekdays": [tomorrow], "times": ["02:00-04:00"], "location": "Europe/Berlin"}]},
                          "comment": "maintenance"})
    assert status == 202 and not later["silence"]["in_force"] and later["silence"]["state"] == "active", later
    status, ends = post({"matchers": '{job="source"}', "until_resolved": True, "quiet_for": "1m", "comment": "the disk is swapped"})
    assert status == 202 and ends["silence"]["until_resolved"] and ends["silence"]["quiet_for"] == "1m", ends
    listed = json.loads(run_cli("silence", "list", "-c", config, "-o", "json")[1])
    assert {one["id"] for one in listed} == {row["id"], later["silence"]["id"], ends["silence"]["id"]}, "the command sees the same"
    status, refused = post({"matchers": '{job="source"}', "recurrence": {"time_interval": "alway"}, "comment": "x"})
    assert status == 400 and 'did you mean "always"?' in refused["detail"], refused

    program.kill()
    program = up(server, config)
    assert issues(program)["source"]["silenced_by"] == sorted([row["id"], ends["silence"]["id"]])
    assert program.stop() == 0
