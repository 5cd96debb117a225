"""Charts and heat maps save what they show: the SVG holds the numbers of the API, the PNG is the same drawing, and nothing leaves the page."""
import base64
import datetime
import re
import struct
import subprocess
import sys
import textwrap
import urllib.parse
import xml.etree.ElementTree as ElementTree
import zlib

import numpy
import pytest

from tests.e2e import test_fleet, test_page_axis
from tests.e2e.test_curves import asked, environment
from tests.e2e.test_fleet import uid_of
from tests.e2e.test_tensors import CONFIG, binary
from tests.support import axe, journal, narrow
from tests.support.hook_support import wait_for
from tests.support.issues import issue_record
from tests.support.program import ROOT, Server

fleet = test_fleet.fleet  # the fixtures
paced = test_page_axis.paced

SVG = "{http://www.w3.org/2000/svg}"
STEPS, ALARM = 1500, 1200
ODD = 'f1 <b> & "c"'  # every character that XML gives a meaning
ODD_TEXT = "loss <jumped> & fell"

SCRIPT = f"""
import numpy, tocsin
hook = tocsin.watch(run="pictured", job="digits & co", capture={{"every": "10 steps", "collections": ["gradients"], "overhead": "100%"}})
for step in range({STEPS}):
    loss = float("nan") if 700 <= step < 720 else 2.0 / (1 + step / 50) + 0.3 * numpy.sin(step)
    hook.emit("loss", loss, step=step)
    hook.emit({ODD!r}, 1e6 * (step + 1) ** 2.0, step=step)
    if step % 10 == 0:
        for at in range(3):
            hook.emit(f"gradient/layers.{{at}}.weight", numpy.full((4, 4), float("inf") if at == 1 and step >= 900 else 10.0 ** at * (1 + step), dtype="f4"), role="gradient", step=step)
hook.close()
"""


@pytest.fixture(scope="module")
def pictured(tmp_path_factory):
    folder = tmp_path_factory.mktemp("pictured")
    place = folder / "journal"
    (folder / "tocsin.yaml").write_text(CONFIG.format(journal=place).replace("rules: [{use: exploding_tensor}]", "rules: []"))
    one = Server(folder / "tocsin.yaml", role="up")
    one.wait_for("ready")
    (folder / "train.py").write_text(textwrap.dedent(SCRIPT))
    subprocess.run([sys.executable, folder / "train.py"], env=environment(place), cwd=folder, timeout=120, check=True)
    runs = wait_for(lambda: asked(one, "/api/v1/runs")["items"], 30)
    uid = runs[0]["uid"]
    journal.append(place, issue_record({"rule": "by_hand", "severity": "critical"}, annotations={"summary": ODD_TEXT},
                                       run={"uid": uid, "attempt": 1, "job": "digits & co"}, step=ALARM, global_step=ALARM, mode="train"))

    def complete():
        names = {row["name"]: row for row in asked(one, f"/api/v1/runs/{uid}/names", limit=1000)["items"]}
        tensors = asked(one, f"/api/v1/runs/{uid}/names", kind="tensor", limit=1000)["items"]
        return all(names.get(name, {}).get("stored") == STEPS for name in ("loss", ODD)) and len(tensors) == 3 and \
            all(row["last_step"] == STEPS - 10 for row in tensors) and asked(one, f"/api/v1/runs/{uid}")["issues"]
    assert wait_for(complete, 60)
    yield one, uid
    one.kill()


def opened(browser, one, path, width=1440, theme="light", unit=1):
    base = f"http://{one.wait_for('started')['http']}"
    context = browser.new_context(viewport={"width": width, "height": 900}, color_scheme=theme, device_scale_factor=unit)
    axe.bring(context)
    page = context.new_page()
    page.wrong = []
    page.on("console", lambda message: page.wrong.append(message.text) if message.type == "error" else None)
    page.on("request", lambda request: page.wrong.append(request.url) if not request.url.startswith((base, "data:", f"blob:{base}")) else None)
    page.goto(base + path)
    page.wait_for_selector(".live.good")
    return page


