"""`tocsin verdict`, `tocsin note` and their routes: what people say of an issue is kept, shown and counted, and changes nothing that is told."""
import json
import random

import pytest

from tests.e2e.test_inbound import ask
from tests.support.hook_support import wait_for
from tests.support.program import run_cli
from tests.support.telemetry import JournalWriter, journal_records, kafka_produce, kafka_values, scalar

TOKEN = "0123456789-of-the-shift"
CONFIG = """
transport: {transport}
topics: {{prefix: {prefix}, partitions: 3}}
rules: [exploding_tensor]
route: {{receiver: people, group_wait: 0s}}
receivers:
  people: {{webhook: {{shadow: true, url: 'http://127.0.0.1:9/', allow_private: [127.0.0.0/8], secret: 'whsec_MDEyMzQ1Njc4OWFiY2RlZjAxMjM0NTY3ODlhYmNkZWY='}}}}
insights: {{enabled: {kept}, path: {folder}/insights.db}}
http:
  listen: '127.0.0.1:0'
  auth: {{tokens: [{{name: shift, role: operator, token_file: {folder}/shift}}, {{name: guest, role: viewer, token_file: {folder}/guest}}]}}
"""


def broken(job):
    """A run whose loss is NaN from step 3 on."""
    return [scalar(job, "loss", "NaN" if step >= 3 else 1.0, step, job=job) for step in range(5)]


class Place:
    def __init__(self, folder, kafka):
        self.folder, self.kafka = folder, kafka
        self.prefix = f"said{random.randrange(10**9)}"
        for name, token in (("shift", TOKEN), ("guest", "9876543210-of-a-guest")):
            (folder / name).write_text(token)
            (folder / name).chmod(0o600)
        self.config = folder / "t.yaml"
        self.write("true")

    def write(self, kept):
        transport = f"{{kafka: {{bootstrap.servers: '{self.kafka}'}}}}" if self.kafka else f"{{journal: {self.folder / 'data'}}}"
        self.config.write_text(CONFIG.format(transport=transport, prefix=self.prefix, folder=self.folder, kept=kept))

    def append(self, *records):
        if not self.kafka:
            return JournalWriter(self.folder / "data").append(*records)
        for record in records:
            topic = f"{self.prefix}.telemetry.v1" if record[0] == "telemetry" else f"{self.prefix}.{record[0]}.v1"
            kafka_produce(self.kafka, topic, [record])

    def dead_letters(self):
        return kafka_values(self.kafka, f"{self.prefix}.dlq.v1") if self.kafka else list(journal_records(self.folder / "data", "dlq"))

    def cli(self, *words):
        return run_cli(*words, "-c", self.config)


def issue_of(program, job):
    def known():
        status, answer = ask(program, "GET", "/api/v1/runs", headers={"Authorization": f"Bearer {TOKEN}"})
        return [one["headline"] for one in answer["items"] if status == 200 and one["job"] == job and one["headline"]] if status == 200 else []
    (headline,) = wait_for(known, 60)
    return f"/api/v1/issues/{headline['key']}/{headline['episode']}", headline["event_id"]


def counted(program, rule="exploding_tensor"):
    return next((one for one in ask(program, "GET", "/api/v1/rules")[1]["items"] if one["rule"] == rule), None)


def said(program, place):
    """One issue judged by the API and one by the command; both are told once, before and after."""
    place.append(*broken("one"))
    place.append(*broken("two"))
    one, _ = issue_of(program, "one")
    _, two = issue_of(program, "two")
    wait_for(lambda: len(program.all("notification_decided")) >= 2, 60)
    assert counted(program) == {"rule": "exploding_tensor", "fired": 2, "useful": 0, "noise": 0, "known": 0}, "no precision where nobody has said"

    status, answer = ask(program, "POST", one + "/verdict", {"verdict": "useful", "note": "the run was lost"})
    assert status == 200 and answer["verdict"]["by"] == "shift" and answer["verdict"]["origin"] == "api", answer
    assert ask(program, "GET", one)[1]["verdict"] == answer["verdict"], "the answer comes once it is shown"
    status, answer = ask(program, "POST", one + "/notes", {"text": "a bad cable"})
    assert status == 200 and answer["note"]["text"] == "a bad cable", answer

    code, out, err = place.cli("verdict", two, "noise", "--note", "every night", "--author", "ada")
    assert code == 0 and out.startswith("noise: ") and "loss" in out, out + err
    code, out, err = place.cli("note", two[:12], "with the\ncluster team", "--author", "ada")
    assert code == 0 and out.startswith("noted on "), out + err
    assert wait_for(lambda: counted(program)["noise"] == 1, 20)
    assert counted(program) == {"rule": "exploding_tensor", "fired": 2, "useful": 1, "noise": 1, "known": 0, "precision": 0.5}
    return one, two


