"""The loss of each run as a small curve in the list: only of runs in view, in one question, however many runs there are."""
import time
import urllib.parse
import uuid

import numpy
import pytest

from tests.e2e import test_page_many
from tests.e2e.test_complaints import base_of
from tests.e2e.test_curves import asked, refused
from tests.e2e.test_page_many import uid_of
from tests.support import axe, journal, narrow
from tests.support.hook_support import wait_for
from tests.support.program import ROOT
from tocsin import wire

crowded = test_page_many.crowded  # the fixture
STEPS = 1000
LOGGED = {0: "loss", 100: "train/loss", 200: None}  # the number of a run: how its loss is called


def losses_of(number):
    values = 3 / (1 + numpy.arange(STEPS) / 100) + number / 100
    if number == 100:
        values[700:] = numpy.nan
    return values


def frames_of(number, name):
    uid = uuid.UUID(uid_of(number))
    head = [wire.header(uid, world_size=1, incarnation=7, step=STEPS - 1, time=time.time_ns(), sequence=sequence) for sequence in (1, 2)]
    logged = [("accuracy", "metric", numpy.arange(STEPS)), *([(name, "loss", losses_of(number))] if name else [])]
    yield wire.encode_dictionary(head[0], [{"type": 4, "name": "worker_0"}, *({"type": 2, "dtype": 2, "role": wire.ROLES[role], "name": text} for text, role, _ in logged)])
    yield wire.encode_frame(head[1], wire.SCALAR, [{"name": wire.xxh64(text), "step": step, "global_step": step, "time": time.time_ns(), "value": float(value), "meta": 5 << 8}
                                                   for text, _, values in logged for step, value in enumerate(values)])


@pytest.fixture(scope="module")
def curved(crowded):
    for number, name in LOGGED.items():
        journal.append(crowded.journal, *(("telemetry", wire.route_key(uuid.UUID(uid_of(number))), frame) for frame in frames_of(number, name)))
    assert wait_for(lambda: len(asked(crowded, "/api/v1/sparklines", runs=",".join(uid_of(number) for number in LOGGED))["items"]) == 2, 30)
    return crowded


def test_a_small_curve_has_the_means_of_its_steps(curved):
    items = {one["run"]: one for one in asked(curved, "/api/v1/sparklines", runs=",".join(uid_of(number) for number in (*LOGGED, 1, 9999)))["items"]}
    assert set(items) == {uid_of(0), uid_of(100)}, "of runs without a loss nothing is drawn"
    for number, name in ((0, "loss"), (100, "train/loss")):
        one, values = items[uid_of(number)], losses_of(number)
        assert one["name"] == name and one["x"] == list(range(0, STEPS, one["width"])) and 20 <= len(one["x"]) <= 41
        for at, x in enumerate(one["x"]):
            part = values[x:x + one["width"]]
            finite = part[numpy.isfinite(part)]
            assert one["bad"][at] == len(part) - len(finite)
            assert one["mean"][at] == (None if len(finite) == 0 else pytest.approx(finite.mean(), rel=1e-12))
    assert items[uid_of(0)]["last"] == losses_of(0)[-1] and items[uid_of(100)]["last"] is None
    for runs in ("", ",".join(uid_of(number) for number in range(65))):
        status, problem = refused(curved, "/api/v1/sparklines", runs=runs)
        assert status == 400 and problem["field"] == "runs", problem


@pytest.mark.parametrize("width,theme", [(1440, "light"), (390, "dark")])
def test_only_runs_in_view_are_asked_for_and_the_filter_does_not_wait(curved, browser, width, theme):
    context = browser.new_context(viewport={"width": width, "height": 900}, color_scheme=theme)
    axe.bring(context)
    page = context.new_page()
    questions = []
    page.on("request", lambda request: "/sparklines?" in request.url and questions.append(urllib.parse.parse_qs(request.url.split("?")[1])["runs"][0].split(",")))
    page.goto(base_of(curved) + "/")
    page.wait_for_selector(f"[data-at]:has-text('{uid_of(0)[:8]}') .spark")
    label = page.get_attribute(f"[data-at]:has-text('{uid_of(0)[:8]}') .spark", "aria-label")
    assert label.startswith("loss: from 2.6") and "now 0.27" in label, label
    bad = page.locator(f"[data-at]:has-text('{uid_of(100)[:8]}') .spark")
    assert "now not finite, 300 not finite" in bad.get_attribute("aria-label") and bad.inner_text().strip() == "not finite"
    assert bad.locator("rect").count() > 5
    assert page.locator(f"[data-at]:has-text('{uid_of(200)[:8]}') .spark").count() == 0
    shots = ROOT / "build" / "screens"
    shots.mkdir(parents=True, exist_ok=True)
    page.screenshot(path=shots / f"sparks-{width}-{theme}.png")
    assert page.evaluate("document.documentElement.scrollWidth") <= width
    assert axe.faults(page, "runs") == {} and (width > 390 or narrow.troubles(page) == [])
    rows = [row.evaluate("row => [row.scrollHeight, row.clientHeight]") for row in page.locator(".run[data-at]").all()[:8]]
    assert all(wanted <= there for wanted, there in rows), f"a row is cut: {rows}"
    assert all(len(runs) <= 64 for runs in questions)
    questions.clear()
    for share in range(1, 30):  # somebody scrolls through all of them
        page.evaluate(f"window.scrollTo(0, document.body.scrollHeight * {share} / 30)")
        page.wait_for_timeout(30)
    page.wait_for_timeout(1500)
    assert sum(len(runs) for runs in questions) <= 400, "what only passes by is not asked for"
    page.evaluate("window.scrollTo(0, 0)")
    questions.clear()
    page.locator("main input[type=search]").press_sequentially("old-one", delay=20)
    page.wait_for_selector("text=1 run fits")
    page.wait_for_timeout(500)
    assert sum(len(runs) for runs in questions) <= 200
    context.close()