def saved(page, figure, kind):
    """The name of the file and its bytes, by the keyboard."""
    button = page.locator(f"{figure} .saves button", has_text=kind)
    button.focus()
    with page.expect_download(timeout=30_000) as waiting:
        page.keyboard.press("Enter")
    return waiting.value.suggested_filename, waiting.value.path().read_bytes()


class Drawing:
    def __init__(self, data):
        self.root = ElementTree.fromstring(data)
        assert self.root.tag == SVG + "svg" and b"<script" not in data and b"foreignObject" not in data
        self.size = int(self.root.get("width")), int(self.root.get("height"))
        self.title = self.root.find(SVG + "title").text
        self.groups = {group.find(SVG + "title").text: group for group in self.root.iter(SVG + "g") if group.find(SVG + "title") is not None}
        self.texts = [text.text for text in self.root.iter(SVG + "text")]

    def line(self):
        """The name of the first line."""
        return next(name for name in self.groups if name not in ("x axis", "y axis", "marks"))

    def scale(self, axis, number=float):
        """(a, b): a place of the picture is a + b * value, by the ticks that are written."""
        ticks, place = [], None
        for one in self.groups[f"{axis} axis"]:  # each text stands behind its line
            if one.tag == SVG + "path":
                place = float(re.match(r"M([-\d.]+) ([-\d.]+)", one.get("d")).group(1 if axis == "x" else 2))
            elif one.tag == SVG + "text":
                ticks.append((number(one.text), place))
        assert len(ticks) >= 2, self.texts
        values, lines = numpy.array(ticks).T
        b, a = numpy.polyfit(values, lines, 1)
        assert numpy.abs(a + b * values - lines).max() < 0.05, "ticks lie evenly"
        return a, b

    def points(self, name, number=float):
        """Of a line's path: x, y, and whether the pen was lifted before, in numbers of the axes; and how exact they are."""
        path = self.groups[name].findall(SVG + "path")[-1]
        found = [(float(x), float(y), way == "M") for way, x, y in re.findall(r"([ML])([-\d.]+) ([-\d.]+)", path.get("d"))]
        (ax, bx), (ay, by) = self.scale("x", number), self.scale("y")
        x, y, lifted = (numpy.array(column) for column in zip(*found))
        return (x - ax) / bx, (y - ay) / by, lifted.astype(bool), 0.06 / abs(bx), 0.06 / abs(by)


