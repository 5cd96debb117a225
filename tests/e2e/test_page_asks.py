"""Where a proxy holds the stream back the page asks for events; a person may ask for everything again; keys of charts."""
import json
import re

from tests.e2e import test_complaints
from tests.e2e.test_complaints import LOSS, opened, shown
from tests.e2e.test_curves import CONFIG, train
from tests.support.hook_support import wait_for
from tests.support.oidc_proxy import OidcProxy
from tests.support.patience import patience

ended = test_complaints.ended  # a fixture

PROXIED = "auth: {{proxy: {{trusted: [127.0.0.1/32], user_header: X-Forwarded-User, groups_header: X-Forwarded-Groups, secret_file: {file}, roles: {{ml-oncall: operator}}}}}}, "
SECRET = "between-the-two-of-us-0123456789"
SLOW = 60_000  # ms


def test_behind_a_proxy_that_holds_streams_back_the_page_is_live_and_says_how(server, browser, tmp_path):
    (tmp_path / "proxy").write_text(SECRET)
    (tmp_path / "proxy").chmod(0o600)
    one = server(CONFIG.format(journal=tmp_path / "journal").replace(", actions: [stop]", "").replace("http: {", "http: {" + PROXIED.format(file=tmp_path / "proxy")))
    one.wait_for("ready")
    job = None
    with OidcProxy(one.wait_for("started")["http"], SECRET, "anna", "ml-oncall", holds_back=True) as base:
        page = browser.new_context(viewport={"width": 1440, "height": 900}).new_page()
        page.goto(base + "/")
        page.wait_for_selector(".live.good", timeout=SLOW)
        assert page.inner_text(".live").strip().endswith("live, asking")
        assert "holds the stream back" in page.get_attribute(".live", "title")
        try:
            job = train(tmp_path, tmp_path / "journal", 100000, 0.02)
            page.wait_for_selector(".run-name a", timeout=SLOW)  # the run came by itself
            page.click(".run-name a")
            page.wait_for_selector(f"{LOSS} canvas", timeout=SLOW)
            last = shown(page)[1]
            assert wait_for(lambda: page.wait_for_timeout(50) or shown(page)[1] > last + 50, 20), "new values did not come by themselves"
        finally:
            if job:
                job.kill()
                job.wait()
        page.context.close()


def test_a_server_that_ends_is_told_also_where_events_are_asked_for(server, browser, tmp_path):
    (tmp_path / "proxy").write_text(SECRET)
    (tmp_path / "proxy").chmod(0o600)
    one = server(CONFIG.format(journal=tmp_path / "journal").replace("http: {", "http: {" + PROXIED.format(file=tmp_path / "proxy")))
    one.wait_for("ready")
    with OidcProxy(one.wait_for("started")["http"], SECRET, "anna", "ml-oncall", holds_back=True) as base:
        page = browser.new_context().new_page()
        page.goto(base + "/")
        page.wait_for_selector(".live.good", timeout=SLOW)
        one.stop()
        page.wait_for_selector(".live.dim", timeout=SLOW)
        assert page.inner_text(".live").strip().endswith("not live")
        page.context.close()


def test_refresh_asks_for_every_panel_of_a_screen_again(ended, browser):
    one, uid = ended
    page = opened(browser, one, f"/runs/{uid}")
    page.wait_for_load_state("networkidle", timeout=1000 * patience(20))
    asked = []
    page.on("request", lambda request: asked.append((request.url.split("/api/v1")[-1], request.post_data)))
    page.click("button[aria-label=refresh]")
    wanted = ("series", "names", f"/runs/{uid}")

    def again():
        text = json.dumps(asked)
        return all(word in text for word in wanted)

    assert wait_for(lambda: page.wait_for_timeout(50) or again(), 20), asked
    assert page.locator(f"{LOSS} canvas").count() == 1
    page.context.close()


def drawn(page, beginning):
    """The chart shows steps that begin as told: an answer is drawn in the frame after it is there."""
    assert wait_for(lambda: page.wait_for_timeout(20) or re.search(f"steps {beginning} ", page.inner_text("#curves .tools")), 20), page.inner_text("#curves .tools")
    page.evaluate("new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(() => setTimeout(done, 50))))")


def range_of(page):
    return {name: int(value) for name, value in re.findall(r"[?&](from|to)=(\d+)", page.url)}


def test_letters_zoom_and_move_the_chart_in_the_window(ended, browser):
    one, uid = ended
    page = opened(browser, one, f"/runs/{uid}?from=1000&to=2000")
    page.keyboard.press("w")
    page.wait_for_url(re.compile(r"from=125\d"))
    zoomed = range_of(page)
    assert abs(zoomed["from"] - 1250) <= 2 and abs(zoomed["to"] - 1750) <= 2
    drawn(page, r"125\d")
    page.keyboard.press("d")
    page.wait_for_url(re.compile(r"from=1(49|50)\d"))
    moved = range_of(page)
    assert abs(moved["from"] - zoomed["from"] - 250) <= 2 and abs((moved["to"] - moved["from"]) - (zoomed["to"] - zoomed["from"])) <= 2
    drawn(page, r"1(49|50)\d")
    page.keyboard.press("a")
    page.wait_for_url(re.compile(r"from=12[45]\d"))
    drawn(page, r"12[45]\d")
    page.keyboard.press("s")
    page.wait_for_url(re.compile(r"from=(99|100)\d"))
    page.keyboard.press("0")
    page.wait_for_url(lambda url: "from=" not in url)
    page.keyboard.press("l")
    page.wait_for_url(re.compile("log=true"))
    page.keyboard.press("v")
    page.wait_for_selector("main .chart details[open] table")
    with page.expect_download() as loaded:
        page.keyboard.press("e")
    assert loaded.value.url.split("?")[0].endswith("/series")
    page.context.close()


def test_brackets_read_the_chart_at_its_marks(ended, browser):
    one, uid = ended
    page = opened(browser, one, f"/runs/{uid}")
    page.wait_for_selector("#curves .marks li")
    marks = sorted({int(step) for step in re.findall(r"step (\d+)", page.inner_text("#curves .marks"))})
    assert marks
    read = lambda: page.inner_text(f"{LOSS} .read")  # noqa: E731
    page.keyboard.press("]")
    first = re.match(r"steps? (\d+)", read())
    assert first and abs(int(first[1]) - marks[0]) <= 16, (read(), marks)  # a point stands for some steps
    for _ in marks:
        page.keyboard.press("]")
    last = int(re.match(r"steps? (\d+)", read())[1])
    assert abs(last - marks[-1]) <= 16
    if len(marks) > 1:
        page.keyboard.press("[")
        assert int(re.match(r"steps? (\d+)", read())[1]) < last
    page.context.close()
