"""Histograms of tensors and numbers by rank: a run of two ranks, its bins beside what NumPy counts, and the pictures on the page."""
import json
import re
import subprocess
import sys
import textwrap

import numpy
import pytest

from tests.e2e.test_curves import asked, environment, look, refused
from tests.e2e.test_tensors import CONFIG, binary, open_page
from tests.support import axe
from tests.support.hook_support import Telemetry, wait_for
from tests.support.program import Server

# The gradient of rank 1 grows; from step 60 on one of its elements is NaN. Zeros are in all of them.
ELEMENTS = """
import numpy
def gradient(rank, step):
    chance = numpy.random.default_rng(1000 * rank + step)
    out = (chance.normal(size=400) * 1e-3 * (1.05 ** step if rank else 1)).astype("f4")
    out[numpy.abs(out) < 1e-6] = 1e-6
    out[:20] = 0
    if rank == 1 and step >= 60: out[20] = numpy.nan
    if step == 70: out[21] = numpy.inf
    return out
"""
SCRIPT = ELEMENTS + """
import os, sys, time, tocsin
rank = int(os.environ["RANK"])
hook = tocsin.watch(run="r", job="two", capture={"every": "1 step", "collections": {"gradients": {"statistics": ["histogram"]}, "weights": {}}, "overhead": "100%"})
for step in range(int(sys.argv[1])):
    hook.emit("gradient/w", gradient(rank, step), role="gradient", step=step)
    hook.emit("w", numpy.ones(4, "f4"), role="weight", step=step)
    hook.log(loss=float(10 * rank + step % 7))
    time.sleep(0.002 * (1 + rank))
    hook.step()
hook.close()
"""
STEPS = 80
scope = {}
exec(ELEMENTS, scope)  # what the ranks run
gradient = scope["gradient"]


@pytest.fixture(scope="module")
def two(tmp_path_factory):
    folder = tmp_path_factory.mktemp("histograms")
    (folder / "tocsin.yaml").write_text(CONFIG.format(journal=folder / "journal"))
    one = Server(folder / "tocsin.yaml", role="up")
    one.wait_for("ready")
    (folder / "train.py").write_text(textwrap.dedent(SCRIPT))
    base = {**environment(folder / "journal"), "WORLD_SIZE": "2", "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": "29556"}
    ranks = [subprocess.Popen([sys.executable, folder / "train.py", str(STEPS)], env={**base, "RANK": str(rank), "LOCAL_RANK": str(rank)}, cwd=folder) for rank in range(2)]
    for rank in ranks:
        assert rank.wait(60) == 0

    def complete():
        status, text = one.get("/api/v1/runs")
        runs = json.loads(text)["items"] if status == 200 else []
        if not runs:
            return None
        run = f"/api/v1/runs/{runs[0]['uid']}/names"
        items = {item["name"]: item for kind in ({"kind": "tensor"}, {}) for item in asked(one, run, **kind)["items"]}
        there = [items.get(name, {}).get("stored", 0) for name in ("gradient/w", "w", "loss", "step_seconds")]
        return runs[0]["uid"] if min(there) >= 2 * STEPS else None
    uid = wait_for(complete, 30)
    assert uid
    yield one, uid, folder / "journal"
    one.kill()


def counted(answer, ranks):
    """Holds every number of an answer against the elements themselves."""
    width = answer["width"]
    for at in range(len(answer["histograms"])):
        steps = range(answer["from"] + at * width, min(STEPS, answer["from"] + (at + 1) * width))
        x = numpy.concatenate([gradient(rank, step) for rank in ranks for step in steps]).astype("f8")
        finite = x[numpy.isfinite(x)]
        assert answer["histograms"][at] == len(ranks) * len(steps) and answer["elements"][at] == len(x)
        assert (answer["zero"][at], answer["positive"][at], answer["negative"][at]) == ((finite == 0).sum(), (finite > 0).sum(), (finite < 0).sum())
        assert (answer["nan"][at], answer["pos_inf"][at], answer["neg_inf"][at]) == (numpy.isnan(x).sum(), (x == numpy.inf).sum(), (x == -numpy.inf).sum())
        for bin_ in answer["rows"]:
            size = bin_["sign"] * finite
            assert bin_["counts"][at] == ((size > bin_["above"]) & (size <= bin_["up_to"])).sum(), (bin_["bucket"], steps)


def test_every_bin_is_what_numpy_counts(two):
    one, uid, _ = two
    path = f"/api/v1/runs/{uid}/histogram"
    finest = asked(one, path, name="gradient/w", rows=512, cols=200)
    assert finest["scale"] == 3 and finest["width"] == 1 and finest["tensors"] == 1 and not finest["thinned"]
    for query in ({"rows": 512}, {"rows": 40}, {"rows": 8}, {"cols": 7}, {"from": 16, "to": 48, "cols": 4}):
        answer = asked(one, path, name="gradient/w", **query)
        assert len(answer["rows"]) + 1 <= query.get("rows", 160)
        edges = [bin_["sign"] * bin_["up_to" if bin_["sign"] > 0 else "above"] for bin_ in answer["rows"]]
        assert edges == sorted(edges, reverse=True)
        counted(answer, (0, 1))
    for rank in (0, 1):
        counted(asked(one, path, name="gradient/w", worker=f".*{rank}"), (rank,))
    none = asked(one, path, name="w")  # recorded without the statistic
    assert none["tensors"] == 1 and none["rows"] == [] and sum(none["histograms"]) == 0 and not none["histograms_gone"]


