"""Space holds the page at a moment: nothing is asked and nothing moves, until it goes on and has all that came meanwhile."""
import re

import pytest

from tests.e2e import test_complaints
from tests.e2e.test_complaints import LOSS, base_of, shown
from tests.e2e.test_curves import CONFIG, asked, train
from tests.support import axe
from tests.support.hook_support import wait_for
from tests.support.program import ROOT

ended = test_complaints.ended  # a fixture

SLOW = 60_000  # ms
SIGN = ".live button"
FREE = "() => document.activeElement.blur()"


def stored_of(server):
    """How many values of its loss the store has of the one run."""
    runs = asked(server, "/api/v1/runs")["items"]
    names = asked(server, f"/api/v1/runs/{runs[0]['uid']}/names", name="loss")["items"] if runs else []
    return names[0]["stored"] if names else 0


def rested(server, page):
    """How many values there are once no more come, and so no more ticks of the stream either."""
    last = [-1]
    assert wait_for(lambda: last.append(stored_of(server)) or last[-1] == last[-2] or page.wait_for_timeout(3000), 60)
    return last[-1]


@pytest.fixture
def moving(server, browser, tmp_path):
    """A server, its job that goes on, and a page that shows its curves."""
    one = server(CONFIG.format(journal=tmp_path / "journal").replace(", actions: [stop]", ""))
    one.wait_for("ready")
    job = train(tmp_path, tmp_path / "journal", 1_000_000, 0.02)
    page = browser.new_context(viewport={"width": 1440, "height": 500}).new_page()
    try:
        assert wait_for(lambda: stored_of(one) > 10, 60)
        page.goto(f"{base_of(one)}/runs/{asked(one, '/api/v1/runs')['items'][0]['uid']}")
        page.wait_for_selector(f"{LOSS} canvas", timeout=SLOW)
        page.wait_for_selector(".live.good", timeout=SLOW)
        yield one, job, page
    finally:
        job.kill()
        job.wait()
        page.context.close()


def test_space_pauses_the_page_and_going_on_brings_what_was_missed(moving):
    one, job, page = moving
    page.keyboard.press("Space")
    page.wait_for_selector(SIGN, timeout=SLOW)
    assert re.fullmatch(r"‖ paused at \d\d:\d\d:\d\d, Space to go on", page.inner_text(SIGN))
    assert page.evaluate("scrollY") == 0, "the page did not scroll"
    page.wait_for_load_state("networkidle", timeout=SLOW)
    seen = []
    page.on("request", lambda request: seen.append(request.url))
    before, words = shown(page), page.inner_text("main")
    known = stored_of(one)
    assert wait_for(lambda: stored_of(one) > known + 150, 60), "the job went on"
    page.wait_for_timeout(2500)  # longer than what looks again by itself waits
    assert seen == [], "nothing is asked"
    assert shown(page) == before and page.inner_text("main") == words, "and nothing moves"
    job.kill()
    job.wait()
    stored = rested(one, page)
    page.keyboard.press("Space")
    page.wait_for_selector(".live.good", timeout=SLOW)
    said = f"{stored} values stored"
    page.wait_for_selector(f"{LOSS} figcaption:has-text('{said}')", timeout=SLOW)
    assert wait_for(lambda: page.wait_for_timeout(50) or shown(page)[1] >= stored - 1, 30), (shown(page), stored)
    assert shown(page)[0] == 0 and seen, "from the first step to the last, without a gap"