@pytest.fixture(params=["journal", "kafka"])
def place(request, tmp_path):
    return Place(tmp_path, request.getfixturevalue("kafka") if request.param == "kafka" else None)


def test_what_people_say_is_kept_shown_and_counted_also_after_a_kill(server, place):
    program = server(place.config)
    program.wait_for("ready", timeout=90)
    one, two = said(program, place)
    told = len(program.all("notification_decided"))

    program.kill()
    program = server(place.config)
    program.wait_for("ready", timeout=90)
    path, _ = issue_of(program, "two")
    found = ask(program, "GET", path)[1]
    assert found["verdict"]["verdict"] == "noise" and found["verdict"]["by"] == "ada" and found["verdict"]["note"] == "every night"
    assert [(note["text"], note["by"], note["origin"]) for note in found["notes"]] == [("with the\ncluster team", "ada", "cli")]
    assert counted(program)["precision"] == 0.5
    # A store that begins anew reads it all again.
    assert program.stop() == 0
    for file in place.folder.glob("insights.db*"):
        file.unlink()
    program = server(place.config)
    program.wait_for("ready", timeout=90)
    assert wait_for(lambda: (counted(program) or {}).get("precision") == 0.5, 60)
    assert ask(program, "GET", one)[1]["verdict"]["verdict"] == "useful"

    code, out, _ = place.cli("issues", "show", two)
    assert code == 0 and "Verdict: noise, says ada, " in out and ": every night" in out and "cluster team" in out, out
    shown = json.loads(place.cli("issues", "show", two, "-o", "json")[1])
    assert shown["verdict"]["verdict"] == "noise" and len(shown["notes"]) == 1

    # The other way takes back what the first one said, and the history says who did it.
    code, out, err = place.cli("verdict", ask(program, "GET", one)[1]["issue"]["event_id"], "--take-back", "--author", "ada")
    assert code == 0 and out.startswith("took back useful: "), out + err
    assert wait_for(lambda: counted(program)["useful"] == 0, 20) and ask(program, "GET", one)[1]["verdict"] is None
    assert ask(program, "DELETE", path + "/verdict")[0] == 204
    assert counted(program) == {"rule": "exploding_tensor", "fired": 2, "useful": 0, "noise": 0, "known": 0}
    assert ask(program, "DELETE", path + "/verdict")[0] == 404
    wait_for(lambda: len(ask(program, "GET", "/api/v1/audit")[1]["items"]) >= 6, 20)
    changes = [(change["what"], change["who"]) for change in ask(program, "GET", "/api/v1/audit")[1]["items"]]
    assert sorted(changes) == [("note.set", "ada"), ("note.set", "shift"), ("verdict.set", "ada"), ("verdict.set", "shift"),
                               ("verdict.taken_back", "ada"), ("verdict.taken_back", "shift")], changes
    assert len(program.all("notification_decided")) <= told, "nobody is told of a verdict"
    assert place.dead_letters() == [], "the router knows what these are"


