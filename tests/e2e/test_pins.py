"""A pinned run is kept: by the API, by `tocsin pin`, through a kill and a new store, whatever its age; and chosen charts follow a person."""
import time

import pytest

from tests.e2e.test_inbound import ask
from tests.e2e.test_page_marks import belongs_here
from tests.support.hook_support import wait_for, wire
from tests.support.program import run_cli
from tests.support.written_journal import WrittenJournal
from tests.support.written_run import WrittenRun

DAY = 86_400
ROWS = 3000
SHIFT, GUEST = "0123456789-of-the-shift", "9876543210-of-a-guest"
CONFIG = """
transport: {{journal: {folder}/journal}}
rules: [exploding_tensor]
route: {{receiver: nobody}}
receivers: {{nobody: {{}}}}
store: {{backfill: 400d, keep: {{runs: {runs}d, scalars: {scalars}d, tensors: 1d, tensor_rollups: 1d}}}}
http:
  listen: '127.0.0.1:0'
  auth: {{tokens: [{{name: shift, role: operator, token_file: {folder}/shift}}, {{name: guest, role: viewer, token_file: {folder}/guest}}]}}
"""


def fill(run, began, job):
    run.event(0, "start", launch=job, job=job)
    for at in range(0, ROWS, 100):
        run.scalars(0, [("loss", step, step / 7, int((began + step / 10) * 1e9)) for step in range(at, at + 100)])
    run.event(0, "end", status="completed", exit_code=0)


def two_old_runs(folder, days):
    """Of two jobs, `days` days ago."""
    began = time.time() - days * DAY
    first = WrittenRun(folder, run=wire.run_uid("kept", "1"), now=lambda: int(began * 1e9))
    fill(first, began, "kept")
    first.database.close()
    second = WrittenJournal(folder, run=wire.run_uid("usual", "1"), now=lambda: int(began * 1e9))
    fill(second, began, "usual")
    second.sealed()
    belongs_here(folder)


class Place:
    def __init__(self, folder):
        self.folder = folder
        for name, token in (("shift", SHIFT), ("guest", GUEST)):
            (folder / name).write_text(token)
            (folder / name).chmod(0o600)
        self.config = folder / "t.yaml"
        self.keeps(400, 90)

    def keeps(self, runs, scalars):
        self.config.write_text(CONFIG.format(folder=self.folder, runs=runs, scalars=scalars))

    def cli(self, *words):
        return run_cli(*words, "-c", self.config)


@pytest.fixture
def place(tmp_path):
    return Place(tmp_path)


def said(program, method, path, body=None, token=SHIFT):
    return ask(program, method, path, body, headers={"Authorization": f"Bearer {token}"})


def runs_of(program):
    """By job; empty while the store is only being made."""
    status, answer = said(program, "GET", "/api/v1/runs", token=GUEST)
    return {run["job"]: run for run in answer["items"]} if status == 200 else {}


def rows_from(program, run):
    """Before this step single values are gone; None: none are. KeyError: the run has no curves."""
    status, answer = said(program, "GET", f"/api/v1/runs/{run['uid']}/series?name=loss", token=GUEST)
    return answer["rows_from"] if status == 200 else "unknown"


def stored(program, run):
    status, answer = said(program, "GET", f"/api/v1/runs/{run['uid']}/names", token=GUEST)
    return sum(one["stored"] for one in answer["items"] if one["name"] == "loss") if status == 200 else 0


def both_there(program):
    runs = runs_of(program)
    return runs if set(runs) == {"kept", "usual"} and all(stored(program, run) == ROWS for run in runs.values()) else None


