"""Tensors: a real training whose gradients explode; the heat map, the bars and the issue's strip show which tensor was bad from which step on."""
import json
import re
import struct
import subprocess
import sys
import textwrap
import urllib.request

import numpy
import pytest

from tests.e2e.test_curves import asked, environment, look, refused
from tests.support.hook_support import Telemetry, wait_for

CONFIG = """
transport: {{journal: {journal}}}
cluster: lab
rules: [{{use: exploding_tensor}}]
route: {{receiver: nobody, group_by: [job]}}
receivers: {{nobody: {{}}}}
http: {{listen: '127.0.0.1:0'}}
"""

# Six layers learn to double their input by plain gradient descent; its rate grows by a tenth each step.
SCRIPT = """
import sys, time, numpy, tocsin
numpy.seterr(all="ignore")
chance = numpy.random.default_rng(3)
layers = [(chance.normal(size=(16, 16)) / 4).astype("f4") for _ in range(6)]
hook = tocsin.watch(run="r", job="layers", capture={"every": "1 step", "collections": ["gradients", "weights"], "overhead": "100%"})
x = chance.normal(size=(64, 16)).astype("f4")
for step in range(int(sys.argv[1])):
    values = [x]
    for weight in layers: values.append(numpy.maximum(values[-1] @ weight, numpy.float32(0.1) * (values[-1] @ weight)))
    error = values[-1] - 2 * x
    loss = float((error ** 2).mean())
    back = error * numpy.float32(2 / error.size)
    gradients = []
    for weight, value in zip(layers[::-1], values[-2::-1]):
        back = back * numpy.where(value @ weight > 0, numpy.float32(1), numpy.float32(0.1))
        gradients.append(value.T @ back)
        back = back @ weight.T
    for at, weight in enumerate(layers): hook.emit(f"layers.{at}.weight", weight, role="weight", step=step)
    for at, gradient in enumerate(gradients[::-1]): hook.emit(f"gradient/layers.{at}.weight", gradient, role="gradient", step=step)
    hook.emit("loss", loss, step=step)
    rate = numpy.float32(0.05 * 1.05 ** step)
    time.sleep(0.005)
    layers = [weight - rate * gradient for weight, gradient in zip(layers, gradients[::-1])]
hook.close()
"""
STEPS = 160


