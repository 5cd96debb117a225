"""Nodes, Timeline and Ranks: every number beside what NumPy makes of the frames, then the pages themselves."""
import json
import statistics
import time
import urllib.error
import urllib.request

import numpy
import pytest

from tests.e2e.test_curves import asked, look, refused
from tests.e2e.test_tensors import binary, open_page
from tests.support import axe, profiled_run
from tests.support.hook_support import wait_for
from tests.support.profiled_run import CORES, GPUS, NODE, SampleTruth, SpanTruth, union
from tests.support.program import Server

CONFIG = """
transport: {{journal: {journal}}}
cluster: lab
collect: {{interval: 200ms, collectors: [cpu, memory, network]}}
rules: [{{use: low_gpu_utilization}}]
route: {{receiver: nobody, group_by: [job]}}
receivers: {{nobody: {{}}}}
http: {{listen: '127.0.0.1:0'}}
"""
STEPS = 150


@pytest.fixture(scope="module")
def profiled(tmp_path_factory):
    folder = tmp_path_factory.mktemp("profiled")
    (folder / "tocsin.yaml").write_text(CONFIG.format(journal=folder / "journal"))
    one = Server(folder / "tocsin.yaml", role="up")
    one.wait_for("ready")
    profiled_run.train(folder, folder / "journal", STEPS)

    def listed():
        status, text = one.get("/api/v1/runs")
        return json.loads(text)["items"] if status == 200 else []
    uid = wait_for(listed, 20)[0]["uid"]
    _, last = profiled_run.sample_node(folder / "journal", uid)

    def complete():
        nodes = {node["node"]: node for node in asked(one, f"/api/v1/runs/{uid}/nodes")["items"]}
        names = {item["name"]: item for item in asked(one, f"/api/v1/runs/{uid}/names")["items"]}
        return NODE in nodes and nodes[NODE]["to"] > last and len(nodes) == 2 and "phase/backward" in names and names["phase/backward"]["stored"] == 2 * STEPS
    assert wait_for(complete, 30)
    time.sleep(1)  # the newest sweep rests, and is folded
    until = int(time.time() * 1000) - 1000
    yield one, uid, SampleTruth(folder / "journal"), SpanTruth(folder / "journal"), until
    one.kill()


def test_every_sample_is_what_numpy_folds_from_the_frames(profiled):
    one, uid, truth, _, until = profiled
    nodes = {node["node"]: node for node in asked(one, f"/api/v1/runs/{uid}/nodes")["items"]}
    assert set(nodes) == set(truth.nodes) and nodes[NODE]["cores"] == CORES and nodes[NODE]["gpus"] == list(GPUS) and nodes[NODE]["interval_ms"] == 500
    (real,) = set(nodes) - {NODE}
    assert {worker["rank"] for worker in nodes[real]["workers"]} == {0, 1} and nodes[NODE]["workers"] == []
    seen = set()
    for points in (5000, 100):
        answer = asked(one, f"/api/v1/runs/{uid}/system", points=points, limit=512)
        assert answer["left_out"] == 0
        for line in answer["series"]:
            at, values = truth.nodes[line["node"]][line["name"]]
            for place, x0 in enumerate(line["x0"]):
                if x0 + answer["width"] > until:
                    continue
                inside = values[(at >= x0) & (at < x0 + answer["width"])]
                assert line["n"][place] == len(inside) > 0, (line["name"], x0)
                assert (line["min"][place], line["max"][place]) == (pytest.approx(inside.min(), rel=1e-12, abs=1e-12), pytest.approx(inside.max(), rel=1e-12, abs=1e-12))
                assert line["mean"][place] == pytest.approx(inside.mean(), rel=1e-9, abs=1e-12)
            seen.add((line["node"], line["name"]))
            if line["node"] == NODE:
                assert sum(line["n"]) == line["stored"] == len(at)
    assert seen == {(node, name) for node, of in truth.nodes.items() for name in of}
    at, values = truth.nodes[NODE]["system.network.io{network.interface.name=eth0,network.io.direction=receive}"]
    assert len(at) == profiled_run.SWEEPS - 2  # the first, and the one that was made anew


