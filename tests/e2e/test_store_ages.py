"""How long the stores of the page keep what, how far back a new one reads, and how the past is shown."""
import datetime
import json
import subprocess
import sys
import time

import numpy
import pytest

from tests.e2e.test_curves import CONFIG, SCRIPT, asked, environment, refused, run_with
from tests.e2e.test_page_marks import belongs_here
from tests.support.hook_support import wait_for, wire
from tests.support.program import run_cli
from tests.support.written_journal import WrittenJournal

DAY = 86_400
ROWS = 20_000
DAYS = 100  # from the first value to the last


def written(folder):
    """Values of a hundred days, up to an hour ago."""
    first = time.time() - DAYS * DAY - 3600
    times = [int((first + at * DAYS * DAY / ROWS) * 1e9) for at in range(ROWS)]
    values = numpy.random.default_rng(5).normal(size=ROWS)
    now = [times[0]]
    journal = WrittenJournal(folder, now=lambda: now[0])
    journal.held = []
    journal.event(0, "start", launch="k", job="old")
    for at in range(0, ROWS, 100):
        now[0] = times[at + 99]
        journal.scalars(0, [("loss", step, values[step], times[step]) for step in range(at, at + 100)])
    journal.sealed()
    belongs_here(folder)
    return numpy.array(times) / 1e9, values


def rows_from(one, uid):
    return asked(one, f"/api/v1/runs/{uid}/series", name="loss")["rows_from"]


def test_old_values_give_way_to_their_buckets_and_every_answer_says_so(server, tmp_path):
    journal = tmp_path / "journal"
    times, values = written(journal)
    one = server(CONFIG.format(journal=journal))
    uid = run_with(one, ROWS)
    assert uid
    assert one.stop() == 0
    one = server(CONFIG.format(journal=journal))  # what is old goes from its start on
    kept = wait_for(lambda: one.wait_for("ready") and rows_from(one, uid), 30)
    assert kept
    cutoff = int(numpy.searchsorted(times, time.time() - 90 * DAY))
    assert cutoff - 512 < kept <= cutoff
    answer = asked(one, f"/api/v1/runs/{uid}/series", name="loss", points=10_000)
    (curve,) = answer["series"]
    assert answer["width"] == 64 and curve["stored"] == ROWS and sum(curve["n"]) == ROWS
    for at, x0 in enumerate(curve["x0"]):
        inside = values[x0:x0 + 64]
        assert (curve["min"][at], curve["max"][at], curve["first"][at], curve["last"][at]) == (inside.min(), inside.max(), inside[0], inside[-1])
    young = asked(one, f"/api/v1/runs/{uid}/series", **{"name": "loss", "from": kept, "to": kept + 1000, "points": 1000})
    assert young["rows_from"] is None and young["width"] == 1
    assert numpy.array_equal(young["series"][0]["value"], values[kept:kept + 1000])
    code, body = refused(one, f"/api/v1/runs/{uid}/series", name="loss", format="csv")
    assert code == 409 and f"from={kept}" in body["detail"], body
    status, table = one.get(f"/api/v1/runs/{uid}/series?name=loss&format=csv&from={kept}")
    assert status == 200 and len(table.splitlines()) == 1 + ROWS - kept
    path = tmp_path / "stats.yaml"
    path.write_text(CONFIG.format(journal=journal))
    code, text, _ = run_cli("insights", "stats", "--config.file", path)
    assert code == 0 and f"scalars: values kept 90d, buckets 360d, 400d; {kept} rows are gone by their age" in text, text
    (row,) = [one for one in json.loads(run_cli("insights", "stats", "--config.file", path, "--output", "json")[1])["curves"]["classes"]
              if one["class"] == "scalars"]
    assert row["rows_gone"] == kept and row["kept"] == {"rows": "90d", "buckets": ["360d", "400d", "400d", "400d", "400d"]}
    code, text, _ = run_cli("insights", "check", journal)
    assert code == 0, text


