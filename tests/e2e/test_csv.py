"""Values of a run as CSV: all of them, as they were when the table began, however long it is and however slowly it is read."""
import csv
import http.client
import io
import re
import sqlite3
import subprocess
import sys
import urllib.parse

import numpy
import pytest

from tests.e2e.test_curves import CONFIG, asked, environment, refused, run_with, train
from tests.support.hook_support import wait_for
from tocsin.analysis import create_trial

LONG = 110_000
COLUMNS = ["name", "worker", "rank", "mode", "attempt", "superseded", "step", "time", "value"]
BUCKETS = ["n", "min", "max", "first", "last", "mean", "nan", "posinf", "neginf", "first_bad_step"]

# Series enough for a table that is longer than what sockets hold; numbers that are none; a name that needs quotation marks; one that is rare, and one
# that has many values behind a long pause.
JOB = """
import sys, tocsin
hook = tocsin.watch(run="long", job="curves")
for step in range(int(sys.argv[1])):
    loss = 1.0 / (step + 3)
    if step % 10_007 == 5: loss = float("nan")
    if step % 20_011 == 6: loss = float("-inf")
    if step == 7: loss = float("inf")
    hook.log(**{"loss": loss, "an odd, \\"quoted\\" name": step / 7, "third/of/all": 0.1 * step})
    if step % 5000 == 3: hook.log(rare=step)
    if step == 0 or step > 90_000: hook.log(first_rare_then_dense=-step)
    hook.step()
    if step % 1000 == 999: hook.flush()
hook.close()
"""


def long_job(folder, steps):
    path = folder / "long.py"
    path.write_text(JOB)
    done = subprocess.run([sys.executable, path, str(steps)], env=environment(folder / "journal"), cwd=folder, timeout=180)
    assert done.returncode == 0
    return len(written(folder / "journal", "loss")[0])


def written(journal, name, uid=None):
    """Steps and values, as NumPy reads the frames."""
    frame = create_trial(journal, run=uid).series(name, mode="train")
    return frame["step"], frame["value"]


class Answer:
    """A response that is read piece by piece."""

    def __init__(self, server, path, **query):
        host, port = server.wait_for("started")["http"].rsplit(":", 1)
        self.connection = http.client.HTTPConnection(host, int(port), timeout=30)
        self.connection.request("GET", path + "?" + urllib.parse.urlencode(query))
        self.response = self.connection.getresponse()

    def read(self, *count):
        return self.response.read(*count)

    def close(self):
        self.response.close()
        self.connection.close()


def table(server, uid, **query):
    answer = Answer(server, f"/api/v1/runs/{uid}/series", format="csv", **query)
    assert answer.response.status == 200, answer.read()
    text = answer.read().decode()
    assert answer.response.headers["Content-Type"].startswith("text/csv") and "attachment" in answer.response.headers["Content-Disposition"]
    assert text.endswith("\r\n") and text.count("\n") == text.count("\r\n"), "RFC 4180"
    return list(csv.DictReader(io.StringIO(text, newline="")))


@pytest.fixture(scope="module")
def long_run(module_server, tmp_path_factory):
    folder = tmp_path_factory.mktemp("long")
    one = module_server(CONFIG.format(journal=folder / "journal"))
    one.wait_for("ready")
    stored = long_job(folder, LONG)
    assert stored > 100_000
    uid = run_with(one, stored)
    assert uid
    return one, uid, folder / "journal"


def test_every_value_of_a_long_run_is_in_the_table(long_run):
    one, uid, journal = long_run
    answer = Answer(one, f"/api/v1/runs/{uid}/series", format="csv", name="loss")
    assert answer.response.headers["Transfer-Encoding"] == "chunked" and answer.response.headers["Cache-Control"] == "no-store"
    answer.close()
    for name in ("loss", 'an odd, "quoted" name', "rare", "first_rare_then_dense"):
        steps, values = written(journal, name, uid)
        rows = table(one, uid, name=re.escape(name))
        assert list(rows[0]) == COLUMNS and {row["name"] for row in rows} == {name}
        assert numpy.array_equal([int(row["step"]) for row in rows], steps)
        assert numpy.array_equal([float(row["value"]) for row in rows], values, equal_nan=True)
    texts = {row["value"] for row in table(one, uid, name="loss") if not numpy.isfinite(float(row["value"]))}
    assert texts == {"NaN", "Infinity", "-Infinity"}, "as JSON has them"
    rows = table(one, uid, name="loss", **{"from": 100_000, "to": 100_003})
    attempt = asked(one, f"/api/v1/runs/{uid}/series", name="loss", points=1)["series"][0]["attempt"]
    assert [(row["step"], row["mode"], row["worker"], row["rank"], row["attempt"], row["superseded"]) for row in rows] == \
        [(str(step), "train", "worker_0", "0", str(attempt), "false") for step in (100_000, 100_001, 100_002)]
    times = [row["time"] for row in rows]
    assert times == sorted(times) and all(time.endswith("Z") and "T" in time for time in times)
    later = table(one, uid, name="loss", **{"from": times[1]})
    assert later[0]["step"] <= "100001" and later[-1]["step"] == str(written(journal, "loss", uid)[0][-1])