def test_what_is_refused(server, tmp_path):
    place = Place(tmp_path, None)
    program = server(place.config)
    program.wait_for("ready")
    place.append(*broken("one"))
    path, event = issue_of(program, "one")
    for route, body, word in (("/verdict", {"verdict": "noisy"}, 'did you mean "noise"?'), ("/verdict", {}, "verdict"),
                              ("/verdict", {"verdict": "noise", "nota": "x"}, 'did you mean "note"?'), ("/verdict", {"verdict": 7}, "expected a text"),
                              ("/verdict", [], "object"), ("/verdict", b"{", ""), ("/notes", {"text": ""}, "text"),
                              ("/notes", {"text": "x" * 4097}, "at most 4096"), ("/notes", {"text": "x", "verdict": "noise"}, "unknown field")):
        status, answer = ask(program, "POST", path + route, body)
        assert status == 400 and word in str(answer), (route, body, status, answer)
    assert ask(program, "POST", "/api/v1/issues/nothing/1/verdict", {"verdict": "noise"})[0] == 404
    guest = {"Authorization": "Bearer 9876543210-of-a-guest"}
    assert ask(program, "POST", path + "/verdict", {"verdict": "noise"}, guest)[0] == 403
    assert ask(program, "POST", path + "/notes", {"text": "x"}, guest)[0] == 403
    assert ask(program, "DELETE", path + "/verdict", None, guest)[0] == 403
    for words in (["verdict", event], ["verdict", event, "noisy"], ["verdict", event, "noise", "--take-back"], ["note", event], ["note", event, "x" * 4097]):
        code, _, err = place.cli(*words)
        assert code == 2 and err, (words, err)
    for words in (["verdict", "iss_nothing", "noise"], ["note", "iss_nothing", "x"], ["verdict", event, "--take-back"]):
        code, _, err = place.cli(*words)
        assert code == 1 and err, (words, err)
    code, out, _ = place.cli("verdict", event, "noise", "--dry-run")
    assert code == 0 and out.startswith("would be noise: "), out
    assert ask(program, "GET", path)[1]["verdict"] is None and counted(program)["noise"] == 0


def test_what_is_no_verdict_goes_to_the_dead_letters_and_hurts_nobody(server, tmp_path):
    place = Place(tmp_path, None)
    program = server(place.config)
    program.wait_for("ready")
    place.append(*broken("one"))
    path, event = issue_of(program, "one")
    key = path.split("/")[4]
    place.append(("router-control", f"verdict/{key}/iss_other", b"{"), ("router-control", "note/note_x", b"[]"),
                 ("router-control", f"verdict/{key}/{event}", json.dumps({"issue": key, "event_id": event, "verdict": "fine", "by": "eve",
                                                                          "at": "2026-01-02T03:04:05Z"}).encode()))
    assert wait_for(lambda: len(place.dead_letters()) == 3, 30)
    assert ask(program, "GET", path)[1]["verdict"] is None
    status, answer = ask(program, "POST", path + "/verdict", {"verdict": "known"})
    assert status == 200 and counted(program)["known"] == 1, answer
    assert len(place.dead_letters()) == 3, "what is one does not go there"


def test_an_issue_has_a_hundred_notes_and_not_one_more(server, tmp_path):
    place = Place(tmp_path, None)
    program = server(place.config)
    program.wait_for("ready")
    place.append(*broken("one"))
    path, event = issue_of(program, "one")
    key, run = path.split("/")[4], ask(program, "GET", path)[1]["issue"]["run"]["uid"]
    place.append(*[("router-control", f"note/note_{number}", json.dumps({
        "id": f"note_{number}", "issue": key, "event_id": event, "run": run, "by": "ada", "at": "2026-01-02T03:04:05Z", "text": f"{number}",
        "origin": "cli"}).encode()) for number in range(100)])
    assert wait_for(lambda: len(ask(program, "GET", path)[1]["notes"]) == 100, 20)
    status, answer = ask(program, "POST", path + "/notes", {"text": "one more"})
    assert status == 409 and "100 notes" in answer["detail"], answer
    code, _, err = place.cli("note", event, "one more")
    assert code == 1 and "100 notes" in err, err


def test_without_the_store_the_routes_say_so_and_the_command_works(server, tmp_path):
    place = Place(tmp_path, None)
    place.write("false")
    program = server(place.config)
    program.wait_for("ready")
    place.append(*broken("one"))
    program.wait_for("issue_fired", job="one")
    (issue,) = wait_for(lambda: ask(program, "GET", "/api/v1/issues")[1]["items"], 30)
    path = f"/api/v1/issues/{issue['key']}/newest"
    status, answer = ask(program, "POST", path + "/verdict", {"verdict": "noise"})
    assert status == 503 and "insights.enabled is false" in answer["detail"], answer
    assert ask(program, "GET", "/api/v1/rules")[0] == 503
    assert place.cli("verdict", issue["event_id"], "noise")[0] == 0
    assert "Verdict: noise" in place.cli("issues", "show", issue["event_id"])[1]
