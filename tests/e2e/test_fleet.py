"""Fleet: which node, image or queue fails more than the others; counted beside what was written, by the API and by the page."""
import json
import statistics
import time

import pytest

from tests.e2e.test_curves import asked, refused
from tests.support import axe, journal
from tests.support.hook_support import wait_for
from tests.support.issues import issue_record
from tests.support.program import ROOT, Server
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
# name: (node of each rank, label image, outcome; None: it goes on)
RUNS = {"a": (("n1", "n2"), "v1", "failed"), "b": (("n2",), "v1", "completed"), "c": (("n2", "n3"), "v2", "failed"), "d": (("n3",), "v2", "completed"),
        "e": (("n2", "n1"), "v2", "stopped_by_rule"), "f": (("n1",), None, None), "g": (("n2",), "v2", "stopped_by_person"), "h": (("n4", "n5"), "v1", "completed")}
FAILED = {"failed", "lost", "stopped_by_rule"}
# (run or None, rank or None, label node or None)
ISSUES = [("a", 1, None), ("c", 0, None), ("c", None, None), ("e", None, "n1"), (None, None, "n4"), ("f", 0, None), ("h", None, "n5")]
AGENT = 0xFFFFFFFF
SWEEPS = {"system.memory.utilization{system.memory.state=used}": ([0.5, 0.5, 0.5, 0.5, 0.5, 0.625], 0),
          "hw.gpu.utilization{hw.id=GPU-a}": ([0.9, 0.9, 0.9, 0.9, 0.9, 0.75], 0),
          "hw.errors{error.type=xid,hw.id=GPU-a,hw.type=gpu}": ([1, 1, 2, 4, 4, 4], 1),
          "hw.errors{error.type=corrected,hw.id=GPU-a,hw.type=gpu}": ([0, 0, 7, 7, 9, 9], 1),
          "hw.errors{error.type=uncorrected,hw.id=GPU-a,hw.type=gpu}": ([0, 0, 0, 0, 0, 0], 1),
          "tocsin.gpu.throttled{hw.id=GPU-a,reason=power}": ([0, 1, 1, 0, 0, 0], 0), "tocsin.gpu.throttled{hw.id=GPU-a,reason=thermal}": ([0, 0, 0, 1, 0, 0], 0),
          **{f"system.cpu.utilization{{cpu.logical_number=0,cpu.mode={mode}}}": (share, 0) for mode, share in (
              ("idle", [0.9, 0.8, 0.7, 0.6, 0.5, 0.25]), ("iowait", [0.0, 0.0, 0.0, 0.0, 0.0, 0.125]))}}


def uid_of(name):
    return wire.run_uid("fleet", name)


def of_run(name, sequence=0):
    nodes, image, outcome = RUNS[name]
    for rank, node in enumerate(nodes):
        def head(step):
            nonlocal sequence
            sequence += 1
            return wire.header(uid_of(name), worker=f"worker_{rank}", rank=rank, world_size=len(nodes), incarnation=7, step=step, global_step=step,
                               time=time.time_ns(), sequence=sequence)
        labels = {"image": image} if image else {}
        frames = [wire.encode_dictionary(head(0), [{"type": 4, "name": f"worker_{rank}"}]),
                  wire.encode_lifecycle(head(0), {"event": "start", "job": f"job-{name}", "launch": name, "node": node, "labels": labels, "worker": f"worker_{rank}"})]
        if outcome:
            frames.append(wire.encode_lifecycle(head(9), {"event": "end", "outcome": outcome, "exit_code": 0 if outcome == "completed" else 1}))
        yield from (("telemetry", wire.route_key(uid_of(name)), frame) for frame in frames)


def of_agent(begin, sweeps=range(6)):
    """Sweeps behind the sixth have its values."""
    for sweep in sweeps:
        at = begin + min(sweep, 5) * 250_000_000
        head = [wire.header(uid_of("b"), worker="n2", rank=AGENT, mode=0, incarnation=3, time=at, sequence=2 * sweep + more) for more in (1, 2)]
        if sweep == 0:
            yield ("telemetry", wire.route_key(uid_of("b")), wire.encode_dictionary(head[0], [{"type": 5, "name": "n2"}, *({"type": 3, "name": name} for name in SWEEPS)]))
        yield ("telemetry", wire.route_key(uid_of("b")), wire.encode_frame(head[1], wire.SYSTEM, [
            {"series": wire.xxh64(name), "time": at, "value": float(values[min(sweep, 5)]), "meta": meta} for name, (values, meta) in SWEEPS.items()]))