def test_space_is_left_to_what_has_the_focus(moving):
    one, _job, page = moving
    theme = page.evaluate("document.documentElement.dataset.theme")
    page.focus(".bar button[aria-label$=theme]")
    page.keyboard.press("Space")
    assert wait_for(lambda: page.wait_for_timeout(50) or page.evaluate("document.documentElement.dataset.theme") != theme, 20), "a button is pressed"
    assert page.locator(SIGN).count() == 0, "and the page goes on"
    page.focus(".bar a")
    page.keyboard.press("Space")
    page.goto(base_of(one) + "/")
    page.wait_for_selector(".live.good", timeout=SLOW)
    page.keyboard.press("/")
    page.keyboard.type("no such")
    assert wait_for(lambda: page.wait_for_timeout(50) or page.input_value("main input[type=search]") == "no such", 20), "a space is typed"
    assert page.locator(SIGN).count() == 0
    page.evaluate(FREE)
    page.keyboard.press("Space")
    page.wait_for_selector(SIGN, timeout=SLOW)
    page.click(SIGN)
    page.wait_for_selector(".live.good", timeout=SLOW)
    page.keyboard.press("?")
    page.wait_for_selector("dialog .keys-list :text-is('pause, go on')", timeout=SLOW)


def test_another_screen_is_live(moving):
    _one, _job, page = moving
    page.keyboard.press("Space")
    page.wait_for_selector(SIGN, timeout=SLOW)
    page.click(".bar a:text-is('Issues')")
    page.wait_for_selector("h1:text-is('Issues')", timeout=SLOW)
    page.wait_for_selector(".live.good", timeout=SLOW)


def test_an_answer_that_comes_in_the_pause_is_not_shown(ended, browser):
    one, _uid = ended
    page = browser.new_context().new_page()
    page.goto(base_of(one) + "/")
    page.wait_for_selector(".run-name a", timeout=SLOW)
    page.wait_for_selector(".live.good", timeout=SLOW)
    page.wait_for_load_state("networkidle", timeout=SLOW)
    waiting = []
    page.route("**/api/v1/runs?*", lambda route: waiting.append(route))

    def ask_again():
        page.click("button[aria-label=refresh]")
        page.evaluate(FREE)
        assert wait_for(lambda: page.wait_for_timeout(50) or waiting, 30)

    def let(name):
        while waiting:
            route = waiting.pop()
            body = route.fetch().json()
            body["items"][0]["job"] = name
            route.fulfill(json=body)

    ask_again()
    let("before the pause")
    page.wait_for_selector(".run-name :text('before the pause')", timeout=SLOW)
    ask_again()
    page.keyboard.press("Space")
    page.wait_for_selector(SIGN, timeout=SLOW)
    with page.expect_response("**/api/v1/runs?*"):
        let("in the pause")
    page.wait_for_timeout(500)
    assert page.locator(".run-name :text('before the pause')").count() == 1
    page.unroute("**/api/v1/runs?*")
    page.keyboard.press("Space")
    page.wait_for_selector(".run-name :text('curves')", timeout=SLOW)
    page.context.close()


@pytest.mark.parametrize("width,height,theme", [(1440, 900, "light"), (390, 844, "dark")])
def test_a_paused_page_that_has_copied_a_number_is_accessible(ended, browser, width, height, theme):
    one, uid = ended
    context = browser.new_context(viewport={"width": width, "height": height}, color_scheme=theme)
    axe.bring(context)
    page = context.new_page()
    page.goto(f"{base_of(one)}/runs/{uid}")
    page.wait_for_selector(f"{LOSS} canvas", timeout=SLOW)
    page.wait_for_selector(".live.good", timeout=SLOW)
    page.keyboard.press("Space")
    page.wait_for_selector(SIGN, timeout=SLOW)
    page.click("header.head b")  # its step
    page.wait_for_selector(".copied span", state="attached", timeout=SLOW)
    page.evaluate("() => { document.querySelector('.copied span').style.animation = 'none'; }")  # it stays
    shots = ROOT / "build" / "screens"
    shots.mkdir(parents=True, exist_ok=True)
    page.screenshot(path=shots / f"paused-{width}-{theme}.png")
    assert axe.faults(page, "paused") == {}
    assert page.evaluate("document.documentElement.scrollWidth") <= width
    page.context.close()
