"""Very much on one page: ten thousand runs, forty charts; and fingers on a phone."""
import sqlite3
import subprocess
import sys
import time

import pytest

from tests.e2e import test_complaints
from tests.e2e.test_complaints import LOSS, base_of, shown
from tests.e2e.test_curves import CONFIG, asked, environment, refused, run_with
from tests.support.hook_support import wait_for

RUNS = 10_000

ended = test_complaints.ended


def uid_of(number):
    return f"{number:08x}-0000-4000-8000-000000000000"


def stored_runs(path, count):
    """Runs straight into the store: every hundredth goes on, and the ends differ."""
    database = sqlite3.connect(path)
    now = time.time_ns() // 1000
    rows = [(uid_of(number), f"job-{number % 50}", 1, "started" if number % 100 == 0 else "ended", None if number % 100 == 0 else ("completed", "failed")[number % 2],
             number, None, 1, now - number * 1_000_000, None, now - number * 1_000_000, '{"needle": "old-one"}' if number == count - 3 else "{}") for number in range(count)]
    database.executemany("INSERT INTO run VALUES (?,?,?,?,?,?,?,?,?,?,?,?)", rows)
    database.commit()
    database.close()


@pytest.fixture(scope="module")
def crowded(module_server, tmp_path_factory):
    folder = tmp_path_factory.mktemp("crowded")
    one = module_server(CONFIG.format(journal=folder / "journal"))
    one.wait_for("ready")
    assert wait_for(lambda: one.get("/api/v1/runs")[0] == 200, 20)
    store, = (folder / "journal").rglob("insights.db")
    stored_runs(store, RUNS)
    one.journal = folder / "journal"
    return one


def test_the_board_of_runs_filters_counts_and_begins_anywhere(crowded):
    board = asked(crowded, "/api/v1/runs", order="trouble", limit=3)
    assert board["total"] == RUNS and board["groups"] == {"trouble": 0, "running": 100, "ended": 9900}
    assert [run["uid"] for run in board["items"]] == [uid_of(0), uid_of(100), uid_of(200)], "those that run first, heard of last first"
    assert [run["uid"] for run in asked(crowded, "/api/v1/runs", order="trouble", limit=2, offset=100)["items"]] == [uid_of(1), uid_of(2)]
    assert [run["uid"] for run in asked(crowded, "/api/v1/runs", order="trouble", limit=2, offset=9998)["items"]] == [uid_of(9998), uid_of(9999)]
    seen = []
    for offset in range(0, RUNS, 250):
        seen += [run["uid"] for run in asked(crowded, "/api/v1/runs", order="trouble", limit=250, offset=offset)["items"]]
    assert len(set(seen)) == RUNS, "each once"
    found = asked(crowded, "/api/v1/runs", order="trouble", q="OLD-one job-47")
    assert [run["uid"] for run in found["items"]] == [uid_of(9997)]
    assert asked(crowded, "/api/v1/runs", order="trouble", q="failed")["total"] == 5000
    assert asked(crowded, "/api/v1/runs", order="trouble", q="100%")["total"] == 0, "a sign of the database is a letter"
    for field, query in (("q", {"q": "x"}), ("offset", {"offset": 3}), ("job", {"order": "trouble", "job": "x"})):
        status, problem = refused(crowded, "/api/v1/runs", **query)
        assert status == 400 and problem["field"] == field, problem
    page = asked(crowded, "/api/v1/runs", limit=2)
    assert page["next"] and "total" not in page


def test_u03_a_list_of_ten_thousand_runs_has_few_rows_and_reaches_all(crowded, browser):
    page = browser.new_context(viewport={"width": 1440, "height": 900}).new_page()
    page.goto(base_of(crowded) + "/")
    page.wait_for_selector(".run-name a")
    assert page.get_attribute("[role=grid]", "aria-rowcount") == str(RUNS + 2), "and two headings"
    assert page.locator("[role=row]").count() < 60
    page.focus(".run-name a")
    page.keyboard.press("ArrowDown")
    page.wait_for_function("() => document.activeElement.closest('[data-at]')?.dataset.at === '1'")
    page.keyboard.press("End")
    page.wait_for_function("() => document.activeElement.closest('[data-at]')?.dataset.at === '9999'")
    assert page.get_attribute("[data-at='9999']", "aria-rowindex") == str(RUNS + 2)
    assert uid_of(9999)[:8] in page.inner_text("[data-at='9999']")
    assert page.locator("[role=row]").count() < 60
    page.evaluate("window.scrollTo(0, document.body.scrollHeight / 2)")
    page.wait_for_function("() => [...document.querySelectorAll('.run-name a')].filter(one => one.getBoundingClientRect().top > 0 && one.getBoundingClientRect().top < innerHeight).length > 5")
    middle = page.evaluate("() => [...document.querySelectorAll('[data-at]')].map(one => Number(one.dataset.at)).filter(at => at > 1000 && at < 9000).length")
    assert middle > 5
    page.fill("input[type=search]", "old-one")
    page.wait_for_selector("text=1 run fits")
    page.wait_for_function("() => document.querySelectorAll('[data-at]').length === 1")
    assert uid_of(9997)[:8] in page.inner_text("[data-at='0']")
    page.fill("input[type=search]", "no such run")
    page.wait_for_selector("text=No run fits the filter.")
    page.context.close()