def of_issue(number):
    run, rank, node = ISSUES[number]
    labels = {"rule": "by_hand", "severity": "error", "number": str(number), **({"worker": f"worker_{rank}"} if rank is not None else {}), **({"node": node} if node else {})}
    return issue_record(labels, annotations={"summary": f"by hand {number}"},
                        **({"run": {"uid": str(uid_of(run)), "attempt": 1, "job": f"job-{run}"}} if run else {}))


@pytest.fixture(scope="module")
def fleet(tmp_path_factory):
    folder = tmp_path_factory.mktemp("fleet")
    (folder / "tocsin.yaml").write_text(CONFIG.format(journal=folder / "journal"))
    one = Server(folder / "tocsin.yaml", role="up")
    one.wait_for("ready")
    begin = time.time_ns() // 10**9 * 10**9 - 2 * 10**9
    journal.append(folder / "journal", *(record for name in RUNS for record in of_run(name)), *of_agent(begin))
    journal.append(folder / "journal", *(of_issue(number) for number in range(len(ISSUES))))

    def complete():
        status, text = one.get("/api/v1/nodes")
        if status != 200:
            return None
        items = json.loads(text)["items"]
        heard = [(row["agent"]["xids"], row["agent"]["gpu"]) for row in items if row["agent"]]
        return sum(row["runs"] for row in items) == sum(len(set(nodes)) for nodes, _, _ in RUNS.values()) and heard == [(3, 0.75)] \
            and {row["name"]: row for row in items}["n1"]["runs_now"] == 1 and sum(row["failed_runs"] for row in items) == 6 and sum(row["issues"] for row in items) == 12
    done = wait_for(complete, 40)
    assert done, one.get("/api/v1/nodes")
    yield one, begin, folder / "journal"
    one.kill()


def counts(group_of):
    """{group: (runs now, runs, failed)} by a plain walk over what was written."""
    out = {}
    for nodes, image, outcome in RUNS.values():
        for group in set(group_of(nodes, image)):
            now, runs, failed = out.get(group, (0, 0, 0))
            out[group] = (now + (outcome is None), runs + 1, failed + (outcome in FAILED))
    return out


def test_a_node_is_in_a_run_if_a_worker_of_it_was_there(fleet):
    one, begin, _ = fleet
    answer = asked(one, "/api/v1/nodes")
    rows = {row["name"]: row for row in answer["items"]}
    assert {name: (row["runs_now"], row["runs"], row["failed_runs"]) for name, row in rows.items()} == counts(lambda nodes, _: nodes)
    # Of a worker's issue its node; else the node that is named; else all nodes of the run. Runs a and c have one of job_failed beside them.
    assert {name: row["issues"] for name, row in rows.items()} == {"n1": 2 + 1, "n2": 3 + 2, "n3": 1 + 1, "n4": 1, "n5": 1}
    assert answer["median"] == {"failed_runs": statistics.median(row["failed_runs"] for row in rows.values()), "issues": statistics.median(row["issues"] for row in rows.values())}
    assert [name for name, row in rows.items() if row["stands_out"]] == ["n2"] and answer["items"][0]["name"] == "n2"
    agent = rows["n2"]["agent"]
    assert {**agent, "heard_at": None} == {
        "heard_at": None, "silent": False, "interval_ms": 250, "cpu": 1 - 0.25 - 0.125, "gpu": 0.75, "memory": 0.625, "xids": 3, "ecc_corrected": 9, "ecc_uncorrected": 0,
        "throttled": pytest.approx(2 / 6)}
    assert time.mktime(time.strptime(agent["heard_at"][:19], "%Y-%m-%dT%H:%M:%S")) - time.timezone == (begin + 5 * 250_000_000) // 10**9
    assert [name for name, row in rows.items() if row["agent"]] == ["n2"]