def test_percentiles_are_numpys(profiled):
    one, uid, truth, _, _ = profiled
    items = {item["what"]: item for item in asked(one, f"/api/v1/runs/{uid}/resources", node=NODE)["items"]}
    series = {"total_cpu": "system.cpu.busy{mean}", "total_gpu": "hw.gpu.utilization{mean}", "cpu_memory": "system.memory.utilization{system.memory.state=used}",
              "gpu_memory": "hw.gpu.memory.utilization{mean}", "io_wait": "system.cpu.iowait{mean}", "network": "system.network.io{total}",
              "network_rate": "system.network.io.rate{total}"}
    assert set(items) == set(series)
    for what, name in series.items():
        at, values = truth.nodes[NODE][name]
        if not (numpy.diff(at) == 500).all():
            continue
        item = items[what]
        assert item["samples"] == len(values) and (item["min"], item["max"]) == (pytest.approx(values.min()), pytest.approx(values.max()))
        assert item["mean"] == pytest.approx(values.mean(), rel=1e-9)
        for percent in (50, 90, 95, 99):
            assert item[f"p{percent}"] == pytest.approx(numpy.percentile(values, percent), rel=1e-9), (what, percent)


def test_cores_and_gpus_as_json_and_as_bytes(profiled):
    one, uid, truth, _, _ = profiled
    path = f"/api/v1/runs/{uid}/system/heatmap"
    for cols, agg, fold in ((600, "mean", numpy.mean), (20, "max", numpy.max), (20, "min", numpy.min)):
        heat = asked(one, path, node=NODE, cols=cols, agg=agg)
        assert len(heat["rows"]) == CORES + len(GPUS) and [row["labels"] for row in heat["rows"]][2] == "cpu.logical_number=0"
        for row in heat["rows"]:
            at, values = truth.nodes[NODE][row["name"]]
            for place, cell in enumerate(row["cells"]):
                x0 = heat["from"] + place * heat["width"]
                inside = values[(at >= x0) & (at < x0 + heat["width"])]
                assert cell == (pytest.approx(fold(inside), rel=1e-9, abs=1e-12) if len(inside) else None)
    heat = asked(one, path, node=NODE)
    head, cells = binary(one, f"{path}?node={NODE}&format=bin")
    assert [row["name"] for row in head["rows"]] == [row["name"] for row in heat["rows"]]
    for row, line in zip(heat["rows"], cells):
        for value, cell in zip(row["cells"], line):
            assert cell == 255 if value is None else abs(int(cell) - 252 * (value - head["lo"]) / (head["hi"] - head["lo"])) <= 1


def test_what_is_over_has_a_tag_and_errors_name_the_field(profiled):
    one, uid, _, _, _ = profiled
    for what, query, field, word in (("system", {"name": "a("}, "name", "regular expression"), ("system", {"pionts": 1}, "pionts", "points"), ("system", {"from": 9, "to": 9}, "to", "behind from"),
                                     ("system/heatmap", {"agg": "sum"}, "agg", "mean"), ("resources", {"node": "n("}, "node", "regular expression"), ("spans", {"from": 9, "to": 8}, "to", "behind from"),
                                     ("spans", {"track": "t("}, "track", "regular expression"), ("ranks", {"from": 0, "to": 5000}, "to", "1000"), ("steps", {"last": 0}, "last", "1000")):
        code, body = refused(one, f"/api/v1/runs/{uid}/{what}", **query)
        assert code == 400 and body["field"] == field and word in body["detail"], body
    assert refused(one, "/api/v1/runs/ffffffff/nodes")[0] == 404
    begin = next(node for node in asked(one, f"/api/v1/runs/{uid}/nodes")["items"] if node["node"] == NODE)["from"]

    def fetch(to, tag=None):
        address = f"http://{one.wait_for('started')['http']}/api/v1/runs/{uid}/system?node={NODE}&from={begin}&to={to}"
        try:
            with urllib.request.urlopen(urllib.request.Request(address, headers={"If-None-Match": tag} if tag else {}), timeout=5) as answer:
                return answer.status, answer.headers.get("ETag")
        except urllib.error.HTTPError as error:
            return error.code, error.headers.get("ETag")
    assert fetch(begin + profiled_run.SWEEPS * 500) == (200, None)  # its newest samples stand in no chunk yet
    status, tag = fetch(begin + 100_000)
    assert status == 200 and tag and fetch(begin + 100_000, tag) == (304, tag)


