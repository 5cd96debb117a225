"""The life of a silence over the journal: previewed, changed, ended by itself or by people, exported; a kill -9 anywhere loses nothing."""
import datetime
import json
import re
import urllib.request

from tests.support.hook_support import wait_for
from tests.support.program import run_cli
from tests.support.telemetry import JournalWriter, journal_records, scalar

TOKEN = "0123456789-of-the-shift"
CONFIG = """
transport: {{journal: {folder}/data}}
rules: [exploding_tensor]
time_intervals:
  - {{name: always, intervals: [{{times: [{{start: "00:00", end: "24:00"}}]}}]}}
  - {{name: long-ago, intervals: [{{years: [1999]}}]}}
route: {{receiver: people, group_wait: 0s, group_interval: 2s, group_by: [job]}}
receivers:
  people: {{webhook: {{shadow: true, url: 'http://127.0.0.1:9/', allow_private: [127.0.0.0/8], secret: 'whsec_MDEyMzQ1Njc4OWFiY2RlZjAxMjM0NTY3ODlhYmNkZWY='}}}}
http:
  listen: '127.0.0.1:0'
  auth: {{tokens: [{{name: shift, role: operator, token_file: {folder}/shift}}]}}
"""


def just_now():
    return datetime.datetime.now(datetime.timezone.utc).isoformat().replace("+00:00", "Z")


class Place:
    def __init__(self, server, folder):
        (folder / "shift").write_text(TOKEN + "\n")
        (folder / "shift").chmod(0o600)
        self.config = folder / "t.yaml"
        self.config.write_text(CONFIG.format(folder=folder))
        self.server = server
        self.program = None
        self.start()

    def start(self):
        if self.program is not None:
            self.program.kill()  # SIGKILL
        self.program = self.server(self.config)
        self.program.wait_for("ready", timeout=60)

    def alert(self, job, **more):
        body = json.dumps([{"labels": {"alertname": "GpuFellOff", "job": job}, **more}]).encode()
        request = urllib.request.Request(f"http://{self.program.wait_for('started')['http']}/api/v2/alerts", data=body,
                                         headers={"Content-Type": "application/json", "Authorization": f"Bearer {TOKEN}"})
        with urllib.request.urlopen(request, timeout=30) as answer:
            assert answer.status == 200

    def silence(self, *words, code=0):
        got, out, err = run_cli("silence", *words, "-c", self.config)
        assert got == code, out + err
        return out + err if code else out

    def silences(self, *words):
        return {one["id"]: one for one in json.loads(self.silence("list", "-o", "json", *words))}

    def told(self):
        return {re.search('job="([^"]*)"', event["group_key"]).group(1) for event in self.program.all("notification_decided")}


def test_a_silence_that_ends_with_the_problem_does_so_after_kills(server, tmp_path):
    place = Place(server, tmp_path)
    place.alert("digits")
    assert wait_for(lambda: "digits" in place.told(), 30)
    identity = place.silence("add", "--job", "digits", "--until-resolved", "--quiet-for", "1s", "--comment", "swapping the card").splitlines()[0]
    place.start()
    place.alert("digits", endsAt=just_now())
    assert wait_for(lambda: "ended_by" in place.silences("--all")[identity], 60), "the router ends it"
    ended = place.silences("--all")[identity]
    assert ended["ended_by"] == "resolved" and ended["version"] == 2 and identity not in place.silences()
    assert "expired (resolved)" in place.silence("list", "--all")
    place.start()
    place.alert("digits")
    assert wait_for(lambda: "digits" in place.told(), 30), "it silences no more"
    assert not list(journal_records(tmp_path / "data", "dlq")), "the router asks for an end once: a second one would be refused"