def halves(folder):
    """3000 steps; the first half came 25 hours ago. A hook tells its names again every five minutes."""
    names = [{"type": 2, "dtype": 2, "role": wire.ROLES["loss"], "name": "loss"}, {"type": 4, "name": "worker_0"}]
    journal = WrittenJournal(folder)
    journal.event(0, "start", launch="k", job="halves")
    for at in range(0, 3000, 100):
        if at == 1500:
            journal.database.execute("UPDATE telemetry SET ts = ts - ?", (25 * 3600 * 10**9,))
            journal.tell(*names)
        journal.scalars(0, [("loss", step, float(step)) for step in range(at, at + 100)])
    journal.sealed()
    belongs_here(folder)


def test_a_new_store_reads_the_last_day_and_a_rebuild_reads_all(server, tmp_path):
    journal = tmp_path / "journal"
    config = CONFIG.format(journal=journal)
    halves(journal)
    one = server(config)
    assert one.wait_for("curves_backfill")["since"] < datetime.datetime.now(datetime.timezone.utc).isoformat()
    uid = run_with(one, 1500)
    assert uid
    (curve,) = asked(one, f"/api/v1/runs/{uid}/series", name="loss", points=5000)["series"]
    assert curve["x0"] == list(range(1500, 3000)) and curve["value"] == [float(step) for step in range(1500, 3000)]
    assert one.stop() == 0
    one = server(config)  # it goes on where it stood
    assert run_with(one, 1500)
    assert asked(one, f"/api/v1/runs/{uid}/series", name="loss", points=5000)["series"][0]["x0"] == curve["x0"]
    assert one.stop() == 0
    path = tmp_path / "rebuild.yaml"
    path.write_text(config)
    code, _, error = run_cli("insights", "rebuild", "--config.file", path)
    assert code == 0, error
    one = server(config)
    assert run_with(one, 3000)
    (whole,) = asked(one, f"/api/v1/runs/{uid}/series", name="loss", points=5000)["series"]
    assert whole["x0"] == list(range(3000))


def test_a_longer_backfill_reads_more(server, tmp_path):
    journal = tmp_path / "journal"
    halves(journal)
    one = server(CONFIG.format(journal=journal) + "store: {backfill: 2d}\n")
    assert run_with(one, 3000)


@pytest.mark.parametrize(("ages", "words"), [
    ("{tensors: 20d, tensor_rollups: 10d}", "tensors (20d) must not be above tensor_rollups (10d)"),
    ("{runs: 30d, scalars: 60d}", "scalars (60d) must not be above runs (30d)"),
    ("{spans: 1m}", "must be >= 1h"),
    ("{tensor: 1d}", "tensors"),
])
def test_ages_that_contradict_each_other_are_named_with_their_place(tmp_path, ages, words):
    path = tmp_path / "ages.yaml"
    path.write_text(CONFIG.format(journal=tmp_path / "journal") + f"store:\n  keep: {ages}\n")
    code, text, error = run_cli("check", "--config.file", path)
    assert code == 3 and words in text + error and f"{path}:{len(path.read_text().splitlines())}:" in text + error, text + error


def test_the_old_place_of_the_age_of_runs_says_where_it_is_now(tmp_path):
    path = tmp_path / "old.yaml"
    path.write_text(CONFIG.format(journal=tmp_path / "journal") + "insights: {keep: 90d}\n")
    code, text, error = run_cli("check", "--config.file", path)
    assert code == 3 and "store.keep.runs" in text + error


def moved(moment, milliseconds):
    at = datetime.datetime.fromisoformat(moment[:19] + "+00:00") + datetime.timedelta(microseconds=int((moment[20:-1] + "000000")[:6]))
    return (at + datetime.timedelta(milliseconds=milliseconds)).isoformat().replace("+00:00", "Z")