def test_the_same_by_any_label(fleet):
    one, _, _ = fleet
    answer = asked(one, "/api/v1/nodes", by="image")
    rows = {row["name"]: row for row in answer["items"]}
    assert {name: (row["runs_now"], row["runs"], row["failed_runs"]) for name, row in rows.items()} == counts(lambda _, image: {image or ""})
    assert {name: row["nodes"] for name, row in rows.items()} == {"v1": ["n1", "n2", "n4", "n5"], "v2": ["n1", "n2", "n3"], "": ["n1"]}
    assert {name: row["issues"] for name, row in rows.items()} == {"v1": 2 + 1, "v2": 3 + 1, "": 1} and answer["labels"] == ["image"]
    assert {row["agent"] for row in rows.values()} == {None}


def test_a_node_has_its_runs_and_issues_and_a_wrong_name_the_nearest(fleet):
    one, _, _ = fleet
    answer = asked(one, "/api/v1/nodes/n2")
    assert {run["uid"] for run in answer["runs"]} == {str(uid_of(name)) for name, (nodes, _, _) in RUNS.items() if "n2" in nodes}
    assert sorted(issue["issue"]["summary"] for issue in answer["issues"] if issue["issue"]["rule"] != "job_failed") == ["by hand 0", "by hand 1", "by hand 2"]
    assert sorted(issue["job"] for issue in answer["issues"] if issue["issue"]["rule"] == "job_failed") == ["job-a", "job-c"]
    assert {issue["job"] for issue in answer["issues"]} == {"job-a", "job-c"}
    (loose,) = asked(one, "/api/v1/nodes/n4")["issues"]
    assert (loose["run"], loose["job"], loose["issue"]["summary"]) == (None, None, "by hand 4")
    status, said = refused(one, "/api/v1/nodes/n22", **{})
    assert status == 404 and said["detail"] == 'node: no agent and no worker of the last seven days is on "n22"; did you mean "n2"?'
    status, said = refused(one, "/api/v1/nodes", bye="image")
    assert status == 400 and "by" in said["detail"]


def test_the_page_leads_from_the_node_that_fails_to_its_runs_and_issues(fleet, browser):
    one, _, written = fleet
    journal.append(written, *of_agent(time.time_ns(), [6]))  # the agent is heard of again: it is not silent however long the tests before took
    base = f"http://{one.wait_for('started')['http']}"
    shots = ROOT / "build" / "screens"
    shots.mkdir(parents=True, exist_ok=True)
    for width, theme in ((1440, "light"), (390, "dark")):
        context = browser.new_context(viewport={"width": width, "height": 900}, color_scheme=theme)
        axe.bring(context)
        page = context.new_page()
        for name, path, drawn in (("fleet", "/fleet", ".fleet-row"), ("fleet-node", "/fleet/n2", ".facts"), ("fleet-image", "/fleet?by=image", ".fleet-row")):
            page.goto(base + path)
            page.wait_for_selector(drawn)
            page.wait_for_selector(".live.good")
            page.screenshot(path=shots / f"{name}-{width}-{theme}.png", full_page=True)
            assert page.evaluate("document.documentElement.scrollWidth") <= width, name
            assert axe.faults(page, name) == {}
        context.close()
    page = browser.new_page()
    page.goto(base + "/")
    page.click("nav >> text=Fleet")
    first = page.locator(".fleet-row").first
    first.wait_for()
    assert "n2" in first.inner_text() and "3 of 5" in first.inner_text() and "CPU 63 % · GPU 75 % · memory 63 %" in first.inner_text()
    assert "3 XID · 9 corrected ECC" in first.inner_text() and first.locator(".bad").count() == 2  # what failed, and the XIDs
    assert page.locator(".fleet-row .bad").count() == 2
    page.select_option("select", "image")
    page.wait_for_selector("text=without this label")
    assert "by=image" in page.url
    page.go_back()
    page.goto(base + "/fleet")
    page.click("text=n2")
    page.wait_for_selector("text=by hand 1")
    page.click("text=by hand 1")
    page.wait_for_selector("h1:has-text('by hand 1')")
    page.goto(base + "/fleet/n2")
    page.click(f"text=job-c {str(uid_of('c'))[:8]}")
    page.wait_for_selector("h1:has-text('job-c')")
    page.close()