def test_a_silence_is_changed_by_its_state_and_version(server, tmp_path):
    place = Place(server, tmp_path)
    identity = place.silence("add", "--job", "digits", "--for", "1h", "--comment", "why").splitlines()[0]
    before = place.silences()[identity]
    assert place.silence("update", identity, "--for", "4h", "--comment", "still", "--annotation", "ticket=OPS-7").splitlines()[0] == identity
    after = place.silences()[identity]
    assert (after["version"], after["comment"], after["annotations"]) == (2, "still", {"ticket": "OPS-7"})
    assert after["ends_at"] > before["ends_at"] and after["starts_at"] == before["starts_at"]
    assert "is at version 2, not 1" in place.silence("update", identity, "--version", "1", "--for", "5h", code=1)
    place.start()
    # Its matchers stay: another silence takes its place.
    other = place.silence("update", identity, 'job="words"').splitlines()[0]
    now = place.silences()
    assert other != identity and set(now) == {other} and now[other]["replaces"] == identity and now[other]["comment"] == "still"
    place.alert("words")
    place.alert("digits")
    assert wait_for(lambda: "digits" in place.told(), 30) and "words" not in place.told()
    assert place.silence("expire", other) == f"{other} ended\n"
    assert wait_for(lambda: "words" in place.told(), 30)
    place.silence("expire", other, code=1)
    # Of an expired one nothing changes.
    third = place.silence("update", other, "--for", "1h").splitlines()[0]
    assert place.silences("--all")[other]["ends_at"] < place.silences()[third]["ends_at"] and place.silences()[third]["replaces"] == other


def test_silences_recur_have_sets_and_travel_as_a_file(server, tmp_path):
    place = Place(server, tmp_path)
    place.silence("add", "--job", "a", "--or", '{job="b"}', "--time-interval", "always", "--comment", "why")
    place.silence("add", "--job", "c", "--time-interval", "long-ago", "--comment", "why")
    assert "waiting" in place.silence("list") and '{job="a"} or {job="b"}' in place.silence("list")
    assert 'no time interval "allways"; did you mean "always"?' in place.silence("add", "--job", "d", "--time-interval", "allways", "--comment", "why", code=1)
    place.start()
    for job in "abcd":
        place.alert(job)
    assert wait_for(lambda: {"c", "d"} <= place.told(), 30) and not {"a", "b"} & place.told()
    assert len(place.silence("query", "-q", 'job="b"').splitlines()) == 1
    exported = place.silence("export")
    (tmp_path / "silences.json").write_text(exported)
    assert place.silence("import", tmp_path / "silences.json") == "imported 0; skipped 0 expired and 2 that are there already\n"
    for identity in place.silences():
        place.silence("expire", identity)
    assert wait_for(lambda: {"a", "b"} <= place.told(), 30)
    assert place.silence("import", tmp_path / "silences.json").startswith("imported 2; skipped 0 expired")
    assert sorted(one["comment"] for one in place.silences().values()) == ["why", "why"]
    (tmp_path / "broken.json").write_text('[{"id": "sil_a", "matchers": "{job!=\\"a\\"}"}]')
    assert "silence 1: " in place.silence("import", tmp_path / "broken.json", code=2)


def test_a_preview_lists_what_fires_and_what_ended(server, tmp_path):
    place = Place(server, tmp_path)
    JournalWriter(tmp_path / "data").append(*[scalar("now", "loss", "NaN" if step == 3 else 1.0, step, job="now") for step in range(5)])
    place.program.wait_for("issue_fired", job="now")
    place.alert("over")
    place.alert("over", endsAt=just_now())
    place.alert("over too")
    assert wait_for(lambda: "matching open issues: 1; ended in the last 24 h: 0" in place.silence("preview", 'job="over too"'), 30)
    out = place.silence("preview", 'job=~"now|over.*"')
    assert out.startswith("matching open issues: 2; ended in the last 24 h: 1\n") and out.count("GpuFellOff") == 2, out
    assert "exploding_tensor" in out
    shown = json.loads(place.silence("preview", "--job", "now", "-o", "json"))
    assert [one["labels"]["job"] for one in shown["firing"]] == ["now"] and shown["ended"] == []
    assert "ended in the last 24 h" in place.silence("add", "--job", "now", "--comment", "why")
    for words in (["--for", "2400h"], ["--until", "2026-01-02T03:04:05Z"], ["--until", "soon"], ["--weekdays", "someday"], ["--times", "8"], ["--annotation", "x"]):
        place.silence("add", "--job", "now", "--comment", "why", *words, code=2)
    place.silence("add", "--job", "now", "--comment", "why", "--for", "2400h", "--force")
    assert "nothing but negative matchers" in place.silence("add", 'job!=""', "--comment", "why", code=2)