def train(tmp_path, journal, script, *arguments):
    path = tmp_path / "train.py"
    path.write_text(textwrap.dedent(script))
    done = subprocess.run([sys.executable, path, *map(str, arguments)], env=environment(journal), cwd=tmp_path, timeout=60, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


class Truth:
    """{tensor: {step: row}} of the frames, read by nobody of ours but the tests' decoder."""

    def __init__(self, journal):
        telemetry = Telemetry(journal)
        self.order = [entry["name"] for entry in telemetry.entries.values()]
        self.rows = {}
        for frame in telemetry.of_kind(1):
            for row in frame.rows:
                self.rows.setdefault(telemetry.names[row["name"]], {})[frame.header["step"]] = row
        self.loss = {row["step"]: row["value"] for frame in telemetry.of_kind(2) for row in frame.rows if telemetry.names[row["name"]] == "loss"}

    def values(self, name, stat):
        rows = self.rows[name]
        of = {"l2": lambda row: numpy.sqrt(row["sumsq"]), "mean": lambda row: row["sum"] / row["count"], "std": lambda row: numpy.sqrt(row["m2"] / row["count"]),
              "abs_max": lambda row: numpy.max(numpy.abs([row["min"], row["max"]])), "abs_mean": lambda row: row["abs_sum"] / row["count"],
              "zero": lambda row: row["zero"] / row["count"], "negative": lambda row: row["negative"] / row["count"]}
        return {step: float(of.get(stat, lambda row: row[stat])(row)) for step, row in sorted(rows.items())}

    def bad(self, name):
        return [step for step, row in sorted(self.rows[name].items()) if row["nan"] + row["posinf"] + row["neginf"] > 0]


def run_with(server, tensors, last):
    def complete():
        status, text = server.get("/api/v1/runs")
        runs = json.loads(text)["items"] if status == 200 else []
        if not runs:
            return None
        items = asked(server, f"/api/v1/runs/{runs[0]['uid']}/names", kind="tensor", limit=1000)["items"]
        return runs[0]["uid"] if len(items) >= tensors and all(item["last_step"] >= last for item in items) else None
    return wait_for(complete, 30)


@pytest.fixture(scope="module")
def exploded(tmp_path_factory):
    from tests.support.program import Server
    folder = tmp_path_factory.mktemp("tensors")
    (folder / "tocsin.yaml").write_text(CONFIG.format(journal=folder / "journal"))
    one = Server(folder / "tocsin.yaml", role="up")
    one.wait_for("ready")
    train(folder, folder / "journal", SCRIPT, STEPS)
    uid = run_with(one, 12, STEPS - 1)
    assert uid
    truth = Truth(folder / "journal")
    assert any(truth.bad(name) for name in truth.rows), "the training did not explode"
    yield one, uid, truth
    one.kill()


def number(value):
    return None if value is None else float(value)


@pytest.mark.parametrize("stat", ["l2", "mean", "std", "min", "max", "abs_max", "abs_mean", "zero", "negative", "nan"])
def test_every_cell_is_what_numpy_computes_from_the_frames(exploded, stat):
    one, uid, truth = exploded
    for cols, agg, fold in ((1000, "max", max), (30, "max", max), (30, "min", min), (30, "mean", lambda values: sum(values) / len(values))):
        heat = asked(one, f"/api/v1/runs/{uid}/heatmap", stat=stat, cols=cols, agg=agg)
        assert [row["name"] for row in heat["rows"]] == [name for name in truth.order if name in truth.rows]
        assert heat["width"] == (1 if cols == 1000 else 8) and heat["tensors"] == 12 and heat["mode"]
        for row in heat["rows"]:
            values = truth.values(row["name"], stat)
            bad = {at: (nan, posinf, neginf, x) for at, nan, posinf, neginf, x in row["bad"]}
            for at, cell in enumerate(row["cells"]):
                x0 = heat["from"] + at * heat["width"]
                inside = {x: values[x] for x in range(x0, x0 + heat["width"]) if x in values}
                finite = [value for value in inside.values() if numpy.isfinite(value)]
                assert number(cell) == (pytest.approx(fold(finite), rel=1e-12) if finite else None), (row["name"], x0)
                wrong = [x for x, value in inside.items() if not numpy.isfinite(value)]
                kinds = (sum(numpy.isnan(inside[x]) for x in wrong), sum(inside[x] == numpy.inf for x in wrong), sum(inside[x] == -numpy.inf for x in wrong))
                assert bad.get(at, (0, 0, 0, -1)) == (*kinds, wrong[0] if wrong else -1)


def binary(server, path):
    with urllib.request.urlopen(f"http://{server.wait_for('started')['http']}{path}", timeout=5) as answer:
        assert answer.headers["Content-Type"] == "application/vnd.tocsin.columns"
        bytes_ = answer.read()
    assert bytes_[:8] == b"TOCSCOL1"
    size, none = struct.unpack_from("<II", bytes_, 8)
    assert size % 8 == 0 and none == 0
    head = json.loads(bytes_[16:16 + size])
    (array,) = head["arrays"]
    cells = numpy.frombuffer(bytes_, "u1", array["count"], 16 + size + array["at"])
    return head, cells.reshape(len(head["rows"]), -1)


@pytest.mark.parametrize("stat,scale", [("l2", "log10"), ("mean", "linear"), ("zero", "log10")])
def test_the_bytes_are_the_numbers(exploded, stat, scale):
    one, uid, _ = exploded
    path = f"/api/v1/runs/{uid}/heatmap"
    heat = asked(one, path, stat=stat)
    head, cells = binary(one, f"{path}?stat={stat}&scale={scale}&format=bin")
    assert head["scale"] == scale and [row["name"] for row in head["rows"]] == [row["name"] for row in heat["rows"]]
    seen = set()
    for row, line in zip(heat["rows"], cells):
        bad = {one[0] for one in row["bad"]}
        for at, (value, cell) in enumerate(zip(row["cells"], line)):
            if at in bad:
                expected = 254
            elif value is None:
                expected = 255
            elif scale == "log10" and value <= 0:
                expected = 253
            else:
                place = numpy.log10(value) if scale == "log10" else value
                expected = round(252 * (place - head["lo"]) / (head["hi"] - head["lo"])) if head["hi"] > head["lo"] else 0
            assert abs(int(cell) - expected) <= (1 if expected <= 252 else 0)
            seen.add(int(cell))
    assert 254 in seen or stat == "zero"  # a share of zeros is a number even among NaN
    assert 253 in seen or stat != "zero"


def test_health_counts_elements_and_names_what_was_bad_first(exploded):
    one, uid, truth = exploded
    first = min((truth.bad(name)[0] for name in truth.rows if truth.bad(name)))
    for step in (0, first - 1, first, STEPS - 1):
        health = asked(one, f"/api/v1/runs/{uid}/health", step=step)
        assert health["step"] == step and len(health["items"]) == 12
        for item in health["items"]:
            row = truth.rows[item["name"]][step]
            assert item["step"] == step and item["elements"] == row["count"] == 256
            assert (item["neg_inf"], item["negative"], item["zero"], item["pos_inf"], item["nan"]) == \
                (row["neginf"], row["negative"] - row["neginf"], row["zero"], row["posinf"], row["nan"])
            assert sum(item[key] for key in ("neg_inf", "negative", "zero", "positive", "pos_inf", "nan")) == 256
            values = truth.values(item["name"], "l2")
            before = sorted(values[x] for x in range(max(0, step - 200), step) if numpy.isfinite(values[x]))
            assert number(item["usual_l2"]) == (pytest.approx(before[len(before) // 2], rel=1e-12) if before else None)
    # In the order of a step: weights are read before the update, then comes the loss, then backward.
    grade = {"weight": 0, "loss": 4, "gradient": 5}
    suspects = [(truth.bad(name)[0], grade["gradient" if name.startswith("gradient") else "weight"], (-1 if name.startswith("gradient") else 1) * truth.order.index(name), name)
                for name in truth.rows if truth.bad(name)]
    suspects += [(step, grade["loss"], 0, "loss") for step, value in truth.loss.items() if not numpy.isfinite(value)]
    expected = min(suspects)
    health = asked(one, f"/api/v1/runs/{uid}/health")
    assert (health["first_bad"]["step"], health["first_bad"]["name"]) == (expected[0], expected[3])
    assert health["step"] == expected[0]


def test_names_have_their_worst_value_and_first_bad_step(exploded):
    one, uid, truth = exploded
    answer = asked(one, f"/api/v1/runs/{uid}/names", kind="tensor", sort="worst")
    assert answer["total"] == 12 and answer["refused"] == 0 and not answer["tensors_gone"]
    for item in answer["items"]:
        finite = [value for value in truth.values(item["name"], "abs_max").values() if numpy.isfinite(value)]
        assert item["worst"] == max(finite) and item["first_bad_step"] == (truth.bad(item["name"]) or [None])[0]
        assert item["shape"] == "16×16" and item["stored"] == STEPS
    steps = [item["first_bad_step"] for item in answer["items"]]
    assert steps == sorted(steps, key=lambda step: STEPS if step is None else step)
    assert not {item["kind"] for item in asked(one, f"/api/v1/runs/{uid}/names")["items"]} & {"tensor"}
    (curve,) = asked(one, f"/api/v1/runs/{uid}/series", name="layers\\.2\\.weight", stat="std", points=1000)["series"]
    assert curve["kind"] == "tensor" and curve["value"][:50] == pytest.approx(list(truth.values("layers.2.weight", "std").values())[:50], rel=1e-12)


def test_what_is_asked_wrongly_is_named(exploded):
    one, uid, _ = exploded
    for what, query, field, word in (("heatmap", {"stat": "l3"}, "stat", "l2"), ("heatmap", {"name": "a("}, "name", "regular expression"), ("heatmap", {"cols": 0}, "cols", "2000"),
                                     ("heatmap", {"from": 9, "to": 9}, "to", "behind from"), ("health", {"step": -1}, "step", "0"), ("health", {"stap": 1}, "stap", "step"),
                                     ("names", {"kind": "tensors"}, "kind", "tensor"), ("series", {"stat": "time"}, "stat", "l2")):
        code, body = refused(one, f"/api/v1/runs/{uid}/{what}", **query)
        assert code == 400 and body["field"] == field and word in body["detail"], body
    assert refused(one, "/api/v1/runs/ffffffff/heatmap")[0] == 404
    nothing = asked(one, f"/api/v1/runs/{uid}/heatmap", name="no_such")
    assert nothing["rows"] == [] and nothing["tensors"] == 0


def open_page(browser, one, path, width, height, theme):
    base = f"http://{one.wait_for('started')['http']}"
    context = browser.new_context(viewport={"width": width, "height": height}, color_scheme=theme, has_touch=width < 700)
    page = context.new_page()
    wrong = []
    page.on("console", lambda message: wrong.append(message.text) if message.type == "error" else None)
    page.on("request", lambda request: wrong.append(request.url) if not request.url.startswith((base, "data:")) else None)
    page.goto(base + path)
    return context, page, wrong


def read_at(page, tensor, step, heat):
    """Moves over the cell of a tensor and a step, as a person does, and gives what is read out."""
    box = page.locator("#heat .cells canvas").bounding_box()
    rows = len(heat["rows"])
    row = [one["name"] for one in heat["rows"]].index(tensor)
    left = min(220, round(box["width"] * 0.3)) if box["width"] > 480 else 0
    high = (box["height"] - 18 - 22) / rows
    page.mouse.move(box["x"] + left + (box["width"] - left - 1) * (step - heat["from"] + 0.5) / (heat["to"] - heat["from"]), box["y"] + 18 + (row + 0.5) * high)
    return page.inner_text("#heat .read")


@pytest.mark.parametrize("theme", ["light", "dark"])
@pytest.mark.parametrize("width,height", [(1440, 900), (390, 844)])
def test_the_page_shows_the_bad_cells_at_their_step_and_tensor(exploded, browser, width, height, theme):
    one, uid, truth = exploded
    heat = asked(one, f"/api/v1/runs/{uid}/heatmap")
    name = next(item["name"] for item in heat["rows"] if truth.bad(item["name"]))
    first = truth.bad(name)[0]
    context, page, wrong = open_page(browser, one, f"/runs/{uid}/tensors", width, height, theme)
    page.wait_for_selector("#heat .cells canvas")
    page.wait_for_selector("#health .bars li")
    page.wait_for_selector("#selected .chart canvas")
    page.wait_for_selector(".live.good")
    assert f"12 tensors, steps 0 to {STEPS - 1}" in page.inner_text("#heat figcaption")
    steps = [truth.bad(tensor)[0] for tensor in truth.rows if truth.bad(tensor)]
    assert f"Not finite first at step {min(steps)}" in page.inner_text("#heat figcaption")
    if width > 700:  # at the last finite step a number is read, at the next one it is none
        assert "not finite" in read_at(page, name, first, heat) and f"step {first}" in page.inner_text("#heat .read")
        before = read_at(page, name, first - 1, heat)
        assert f"{name}: l2 about" in before and f"step {first - 1}" in before
        box = page.locator("#heat .cells canvas").bounding_box()
        colours = page.evaluate("""() => { const one = document.querySelector("#heat .cells canvas"); const all = one.getContext("2d").getImageData(0, 0, one.width, one.height).data;
            let red = 0; for (let at = 0; at < all.length; at += 4) if (all[at] === 211 && all[at + 1] === 36 && all[at + 2] === 43) red += 1; return red / (one.width * one.height); }""")
        cells = sum(len(truth.bad(tensor)) for tensor in truth.rows) / (12 * STEPS)
        assert cells * 0.2 < colours < cells, (colours, cells, box)
    # With keys alone: the first row, the last step; Enter shows its curve, and the address says so.
    page.focus("#heat .cells")
    for key in ("Home", "End", "PageUp"):
        page.keyboard.press(key)
    assert f"step {STEPS - 1}, {heat['rows'][0]['name']}" in page.inner_text("#heat .read")
    page.keyboard.press("Enter")
    assert wait_for(lambda: "sel=" in page.url, 10)
    page.wait_for_selector(f"#selected .chart[data-name='{heat['rows'][0]['name']}']")
    assert wait_for(lambda: page.inner_text("#health h2").endswith(f"step {STEPS - 1}"), 10)
    health = {item["name"]: item for item in asked(one, f"/api/v1/runs/{uid}/health", step=STEPS - 1)["items"]}
    worst = health[name]
    told = page.inner_text(f"#health li[data-name='{name}']")
    assert f"{worst['nan']} NaN" in told if worst["nan"] else "Inf" in told
    assert f"not finite from step {min(steps)}" in page.locator("#names li").first.inner_text()
    look(page, "tensors", width, theme)
    page.fill("#heat input[type=search]", "gradient/.*[01]")
    assert wait_for(lambda: page.inner_text("#heat figcaption").startswith("2 tensors"), 10)
    page.fill("#heat input[type=search]", "nothing_like_it")
    page.wait_for_selector("#heat >> text=fits the filter")
    assert wrong == []
    context.close()


@pytest.mark.parametrize("theme", ["light", "dark"])
@pytest.mark.parametrize("width,height", [(1440, 900), (390, 844)])
def test_the_issue_shows_where_in_the_model(exploded, browser, width, height, theme):
    one, uid, truth = exploded
    head = wait_for(lambda: next((run["headline"] for run in asked(one, "/api/v1/runs")["items"] if run["headline"]), None), 20)
    assert head
    context, page, wrong = open_page(browser, one, f"/issues/{head['key']}/{head['episode']}", width, height, theme)
    page.wait_for_selector("#where-model .model li")
    page.wait_for_selector("#where-model .cells canvas")
    page.wait_for_selector(".live.good")
    shown = page.eval_on_selector_all("#where-model .model li", "all => all.map((one) => [one.dataset.name, one.className])")
    assert [name for name, _ in shown] == [name for name in truth.order if name in truth.rows]
    bad = {name for name, kind in shown if "bad" in kind}
    assert bad == {name for name in truth.rows if head["step"] in truth.bad(name)}
    health = asked(one, f"/api/v1/runs/{uid}/health", step=head["step"])
    first = [name for name, kind in shown if "first" in kind.split()]
    assert first == ([health["first_bad"]["name"]] if health["first_bad"]["kind"] == "tensor" else [])
    assert re.search(rf"First that was not finite: {re.escape(health['first_bad']['name'])} at step {health['first_bad']['step']}", page.inner_text("#where-model"))
    look(page, "where", width, theme)
    page.click(f"#where-model .model li[data-name='{shown[-1][0]}'] a")
    page.wait_for_selector(f"#selected .chart[data-name='{shown[-1][0]}']")
    assert f"step={head['step']}" in page.url and wrong == []
    context.close()


def test_a_run_without_tensors_says_what_would_capture_them(server, browser, tmp_path):
    one = server(CONFIG.format(journal=tmp_path / "journal"))
    one.wait_for("ready")
    train(tmp_path, tmp_path / "journal", "import tocsin\nhook = tocsin.watch(run='r', job='bare')\nfor step in range(5):\n    hook.log(loss=1.0)\n    hook.step()\nhook.close()\n")

    def listed():
        status, text = one.get("/api/v1/runs")
        return json.loads(text)["items"] if status == 200 else []
    uid = wait_for(listed, 20)[0]["uid"]
    context, page, wrong = open_page(browser, one, f"/runs/{uid}/tensors", 1440, 900, "light")
    page.wait_for_selector("#heat pre")
    assert "capture:" in page.inner_text("#heat pre") and "No tensor was measured" in page.inner_text("#heat") and wrong == []
    context.close()
