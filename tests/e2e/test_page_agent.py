"""The page of a node changes what its agent samples, shows what the agent answered, and takes it back, in a real browser."""
import pytest

from tests.e2e.test_node_agent import SHIFT, Place, answered, begun, said
from tests.e2e.test_page_acts import pictured
from tests.support import axe, narrow
from tests.support.hook_support import wait_for

GUEST_SAYS = "Nothing is asked of it: it samples as its own file says."


@pytest.fixture
def place(tmp_path):
    return Place(tmp_path, f"{{journal: {tmp_path}/journal}}")


@pytest.mark.parametrize("width,theme", [(1440, "light"), (390, "dark")])
def test_an_operator_changes_an_agent_where_its_node_is_read(server, place, browser, width, theme):
    one = begun(server, place)
    assert wait_for(lambda: said(one, "GET", "/api/v1/nodes/n7")[0] == 200, 30)
    context = browser.new_context(viewport={"width": width, "height": 900}, color_scheme=theme)
    axe.bring(context)
    page = context.new_page()
    wrong = []
    page.on("pageerror", lambda error: wrong.append(str(error)))
    page.goto(f"http://{one.wait_for('started')['http']}/fleet/n7#token={SHIFT}")
    page.wait_for_selector(f"#agent >> text={GUEST_SAYS}")
    assert page.locator("#agent button").all_inner_texts() == ["Change what it samples"]
    page.click("#agent button:text-is('Change what it samples')")
    page.wait_for_selector("#agent form.deed")
    assert page.locator("#agent form.deed button[type=submit]").is_disabled(), "nothing is chosen yet"
    page.fill("#agent input[name=interval]", "5ms")
    page.click("#agent form.deed button[type=submit]")
    page.wait_for_selector("#agent .fault >> text=/expected a time from 100ms to 1m/")
    page.fill("#agent input[name=interval]", "200ms")
    page.check("#agent fieldset label:has-text('memory') input")
    page.locator("#agent").scroll_into_view_if_needed()
    pictured(page, f"agent-form-{width}-{theme}")
    assert axe.faults(page, "agent form") == {} and (width > 390 or narrow.troubles(page) == [])
    page.click("#agent form.deed button[type=submit]")
    page.wait_for_selector("#agent >> text=/collectors memory, a sample every 200ms/", timeout=60_000)
    page.wait_for_selector("#agent >> text=/applied, samples memory every 200ms/", timeout=60_000)
    stands = answered(one)
    assert "by shift" in page.inner_text("#agent") and page.get_attribute("#agent time", "datetime") == stands["asked"]["at"]
    pictured(page, f"agent-asked-{width}-{theme}")
    page.reload()
    page.wait_for_selector("#agent >> text=/applied, samples memory every 200ms/")
    page.click("#agent button:text-is('Take it back')")
    page.click("#agent form.deed button[type=submit]")
    page.wait_for_selector(f"#agent >> text={GUEST_SAYS}", timeout=60_000)
    assert said(one, "GET")[1]["asked"] is None
    assert not wrong, wrong
    context.close()


def test_who_may_only_look_sees_what_was_asked(server, place, browser):
    one = begun(server, place)
    assert said(one, "PUT", body={"interval": "200ms"})[0] == 200
    answered(one)
    page = browser.new_page()
    page.goto(f"http://{one.wait_for('started')['http']}/fleet/n7#token=9876543210-of-a-guest")
    page.wait_for_selector("#agent >> text=/applied, samples cpu and memory every 200ms/")
    page.click("#agent button:text-is('Change what it samples')")
    page.wait_for_selector("#agent >> text=/This needs a token with the role operator/")