MANY = """
import tocsin
hook = tocsin.watch(run="many", job="many")
for step in range(20):
    hook.log(**{f"metric_{number:02}": float(step * number) for number in range(40)})
    hook.step()
hook.close()
"""


def test_u21_of_many_curves_only_those_near_the_window_are_in_the_page(server, browser, tmp_path):
    one = server(CONFIG.format(journal=tmp_path / "journal"))
    one.wait_for("ready")
    subprocess.run([sys.executable, "-c", MANY], env=environment(tmp_path / "journal"), check=True, timeout=60)
    uid = run_with(one, 20, "metric_39")
    page = browser.new_context(viewport={"width": 1440, "height": 900}).new_page()
    names = [f"metric_{number:02}" for number in range(40)]
    page.goto(f"{base_of(one)}/runs/{uid}?v={','.join(names)}")
    page.wait_for_selector(".chart[data-name=metric_00] canvas")
    page.wait_for_timeout(500)
    assert page.locator("#curves .near").count() == 40 and page.locator("#curves canvas").count() <= 12
    page.evaluate("document.querySelector('#curves .near:last-child').scrollIntoView()")
    page.wait_for_selector(".chart[data-name=metric_39] canvas")
    page.wait_for_selector(".chart[data-name=metric_00]", state="detached")
    assert page.locator("#curves canvas").count() <= 12
    assert "greatest 741 at step 19" in page.inner_text(".chart[data-name=metric_39] figcaption")
    page.context.close()


def test_u34_two_fingers_zoom_and_a_double_tap_shows_all_on_a_phone(ended, browser):
    one, uid = ended
    context = browser.new_context(viewport={"width": 390, "height": 780}, has_touch=True, is_mobile=True, device_scale_factor=2)
    page = context.new_page()
    page.goto(f"{base_of(one)}/runs/{uid}")
    page.wait_for_selector(f"{LOSS} canvas")
    page.wait_for_selector(".live.good")
    page.evaluate(f"document.querySelector('{LOSS}').scrollIntoView()")
    page.wait_for_timeout(400)
    whole = shown(page)
    over = page.locator(f"{LOSS} .u-over").bounding_box()
    middle, y = over["x"] + over["width"] / 2, over["y"] + over["height"] / 2
    session = context.new_cdp_session(page)

    def touch(kind, *places):  # at the height `y` as it is then
        session.send("Input.dispatchTouchEvent", {"type": kind, "touchPoints": [{"x": x, "y": y, "id": at} for at, x in enumerate(places)]})

    touch("touchStart", middle)
    touch("touchEnd")
    assert re_read(page).startswith("step "), "one finger reads"
    page.wait_for_timeout(400)
    touch("touchStart", middle - 20, middle + 20)
    for by in (30, 40, 60, 80):
        touch("touchMove", middle - by, middle + by)
    touch("touchEnd")
    assert wait_for(lambda: shown(page)[1] - shown(page)[0] < (whole[1] - whole[0]) * 0.4, 10), (whole, shown(page))
    assert "from=" in page.url
    near = shown(page)
    assert (near[1] - near[0]) / (whole[1] - whole[0]) == pytest.approx(0.25, abs=0.1), (whole, near)
    assert near[0] < sum(whole) / 2 < near[1], "what lay between the fingers stays there"
    page.wait_for_timeout(400)
    page.evaluate(f"document.querySelector('{LOSS}').scrollIntoView()")
    over = page.locator(f"{LOSS} .u-over").bounding_box()
    y = over["y"] + over["height"] / 2
    for _ in range(2):
        touch("touchStart", middle)
        touch("touchEnd")
    assert wait_for(lambda: "from=" not in page.url, 10), page.url
    assert wait_for(lambda: shown(page) == whole, 10)
    assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")
    context.close()


def re_read(page):
    return page.inner_text(f"{LOSS} .read")
