"""U24 on charts over time: what happened to the run stands on the charts of its nodes, by the clock."""
import pytest

from tests.e2e import test_fleet
from tests.e2e.test_curves import asked
from tests.e2e.test_fleet import uid_of
from tests.support import axe, journal, narrow
from tests.support.hook_support import wait_for
from tests.support.issues import issue_record
from tests.support.program import ROOT

fleet = test_fleet.fleet  # the fixture


@pytest.mark.parametrize("width,theme", [(1440, "light"), (390, "dark")])
def test_u24_issues_are_marks_on_the_charts_of_nodes(fleet, browser, width, theme):
    one, begin, place = fleet
    uid, sampled = str(uid_of("b")), begin / 1e9
    run = {"uid": uid, "attempt": 1, "job": "job-b"}
    journal.append(place, issue_record({"rule": "by_clock", "severity": "critical"}, annotations={"summary": "the node throttles"}, began=sampled + 0.5, run=run),
                   issue_record({"rule": "by_clock", "severity": "warning", "number": "before"}, annotations={"summary": "long before"}, began=sampled - 3600, run=run))
    assert wait_for(lambda: {"the node throttles", "long before"} <= {row["summary"] for row in asked(one, f"/api/v1/runs/{uid}")["issues"]}, 20)
    context = browser.new_context(viewport={"width": width, "height": 900}, color_scheme=theme)
    axe.bring(context)
    page = context.new_page()
    page.goto(f"http://{one.wait_for('started')['http']}/runs/{uid}/nodes?node=n2&marks=issues")  # its GPU has faults too
    page.wait_for_selector("#node-charts .marks .alarm")
    marks = page.locator("#node-charts .marks li").all_inner_texts()
    assert [mark.split(": ")[-1] for mark in marks] == ["first sign, the node throttles"], marks
    label = page.get_attribute("#chart-gpu .plot", "aria-label")
    assert "the node throttles" in label and "long before" not in label, "what lies outside of the time that is shown is no mark"

    def alarm_pixels():  # of the colour of alarms, above the lines
        return page.evaluate("""() => {
          const canvas = document.querySelector("#chart-gpu canvas"), probe = document.createElement("canvas").getContext("2d");
          probe.fillStyle = getComputedStyle(document.documentElement).getPropertyValue("--bad");
          probe.fillRect(0, 0, 1, 1);
          const want = probe.getImageData(0, 0, 1, 1).data;
          const all = canvas.getContext("2d").getImageData(0, 0, canvas.width, 24 * devicePixelRatio).data;
          let count = 0;
          for (let at = 0; at < all.length; at += 4) if ([0, 1, 2].every((part) => Math.abs(all[at + part] - want[part]) < 24) && all[at + 3] > 200) count += 1;
          return count;
        }""")
    page.locator("#node-charts").scroll_into_view_if_needed()
    assert wait_for(lambda: alarm_pixels() > 20, 5)
    shots = ROOT / "build" / "screens"
    shots.mkdir(parents=True, exist_ok=True)
    page.screenshot(path=shots / f"node-marks-{width}-{theme}.png")
    assert axe.faults(page, "node marks") == {} and (width > 390 or narrow.troubles(page) == [])
    page.click("#node-charts .marks-of button:has-text('issues')")
    assert wait_for(lambda: alarm_pixels() == 0, 5), "they are switched off"
    page.click("#node-charts .marks-of button:has-text('issues')")
    page.click("#node-charts .marks a")
    page.wait_for_selector("h1:has-text('the node throttles')")
    context.close()
