"""Nodes as they were at a time: each answer beside a plain walk over what had been written by then, and the page once."""
import json
import time

import numpy
import pytest

from tests.e2e.test_complaints import base_of
from tests.e2e.test_curves import asked, refused
from tests.e2e.test_page_acts import pictured
from tests.support import journal
from tests.support.hook_support import wait_for
from tests.support.issues import at as time_text
from tests.support.issues import issue_record
from tests.support.program import Server
from tocsin import wire

CONFIG = """
transport: {{journal: {journal}}}
cluster: lab
collect: {{collectors: []}}
rules: [{{use: exploding_tensor}}]
route: {{receiver: nobody, group_by: [job]}}
receivers: {{nobody: {{}}}}
http: {{listen: '127.0.0.1:0'}}
"""
AGENT = 0xFFFFFFFF
MEMORY = "system.memory.utilization{system.memory.state=used}"
XIDS = "hw.errors{error.type=xid,hw.id=GPU-a,hw.type=gpu}"
BUSY = {mode: f"system.cpu.utilization{{cpu.logical_number=0,cpu.mode={mode}}}" for mode in ("idle", "iowait")}


def uid_of(name):
    return wire.run_uid("past-nodes", name)


class Written:
    """What was written so far, in the order of writing: the walk goes over it."""

    def __init__(self, folder):
        self.folder = folder
        self.sequence = 0
        self.samples = []  # (node, ms, memory, XIDs, idle)
        self.begun = []    # (ms, run, attempt, worker, node)
        self.ended = []    # (ms, run, outcome)
        self.issues = []   # (ms, node, summary)
        self.agents = set()

    def _head(self, run, **more):
        self.sequence += 1
        return wire.header(uid_of(run), time=time.time_ns(), sequence=self.sequence, **more)

    def _append(self, run, *frames):
        journal.append(self.folder, *(("telemetry", wire.route_key(uid_of(run)), frame) for frame in frames))

    def sample(self, node, run, rows, before=0.0):
        """Sweeps 250 ms apart; the newest lies `before` seconds in the past."""
        newest = int((time.time() - before) * 1000)
        frames = []
        for place, (memory, xids, idle) in enumerate(rows):
            at = newest - 250 * (len(rows) - 1 - place)
            self.samples.append((node, at, memory, xids, idle))

            def head():
                self.sequence += 1
                return wire.header(uid_of(run), worker=node, rank=AGENT, mode=0, incarnation=3, time=at * 10**6, sequence=self.sequence)  # noqa: B023
            values = {MEMORY: (memory, 0), XIDS: (xids, 1), BUSY["idle"]: (idle, 0), BUSY["iowait"]: (0.0, 0)}
            if node not in self.agents:
                self.agents.add(node)
                frames.append(wire.encode_dictionary(head(), [{"type": 5, "name": node}, *({"type": 3, "name": name} for name in values)]))
            frames.append(wire.encode_frame(head(), wire.SYSTEM, [
                {"series": wire.xxh64(name), "time": at * 10**6, "value": float(value), "meta": meta} for name, (value, meta) in values.items()]))
        self._append(run, *frames)

    def begin(self, run, nodes, attempt=1):
        for rank, node in enumerate(nodes):
            worker = f"worker_{rank}"
            head = {"worker": worker, "rank": rank, "world_size": len(nodes), "incarnation": attempt, "attempt": attempt, "step": 0, "global_step": 0}
            self._append(run, wire.encode_dictionary(self._head(run, **head), [{"type": 4, "name": worker}]), wire.encode_lifecycle(self._head(run, **head), {
                "event": "start", "job": f"job-{run}", "launch": run, "node": node, "labels": {}, "worker": worker}))
            self.begun.append((int(time.time() * 1000), run, attempt, worker, node))

    def end(self, run, world, outcome, attempt=1):
        for rank in range(world):
            self._append(run, wire.encode_lifecycle(self._head(run, worker=f"worker_{rank}", rank=rank, world_size=world, incarnation=attempt, attempt=attempt, step=9, global_step=9),
                                                    {"event": "end", "outcome": outcome, "exit_code": 0 if outcome == "completed" else 1}))
        self.ended.append((int(time.time() * 1000), run, outcome))

    def issue(self, node, summary):
        journal.append(self.folder, issue_record({"rule": "by_hand", "severity": "error", "node": node, "what": summary}, annotations={"summary": summary}))
        self.issues.append((int(time.time() * 1000), node, summary))

    def agent(self, node, at):
        """As the API has it; None: no sample had come."""
        rows = [row[1:] for row in self.samples if row[0] == node and row[1] <= at]
        if not rows:
            return None
        times = [row[0] for row in rows if row[0] >= rows[-1][0] - 60_000]
        apart = sorted(later - earlier for earlier, later in zip(times, times[1:], strict=False))
        return {"heard_at": time_text(rows[-1][0] / 1000)[:19], "silent": at - rows[-1][0] > 60_000, "interval_ms": apart[len(apart) // 2], "cpu": pytest.approx(1 - rows[-1][3]),
                "memory": pytest.approx(rows[-1][1]), "xids": rows[-1][2] - rows[0][2]}

    def nodes(self, at):
        """{node: (runs then, runs, failed runs, issues by hand)}."""
        over = {run: outcome for when, run, outcome in self.ended if when <= at}
        on = {}
        for when, run, _, _, node in self.begun:
            if when <= at:
                on.setdefault(node, set()).add(run)
        told = [node for when, node, _ in self.issues if when <= at]
        names = set(on) | set(told) | {row[0] for row in self.samples if row[1] <= at}
        return {name: (len({run for run in on.get(name, ()) if run not in over}), len(on.get(name, ())),
                       len({run for run in on.get(name, ()) if over.get(run) == "failed"}), told.count(name)) for name in names}

    def workers(self, run, at):
        return {(worker, node) for when, of, _, worker, node in self.begun if of == run and when <= at}


def millis(text):
    whole, _, part = text.rstrip("Z").partition(".")
    return int(time.mktime(time.strptime(whole, "%Y-%m-%dT%H:%M:%S")) - time.timezone) * 1000 + int((part + "000")[:3])


@pytest.fixture(scope="module")
def past(tmp_path_factory):
    """The server, what was written, and four moments between which something changed."""
    folder = tmp_path_factory.mktemp("past-nodes")
    (folder / "tocsin.yaml").write_text(CONFIG.format(journal=folder / "journal"))
    one = Server(folder / "tocsin.yaml", role="up")
    one.wait_for("ready")
    written = Written(folder / "journal")
    moments = [time_text(time.time() - 3600)]

    def passed():
        """Waits until the server tells everything that was written, and a moment behind it that lies apart from what comes next."""
        def told():
            now = int(time.time() * 1000)
            status, text = one.get("/api/v1/nodes")
            rows = {row["name"]: row for row in json.loads(text)["items"]} if status == 200 else {}
            truth = written.nodes(now)
            failed = {name: failed for name, (_, _, failed, _) in truth.items()}
            return set(rows) == set(truth) and all((row["runs_now"], row["runs"], row["failed_runs"]) == truth[name][:3] for name, row in rows.items()) \
                and all(row["issues"] == truth[name][3] + failed[name] for name, row in rows.items()) \
                and all((row["agent"] or {}).get("heard_at", "")[:19] == (written.agent(name, now) or {}).get("heard_at", "") for name, row in rows.items()) \
                and all(row["agent"] is None or row["agent"]["xids"] == written.agent(name, now)["xids"] for name, row in rows.items())
        assert wait_for(told, 60), (one.get("/api/v1/nodes"), written.nodes(int(time.time() * 1000)))
        time.sleep(0.1)
        moments.append(time_text(time.time()))
        time.sleep(0.6)  # samples reach back from when they are written
    # Its newest sample is older than a minute.
    written.sample("n1", "a", [(0.25, 1, 0.9), (0.25, 1, 0.875), (0.5, 2, 0.75)], before=100)
    written.begin("a", ["n1"])
    written.issue("n1", "by hand 0")
    passed()
    written.sample("n1", "a", [(0.5, 2, 0.5), (0.625, 5, 0.5)])
    written.sample("n2", "b", [(0.125, 0, 0.25), (0.125, 0, 0.125)])
    written.begin("b", ["n2", "n1"])
    written.end("a", 1, "failed")
    written.issue("n4", "by hand 1")
    passed()
    written.begin("b", ["n2", "n3"], attempt=2)
    written.sample("n1", "a", [(0.75, 9, 0.25), (0.875, 9, 0.125)])
    written.issue("n1", "by hand 2")
    passed()
    yield one, written, moments
    one.kill()


def test_nodes_are_those_of_then_as_a_walk_has_them(past):
    one, written, moments = past
    assert asked(one, "/api/v1/nodes", at=moments[0])["items"] == []
    seen = []
    for moment in moments[1:]:
        at = millis(moment)
        answer = asked(one, "/api/v1/nodes", at=moment)
        assert answer["as_of"][:19] == moment[:19]
        rows = {row["name"]: row for row in answer["items"]}
        truth = written.nodes(at)
        # A run that failed has one of job_failed beside those by hand.
        assert {name: (row["runs_now"], row["runs"], row["failed_runs"], row["issues"] - row["failed_runs"]) for name, row in rows.items()} == truth, moment
        for name, row in rows.items():
            agent = written.agent(name, at)
            told = row["agent"] and {**{key: row["agent"][key] for key in agent}, "heard_at": row["agent"]["heard_at"][:19]}
            assert told == agent, (moment, name)
        seen.append({name: (*counts, rows[name]["agent"]) for name, counts in truth.items()})
        for name in rows:
            assert asked(one, f"/api/v1/nodes/{name}", at=moment)["node"] == rows[name]
    assert seen[0] != seen[1] != seen[2] and seen[0]["n1"][-1]["silent"] and not seen[1]["n1"][-1]["silent"]
    now = asked(one, "/api/v1/nodes")["items"]
    last = asked(one, "/api/v1/nodes", at=moments[-1])["items"]
    # In the present time passes: what is silent may have become so.
    assert [{**row, "agent": row["agent"] and {**row["agent"], "silent": None}} for row in now] == [{**row, "agent": row["agent"] and {**row["agent"], "silent": None}} for row in last]


def test_a_node_has_the_runs_and_issues_of_then(past):
    one, _, moments = past
    first = asked(one, "/api/v1/nodes/n1", at=moments[1])
    assert [(run["job"], run["state"], run["outcome"]) for run in first["runs"]] == [("job-a", "running", None)]
    assert [issue["issue"]["summary"] for issue in first["issues"]] == ["by hand 0"]
    second = asked(one, "/api/v1/nodes/n1", at=moments[2])
    assert {(run["job"], run["state"]) for run in second["runs"]} == {("job-a", "ended"), ("job-b", "running")}
    for answer, moment in ((first, moments[1]), (second, moments[2])):
        for run in answer["runs"]:
            whole = asked(one, f"/api/v1/runs/{run['uid']}", at=moment)["run"]
            assert {**run, "step": None} == {**whole, "step": None}
    status, said = refused(one, "/api/v1/nodes/n3", at=moments[2])
    assert status == 404 and "of the seven days before" in said["detail"], said
    for path in ("/api/v1/nodes", "/api/v1/nodes/n1", f"/api/v1/runs/{uid_of('a')}/nodes", f"/api/v1/runs/{uid_of('a')}/system"):
        status, said = refused(one, path, at="2101-01-01T00:00:00Z")
        assert status == 400 and said["field"] == "at" and "has passed" in said["detail"], said


def test_nodes_and_samples_of_a_run_end_at_that_time(past):
    one, written, moments = past
    lengths = []
    for moment in moments[1:]:
        at = millis(moment)
        for run in ("a", "b"):
            nodes = asked(one, f"/api/v1/runs/{uid_of(run)}/nodes", at=moment)
            listed = {(worker["name"], row["node"]) for row in [*nodes["items"], *nodes["without_samples"]] for worker in row["workers"]}
            assert listed == written.workers(run, at), (moment, run)
        rows = [row[1:] for row in written.samples if row[0] == "n1" and row[1] <= at]
        (node,) = (row for row in asked(one, f"/api/v1/runs/{uid_of('a')}/nodes", at=moment)["items"] if row["node"] == "n1")
        assert (node["from"], node["to"]) == (rows[0][0], rows[-1][0] + 1)
        (line,) = asked(one, f"/api/v1/runs/{uid_of('a')}/system", node="n1", name="system.memory.*", points=5000, at=moment)["series"]
        assert sum(line["n"]) == line["stored"] == len(rows) and line["max"][-1] == max(row[1] for row in rows if row[0] >= line["x0"][-1])
        cores = asked(one, f"/api/v1/runs/{uid_of('a')}/system/heatmap", node="n1", at=moment, **{"from": rows[-1][0] - 1000, "to": rows[-1][0] + 60_000})
        (row,) = cores["rows"]
        wanted = []
        for column in range(len(row["cells"])):
            lo = cores["from"] + column * cores["width"]
            inside = [1 - idle for ms, _, _, idle in rows if lo <= ms < lo + cores["width"]]
            wanted.append(pytest.approx(numpy.mean(inside)) if inside else None)
        assert row["cells"] == wanted
        usage = {one["what"]: one for one in asked(one, f"/api/v1/runs/{uid_of('a')}/resources", node="n1", at=moment)["items"]}
        assert usage["cpu_memory"]["samples"] == len(rows) and usage["cpu_memory"]["max"] == max(row[1] for row in rows)
        lengths.append(len(rows))
    assert lengths == [3, 5, 7]
    assert asked(one, f"/api/v1/runs/{uid_of('b')}/nodes", at=moments[1])["items"] == [], "it had not begun"


def test_the_page_shows_the_nodes_of_then(past, browser):
    one, _, moments = past
    for width, theme in ((1440, "light"), (390, "dark")):
        page = browser.new_context(viewport={"width": width, "height": 900}, color_scheme=theme).new_page()
        wrong = []
        page.on("console", lambda line, wrong=wrong: wrong.append(line.text) if line.type == "error" else None)
        page.goto(f"{base_of(one)}/fleet?at={moments[1]}")
        page.wait_for_selector(".fleet-row")
        assert page.locator(".fleet-row").count() == 1 and page.locator(".then").count() == 1
        line = page.inner_text(".fleet-row")
        assert "n1" in line and "silent" in line and "1 XID" in line and "Runs then" in page.inner_text("table thead"), line
        pictured(page, f"past-fleet-{width}-{theme}")
        page.click(".fleet-row a")
        page.wait_for_selector("text=by hand 0")
        assert "What its agent is told to sample is only told as it is now." in page.inner_text("main") and "by hand 2" not in page.inner_text("main")
        pictured(page, f"past-node-{width}-{theme}")
        page.click("main a:text-matches('job-a')")
        page.wait_for_selector("#node-charts canvas")
        page.wait_for_selector("#usage tbody tr")
        assert "at=" in page.url and "3" in page.inner_text("#usage tr[data-what=cpu_memory] td:last-child")
        pictured(page, f"past-run-nodes-{width}-{theme}")
        page.click(".then button:text-is('Back to now')")
        page.wait_for_function("() => document.querySelector('#usage tr[data-what=cpu_memory] td:last-child')?.textContent === '7'")
        assert not wrong, wrong
        page.context.close()