# Before, while and after the loss of a run is NaN; it lasts, so that it is seen.
def test_the_past_is_shown_as_it_was_recorded_then(server, tmp_path):
    one = server(CONFIG.format(journal=tmp_path / "journal"))
    one.wait_for("ready")
    script = tmp_path / "train.py"
    script.write_text(SCRIPT.replace("step in (300, 301)", "300 <= step < 800"))
    training = subprocess.Popen([sys.executable, script, "2000", "0.01"], env=environment(tmp_path / "journal"), cwd=tmp_path)

    def recorded():
        """What the API says now, and when that was."""
        run = asked(one, "/api/v1/runs")["items"]
        if not run:
            return None
        return asked(one, f"/api/v1/runs/{run[0]['uid']}")

    uid = run_with(one, 50)
    first = recorded()
    assert uid == first["run"]["uid"] and first["issues"] == []
    fired = wait_for(lambda: (now := recorded())["issues"] and now["run"]["state"] == "running" and now["run"]["issues"]["open"] and now, 30)
    assert fired
    assert training.wait(60) is not None
    ended = wait_for(lambda: (now := recorded())["run"]["state"] == "ended" and not now["run"]["issues"]["open"] and now, 30)
    assert ended
    time.sleep(1)  # what is told a moment later has been told
    lines = asked(one, f"/api/v1/runs/{uid}/history")["items"]
    reports = sorted(line["time"] for line in lines if line["kind"] == "issue" and line["state"] == "firing")
    assert reports
    before = moved(reports[0], -1)
    assert asked(one, f"/api/v1/runs/{uid}", at=before)["issues"] == [] and asked(one, f"/api/v1/runs/{uid}", at=moved(reports[0], 1))["issues"]
    for then in (first, fired):
        past = asked(one, f"/api/v1/runs/{uid}", at=then["as_of"])
        assert past["as_of"] == then["as_of"] and past["run"]["state"] == "running" and past["run"]["ended_at"] is None
        # The store may have been a moment behind its topics when it was asked.
        assert {issue["key"] for issue in past["issues"]} >= {issue["key"] for issue in then["issues"]}
        assert all(issue["status"] == "firing" and issue["ends_at"] is None for issue in past["issues"])
        assert past["run"]["issues"]["open"] == len(past["issues"]) and past["run"]["outcome"] is None
        (row,) = asked(one, "/api/v1/runs", at=then["as_of"])["items"]
        assert row["state"] == "running" and row["issues"] == past["run"]["issues"]
        history = asked(one, f"/api/v1/runs/{uid}/history", at=then["as_of"])["items"]
        assert history and all(line["time"] <= then["as_of"] for line in history)
        assert history == [line for line in asked(one, f"/api/v1/runs/{uid}/history")["items"] if line["time"] <= then["as_of"]][:len(history)]
        # Curves end at the last value that was measured by then.
        end = datetime.datetime.fromisoformat(moved(then["as_of"], 0).replace("Z", "+00:00")).timestamp() * 1000
        whole = asked(one, f"/api/v1/runs/{uid}/series", name="loss", points=5000)["series"][0]
        cut = asked(one, f"/api/v1/runs/{uid}/series", name="loss", points=5000, at=then["as_of"])["series"][0]
        begin = datetime.datetime.fromisoformat(moved(whole["t0"], 0).replace("Z", "+00:00")).timestamp() * 1000
        inside = sum(begin + dt <= end for dt in whole["dt"])
        assert abs(cut["stored"] - inside) <= 1 and 0 < cut["stored"] < whole["stored"]
        assert cut["value"] == whole["value"][:cut["stored"]]
    issue = fired["issues"][0]
    path = f"/api/v1/issues/{issue['key']}/{issue['episode']}"
    then, now = asked(one, path, at=fired["as_of"]), asked(one, path)
    assert then["issue"]["status"] == "firing" and now["issue"]["status"] == "resolved" and now["run"]["state"] == "ended"
    assert then["run"]["state"] == "running" and len(then["deliveries"]) <= len(now["deliveries"])
    for target, moment, code, word in ((path, before, 404, "at:"), (f"/api/v1/runs/{uid}", "2001-01-01T00:00:00Z", 404, "first heard of"),
                                       (f"/api/v1/runs/{uid}/series", "2001-01-01T00:00:00Z", 404, "had not started"),
                                       ("/api/v1/runs", "2001-01-01T00:00:00Z", 404, "nothing is kept"),
                                       (f"/api/v1/runs/{uid}", "2101-01-01T00:00:00Z", 400, "has passed"),
                                       (f"/api/v1/runs/{uid}", "yesterday", 400, "a time such as"),
                                       (f"/api/v1/runs/{uid}/rules", first["as_of"], 400, "at")):
        status, body = refused(one, target, at=moment)
        assert status == code and body["field"] == "at" and word in body["detail"], body