def test_a_table_has_what_was_there_when_it_began_and_disturbs_nobody(long_run, tmp_path):
    one, uid, journal = long_run
    before = {name: len(written(journal, name, uid)[0]) for name in ("loss", "third/of/all")}
    slow = Answer(one, f"/api/v1/runs/{uid}/series", format="csv")
    begun = slow.read(1000)
    # A second job in the same journal: the file grows while the table waits for its reader, and its log is folded back.
    assert train(tmp_path, journal, 3000).wait(60) == 0
    assert wait_for(lambda: len(asked(one, "/api/v1/runs")["items"]) == 2, 20)
    other = next(run["uid"] for run in asked(one, "/api/v1/runs")["items"] if run["uid"] != uid)
    assert wait_for(lambda: asked(one, f"/api/v1/runs/{other}/names", name="loss")["items"][:1] and
                    asked(one, f"/api/v1/runs/{other}/names", name="loss")["items"][0]["stored"] == 3000, 20)
    with sqlite3.connect(journal / "curves.db") as store:
        busy, log, folded = store.execute("PRAGMA wal_checkpoint(PASSIVE)").fetchone()
    store.close()
    assert (busy, folded) == (0, log), "no reader holds the log of the file"
    rows = list(csv.DictReader(io.StringIO((begun + slow.read()).decode(), newline="")))
    for name, count in before.items():
        assert sum(row["name"] == name for row in rows) == count


def test_a_table_whose_rest_is_gone_ends_as_one_that_is_cut(server, tmp_path):
    one = server(CONFIG.format(journal=tmp_path / "journal"))
    one.wait_for("ready")
    uid = run_with(one, long_job(tmp_path, 60_000))
    slow = Answer(one, f"/api/v1/runs/{uid}/series", format="csv")
    slow.read(1000)
    with sqlite3.connect(tmp_path / "journal" / "curves.db", timeout=20) as store:
        store.execute("DELETE FROM family")
    store.close()
    with pytest.raises(http.client.IncompleteRead):
        slow.read()
    assert asked(one, f"/api/v1/runs/{uid}/names")["items"] == []


def test_so_many_tables_at_a_time(long_run):
    one, uid, _ = long_run
    path = f"/api/v1/runs/{uid}/series"
    some = [Answer(one, path, format="csv") for _ in range(16)]
    try:
        assert {answer.response.status for answer in some} == {200}
        code, body = refused(one, path, format="csv")
        assert code == 429 and "16 tables" in body["detail"]
        assert asked(one, path, name="loss", points=10)["series"], "what is short is answered meanwhile"
    finally:
        for answer in some:
            answer.close()
    assert wait_for(lambda: Answer(one, path, format="csv", name="loss").response.status == 200, 10)


def test_points_as_a_table(long_run):
    one, uid, _ = long_run
    asks = {"name": "loss", "points": 500}
    answer = asked(one, f"/api/v1/runs/{uid}/series", **asks)
    (curve,) = answer["series"]
    rows = table(one, uid, **asks)
    assert list(rows[0]) == [*COLUMNS[:-1], "width", *BUCKETS]
    assert [int(row["step"]) for row in rows] == curve["x0"] and {int(row["width"]) for row in rows} == {answer["width"]}
    for column in BUCKETS[:6]:
        assert [float(row[column]) for row in rows] == [float(one_) for one_ in curve[column]], column
    bad = {int(row["step"]): [int(row[column]) for column in BUCKETS[6:]] for row in rows if row["first_bad_step"]}
    assert bad == {curve["x0"][at]: rest for at, *rest in curve["bad"]} and bad
    assert "smooth" in table(one, uid, **asks, smooth=50)[0]
    together = table(one, uid, **asks, agg="mean")
    assert (together[0]["worker"], together[0]["rank"]) == ("", "")


def test_what_a_table_of_every_value_cannot_have_is_said(long_run):
    one, uid, _ = long_run
    for more, field in (({"agg": "mean"}, "agg"), ({"smooth": 5}, "smooth"), ({"name": "loss("}, "name"), ({"from": 9, "to": 9}, "to")):
        code, body = refused(one, f"/api/v1/runs/{uid}/series", format="csv", **more)
        assert code == 400 and body["field"] == field, body
    assert refused(one, f"/api/v1/runs/{uid}/series", format="cvs")[0] == 400
    answer = Answer(one, f"/api/v1/runs/{uid}/series", format="csv", name="nothing")
    assert answer.read() == (",".join(COLUMNS) + "\r\n").encode()


def test_the_page_loads_what_its_charts_show_as_a_table(long_run, browser, tmp_path):
    one, uid, journal = long_run
    page = browser.new_page()
    page.goto(f"http://{one.wait_for('started')['http']}/runs/{uid}?v=loss&from=100&to=50000")
    page.wait_for_selector(".chart[data-name=loss] canvas")
    with page.expect_download() as loaded:
        page.click("#curves a.csv")
    loaded.value.save_as(tmp_path / "loaded.csv")
    assert loaded.value.suggested_filename == f"series-{uid[:8]}.csv"
    rows = list(csv.DictReader((tmp_path / "loaded.csv").open(newline="")))
    steps, values = written(journal, "loss", uid)
    inside = (steps >= 100) & (steps < 50_000)
    assert numpy.array_equal([int(row["step"]) for row in rows], steps[inside])
    assert numpy.array_equal([float(row["value"]) for row in rows], values[inside], equal_nan=True)
