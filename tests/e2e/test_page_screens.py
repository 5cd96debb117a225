"""Screens of the page beside a run's own: issues, rules, runs side by side; keys, theme, time zone; and axe on every one of them."""
import json
import os
import subprocess
import sys
import textwrap

import pytest

from tests.e2e.test_insights import CONFIG, asked, train
from tests.support import axe
from tests.support.hook_support import wait_for
from tests.support.program import BUILD, ROOT
from tests.support.webhook_receiver import WebhookReceiver

# Two runs that are one until step 50, then part; the second has no number at step 80.
TWINS = """
import sys, tocsin
late = float(sys.argv[1])
hook = tocsin.watch(run=sys.argv[2], job="twins", labels={"lr": sys.argv[1]})
for step in range(120):
    loss = 2.0 / (1 + step) + (late if step >= 50 else 0.0)
    hook.log(loss=float("nan") if late and step == 80 else loss, accuracy=step / 120)
    hook.step()
hook.close()
"""


@pytest.fixture(scope="module")
def watched(module_server, tmp_path_factory):
    """A server that has seen a stopped run and two healthy ones."""
    folder = tmp_path_factory.mktemp("screens")
    with WebhookReceiver() as hook:
        one = module_server(CONFIG.format(journal=folder / "journal", url=hook.url, more=""))
        one.wait_for("ready")
        train(folder, folder / "journal")
        script = folder / "twins.py"
        script.write_text(textwrap.dedent(TWINS))
        environment = {**os.environ, "TOCSIN_OUT": str(folder / "journal"), "PYTHONPATH": str(ROOT / "python"),
                       "TOCSIN_LIBRARY": os.environ.get("TOCSIN_LIBRARY", str(BUILD / "collectors/hook/libtocsin_client.so.0"))}
        for late in ("0.0", "0.25"):
            subprocess.run([sys.executable, script, late, f"late-{late}"], env=environment, check=True, timeout=60)

        def known():
            status, text = one.get("/api/v1/runs")
            runs = {run["labels"].get("lr", "stopped"): run for run in json.loads(text)["items"]} if status == 200 else {}
            return runs if len(runs) == 3 and all(run["state"] == "ended" for run in runs.values()) and runs["stopped"]["told"] else None
        runs = wait_for(known, 30)
        assert runs

        def stored():  # the store of curves may be a moment behind
            names = [asked(one, f"/api/v1/runs/{runs[late]['uid']}/names?name=loss")["items"] for late in ("0.0", "0.25")]
            return all(items and items[0]["stored"] == 120 for items in names)
        assert wait_for(stored, 20)
        yield one, runs


def opened(browser, server, path, width=1440, height=900, theme="light", **more):
    context = browser.new_context(viewport={"width": width, "height": height}, color_scheme=theme, **more)
    page = context.new_page()
    page.goto(f"http://{server.wait_for('started')['http']}{path}")
    page.wait_for_selector("h1")
    page.wait_for_selector(".live.good")
    return page


def screens_of(runs):
    """Each screen, and what is on it once it is drawn."""
    stopped, twin = runs["stopped"], runs["0.0"]
    head = stopped["headline"]
    return {"runs": ("/", ".run"), "issues": ("/issues", ".panel .lines"), "system": ("/system", ".facts"),
            "issue": (f"/issues/{head['key']}/{head['episode']}", "#where"), "run": (f"/runs/{twin['uid']}", ".chart canvas"),
            "stopped-run": (f"/runs/{stopped['uid']}", "#headline"), "tensors": (f"/runs/{stopped['uid']}/tensors", ".heat canvas"),
            "rules": (f"/runs/{stopped['uid']}/rules", ".rule-row"), "history": (f"/runs/{stopped['uid']}/history", ".history li"),
            "compare": (f"/compare?runs={twin['uid']},{runs['0.25']['uid']}", ".chart canvas"), "no-such-page": ("/system/nothing", "h1")}