def test_spans_and_their_shares_are_those_of_the_frames(profiled):
    one, uid, _, truth, _ = profiled
    whole = asked(one, f"/api/v1/runs/{uid}/spans", last=20)
    assert set(whole["tracks"]) == {"phase", "op.cpu"} and len(whole["lanes"]) == 4 and not whole["cut"]
    middle = (whole["from"] + whole["to"]) // 2
    for lo, hi in ((whole["from"], whole["to"]), (middle, middle + 7000), (middle, middle + 50)):
        answer = asked(one, f"/api/v1/runs/{uid}/spans", **{"from": lo, "to": hi})
        for rank in (0, 1):
            for track in ("phase", "op.cpu"):
                def within(edge):  # nanoseconds: the store tells times to a quarter of a microsecond
                    return [(name, max(start, lo * 1000), min(end, hi * 1000)) for name, start, end in truth.of(rank, track) if start < hi * 1000 + edge and end > lo * 1000 - edge]
                inside, least, most = within(0), within(-1000), within(1000)
                lane = next((lane for lane in answer["lanes"] if (lane["rank"], lane["track"]) == (rank, track)), None)
                assert len(least) <= (lane["spans"] if lane else 0) <= len(most)
                if not lane:
                    continue
                assert sum(bar[4] for bar in lane["bars"]) == lane["spans"]
                for share in lane["shares"]:
                    parts = [(start, end) for name, start, end in inside if name == answer["names"][share["name"]]]
                    called = [sum(one[0] == answer["names"][share["name"]] for one in some) for some in (least, most)]
                    assert called[0] <= share["calls"] <= called[1]
                    assert share["seconds"] == pytest.approx(sum(end - start for start, end in parts) / 1e9, abs=2e-6 * (1 + len(parts)))
                    assert share["share"] == pytest.approx(union(parts) / ((hi - lo) * 1000), abs=2e-6 * (1 + len(parts)) / ((hi - lo) / 1e6))
    merged = asked(one, f"/api/v1/runs/{uid}/spans", cols=20)
    assert all(len(lane["bars"]) <= 60 and sum(bar[4] for bar in lane["bars"]) == lane["spans"] for lane in merged["lanes"])


def test_steps_ranks_phases_and_operations_are_those_of_the_frames(profiled):
    one, uid, _, truth, _ = profiled
    ranks = asked(one, f"/api/v1/runs/{uid}/ranks", last=50)
    assert (ranks["from"], ranks["to"], ranks["common"], ranks["spans"]) == (STEPS - 50, STEPS, 50, True)
    steps = range(STEPS - 50, STEPS)
    first = {step: min(truth.steps[rank][step][1] for rank in (0, 1)) for step in steps}
    own = {rank: [truth.steps[rank][step][1] / 1e9 - truth.steps[rank][step][0] / 1e9 - truth.times(rank, step)[0] for step in steps] for rank in (0, 1)}
    real = sum(max(pair) for pair in zip(own[0], own[1]))
    for item in ranks["items"]:
        rank = item["rank"]
        times = numpy.sum([truth.times(rank, step) for step in steps], axis=0)
        for name, seconds in zip(("communication", "data_wait", "compute", "other", "idle"), times):
            assert item[name] == pytest.approx(seconds, abs=2e-4), (rank, name)
        late = [(truth.steps[rank][step][1] - first[step]) / 1e9 for step in steps]
        assert item["lateness"] == pytest.approx(numpy.mean(late), abs=2e-6) and item["late"] == pytest.approx(late, abs=2e-6)
        assert item["without"] == pytest.approx(1 - sum(own[1 - rank]) / real, abs=1e-3) and item["overlap"] is None
    assert ranks["items"][1]["compute"] > ranks["items"][0]["compute"] and ranks["items"][1]["without"] > 0.1
    for line in asked(one, f"/api/v1/runs/{uid}/steps", last=10)["items"]:
        phases = {phase["name"]: phase for phase in line["phases"]}
        for name in ("forward", "backward", "data_wait", "communication"):
            of = [sum(end - start for called, start, end in truth.of(rank, "phase", line["step"]) if called == name) / 1e9 for rank in (0, 1)]
            assert (phases[name]["seconds"], phases[name]["min"], phases[name]["max"]) == pytest.approx((statistics.median(of), min(of), max(of)), abs=2e-6)
        assert line["ranks"] == 2 and phases[None]["seconds"] >= 0
    for name in ("forward", "backward"):
        for curve in asked(one, f"/api/v1/runs/{uid}/series", name=f"phase/{name}", points=1000)["series"]:
            wanted = [sum(end - start for called, start, end in truth.of(curve["rank"], "phase", step) if called == name) / 1e9 for step in curve["x0"]]
            assert curve["stored"] == STEPS and curve["value"] == pytest.approx(wanted, abs=1e-12)
    operations = {item["name"]: item for item in asked(one, f"/api/v1/runs/{uid}/operations")["items"]}
    gemm, linear = ([end - start for rank in (0, 1) for called, start, end in truth.of(rank, "op.cpu") if called == name] for name in ("gemm", "linear"))
    assert operations["gemm"]["calls"] == 2 * STEPS and operations["gemm"]["seconds"] == pytest.approx(sum(gemm) / 1e9, rel=0.02, abs=1e-3)
    assert operations["linear"]["seconds"] == pytest.approx((sum(linear) - sum(gemm)) / 1e9, rel=0.02, abs=1e-3)
    phases = asked(one, f"/api/v1/runs/{uid}/phases")
    begin, end = min(of[0][0] for of in truth.steps.values()), max(of[STEPS - 1][1] for of in truth.steps.values())
    assert phases["training_loop"] == pytest.approx((end - begin) / 1e9, abs=1e-5) and phases["interrupted"] == 0
    assert phases["initialization"] + phases["training_loop"] + phases["finalization"] == pytest.approx(phases["seconds"], abs=1e-3)