def test_a_pinned_run_outlives_every_age_a_kill_and_a_new_store(server, place):
    two_old_runs(place.folder / "journal", days=100)
    place.keeps(400, 300)
    one = server(place.config)
    runs = wait_for(lambda: both_there(one), 60)
    assert runs and all(run["pin"] is None for run in runs.values())
    path = f"/api/v1/runs/{runs['kept']['uid']}"
    assert said(one, "PUT", path + "/pin", {"pinned": True}, GUEST)[0] == 403
    for wrong, word in (({}, "expected true or false"), ({"pinned": "yes"}, "expected true or false"), ({"pined": True}, 'did you mean "pinned"?'), ([], "an object")):
        status, answer = said(one, "PUT", path + "/pin", wrong)
        assert status == 400 and word in answer["detail"], answer
    assert said(one, "PUT", "/api/v1/runs/ffffffff/pin", {"pinned": True})[0] == 404
    status, answer = said(one, "PUT", path + "/pin", {"pinned": True})
    assert status == 200 and answer["pin"]["by"] == "shift" and answer["pin"]["origin"] == "api", answer
    pin = answer["pin"]
    assert said(one, "GET", path)[1]["run"]["pin"] == pin == runs_of(one)["kept"]["pin"] and runs_of(one)["usual"]["pin"] is None
    assert said(one, "GET", "/api/v1/runs?order=trouble")[1]["items"][0]["pin"] in (pin, None)
    assert said(one, "PUT", path + "/pin", {"pinned": True})[1]["pin"] == pin, "who pinned it first stays"
    (line,) = [line for line in said(one, "GET", path + "/history")[1]["items"] if line["kind"] == "pin"]
    assert line["text"] == "shift pinned the run"
    changes = [(change["what"], change["subject"], change["who"]) for change in said(one, "GET", "/api/v1/audit")[1]["items"]]
    assert changes == [("pin.set", "pin/" + runs["kept"]["uid"], "shift")], "what stands already is no change"

    one.kill()
    place.keeps(400, 90)  # single values of both are too old now
    one = server(place.config)
    assert wait_for(lambda: (rows_from(one, runs["usual"]) or 0) == ROWS, 60)
    assert rows_from(one, runs["kept"]) is None and runs_of(one)["kept"]["pin"] == pin

    assert one.stop() == 0
    place.keeps(50, 40)  # and both runs
    for file in (place.folder / "journal").glob("insights.db*"):
        file.unlink()
    for file in (place.folder / "journal").glob("curves.db*"):
        file.unlink()
    code, _, error = place.cli("insights", "rebuild")
    assert code == 0, error
    one = server(place.config)
    assert wait_for(lambda: set(runs_of(one)) == {"kept"}, 60), runs_of(one)
    assert stored(one, runs["kept"]) == ROWS and rows_from(one, runs["kept"]) is None and runs_of(one)["kept"]["pin"] == pin
    assert stored(one, runs["usual"]) == 0

    status, answer = said(one, "PUT", path + "/pin", {"pinned": False})
    assert (status, answer["pin"]) == (200, None)
    assert said(one, "PUT", path + "/pin", {"pinned": False})[0] == 200
    assert one.stop() == 0
    one = server(place.config)  # what is old goes from its start on
    assert wait_for(lambda: one.wait_for("ready") and said(one, "GET", "/api/v1/runs")[0] == 200 and not runs_of(one), 60)
    assert [change["what"] for change in said(one, "GET", "/api/v1/audit")[1]["items"]] == ["pin.taken_back", "pin.set"]


def test_the_command_pins_and_the_page_knows(server, place):
    two_old_runs(place.folder / "journal", days=100)
    one = server(place.config)
    runs = wait_for(lambda: both_there(one), 60)
    assert runs
    code, text, error = place.cli("pin", "kept", "--author", "ada", "--dry-run")
    assert code == 0 and "would be pinned" in text and runs_of(one)["kept"]["pin"] is None, text + error
    code, text, error = place.cli("pin", "kept", "--author", "ada")
    assert code == 0 and text == f"kept, run {runs['kept']['uid'][:8]}: pinned\n", text + error
    pin = wait_for(lambda: runs_of(one)["kept"]["pin"], 30)
    assert pin["by"] == "ada" and pin["origin"] == "cli"
    code, _, error = place.cli("pin", runs["usual"]["uid"], "--take-back")
    assert code == 1 and "nobody has pinned usual" in error, error
    code, _, error = place.cli("pin", "keptt")
    assert code == 1 and "kept" in error, error
    code, text, _ = place.cli("pin", "kept", "--take-back", "--output", "json")
    assert code == 0 and '"pin":null' in text.replace(" ", ""), text
    assert wait_for(lambda: runs_of(one)["kept"]["pin"] is None, 30)
    assert not [line for line in one.all("dead_letter")], "the router knows these records"


def test_chosen_charts_follow_a_person_and_not_a_browser(server, place):
    one = server(place.config)
    one.wait_for("ready")
    path = "/api/v1/views/digits"
    status, answer = said(one, "GET", path)
    assert status == 200 and answer == {"job": "digits", "owner": "shift", "charts": [], "at": None}
    status, answer = said(one, "PUT", path, {"charts": ["loss", "grad_norm", "loss"]})
    assert status == 200 and answer["charts"] == ["loss", "grad_norm"] and answer["at"], answer
    assert said(one, "GET", path, token=GUEST)[1]["charts"] == [], "what one has chosen is not another's"
    assert said(one, "PUT", path, {"charts": ["lr"]}, GUEST)[0] == 200, "a viewer may"
    assert said(one, "GET", "/api/v1/views/other")[1]["charts"] == []
    for wrong, word in (({"charts": "loss"}, "a list of names"), ({"charts": [1]}, "a list of names"), ({"chart": []}, 'did you mean "charts"?'),
                        ({"charts": [str(at) for at in range(101)]}, "at most 100 names"), ({"charts": [""]}, "1 to 1000 bytes")):
        status, answer = said(one, "PUT", path, wrong)
        assert status == 400 and word in answer["detail"], answer
    for method in ("GET", "PUT"):
        status, answer = ask(one, method, path, {"charts": []}, headers={"Accept": "application/json"})
        assert status == 409 and "nobody has signed in" in answer["detail"], (status, answer)
    one.kill()
    one = server(place.config)
    one.wait_for("ready")
    assert said(one, "GET", path)[1]["charts"] == ["loss", "grad_norm"] and said(one, "GET", path, token=GUEST)[1]["charts"] == ["lr"]
    assert said(one, "PUT", path, {"charts": []})[1]["at"] is None
    assert said(one, "GET", path)[1]["charts"] == []
