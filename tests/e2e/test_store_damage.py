"""Stores of the page that are damaged, or on a full disk: they say so, are filled again from the topics, and disturb nobody."""
import json
import os
import resource
import shutil
import sqlite3
import subprocess
import sys

import pytest

from tests.e2e.test_curves import CONFIG, SCRIPT, asked, environment, run_with, train
from tests.support.hook_support import wait_for
from tests.support.program import run_cli

STORES = ("curves.db", "insights.db")
MANY = """
import sys, tocsin
hook = tocsin.watch(run="m", job="many")
for step in range(int(sys.argv[1])):
    hook.log(**{f"m{k}": 0.1 * ((step * 7919 + k * 104729) % 10007) for k in range(100)})
    hook.step()
hook.close()
"""


def flip(path):
    with open(path, "r+b") as file:
        file.seek(file.seek(0, os.SEEK_END) // 3)
        file.write(os.urandom(100_000))


def truncate(path):
    os.truncate(path, path.stat().st_size // 2 + 7)


def empty(path):
    os.truncate(path, 0)


def folder(path):
    path.unlink()
    (path / "inside").mkdir(parents=True)


def stores(server):
    return {one["store"]: one for one in asked(server, "/api/v1/status")["stores"]}


def curve(server, uid):
    status, text = server.get(f"/api/v1/runs/{uid}/series?name=loss&points=5000")
    return json.loads(text)["series"] if status == 200 else None


def engine_goes_on(server, tmp_path, journal):
    """Another run that explodes is still found by the engine, and is in the lists."""
    script = tmp_path / "after.py"
    script.write_text(SCRIPT.replace('run="r"', 'run="after"'))
    known = {issue["run"]["uid"] for issue in asked(server, "/api/v1/issues")["items"]}
    subprocess.run([sys.executable, script, "800"], env=environment(journal), cwd=tmp_path, timeout=60, check=True)
    assert wait_for(lambda: {issue["run"]["uid"] for issue in asked(server, "/api/v1/issues")["items"]} - known, 30)


def filled(tmp_path, server):
    """A server whose stores hold a run of 3000 steps, ended so that all is in the files."""
    journal = tmp_path / "journal"
    one = server(CONFIG.format(journal=journal))
    one.wait_for("ready")
    assert train(tmp_path, journal, 3000).wait(60) == 0
    uid = run_with(one, 3000)
    assert uid
    kept = curve(one, uid)
    assert one.stop() == 0
    assert not list(journal.glob("*.db-wal")) or all((journal / name).stat().st_size > 50_000 for name in STORES)
    return journal, uid, kept


@pytest.mark.parametrize("harm", (flip, truncate, empty, folder))
def test_what_is_damaged_is_set_aside_and_filled_again(server, tmp_path, harm):
    journal, uid, kept = filled(tmp_path, server)
    for name in STORES:
        harm(journal / name)
    again = server(CONFIG.format(journal=journal))
    again.wait_for("ready")
    assert wait_for(lambda: curve(again, uid) == kept, 30)
    found = stores(again)
    for name, store, said in (("curves.db", "curves", "curves_begun_anew"), ("insights.db", "events", "insights_begun_anew")):
        assert again.wait_for(said)["moved_to"] == f"{journal}/{name}.damaged"
        assert (journal / f"{name}.damaged").exists()
        assert found[store]["state"] == "ok" and found[store]["set_aside"]["damaged"], found
        assert found[store]["set_aside"]["file"] == f"{journal}/{name}.damaged"
    engine_goes_on(again, tmp_path, journal)
    for name in STORES:
        moved = journal / f"{name}.damaged"
        (shutil.rmtree if moved.is_dir() else os.unlink)(moved)
    assert all(one["set_aside"] is None for one in stores(again).values())


def test_damage_that_is_met_while_it_serves_is_set_aside_too(server, tmp_path, browser):
    journal, uid, kept = filled(tmp_path, server)
    again = server(CONFIG.format(journal=journal))
    again.wait_for("ready")
    assert wait_for(lambda: curve(again, uid) == kept, 30)
    for name in STORES:
        with open(journal / name, "r+b") as file:
            size = file.seek(0, os.SEEK_END)
            file.seek(2 * 16384)
            file.write(b"\x55" * (size - 2 * 16384))
    wait_for(lambda: curve(again, uid) is None, 1)  # at the latest this read meets it
    again.wait_for("curves_begun_anew")
    again.wait_for("insights_begun_anew")
    assert wait_for(lambda: curve(again, uid) == kept, 30)
    assert all(one["state"] == "ok" and one["set_aside"]["damaged"] for one in stores(again).values())
    engine_goes_on(again, tmp_path, journal)
    page = browser.new_page()
    page.goto(f"http://{again.wait_for('started')['http']}/runs/{uid}")
    for what, name in (("runs and issues", "insights.db"), ("curves", "curves.db")):
        page.wait_for_selector(f"text=/the store of {what} was found damaged.*{name}.damaged/")
    page.wait_for_selector(".live.good")
    page.wait_for_timeout(3000)
    requests = []
    page.on("request", lambda request: requests.append(request.url))
    for name in STORES:
        (journal / f"{name}.damaged").unlink()
    assert all(one["set_aside"] is None for one in stores(again).values()), "whoever deletes the file has seen to it"
    page.wait_for_selector("text=/the store of/", state="detached")
    assert not [url for url in requests if url.endswith("/status")], "the stream said so"


class SmallDisk:
    """A file system of 4 MB, which becomes larger."""

    def __init__(self, folder):
        folder.mkdir()
        self.folder = folder
        if subprocess.run(["mount", "-t", "tmpfs", "-o", "size=4m", "tmpfs", str(folder)], capture_output=True, check=False).returncode:
            pytest.skip("this machine lets nobody mount a file system")

    def shrink(self, _server):
        pass

    def grow(self, _server):
        subprocess.run(["mount", "-o", "remount,size=400m", str(self.folder)], check=True)

    def leave(self):
        subprocess.run(["umount", "-l", str(self.folder)], check=False)


class SmallFiles:
    """A limit of files, which the system answers as it does a full disk."""

    def __init__(self, folder):
        folder.mkdir()
        self.folder = folder

    def shrink(self, server):
        resource.prlimit(server.process.pid, resource.RLIMIT_FSIZE, (1_500_000, resource.RLIM_INFINITY))

    def grow(self, server):
        resource.prlimit(server.process.pid, resource.RLIMIT_FSIZE, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))

    def leave(self):
        pass


@pytest.mark.parametrize("kind", (SmallDisk, SmallFiles))
def test_a_full_disk_stops_the_store_only_and_nothing_is_lost(server, tmp_path, kind):
    journal = tmp_path / "journal"
    disk = kind(tmp_path / "store")
    try:
        one = server(CONFIG.format(journal=journal) + f"insights: {{path: '{disk.folder}/insights.db'}}\n")
        one.wait_for("ready")
        assert train(tmp_path, journal, 3000).wait(60) == 0
        uid = run_with(one, 3000)
        kept = curve(one, uid)
        disk.shrink(one)
        script = tmp_path / "many.py"
        script.write_text(MANY)
        subprocess.run([sys.executable, script, "1500"], env=environment(journal), cwd=tmp_path, timeout=120, check=True)
        assert wait_for(lambda: stores(one)["curves"]["state"] == "full", 30), stores(one)
        assert "full" in stores(one)["curves"]["reason"] or "I/O" in stores(one)["curves"]["reason"]
        assert curve(one, uid) == kept  # reading goes on
        engine_goes_on(one, tmp_path, journal)
        assert curve(one, uid) == kept and stores(one)["curves"]["state"] == "full"
        disk.grow(one)
        assert wait_for(lambda: stores(one)["curves"]["state"] == "ok", 60)
        (many,) = [run for run in asked(one, "/api/v1/runs")["items"] if run["job"] == "many"]
        def length(name):
            lines = asked(one, f"/api/v1/runs/{many['uid']}/series", name=name, points=5000)["series"]
            return len(lines[0]["x0"]) if lines else 0
        assert wait_for(lambda: all(length(name) == 1500 for name in ("m0", "m57", "m99")), 60)
        for name in ("m0", "m57", "m99"):
            k = int(name[1:])
            (line,) = asked(one, f"/api/v1/runs/{many['uid']}/series", name=name, points=5000)["series"]
            assert line["x0"] == list(range(1500))
            assert line["value"] == pytest.approx([0.1 * ((step * 7919 + k * 104729) % 10007) for step in range(1500)], rel=1e-6)
        assert not [event for event in one.events if event["msg"].endswith("begun_anew")]
        one.kill()
    finally:
        disk.leave()


def test_a_chunk_that_cannot_be_read_goes_alone_and_its_gap_is_told(server, tmp_path):
    journal = tmp_path / "journal"
    one = server(CONFIG.format(journal=journal))
    one.wait_for("ready")
    assert train(tmp_path, journal, 3000).wait(60) == 0
    uid = run_with(one, 3000)
    assert one.stop() == 0
    database = sqlite3.connect(journal / "curves.db")
    assert database.execute("UPDATE chunk SET data = substr(data, 1, 100) WHERE x0 = 512 AND family ="
                            " (SELECT f.id FROM family f JOIN name n ON n.hash = f.name AND n.run = f.run WHERE n.text = 'loss')").rowcount == 1
    database.commit()
    database.close()
    one = server(CONFIG.format(journal=journal))
    one.wait_for("ready")
    (line,) = wait_for(lambda: curve(one, uid), 20)
    assert one.wait_for("curves_chunk_dropped")["first"] == "512"
    assert line["x0"] == [*range(512), *range(1024, 3000)]
    answer = asked(one, f"/api/v1/runs/{uid}/series", name="loss", points=40)
    assert sum(answer["series"][0]["n"]) + sum(row[1] for row in answer["series"][0]["bad"]) == 3000  # buckets have all of it
    (lost,) = answer["lost"]
    assert (lost["reason"], lost["values"], lost["first_step"], lost["last_step"]) == ("unreadable", 512, 512, 1023)
    assert stores(one)["curves"]["set_aside"] is None and not (journal / "curves.db.damaged").exists()
    code, text, _ = run_cli("insights", "check", journal)
    assert code == 0 and "note: " in text and "from 512 to 1023" in text, text