@pytest.mark.parametrize("theme", ["light", "dark"])
@pytest.mark.parametrize("width,height", [(1440, 900), (390, 844)])
def test_the_pages_show_it(profiled, browser, width, height, theme):
    one, uid, truth, _, _ = profiled
    context, page, wrong = open_page(browser, one, f"/runs/{uid}/nodes?node={NODE}", width, height, theme)
    looked_at = (width, theme) in ((1440, "light"), (390, "dark"))
    found = {}
    if looked_at:
        axe.bring(context)
        page.reload()
    page.wait_for_selector(".live.good")
    page.wait_for_selector("#cores .cells canvas")
    page.wait_for_selector("#usage tbody tr")
    page.wait_for_selector("#chart-gpu canvas")
    assert page.locator("#node-charts .chart").count() == 8  # all that is sampled there, and no temperature
    shown = page.inner_text(f"#usage tr[data-node='{NODE}'][data-what=total_gpu]")
    assert f"{numpy.percentile(truth.nodes[NODE]['hw.gpu.utilization{mean}'][1], 90) * 100:.1f} %" in shown
    look(page, "nodes", width, theme)
    found |= axe.faults(page, "nodes") if looked_at else {}
    page.goto(page.url.split("/runs/")[0] + f"/runs/{uid}/timeline")
    page.wait_for_selector("#lanes .cells canvas")
    page.wait_for_selector("#shares tbody tr")
    page.wait_for_selector("#step-times canvas")
    look(page, "timeline", width, theme)
    found |= axe.faults(page, "timeline") if looked_at else {}
    page.goto(page.url.split("/runs/")[0] + f"/runs/{uid}/ranks")
    page.wait_for_selector("#late .cells canvas")
    assert "Latest: rank 1" in page.inner_text("#rank-sentence")
    look(page, "ranks", width, theme)
    found |= axe.faults(page, "ranks") if looked_at else {}
    page.goto(page.url.split("/runs/")[0] + f"/runs/{uid}")
    page.wait_for_selector("#curves canvas")
    assert page.locator("#job-times").count() == 0, "what is far below is asked for once somebody comes there"
    for below in ("#job-times .pie", "#operations tbody tr", "#usage tbody tr"):
        page.evaluate("window.scrollTo(0, document.body.scrollHeight)")
        page.wait_for_selector(below)
    look(page, "overview", width, theme)
    found |= axe.faults(page, "overview") if looked_at else {}
    assert found == {}, json.dumps(found, indent=1)
    assert wrong == []
    context.close()