@pytest.mark.parametrize("width,height,theme", [(1440, 900, "light"), (390, 844, "dark")])
def test_axe_finds_nothing_on_any_screen(watched, browser, width, height, theme):
    one, runs = watched
    context = browser.new_context(viewport={"width": width, "height": height}, color_scheme=theme)
    axe.bring(context)
    page = context.new_page()
    wrong = []
    page.on("console", lambda message: wrong.append(message.text) if message.type == "error" else None)
    base = f"http://{one.wait_for('started')['http']}"
    shots = ROOT / "build" / "screens"
    shots.mkdir(parents=True, exist_ok=True)
    found = {}
    for name, (path, drawn) in screens_of(runs).items():
        if name == "no-such-page":
            continue
        page.goto(base + path)
        page.wait_for_selector(drawn)
        page.wait_for_selector(".live.good")
        page.screenshot(path=shots / f"{name}-{width}-{theme}.png", full_page=True)
        assert page.evaluate("document.documentElement.scrollWidth") <= width, f"{name} is wider than the window"
        for state in ("as it is", "with the keys"):
            if state != "as it is":
                page.keyboard.press("?")
                page.wait_for_selector("dialog[open]")
            found |= axe.faults(page, f"{name} {state}")
            if name not in ("runs", "issue"):
                break
    assert found == {}, json.dumps(found, indent=1)
    page.evaluate("document.querySelector('main').append(document.createElement('button'))")  # it has no name
    answer = page.evaluate("axe.run(document)")
    assert "button-name" in {fault["id"] for fault in answer["violations"]}, "what axe would find is found"
    assert wrong == []
    context.close()


def test_issues_stand_in_a_list_with_their_run_and_are_found_by_a_word(watched, browser):
    one, runs = watched
    page = opened(browser, one, "/issues")
    summary = runs["stopped"]["headline"]["summary"]
    page.wait_for_selector(f"text={summary}")
    assert "digits" in page.inner_text("main") and "exploding_tensor" in page.inner_text("main")
    page.fill("main input[type=search]", "no-such-word")
    page.wait_for_selector("text=No issue fits the filter.")
    assert "q=no-such-word" in page.url, "the address is the view"
    page.fill("main input[type=search]", "vision")  # a label
    page.wait_for_selector(f"text={summary}")
    page.click(f"text={summary}")
    page.wait_for_selector("#where")
    page.context.close()


def test_each_rule_says_what_it_judged_and_the_run_says_whether_it_is_healthy(watched, browser):
    one, runs = watched
    told = asked(one, f"/api/v1/runs/{runs['stopped']['uid']}/rules")["items"]
    (rule,) = [row for row in told if row["rule"] == "exploding_tensor"]
    assert rule["status"] == "IssuesFound" and rule["evaluations"]["hit"] >= 1 and rule["version"] == "1"
    page = opened(browser, one, f"/runs/{runs['stopped']['uid']}/rules")
    row = page.locator(".rule-row:has-text('exploding_tensor')").first
    row.wait_for()
    assert "found issues" in row.inner_text() and runs["stopped"]["headline"]["summary"] in row.inner_text()
    assert str(rule["evaluations"]["hit"]) in row.locator("td").nth(2).inner_text()
    page.click(".tabs >> text=Overview")
    page.wait_for_selector("#headline.trouble")
    headline = page.inner_text("#headline")
    assert runs["stopped"]["headline"]["summary"] in headline and "1 message delivered" in headline, headline
    page.goto(page.url.replace(runs["stopped"]["uid"], runs["0.0"]["uid"]))
    page.wait_for_selector("#headline:not(.trouble)")
    assert "✓ No issue. 1 rule judges" in page.inner_text("#headline"), page.inner_text("#headline")
    page.context.close()


def test_runs_side_by_side_part_at_their_step(watched, browser):
    one, runs = watched
    page = opened(browser, one, "/")
    for late in ("0.0", "0.25"):
        page.check(f"input[aria-label='compare twins {runs[late]['uid'][:8]}']")
    page.click("text=Compare 2 runs")
    page.wait_for_selector("table:has-text('Differs from the first run')")
    rows = page.locator("section.panel table").first.locator("tbody tr")
    assert "from step 50 on" in rows.nth(1).inner_text(), rows.nth(1).inner_text()
    assert rows.nth(1).locator("td").nth(3).inner_text() == "1", "one value is no number"
    assert rows.nth(0).locator("td").nth(3).inner_text() == "0"
    last = 2.0 / 120 + 0.25
    assert rows.nth(1).locator("td").nth(0).inner_text() == f"{last:.5g} at step 119"
    assert "label lr" in page.inner_text("main") and "0.25" in page.inner_text("main")
    page.select_option("label:has-text('Curve') select", "accuracy")
    page.wait_for_selector("td:has-text('nowhere')")
    page.reload()  # the address is the view
    page.wait_for_selector("td:has-text('nowhere')")
    page.focus(".plot")
    page.keyboard.press("End")
    assert "step 119" in page.inner_text(".read")
    page.goto(page.url.split("?")[0] + f"?runs={runs['0.0']['uid']},ffffffff-0000")
    page.wait_for_selector("text=No run has a uid that begins with ffffffff-0000.")
    page.context.close()