def test_what_came_in_frames_is_what_is_told(two):
    """The same out of the frames: exponential histograms of scale 3, added up by NumPy."""
    one, uid, journal = two
    telemetry = Telemetry(journal)
    truth = {}
    for frame in telemetry.of_kind(1):
        for row, offset, positive, down, negative in histograms_of(frame):
            if telemetry.names[frame.rows[row]["name"]] != "gradient/w":
                continue
            for sign, first, counts in ((1, offset, positive), (-1, down, negative)):
                for at, count in enumerate(counts):
                    key = (frame.header["step"], sign, first + at)
                    truth[key] = truth.get(key, 0) + count
    truth = {key: count for key, count in truth.items() if count}
    answer = asked(one, f"/api/v1/runs/{uid}/histogram", name="gradient/w", rows=512)
    told = {(answer["from"] + at, bin_["sign"], bin_["bucket"]): count for bin_ in answer["rows"] for at, count in enumerate(bin_["counts"]) if count}
    assert told == truth and len(truth) > 1000


def histograms_of(frame):
    for tag, payload in frame.extensions:
        if tag == 3:
            row, up, n, down, m, _ = numpy.frombuffer(payload[:24], "<i4")
            counts = numpy.frombuffer(payload, "<u8", n + m, 24)
            yield int(row), int(up), counts[:n].tolist(), int(down), counts[n:].tolist()


def test_rows_are_ranks(two):
    one, uid, journal = two
    path = f"/api/v1/runs/{uid}/heatmap"
    heat = asked(one, path, by="rank", name="loss", cols=100)
    assert [(row["rank"], row["name"][-1]) for row in heat["rows"]] == [(0, "0"), (1, "1")] and heat["ranks"] == 2 and heat["stat"] == "value"
    for row in heat["rows"]:
        assert row["cells"] == [10 * row["rank"] + step % 7 for step in range(STEPS)] and row["bad"] == []
    heat = asked(one, path, by="rank", name="gradient/w", stat="l2", cols=10)
    for row in heat["rows"]:
        bad = {at: (nan, posinf, x) for at, nan, posinf, _, x in row["bad"]}
        for at, cell in enumerate(row["cells"]):
            steps = range(at * heat["width"], (at + 1) * heat["width"])
            norms = [float(numpy.sqrt((gradient(row["rank"], step).astype("f8") ** 2).sum())) for step in steps]
            finite = [norm for norm in norms if numpy.isfinite(norm)]
            assert cell == (pytest.approx(max(finite), rel=1e-6) if finite else None)
            wrong = [step for step, norm in zip(steps, norms) if not numpy.isfinite(norm)]
            assert bad.get(at, (0, 0, -1))[2] == (wrong[0] if wrong else -1)
    seconds = {}
    telemetry = Telemetry(journal)
    for frame in telemetry.of_kind(3):
        for row in frame.rows:
            seconds[frame.header["rank"], row["step"]] = (row["end"] - row["start"]) / 1e9
    heat = asked(one, path, by="rank", name="step_seconds", cols=100)
    for row in heat["rows"]:
        assert row["cells"] == pytest.approx([seconds[row["rank"], step] for step in range(STEPS)], rel=1e-12)
    folded = asked(one, path, by="rank", name="loss", cols=100, max_rows=1)
    assert [row["folded"] for row in folded["rows"]] == [2] and folded["rows"][0]["cells"] == [10 + step % 7 for step in range(STEPS)]
    head, cells = binary(one, f"{path}?by=rank&name=loss&format=bin&scale=linear")
    assert head["ranks"] == 2 and cells.shape == (2, STEPS) and (cells[0, :7] == numpy.floor(252 * numpy.arange(7) / 16 + 0.5)).all()


def test_what_is_asked_wrongly_is_named(two):
    one, uid, _ = two
    for what, query, field, word in (("histogram", {"rows": 4}, "rows", "8"), ("histogram", {"cols": 0}, "cols", "1000"), ("histogram", {"nam": "w"}, "nam", "name"),
                                     ("histogram", {"name": "w("}, "name", "regular expression"), ("histogram", {"from": 5, "to": 5}, "to", "behind from"),
                                     ("heatmap", {"by": "ranks"}, "by", "rank"), ("heatmap", {"by": "rank"}, "name", "by=rank"),
                                     ("heatmap", {"by": "rank", "name": "loss", "rows": "name"}, "rows", "order of rank")):
        code, body = refused(one, f"/api/v1/runs/{uid}/{what}", **query)
        assert code == 400 and body["field"] == field and word in body["detail"], body
    assert refused(one, "/api/v1/runs/ffffffff/histogram")[0] == 404