def png_of(data):
    """Width, height and the rows of a PNG as arrays of bytes."""
    assert data[:8] == b"\x89PNG\r\n\x1a\n"
    width, height, depth, colour = struct.unpack_from(">IIBB", data, 16)
    assert depth == 8 and colour in (2, 6)
    packed, at = b"", 8
    while at < len(data):
        size, = struct.unpack_from(">I", data, at)
        packed += data[at + 8:at + 8 + size] if data[at + 4:at + 8] == b"IDAT" else b""
        at += size + 12
    wide = 3 if colour == 2 else 4
    lines = numpy.frombuffer(zlib.decompress(packed), "u1").reshape(height, 1 + width * wide)
    out = numpy.zeros((height + 1, (width + 1) * wide), "i8")
    for row, line in enumerate(lines):
        kind, values, above = int(line[0]), line[1:].astype("i8"), out[row]
        now = out[row + 1]
        if kind in (0, 2):
            now[wide:] = (values + (above[wide:] if kind == 2 else 0)) % 256
            continue
        for column in range(wide, len(now)):
            left, up, corner = now[column - wide], above[column], above[column - wide]
            guess = left + up - corner
            paeth = min((abs(guess - left), 0, left), (abs(guess - up), 1, up), (abs(guess - corner), 2, corner))[2]
            now[column] = (values[column - wide] + {1: left, 3: (left + up) // 2, 4: paeth}[kind]) % 256
    return out[1:, wide:].reshape(height, width, wide)


def keep(name, data):
    shots = ROOT / "build" / "screens"
    shots.mkdir(parents=True, exist_ok=True)
    (shots / name).write_bytes(data)


@pytest.mark.parametrize("theme,unit", [("light", 1), ("dark", 2)])
def test_the_svg_holds_the_points_of_the_series(pictured, browser, theme, unit):
    one, uid = pictured
    page = opened(browser, one, f"/runs/{uid}?v=loss", theme=theme, unit=unit)
    page.wait_for_selector("[data-name=loss] canvas")
    page.wait_for_selector("#curves .marks li")
    name, data = saved(page, "[data-name=loss]", "SVG")
    keep(f"saved-loss-{theme}.svg", data)
    assert name == f"digits-co-loss-steps-0-to-{STEPS - 1}.svg"
    drawing = Drawing(data)
    assert drawing.title == "digits & co: loss" and drawing.title in drawing.texts
    assert f"run {uid}, steps 0 to {STEPS - 1}" in " ".join(drawing.texts) and "step" in drawing.texts
    series, = asked(one, f"/api/v1/runs/{uid}/series", name="loss", points=600)["series"]
    want = [(x, value) for x, value in zip(series["x0"], series["mean"]) if value is not None]
    assert len(want) > 300
    label = drawing.line()
    assert label in drawing.texts, "the legend names the line"
    x, y, lifted, near_x, near_y = drawing.points(label)
    assert len(x) == len(want)
    assert numpy.abs(x - [one for one, _ in want]).max() < near_x
    assert numpy.abs(y - [one for _, one in want]).max() < near_y
    assert lifted.sum() == 2 and x[lifted][1] > 720 - near_x and x[numpy.flatnonzero(lifted)[1] - 1] < 700, "no line over what is not finite"
    band = drawing.groups[label].findall(SVG + "path")
    assert len(band) == 3, "the band before and behind, and the line"
    # The lane of what is not finite and the mark with its words.
    marks = drawing.groups["marks"]
    a, b = drawing.scale("x")
    lines = [float(re.match(r"M([-\d.]+)", path.get("d")).group(1)) for path in marks.iter(SVG + "path")]
    assert min(abs((place - a) / b - ALARM) for place in lines) < near_x
    assert any("■" in text for text in drawing.texts) and ODD_TEXT in " ".join(drawing.texts)
    lane = [(float(one.get("x")) - a) / b for one in marks.iter(SVG + "rect")]
    assert lane and all(697 <= place <= 721 for place in lane)
    ground = drawing.root.find(SVG + "rect").get("fill")
    assert ground == page.evaluate("getComputedStyle(document.documentElement).getPropertyValue('--panel').trim()")
    assert page.wrong == []
    page.context.close()


def test_a_range_that_is_zoomed_into_and_a_logarithmic_axis(pictured, browser):
    one, uid = pictured
    page = opened(browser, one, f"/runs/{uid}?v={urllib.parse.quote(urllib.parse.quote(ODD, safe=''), safe='')}&from=100&to=300&log=true")
    page.wait_for_selector("#curves .chart canvas")
    name, data = saved(page, "#curves .chart", "SVG")
    assert name == "digits-co-f1-b-c-steps-100-to-299.svg"
    drawing = Drawing(data)
    assert drawing.title == f"digits & co: {ODD}" and "logarithmic" in drawing.texts
    label = drawing.line()
    path = drawing.groups[label].findall(SVG + "path")[-1]
    found = numpy.array([(float(x), float(y)) for x, y in re.findall(r"[ML]([-\d.]+) ([-\d.]+)", path.get("d"))])
    (ax, bx), (ay, by) = drawing.scale("x"), drawing.scale("y", lambda text: numpy.log10(float(text)))
    steps = numpy.round((found[:, 0] - ax) / bx)
    assert steps.tolist() == list(range(100, 300))
    assert numpy.abs((found[:, 1] - ay) / by - numpy.log10(1e6 * (steps + 1) ** 2)).max() < 0.1 / abs(by)
    assert page.wrong == []
    page.context.close()


@pytest.mark.parametrize("width", [1440, 390])
def test_the_png_is_the_same_drawing_twice_as_fine(pictured, browser, width):
    one, uid = pictured
    page = opened(browser, one, f"/runs/{uid}?v=loss", width=width, theme="dark")
    page.wait_for_selector("[data-name=loss] canvas")
    page.wait_for_selector("#curves .marks li")
    drawing = Drawing(saved(page, "[data-name=loss]", "SVG")[1])
    name, data = saved(page, "[data-name=loss]", "PNG")
    keep(f"saved-loss-{width}.png", data)
    assert name == f"digits-co-loss-steps-0-to-{STEPS - 1}.png"
    pixels = png_of(data)
    assert pixels.shape[:2] == (2 * drawing.size[1], 2 * drawing.size[0])
    label = drawing.line()
    path = drawing.groups[label].findall(SVG + "path")[-1]
    colour = numpy.array([int(path.get("stroke")[at:at + 2], 16) for at in (1, 3, 5)])
    places = [(float(x), float(y)) for x, y in re.findall(r"[ML]([-\d.]+) ([-\d.]+)", path.get("d"))]
    inside = places[5:-5]
    near = [numpy.abs(pixels[int(2 * y) - 2:int(2 * y) + 3, int(2 * x) - 2:int(2 * x) + 3, :3] - colour).sum(axis=2).min() < 90 for x, y in inside]
    assert numpy.mean(near) > 0.95, "the line is where the SVG has it"
    ground = drawing.root.find(SVG + "rect").get("fill")
    assert pixels[3, 3, :3].tolist() == [int(ground[at:at + 2], 16) for at in (1, 3, 5)]
    assert axe.faults(page, "saved pictures") == {} and (width > 390 or narrow.troubles(page) == [])
    page.locator("#curves").screenshot(path=ROOT / "build" / "screens" / f"save-buttons-{width}.png")
    assert page.wrong == []
    page.context.close()


def test_a_heat_map_is_one_pixel_for_each_cell(pictured, browser):
    one, uid = pictured
    page = opened(browser, one, f"/runs/{uid}/tensors")
    page.wait_for_selector("#heat .cells canvas")
    page.wait_for_selector("#selected .chart canvas")
    name, data = saved(page, "#heat", "SVG")
    keep("saved-heat.svg", data)
    assert re.fullmatch(r"digits-co-l2-of-all-tensors-steps-0-to-\d+\.svg", name), name
    drawing = Drawing(data)
    head, cells = binary(one, f"/api/v1/runs/{uid}/heatmap?format=bin&cols=400")
    images = [png_of(base64.b64decode(image.get("href").split(",")[1])) for image in drawing.groups["cells"].iter(SVG + "image")]
    colours, = [image for image in images if image.shape[0] == len(head["rows"])]
    assert {"gradient/layers.0.weight", "gradient/layers.2.weight", "not finite", "no value"} <= set(drawing.texts), drawing.texts
    ramp, = [png_of(base64.b64decode(image.get("href").split(",")[1])) for image in drawing.root.iter(SVG + "image")
             if image.get("width") == "120"]
    palette = ramp[0, :, :3]
    assert palette.shape[0] == 253 and palette[0].tolist() == [68, 1, 84] and palette[252].tolist() == [253, 231, 37]
    assert colours.shape[:2] == cells.shape
    checked = 0
    for row, line in enumerate(cells):
        for column, cell in enumerate(line):
            if cell <= 252 and colours.shape[1] == len(line):
                assert colours[row, column, :3].tolist() == palette[cell].tolist()
                checked += 1
    assert checked > 300
    png = png_of(saved(page, "#heat", "PNG")[1])
    assert png.shape[:2] == (2 * drawing.size[1], 2 * drawing.size[0])
    red = (numpy.abs(png[:, :, :3] - [211, 36, 43]).sum(axis=2) == 0).mean()
    assert red > 0.01, "what is not finite is hatched"
    assert page.wrong == []
    page.context.close()


def test_charts_over_time_say_their_unit_and_span(fleet, browser):
    one, begin, _ = fleet
    uid = str(uid_of("b"))
    page = opened(browser, one, f"/runs/{uid}/nodes?node=n2")
    page.wait_for_selector("#chart-gpu canvas")
    name, data = saved(page, "#chart-gpu", "SVG")
    keep("saved-gpu.svg", data)
    day = datetime.datetime.fromtimestamp(begin / 1e9, datetime.timezone.utc)
    assert re.fullmatch(r"job-b-.*GPU.*-" + f"{day:%Y-%m-%d}" + r"-\d\d-\d\d-\d\d-to-\d\d-\d\d-\d\d\.svg", name), name
    drawing = Drawing(data)
    assert "time, UTC" in drawing.texts and "%" in drawing.texts
    ticks = [text.text for text in drawing.groups["x axis"].iter(SVG + "text")]
    assert ticks and all(re.fullmatch(r"\d\d:\d\d:\d\d", tick) for tick in ticks)
    assert page.wrong == []
    page.context.close()


def test_a_curve_by_time_since_the_start_lies_where_the_time_is(paced, browser):
    one, _ = paced
    page = opened(browser, one, f"/runs/{test_page_axis.RUN}?v=loss&x=relative&from=0&to=140")
    page.wait_for_selector("[data-name=loss][data-x=relative]")
    page.wait_for_selector("#curves .marks li")
    name, data = saved(page, "[data-name=loss]", "SVG")
    keep("saved-relative.svg", data)
    assert name == "paced-loss-steps-0-to-139.svg"
    drawing = Drawing(data)
    assert "time since the start" in drawing.texts
    held = test_page_axis.held()
    path = [path for group in drawing.groups.values() for path in group.findall(SVG + "path") if path.get("stroke-width") == "2"][0]
    x = numpy.array([float(x) for x, _ in re.findall(r"[ML]([-\d.]+) ([-\d.]+)", path.get("d"))])
    assert len(x) == 140
    a, b = numpy.polyfit(held, x, 1)
    assert numpy.abs(a * held + b - x).max() < 0.1, "evenly in time, not in steps"
    band = [float(one.get("y")) for one in drawing.groups["marks"].iter(SVG + "rect") if float(one.get("height")) > 10]
    name_at = next(float(text.get("y")) for text in drawing.root.iter(SVG + "text") if text.text == "time since the start")
    assert len(band) == 2 and name_at < min(band), "the name of the axis lies over the band of attempts"
    assert {"attempt 1", "attempt 2"} <= set(drawing.texts)
    assert page.wrong == []
    page.context.close()


def test_every_chart_and_heat_map_has_both(pictured, browser):
    one, uid = pictured
    for path, drawn in ((f"/runs/{uid}", "#curves canvas"), (f"/runs/{uid}/tensors", "#selected canvas"), (f"/compare?runs={uid},{uid}", ".chart canvas")):
        page = opened(browser, one, path)
        page.wait_for_selector(drawn)
        figures = page.eval_on_selector_all("figure", "(all) => all.map((one) => [...one.querySelectorAll('.saves button')].map((button) => button.getAttribute('aria-label')))")
        assert figures and all([label.split(" of ")[0] for label in labels] == ["PNG", "SVG"] for labels in figures), (path, figures)
        flat = [label for labels in figures for label in labels]
        assert len(set(flat)) == len(flat), "each has a name of its own"
        page.context.close()
