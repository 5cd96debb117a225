"""Useful, noise or known, and notes, on the page of an issue, in a real browser."""
import json

import pytest

from tests.e2e import test_page_acts
from tests.e2e.test_insights import asked
from tests.e2e.test_page_acts import OPERATOR, opened, pictured

job = test_page_acts.job  # the fixture


def test_only_who_may_says_what_an_issue_was_worth(job, browser):
    one = job()
    page = opened(browser, one)
    assert "Nobody has said so far." in page.inner_text("#feedback")
    page.click("#feedback button:text-is('Noise')")
    page.wait_for_selector("#feedback >> text=This needs a token with the role operator (http.auth.tokens).")
    assert page.locator("#feedback form.deed").count() == 0
    assert asked(one.server, "/api/v1" + one.path)["verdict"] is None


@pytest.mark.parametrize("width,theme", [(1440, "light"), (390, "dark")])
def test_a_verdict_and_notes_are_given_where_the_issue_is_read(job, browser, width, theme):
    one = job()
    page = opened(browser, one, width, theme)
    refused = []
    page.on("console", lambda line: refused.append(line.text) if line.type == "error" else None)
    page.on("pageerror", lambda error: refused.append(str(error)))
    page.click("#feedback button:text-is('Noise')")
    page.fill("#feedback input[type=password]", OPERATOR)
    page.click("#feedback button:has-text('Sign in')")
    page.wait_for_selector("#feedback form.deed")
    page.fill("#feedback form.deed input", "the loader restarts every night")
    pictured(page, f"verdict-form-{width}-{theme}")
    page.click("#feedback form.deed button[type=submit]")
    page.wait_for_selector("#feedback >> text=/Noise, says night-shift, .*: the loader restarts every night/")
    assert page.get_attribute("#feedback button:text-is('Noise')", "class") == "main", "which one stands is seen"
    kept = asked(one.server, "/api/v1" + one.path)["verdict"]
    assert (kept["verdict"], kept["by"], kept["note"]) == ("noise", "night-shift", "the loader restarts every night")

    page.click("#feedback button:text-is('Note')")
    assert page.is_disabled("#feedback form.deed button[type=submit]"), "an empty note is none"
    page.fill("#feedback form.deed textarea", "node-7 had a bad cable\nreplaced at noon <b>x</b>")
    page.click("#feedback form.deed button[type=submit]")
    page.wait_for_selector("#feedback [aria-label=Notes] li")
    note = page.inner_text("#feedback [aria-label=Notes] li")
    assert note.startswith("node-7 had a bad cable\nreplaced at noon <b>x</b>") and "night-shift" in note, note
    pictured(page, f"verdict-{width}-{theme}")

    page.click("#feedback button:text-is('Known')")
    page.click("#feedback form.deed button[type=submit]")
    page.wait_for_selector("#feedback >> text=/Known, says night-shift/")
    assert "every night" not in page.inner_text("#feedback"), "the word before is replaced, with its reason"
    page.reload()
    page.wait_for_selector("#feedback >> text=/Known, says night-shift/")
    page.click("#feedback button:text-is('Take back')")
    page.click("#feedback form.deed button[type=submit]")
    page.wait_for_selector("#feedback >> text='Nobody has said so far.'")
    assert page.locator("#feedback button:text-is('Take back')").count() == 0
    assert [what for what, who in one.changes() if who == "night-shift"].count("verdict.set") == 2
    (rule,) = [rule for rule in asked(one.server, "/api/v1/rules")["items"] if rule["rule"] == "exploding_tensor"]
    assert rule["fired"] >= 1 and rule["useful"] == rule["noise"] == rule["known"] == 0 and "precision" not in rule, json.dumps(rule)
    page.goto(f"{one.base}/runs/{one.uid}/history")
    page.wait_for_selector("text=night-shift: node-7 had a bad cable")
    assert not refused, refused


def test_what_another_says_comes_by_itself(job, browser):
    one = job()
    page = opened(browser, one)
    other = browser.new_context().new_page()
    other.goto(one.base + one.path)
    other.wait_for_selector("#feedback")
    other.click("#feedback button:text-is('Useful')")
    other.fill("#feedback input[type=password]", OPERATOR)
    other.click("#feedback button:has-text('Sign in')")
    other.wait_for_selector("#feedback form.deed")
    other.click("#feedback form.deed button[type=submit]")
    page.wait_for_selector("#feedback >> text=/Useful, says night-shift/", timeout=15000)
    page.goto(f"{one.base}/runs/{one.uid}/rules")
    page.wait_for_selector("tr:has-text('exploding_tensor') td[data-name=Useful]:has-text('100 %')")
