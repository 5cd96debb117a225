"""`tocsin insights check`, `stats` and `rebuild` on the stores of a real server."""
import json
import os
import sqlite3

from tests.e2e.test_curves import CONFIG, run_with, train
from tests.e2e.test_store_damage import curve
from tests.support.hook_support import wait_for
from tests.support.program import run_cli


def configured(tmp_path):
    path = tmp_path / "stores.yaml"
    path.write_text(CONFIG.format(journal=tmp_path / "journal"))
    return path


def trained(tmp_path, server):
    one = server(CONFIG.format(journal=tmp_path / "journal"))
    one.wait_for("ready")
    assert train(tmp_path, tmp_path / "journal", 3000).wait(60) == 0
    uid = run_with(one, 3000)
    assert uid
    return one, uid, tmp_path / "journal"


def test_a_store_is_checked_and_measured_while_it_is_written(server, tmp_path):
    one, _, journal = trained(tmp_path, server)
    code, text, _ = run_cli("insights", "check", journal)
    assert code == 0 and text.count(": sound (") == 2, text
    code, text, _ = run_cli("insights", "stats", "--config.file", configured(tmp_path), "--output", "json")
    assert code == 0, text
    found = json.loads(text)
    assert found["events"]["runs"] == found["curves"]["runs"] == 1
    classes = {row["class"]: row for row in found["curves"]["classes"]}
    # loss, lr and grad_norm of 3000 steps; each row has a value and a time.
    assert classes["scalars"]["rows"] >= 9000 and classes["scalars"]["values"] == 2 * classes["scalars"]["rows"]
    assert found["curves"]["bytes"] > classes["scalars"]["row_bytes"] > 9000
    assert 0 < classes["scalars"]["bytes_per_value"] < 20
    text = run_cli("insights", "stats", journal)[1]
    assert "scalars" in text and "old" in text, text
    assert one.stop() == 0
    with open(journal / "curves.db", "r+b") as file:
        file.seek(file.seek(0, os.SEEK_END) // 2)
        file.write(b"\x55" * 20_000)
    code, text, _ = run_cli("insights", "check", journal, "--output", "json")
    assert code == 1
    events, curves = json.loads(text)["files"]
    assert events["sound"] and not curves["sound"] and curves["findings"] >= 1 and curves["lines"]
    code, _, error = run_cli("insights", "check", tmp_path)
    assert code == 4 and f"{tmp_path}/insights.db: no such file" in error


def test_a_rebuilt_store_gives_the_same_answers_and_loses_nothing_unasked(server, tmp_path):
    one, uid, journal = trained(tmp_path, server)
    before = curve(one, uid)
    code, _, error = run_cli("insights", "rebuild", "--config.file", configured(tmp_path))
    assert code == 4 and "another process writes it" in error, error
    assert one.stop() == 0
    inode = (journal / "curves.db").stat().st_ino
    code, text, error = run_cli("insights", "rebuild", "--config.file", configured(tmp_path))
    assert code == 0 and "in place" in text and "rebuilding: 1 runs" in error, (text, error)
    assert (journal / "curves.db").stat().st_ino != inode and not (journal / "insights.rebuild").exists()
    assert run_cli("insights", "check", journal)[0] == 0
    again = server(CONFIG.format(journal=journal))
    again.wait_for("ready")
    assert wait_for(lambda: curve(again, uid) == before, 20)
    assert not [event for event in again.events if event["msg"].endswith("begun_anew")]
    assert again.stop() == 0
    # The topic drops its older half.
    with sqlite3.connect(journal / "telemetry.db") as telemetry:
        (table,) = [name for (name,) in telemetry.execute("SELECT name FROM sqlite_master WHERE type = 'table'").fetchall()
                    if "headers" in [row[1] for row in telemetry.execute(f"PRAGMA table_info({name})")]
                    and telemetry.execute(f"SELECT count(*) FROM {name}").fetchone()[0] > 10]
        telemetry.execute(f"DELETE FROM {table} WHERE id < (SELECT (min(id) + max(id)) / 2 FROM {table})")
    kept = (journal / "curves.db").read_bytes()
    code, _, error = run_cli("insights", "rebuild", "--config.file", configured(tmp_path))
    assert code == 1 and f"{uid} (curves): " in error and "rows of its curves" in error and "--drop-lost" in error, error
    assert (journal / "curves.db").read_bytes() == kept and not (journal / "insights.rebuild").exists()
    code, text, error = run_cli("insights", "rebuild", "--drop-lost", "--config.file", configured(tmp_path), "--output", "json")
    assert code == 0 and json.loads(text) == {"rebuilt": True, "lost": 1}, (text, error)
    assert run_cli("insights", "check", journal)[0] == 0
    # The store still has an issue of which the topic has no record any more.
    with sqlite3.connect(journal / "insights.db") as events:
        columns = events.execute("PRAGMA table_info(issue)").fetchall()
        given = {"run": uid, "key": "long-gone", "episode": 1}
        row = [given.get(name, 0 if kind == "INTEGER" else b"" if kind == "BLOB" else "") for _, name, kind, *_ in columns]
        events.execute(f"INSERT INTO issue VALUES ({','.join('?' * len(row))})", row)
    code, _, error = run_cli("insights", "rebuild", "--config.file", configured(tmp_path))
    assert code == 1 and f"{uid} (curves): 1 of 3 issues" in error and "Nothing was changed" in error, error
