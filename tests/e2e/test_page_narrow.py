"""U35: on a phone every table is read without scrolling to the side, each number beside the name of its column."""
from tests.e2e import test_baseline, test_fleet, test_nodes_and_times, test_page_screens
from tests.e2e.test_baseline import uid_of
from tests.e2e.test_page_screens import screens_of
from tests.support import axe, narrow
from tests.support.hook_support import wait_for
from tests.support.profiled_run import NODE
from tests.support.program import ROOT

fleet, ladder, profiled, watched = test_fleet.fleet, test_baseline.ladder, test_nodes_and_times.profiled, test_page_screens.watched  # fixtures


def read_on_a_phone(browser, server, screens, theme, width=390):
    """Each screen: its address, what is there once it is drawn."""
    context = browser.new_context(viewport={"width": width, "height": 844}, color_scheme=theme, is_mobile=True, has_touch=True)
    axe.bring(context)
    page = context.new_page()
    shots = ROOT / "build" / "screens"
    shots.mkdir(parents=True, exist_ok=True)
    found = {}
    for name, (path, *drawn) in screens.items():
        page.goto(f"http://{server.wait_for('started')['http']}{path}")
        for one in drawn:
            page.evaluate("window.scrollTo(0, document.body.scrollHeight)")
            page.wait_for_selector(one, state="attached")
        if troubles := narrow.troubles(page):
            found[name] = troubles
        page.screenshot(path=shots / f"phone-{name}-{theme}.png", full_page=True)
        found |= axe.faults(page, name)
    context.close()
    assert found == {}


def test_u35_nodes_time_lines_and_ranks(profiled, browser):
    one, uid, *_ = profiled
    read_on_a_phone(browser, one, {
        "nodes": (f"/runs/{uid}/nodes?node={NODE}", "#chart-gpu canvas", "#usage tbody tr"),
        "timeline": (f"/runs/{uid}/timeline", "#shares tbody tr", "#step-times tbody tr"),
        "ranks": (f"/runs/{uid}/ranks", "#rank-times tbody tr"),
        "overview": (f"/runs/{uid}", "#curves canvas", "#job-times .pie", "#operations tbody tr", "#usage tbody tr")}, "dark")


def test_u35_the_fleet(fleet, browser):
    one, *_ = fleet
    read_on_a_phone(browser, one, {"fleet": ("/fleet", "tbody tr"), "fleet-node": ("/fleet/n1", "h2"), "fleet-label": ("/fleet?by=image", "tbody tr")}, "dark")


def test_u35_runs_side_by_side(ladder, browser):
    read_on_a_phone(browser, ladder, {"compare": (f"/compare?runs={uid_of('late')},{uid_of('open')}&baseline=job", ".chart canvas", "#baseline tbody tr")}, "light")


def test_u35_all_other_screens(watched, browser):
    one, runs = watched
    read_on_a_phone(browser, one, {name: where for name, where in screens_of(runs).items() if name != "no-such-page"}, "light")


def test_u35_what_is_not_read_on_a_phone_is_found(watched, browser):
    one, runs = watched
    context = browser.new_context(viewport={"width": 390, "height": 844})
    page = context.new_page()
    page.goto(f"http://{one.wait_for('started')['http']}/runs/{runs['stopped']['uid']}/rules")
    page.wait_for_selector(".rule-row")
    assert narrow.troubles(page) == []

    def spoilt():
        """The page mends itself when it is drawn again."""
        page.evaluate("""() => {
          document.querySelectorAll("td").forEach((one) => one.removeAttribute("data-name"));
          const panel = document.querySelector(".panel");
          panel.style.overflow = "auto";
          panel.querySelector("p:last-child").style.width = "600px";
        }""")
        found = narrow.troubles(page)
        return any(one.startswith("does not say Status") for one in found) and any(one.startswith("scrolls: ") for one in found)

    assert wait_for(spoilt, 10), narrow.troubles(page)
    context.close()