def point_at(page, panel, share, row_share=0.5):
    box = page.locator(f"{panel} .cells canvas").bounding_box()
    page.mouse.move(box["x"] + 64 + (box["width"] - 65) * share, box["y"] + 18 + (box["height"] - 40) * row_share)


@pytest.mark.parametrize("width,height,theme", [(1440, 900, "light"), (390, 844, "dark")])
def test_the_page_shows_values_over_steps_and_all_pictures_share_one_cursor(two, browser, width, height, theme):
    one, uid, _ = two
    context, page, wrong = open_page(browser, one, f"/runs/{uid}/tensors?sel=gradient/w", width, height, theme)
    page.wait_for_selector("#histogram .cells canvas")
    page.wait_for_selector("#selected .chart canvas")
    page.wait_for_selector(".live.good")
    said = page.inner_text("#histogram figcaption")
    assert f"gradient/w: {2 * STEPS} histograms, steps 0 to {STEPS - 1}" in said and "Not finite first at step 60: 1 NaN" in said
    assert said in page.get_attribute("#histogram .cells", "aria-label")
    # By keys: the topmost bin of the first step has no element; what is read there is what NumPy counts.
    page.focus("#histogram .cells")
    for key in ("Home", *["PageUp"] * 20):
        page.keyboard.press(key)
    assert page.inner_text("#histogram .read").startswith("step 0: 0 % of the elements are above ")
    answer = asked(one, f"/api/v1/runs/{uid}/histogram", name="gradient/w", cols=300)
    above = sum(row["sign"] == 1 for row in answer["rows"])
    for _ in range(above):
        page.keyboard.press("ArrowDown")
    assert page.inner_text("#histogram .read") == "step 0: 5 % of the elements are 0"
    for _ in range(60):
        page.keyboard.press("ArrowRight")
    assert page.inner_text("#histogram .read") == "step 60: 5 % of the elements are 0 · 1 NaN"
    # The others are at the same step, and they do not speak.
    assert page.inner_text("#heat .read").startswith("step 60, ") and page.inner_text("#selected .read").startswith("step 60:")
    assert page.get_attribute("#heat .read", "aria-live") == "off" and page.get_attribute("#histogram .read", "aria-live") == "polite"
    page.focus("#selected .plot")
    page.keyboard.press("Home")
    page.keyboard.press("ArrowRight")
    assert page.inner_text("#histogram .read").startswith("step 1: ") and page.inner_text("#heat .read").startswith("step 1, ")
    if width > 700:
        point_at(page, "#histogram", (20 + 0.5) / STEPS)
        assert page.inner_text("#histogram .read").startswith("step 20: ") and page.inner_text("#selected .read").startswith("step 20:")
    look(page, "histogram", width, theme)
    axe.bring(context)
    page.reload()
    page.wait_for_selector("#histogram .cells canvas")
    assert axe.faults(page, "histogram") == {}
    page.click("#names button:has-text('w') >> nth=1") if width > 700 else page.goto(page.url.split("?")[0] + "?sel=w")
    page.wait_for_selector("#histogram pre")
    assert "statistics: [histogram]" in page.inner_text("#histogram pre") and wrong == []
    context.close()


@pytest.mark.parametrize("width,height,theme", [(1440, 900, "light"), (390, 844, "dark")])
def test_the_page_shows_a_number_of_every_rank(two, browser, width, height, theme):
    one, uid, _ = two
    context, page, wrong = open_page(browser, one, f"/runs/{uid}/ranks", width, height, theme)
    page.wait_for_selector("#by-rank .cells canvas")
    page.wait_for_selector(".live.good")
    assert re.match(rf"step_seconds of 2 ranks, steps 0 to {STEPS - 1}", page.inner_text("#by-rank figcaption"))
    page.select_option("#by-rank select", "loss")
    page.wait_for_selector("#by-rank figcaption:has-text('loss of 2 ranks')")
    assert "from 0 to 16. The greatest: rank 1, step 6." in page.inner_text("#by-rank figcaption")
    page.focus("#by-rank .cells")
    for key in ("Home", "PageUp", "ArrowRight", "ArrowDown"):
        page.keyboard.press(key)
    assert page.inner_text("#by-rank .read") == "step 1, rank 1: loss about 11"
    assert page.inner_text("#late .read").startswith("step 1, rank ")  # the same cursor
    page.select_option("#by-rank select", "gradient/w")
    page.wait_for_selector("#by-rank figcaption:has-text('Not finite first at step 60: rank 1')")
    assert "of=gradient" in page.url
    look(page, "by-rank", width, theme)
    axe.bring(context)
    page.reload()
    page.wait_for_selector("#by-rank .cells canvas")
    assert axe.faults(page, "ranks") == {} and wrong == []
    context.close()