def test_charts_of_a_node_move_together_and_cores_are_chosen(profiled, browser):
    one, uid, _, _, _ = profiled
    context, page, wrong = open_page(browser, one, f"/runs/{uid}/nodes?node={NODE}", 1440, 900, "light")
    page.wait_for_selector("#chart-network canvas")
    page.wait_for_selector("#cores .cells canvas")
    page.click("#controls button:text-is('cpu3')")
    assert wait_for(lambda: "cpu3" in page.inner_text("#chart-cpu figcaption"), 10) and "cpu=mean%2Ccpu3" in page.url
    page.focus("#chart-cpu .plot")
    page.keyboard.press("Home")
    read = page.inner_text("#chart-cpu .read")
    assert "cpu3" in read and page.inner_text("#chart-network .read").split(" UTC")[0] <= read.split(" UTC")[0]  # one cursor for all
    assert "W" in page.inner_text("#chart-power .read")
    box = page.locator("#chart-cpu .u-over").bounding_box()
    page.mouse.move(box["x"] + box["width"] * 0.4, box["y"] + 40)
    page.mouse.down()
    page.mouse.move(box["x"] + box["width"] * 0.6, box["y"] + 40, steps=4)
    page.mouse.up()
    assert wait_for(lambda: "from=" in page.url and "to=" in page.url, 10)
    begin, end = (int(page.url.split(f"{name}=")[1].split("&")[0]) for name in ("from", "to"))
    assert 0.15 < (end - begin) / (profiled_run.SWEEPS * 500) < 0.25
    page.click("button:text-is('Pan left')")
    assert wait_for(lambda: f"from={begin}&" not in page.url + "&", 5)
    page.check("#controls input[type=checkbox]")
    assert wait_for(lambda: "from=" not in page.url and "fix=true" in page.url, 5) and page.is_disabled("button:text-is('Zoom in')")
    # A row of the map, with keys alone: it is drawn above.
    page.focus("#cores .cells")
    for key in ("PageUp", "ArrowDown", "ArrowDown", "End", "Enter"):
        page.keyboard.press(key)
    assert "cpu2" in page.inner_text("#cores .read") and wait_for(lambda: "cpu2" in page.inner_text("#chart-cpu figcaption"), 10)
    page.fill("#cores input[type=search]", "gpu")
    assert wait_for(lambda: page.inner_text("#cores figcaption").startswith("2 rows"), 5) and "least: gpu1" in page.inner_text("#cores figcaption")
    (other,) = {node["node"] for node in asked(one, f"/api/v1/runs/{uid}/nodes")["items"]} - {NODE}
    page.select_option("#controls select >> nth=0", other)
    page.wait_for_selector("#node-charts >> text=no GPU")
    assert wrong == []
    context.close()


def test_a_span_of_the_time_line_is_chosen_and_its_shares_are_told(profiled, browser):
    one, uid, _, truth, _ = profiled
    context, page, wrong = open_page(browser, one, f"/runs/{uid}/timeline", 1440, 900, "light")
    page.wait_for_selector("#lanes .cells canvas")
    box = page.locator("#lanes .cells canvas").bounding_box()
    page.mouse.move(box["x"] + 400, box["y"] + 12)
    page.mouse.down()
    page.mouse.move(box["x"] + 700, box["y"] + 12, steps=4)
    page.mouse.up()
    assert wait_for(lambda: "The chosen span" in page.inner_text("#shares h2"), 10)
    low, high = (int(page.url.split(f"{name}=")[1].split("&")[0]) for name in ("b0", "b1"))

    def right():
        """Of the first rank that did something then: rank 0 may have ended before."""
        told = page.inner_text("#covered")
        rank = int(told.split("Rank ")[1].split(":")[0])
        parts = [(max(start, low * 1000), min(end, high * 1000)) for name, start, end in truth.of(rank, "phase") if name == "backward" and start < high * 1000 and end > low * 1000]
        return abs(float(told.split("backward ")[1].split(" %")[0]) - union(parts) / ((high - low) * 1000) * 100) < 0.2
    assert wait_for(right, 5), page.inner_text("#covered")
    page.focus("#lanes .cells")
    for key in ("Escape", "Home", "ArrowRight"):
        page.keyboard.press(key)
    assert wait_for(lambda: "b0=" not in page.url, 5) and "rank 0, op.cpu:" in page.inner_text("#lanes .read")
    page.keyboard.press("Enter")
    assert wait_for(lambda: "b0=" in page.url, 5)
    page.click("button:text-is('Zoom to the chosen span')")
    assert wait_for(lambda: "from=" in page.url and "b0=" not in page.url, 5)
    page.focus("#step-times .cells")
    page.keyboard.press("End")
    assert f"step {STEPS - 1}:" in page.inner_text("#step-times .read") and "backward" in page.inner_text("#step-times .read")
    page.goto(page.url.split("/runs/")[0] + f"/runs/{uid}/ranks?last=30")
    page.wait_for_selector("#late .cells canvas")
    page.focus("#late .cells")
    for key in ("End", "PageDown"):
        page.keyboard.press(key)
    late = (truth.steps[1][STEPS - 1][1] - min(truth.steps[rank][STEPS - 1][1] for rank in (0, 1))) / 1e9
    size, unit = (late * 1e6, "µs") if late < 1e-3 else (late * 1e3, "ms") if late < 1 else (late, "s")
    said = f"{float(f'{size:.3g}'):g} {unit} late"
    assert f"step {STEPS - 1}, rank 1:" in page.inner_text("#late .read") and said in page.inner_text("#late .read"), (said, page.inner_text("#late .read"))
    assert page.locator("#rank-times tbody tr").first.get_attribute("data-rank") == "1"
    assert wrong == []
    context.close()