def test_u27_a_run_has_its_colour_beside_any_others(watched, browser):
    one, runs = watched
    first, second, third = (runs[name]["uid"] for name in ("0.0", "0.25", "stopped"))
    page = opened(browser, one, "/")

    def colours(*uids):
        page.goto(f"http://{one.wait_for('started')['http']}/compare?runs={','.join(uids)}&v=loss")
        page.wait_for_selector(f".keys [data-colour] >> nth={len(uids) - 1}")
        return {line.inner_text().split()[-1]: line.get_attribute("data-colour") for line in page.locator(".keys [data-colour]").all()}
    two = colours(first, second)
    three = colours(third, second, first)
    assert len(set(three.values())) == 3 and set(two) == {first[:8], second[:8]}
    assert {uid: three[uid] for uid in two} == two == colours(second, first)
    page.wait_for_function("() => location.search.includes('colours=')")
    # Another browser remembers other colours; a link brings those of who sent it.
    other = opened(browser, one, "/")
    places = [(at + 3) % 8 for at, _ in enumerate(two)]
    other.evaluate("(all) => localStorage.setItem('tocsin.run_colours', JSON.stringify(all))", [[second, places[0]], [first, places[1]]])
    other.goto(page.url.split("&colours=")[0])
    other.wait_for_selector(".keys [data-colour] >> nth=1")
    said = {line.inner_text().split()[-1]: line.get_attribute("data-colour") for line in other.locator(".keys [data-colour]").all()}
    assert said != two, "they do differ without the link"
    other.goto(page.url)
    other.wait_for_selector(".keys [data-colour] >> nth=1")
    said = {line.inner_text().split()[-1]: line.get_attribute("data-colour") for line in other.locator(".keys [data-colour]").all()}
    assert said == two
    other.context.close()
    page.context.close()


def test_who_uses_keys_gets_everywhere(watched, browser):
    one, runs = watched
    page = opened(browser, one, "/")
    page.wait_for_selector(".run")
    page.keyboard.press("g")
    page.keyboard.press("i")
    page.wait_for_selector("h1:has-text('Issues')")
    page.wait_for_selector(".lines a")
    page.keyboard.press("j")
    page.keyboard.press("Enter")
    page.wait_for_selector("#where")
    page.keyboard.press("g")
    page.keyboard.press("r")
    page.wait_for_selector(".run")
    page.keyboard.press("/")
    page.keyboard.type("twins gj?")  # a text field takes letters as letters
    assert page.input_value("main input[type=search]") == "twins gj?"
    page.wait_for_selector("text=No run fits the filter.")
    assert page.locator("dialog[open]").count() == 0
    page.goto(page.url.split("?")[0].rstrip("/") + f"/runs/{runs['stopped']['uid']}")
    page.wait_for_selector("#headline")
    for key, wanted in (("u", "/rules"), ("h", "/history"), ("t", "/tensors"), ("o", "")):
        page.keyboard.press("g")
        page.keyboard.press(key)
        page.wait_for_url(f"**/runs/{runs['stopped']['uid']}{wanted}")
    page.keyboard.press("?")
    page.wait_for_selector("dialog[open]")
    page.uncheck("dialog input")
    page.keyboard.press("Escape")
    page.keyboard.press("g")
    page.keyboard.press("h")
    page.wait_for_timeout(200)
    assert not page.url.endswith("/history"), "single letters are switched off"
    page.context.close()


def test_theme_and_zone_are_chosen_and_remembered(watched, browser):
    one, runs = watched
    page = opened(browser, one, f"/runs/{runs['stopped']['uid']}/history", timezone_id="Asia/Kolkata")
    ground = "getComputedStyle(document.body).backgroundColor"
    light = page.evaluate(ground)
    assert "UTC" in page.inner_text(".history time >> nth=0")
    utc = page.get_attribute(".history time >> nth=0", "datetime")
    page.keyboard.press("z")
    page.wait_for_selector(".history time:has-text('GMT+5:30')")
    shown = page.inner_text(".history time >> nth=0")
    hour, minute = (int(part) for part in utc[11:16].split(":"))
    assert f"{(hour + 5 + (minute + 30) // 60) % 24:02d}:{(minute + 30) % 60:02d}" in shown, (utc, shown)
    page.keyboard.press("t")
    assert page.evaluate(ground) != light
    page.reload()
    page.wait_for_selector(".history time:has-text('GMT+5:30')")
    assert page.evaluate(ground) != light, "this browser remembers it"
    page.goto(page.url + "?theme=light&tz=UTC")  # the address comes first
    page.wait_for_selector(".history time:has-text('UTC')")
    assert page.evaluate(ground) == light
    page.context.close()
