"""What is painted before a script has run: the bar of the page, which the script then takes over."""
import re

from tests.e2e.test_complaints import base_of
from tests.e2e.test_curves import CONFIG

PLACES = ["/", "/issues", "/fleet", "/system"]
LINKS = "() => [...document.querySelectorAll('nav[aria-label=main] a')].map(one => [one.getAttribute('href'), one.textContent])"
BOX = "() => { const box = document.querySelector('nav[aria-label=main] b').getBoundingClientRect(); return [box.x, box.y, box.height]; }"


def test_the_bar_is_there_without_a_script_and_is_that_of_the_page(server, browser, tmp_path):
    one = server(CONFIG.format(journal=tmp_path / "journal"))
    one.wait_for("ready")
    bare = browser.new_context(java_script_enabled=False)
    early = bare.new_page()
    early.goto(base_of(one) + "/")
    assert early.locator("nav[aria-label=main] a").all_inner_texts() == ["Runs", "Issues", "Fleet", "System"]
    assert early.locator("nav[aria-label=main] b").is_visible()
    early.goto(base_of(one) + "/system")
    html = early.content()
    bare.close()
    assert re.findall(r'<a href="([^"]*)"', html) == PLACES
    page = browser.new_context().new_page()
    page.route("**/assets/app.js", lambda route: route.abort())
    page.goto(base_of(one) + "/")
    waiting, place = page.evaluate(LINKS), page.evaluate(BOX)
    page.unroute("**/assets/app.js")
    page.goto(base_of(one) + "/")
    page.wait_for_selector("#main")
    assert page.locator("nav[aria-label=main]").count() == 1
    assert page.evaluate(LINKS) == waiting, "one bar, the same links"
    assert page.evaluate(BOX) == place, "and nothing jumps"
    page.context.close()
