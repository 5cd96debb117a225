"""A run is pinned on its page, and chosen charts follow whoever has signed in, in a real browser."""
import pytest

from tests.e2e import test_page_acts
from tests.e2e.test_insights import asked
from tests.e2e.test_page_acts import OPERATOR, pictured
from tests.support.hook_support import wait_for

job = test_page_acts.job  # the fixture


def run_page(browser, one, width=1440, theme="light", token=None):
    page = browser.new_context(viewport={"width": width, "height": 900}, color_scheme=theme).new_page()
    page.goto(f"{one.base}/runs/{one.uid}" + (f"#token={token}" if token else ""))
    page.wait_for_selector("#headline")
    return page


@pytest.mark.parametrize("width,theme", [(1440, "light"), (390, "dark")])
def test_a_run_is_pinned_where_it_is_read(job, browser, width, theme):
    one = job()
    page = run_page(browser, one, width, theme)
    refused = []
    page.on("console", lambda line: refused.append(line.text) if line.type == "error" else None)
    page.on("pageerror", lambda error: refused.append(str(error)))
    page.click("button:text-is('Pin this run')")
    page.fill(".kept input[type=password]", OPERATOR)
    page.click(".kept button:has-text('Sign in')")
    page.wait_for_selector(".kept form.deed")
    assert "whatever their age" in page.inner_text(".kept form.deed")
    pictured(page, f"pin-form-{width}-{theme}")
    page.click(".kept form.deed button[type=submit]")
    page.wait_for_selector(".kept >> text=/Pinned by night-shift, /")
    pin = asked(one.server, f"/api/v1/runs/{one.uid}")["run"]["pin"]
    assert pin["by"] == "night-shift" and page.get_attribute(".kept time", "datetime") == pin["at"]
    pictured(page, f"pinned-{width}-{theme}")
    page.goto(f"{one.base}/runs/{one.uid}/history")
    page.wait_for_selector("text=night-shift pinned the run")
    assert "Pinned by night-shift" in page.inner_text("header.head")
    page.goto(one.base + "/")
    page.wait_for_selector(".run-name >> text=pinned by night-shift")
    pictured(page, f"pinned-list-{width}-{theme}")
    page.goto(f"{one.base}/runs/{one.uid}")
    page.click("button:text-is('Take the pin away')")
    page.click(".kept form.deed button[type=submit]")
    page.wait_for_selector("button:text-is('Pin this run')")
    assert asked(one.server, f"/api/v1/runs/{one.uid}")["run"]["pin"] is None
    assert [what for what, who in one.changes() if who == "night-shift"] == ["pin.taken_back", "pin.set"]
    assert not refused, refused


def kept(one):
    """What the server keeps for the night shift."""
    import json
    import urllib.request
    request = urllib.request.Request(one.base + "/api/v1/views/" + one.job, headers={"Authorization": f"Bearer {OPERATOR}"})
    with urllib.request.urlopen(request, timeout=10) as answer:
        return json.load(answer)["charts"]


def test_u29_chosen_charts_are_there_in_another_browser(job, browser):
    one = job()
    one.job = asked(one.server, f"/api/v1/runs/{one.uid}")["run"]["job"]
    page = run_page(browser, one, token=OPERATOR)
    page.wait_for_selector(".chart canvas")
    page.click("summary:has-text('Other curves')")
    page.wait_for_selector(".picker li")
    shown = page.locator(".picker input[type=checkbox]:checked").count()
    assert shown >= 2
    page.locator(".picker input[type=checkbox]:checked").first.uncheck()
    assert wait_for(lambda: len(kept(one)) == shown - 1, 20)
    chosen = kept(one)
    assert page.evaluate("() => Object.keys(localStorage).filter((name) => name.startsWith('tocsin.curves.'))") == [], "it is the server's"

    other = run_page(browser, one, token=OPERATOR)
    other.wait_for_selector(".chart canvas")
    assert {figure.get_attribute("data-name") for figure in other.locator("#curves .chart").all()} == set(chosen)
    stranger = run_page(browser, one)
    stranger.wait_for_selector(".chart canvas")
    assert stranger.locator("#curves .chart").count() >= shown, "who has not signed in sees the usual ones"
    other.click("summary:has-text('Other curves')")
    other.click("button:has-text('Usual curves')")
    assert wait_for(lambda: kept(one) == [], 20)
