"""A note on a run: by the API, in the run's history, through a kill; and what traces show, published by `tocsin.analysis.traces`."""
import gzip
import json
import time

import pytest

from tests.e2e.test_inbound import ask
from tests.e2e.test_page_traces import UID, answer, chunks_of, head
from tests.python.test_traces import BUSY, kernel, step, written
from tests.support import journal
from tests.support.hook_support import wait_for
from tests.support.program import Server
from tocsin import wire
from tocsin.analysis import NoProfilerData, ServerError, create_trial, traces

SHIFT, GUEST = "0123456789-of-the-shift", "9876543210-of-a-guest"
CONFIG = """
transport: {{journal: {folder}/journal}}
rules: [exploding_tensor]
http:
  listen: '127.0.0.1:0'
  auth: {{tokens: [{{name: shift, role: operator, token_file: {folder}/shift}}, {{name: guest, role: viewer, token_file: {folder}/guest}}]}}
"""
RUN = f"/api/v1/runs/{UID}"
FOUND = "Trace of rank 0, step 3. Time of the GPUs: 50 % computing, 30 % communication that computing does not hide, 10 % copies, 10 % idle."


class Noted:
    """A server that knows of one run, which has sent a trace."""

    def __init__(self, folder):
        self.folder = folder
        for name, token in (("shift", SHIFT), ("guest", GUEST)):
            (folder / name).write_text(token)
            (folder / name).chmod(0o600)
        (folder / "tocsin.yaml").write_text(CONFIG.format(folder=folder))
        self.start()
        sent = gzip.compress(json.dumps({"distributedInfo": {"rank": 0}, "traceEvents": [*BUSY, step(3, 0, 100)]}).encode())
        journal.append(folder / "journal", ("telemetry", wire.route_key(UID), wire.encode_lifecycle(
            head(0, 0, 1), {"event": "start", "job": "traced", "launch": "l", "node": "n0", "worker": "worker_0"})))
        journal.append(folder / "journal", *chunks_of(sent, 0, 131))
        journal.append(folder / "journal", answer(0, 131, len(sent)))
        assert wait_for(lambda: len((self.said("GET", RUN + "/traces", token=GUEST)[1] or {}).get("items", [])) == 1, 60)

    def start(self):
        self.server = Server(self.folder / "tocsin.yaml", role="up")
        self.server.wait_for("ready")

    def said(self, method, path, body=None, token=SHIFT):
        return ask(self.server, method, path, body, headers={"Authorization": f"Bearer {token}"})

    def address(self, path=""):
        return f"http://{self.server.wait_for('started')['http']}{path}"

    def notes(self):
        """Newest first. The text is behind who wrote it."""
        status, told = self.said("GET", RUN + "/history", token=GUEST)
        return [line["text"] for line in told["items"] if line["kind"] == "note"] if status == 200 else []


@pytest.fixture(scope="module")
def noted(tmp_path_factory):
    one = Noted(tmp_path_factory.mktemp("notes"))
    yield one
    one.server.kill()


def test_a_note_stands_in_the_history_of_its_run(noted):
    began = time.time()
    status, told = noted.said("POST", RUN[:-20] + "/notes", {"text": "The learning rate was too high.\nTry 1e-4."})
    assert status == 200 and told["note"]["by"] == "shift" and told["note"]["text"].endswith("Try 1e-4."), told
    assert noted.notes()[0] == "shift: The learning rate was too high.\nTry 1e-4."
    (line,) = [line for line in noted.said("GET", RUN + "/history")[1]["items"] if line["kind"] == "note" and "Try 1e-4" in line["text"]]
    assert line["time"] >= time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(began)) and line["detail"] is None
    changes = [(one["what"], one["who"]) for one in noted.said("GET", "/api/v1/audit")[1]["items"]]
    assert ("run_note.set", "shift") in changes
    noted.server.kill()
    noted.start()
    assert wait_for(lambda: "shift: The learning rate was too high.\nTry 1e-4." in noted.notes(), 60)


@pytest.mark.parametrize("path, body, token, status, why", [
    (RUN, {"text": "x"}, GUEST, 403, "operator"), (RUN, {}, SHIFT, 400, "text: expected what to say"), (RUN, {"text": ""}, SHIFT, 400, "text: expected what to say"),
    (RUN, {"txet": "x"}, SHIFT, 400, 'did you mean "text"'), (RUN, {"text": 7}, SHIFT, 400, "text: expected what to say"), (RUN, [], SHIFT, 400, "expected an object"),
    (RUN, {"text": "x" * 4097}, SHIFT, 400, "text has 4097 bytes: expected at most 4096"), ("/api/v1/runs/ffffffff", {"text": "x"}, SHIFT, 404, "begins with")])
def test_a_note_that_cannot_be_says_why(noted, path, body, token, status, why):
    before = noted.notes()
    found, told = noted.said("POST", path + "/notes", body, token)
    assert found == status and why in json.dumps(told).replace('\\"', '"'), told
    assert noted.notes() == before


def test_traces_of_files_are_published_to_a_run(noted, tmp_path):
    file = written(tmp_path, *BUSY, step(3, 0, 100))
    traces(file, publish=noted.address(f"/runs/{UID}"), token=SHIFT)
    newest = noted.notes()[0]
    assert newest.startswith("shift: " + FOUND) and "What took most time: ncclDevKernel_AllReduce 43 %, gemm 35 %, Memcpy HtoD 13 %." in newest
    other = written(tmp_path, *BUSY, kernel("gemm", 150, 400), rank=1, name="other.json")
    traces([file, other], publish=noted.address(), run=str(UID), token=SHIFT)
    assert noted.notes()[0].startswith("shift: Traces of 2 ranks, step 3. ") and "Rank 1 was idle most: 15 %." in noted.notes()[0]


def test_traces_that_a_server_keeps_are_published_there(noted):
    before = len(noted.notes())
    found = traces(noted.address(f"/runs/{UID}"), token=SHIFT, publish=True)
    assert [row["idle"] for row in found.temporal()] == [10] and noted.notes()[0].startswith("shift: " + FOUND)
    trial = create_trial(noted.address(), run=str(UID), token=SHIFT)
    assert len(traces(trial, step=131, publish=True).operators()) == 0 and len(noted.notes()) == before + 2
    with pytest.raises(NoProfilerData, match=r"trace of step 7 \(it has 131\)"):
        traces(trial, step=7, publish=True)
    assert len(noted.notes()) == before + 2, "what cannot be read is not published"


def test_what_cannot_be_published_says_why(noted, tmp_path):
    file, before = written(tmp_path, *BUSY), noted.notes()
    with pytest.raises(ValueError, match=r'publish=True: these traces are of no server; give publish="http://127.0.0.1:9760/runs/4e3046d4"'):
        traces(file, publish=True)
    with pytest.raises(ValueError, match="names no run"):
        traces(file, publish=noted.address(), token=SHIFT)
    with pytest.raises(ValueError, match="there is no run ffffffff"):
        traces(file, publish=noted.address("/runs/ffffffff"), token=SHIFT)
    with pytest.raises(ValueError, match="expected for instance http://127.0.0.1:9760"):
        traces(file, publish="run1")
    with pytest.raises(ServerError, match="operator"):
        traces(file, publish=noted.address(f"/runs/{UID}"), token=GUEST)
    assert noted.notes() == before
