"""A page that rests on a run that rests asks for nothing: what changes comes by the stream that it holds."""
import json

from tests.e2e.test_complaints import base_of
from tests.e2e.test_curves import CONFIG, asked, run_with, train
from tests.support.hook_support import wait_for

STATUS = "**/api/v1/status"
SCREENS = ("/runs/{uid}", "/", "/issues", "/fleet", "/system")


def requests_of(page):
    """The addresses that a page asks from now on, but for the stream, whose request does not end."""
    seen = []
    page.on("request", lambda one: None if one.url.endswith("/stream") else seen.append(one.url))
    return seen


def rested(page, address):
    """The page has painted, is told of changes, and has asked how the stores stand."""
    with page.expect_response(STATUS, timeout=60_000):
        page.goto(address)
        page.wait_for_selector(".live.good", timeout=60_000)
        page.clock.run_for(5_000)
    page.wait_for_load_state("load")
    page.clock.run_for(5_000)  # what waits for its turn has it
    page.wait_for_timeout(1500)


def test_a_page_at_rest_asks_for_nothing_in_two_minutes(server, browser, tmp_path):
    one = server(CONFIG.format(journal=tmp_path / "journal"))
    one.wait_for("ready")
    assert train(tmp_path, tmp_path / "journal", 1000).wait(60) == 0
    uid = run_with(one, 1000)
    assert uid and wait_for(lambda: asked(one, f"/api/v1/runs/{uid}")["run"]["state"] == "ended", 30)
    for screen in SCREENS:
        page = browser.new_context().new_page()
        page.clock.install()  # two minutes of the page pass in a moment
        requests = requests_of(page)
        rested(page, base_of(one) + screen.format(uid=uid))
        assert requests, "it asked for what it shows"
        before = len(requests)
        page.clock.run_for(120_000)
        page.wait_for_timeout(500)
        assert requests[before:] == [], screen
        page.context.close()


def test_without_a_stream_a_page_asks_again_how_the_stores_stand(server, browser, tmp_path):
    one = server(CONFIG.format(journal=tmp_path / "journal"))
    one.wait_for("ready")
    page = browser.new_context().new_page()
    page.clock.install()
    page.route("**/api/v1/stream*", lambda route: route.abort())
    full = {"on": False}

    def answer(route):
        status = json.loads(route.fetch().text())
        if full["on"]:
            status["stores"][0] |= {"state": "full", "reason": "no room"}
        route.fulfill(json=status)
    page.route(STATUS, answer)
    with page.expect_response(STATUS, timeout=60_000):
        page.goto(base_of(one) + "/")
        page.clock.run_for(5_000)
    full["on"] = True
    with page.expect_response(STATUS, timeout=60_000):
        page.clock.run_for(31_000)
    page.wait_for_selector("text=The disk is full", timeout=60_000)
    page.context.close()
