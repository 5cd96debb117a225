"""Numbers of the page copy on a click with their units; links, buttons, names and text that is being chosen stay as they are."""
import pytest

from tests.e2e import test_complaints
from tests.e2e.test_complaints import LOSS, base_of
from tests.support.hook_support import wait_for
from tests.support.program import ROOT

ended = test_complaints.ended  # a fixture

SLOW = 60_000  # ms
CLIPBOARD = "() => navigator.clipboard.readText()"
NOTHING = "nothing yet"
# Puts text into the page as a screen would, and gives where a part of it lies.
PUT = """(html) => { document.querySelector('#put')?.remove(); const box = document.createElement('div'); box.id = 'put'; box.innerHTML = html;
  document.querySelector('main').prepend(box); scrollTo(0, 0); }"""
PLACE = """([css, words]) => { const nodes = document.createTreeWalker(document.querySelector(css), NodeFilter.SHOW_TEXT);
  for (let node = nodes.nextNode(); node; node = nodes.nextNode()) { const at = node.nodeValue.indexOf(words); if (at < 0) continue;
    const range = document.createRange(); range.setStart(node, at); range.setEnd(node, at + words.length);
    range.startContainer.parentElement.scrollIntoView({block: 'center'});
    const box = range.getBoundingClientRect(); return [box.x + box.width / 2, box.y + box.height / 2, box.x, box.right]; } }"""


@pytest.fixture
def reading(ended, browser):
    """A page of a run that has ended, whose clipboard a test may read."""
    one, uid = ended
    context = browser.new_context(viewport={"width": 1440, "height": 900}, permissions=["clipboard-read", "clipboard-write"])
    page = context.new_page()
    page.goto(f"{base_of(one)}/runs/{uid}")
    page.wait_for_selector(f"{LOSS} canvas", timeout=SLOW)
    page.evaluate(f"() => navigator.clipboard.writeText('{NOTHING}')")
    yield page
    context.close()


def click_on(page, css, words):
    x, y, *_ = page.evaluate(PLACE, [css, words])
    page.mouse.click(x, y)


def copies(page, css, words, wanted):
    click_on(page, css, words)
    page.wait_for_selector(f".copied :text-is('copied {wanted}')", state="attached", timeout=SLOW)
    assert page.evaluate(CLIPBOARD) == wanted


def copies_nothing(page, css, words):
    page.evaluate(f"() => navigator.clipboard.writeText('{NOTHING}')")
    click_on(page, css, words)
    page.wait_for_timeout(200)
    assert page.evaluate(CLIPBOARD) == NOTHING, words


def test_numbers_of_a_run_copy_and_the_page_says_so(reading):
    page = reading
    copies(page, "header.head", "2999", "2999")
    page.click(f"{LOSS} summary:has-text('Table')")
    row = f"{LOSS} details tbody tr:last-child"
    cells = page.locator(f"{row} td").all_inner_texts()
    copies(page, f"{row} td:nth-child(2)", cells[1], cells[1])
    assert float(page.evaluate(CLIPBOARD)) == float(cells[1]), "a number that a program reads, as precise as the cell has it"
    page.click("button.quiet[aria-label=keys]")
    page.wait_for_selector("dialog :text('A click on a number copies it with its unit.')", timeout=SLOW)


def test_a_unit_goes_with_its_number_and_names_are_left_alone(reading):
    page = reading
    page.evaluate(PUT, """<p>took 0.027 s, 3 min 12 s in all, \u221218.2 % of 2.5\u00a0GB, run 4e3046d4 on n7 of 1.2.3 at 22:15:12.912 UTC</p>
        <table><tbody><tr><td id="timed">waits <b>10.6</b> ms</td><td id="marked" data-unit="W">300</td><td id="wide">7 ms</td></tr></tbody></table>
        <p id="links"><a href="#12">step 12</a> <button>5 s</button> <code>9 s</code></p>""")
    for words, wanted in (("0.027 s", "0.027 s"), ("3 min", "3 min 12 s"), ("12 s", "3 min 12 s"), ("18.2", "-18.2 %"), ("2.5", "2.5 GB")):
        copies(page, "#put p", words, wanted)
    copies(page, "#timed", "10.6", "10.6 ms")
    copies(page, "#marked", "300", "300 W")
    page.evaluate("() => Object.assign(document.querySelector('#wide').style, {width: '400px', textAlign: 'left'})")
    _, y, _, right = page.evaluate(PLACE, ["#wide", "7 ms"])
    page.mouse.click(right + 150, y)
    page.wait_for_selector(".copied :text-is('copied 7 ms')", state="attached", timeout=SLOW)
    for words in ("took", "4e3046d4", "n7", "1.2.3", "22:15", "12.912"):
        copies_nothing(page, "#put p", words)
    copies_nothing(page, "#links", "5 s")
    copies_nothing(page, "#links", "9 s")
    copies_nothing(page, "#links", "step 12")
    assert page.url.endswith("#12"), "the link was followed"


def test_choosing_text_by_dragging_copies_nothing(reading):
    page = reading
    page.evaluate(PUT, "<p>took 0.027 s in all</p>")
    _, y, left, right = page.evaluate(PLACE, ["#put p", "0.027 s"])
    page.mouse.move(left + 1, y)
    page.mouse.down()
    page.mouse.move(right - 1, y, steps=5)
    page.mouse.up()
    page.wait_for_timeout(200)
    assert page.evaluate("() => getSelection().toString()").strip(), "text is chosen"
    assert page.evaluate(CLIPBOARD) == NOTHING


def test_the_pointer_on_a_number_hints_at_it(reading):
    page = reading
    page.evaluate(PUT, "<p>took 0.027 s in all</p>")
    x, y, *_ = page.evaluate(PLACE, ["#put p", "0.027 s"])
    page.mouse.move(x, y)
    page.wait_for_selector("#put p.copies[title='Click to copy 0.027 s']", timeout=SLOW)
    assert page.evaluate("() => getComputedStyle(document.querySelector('#put p')).cursor") == "copy"
    shots = ROOT / "build" / "screens"
    shots.mkdir(parents=True, exist_ok=True)
    page.mouse.click(x, y)
    page.wait_for_selector(".copied span", state="attached", timeout=SLOW)
    page.screenshot(path=shots / "copied.png")
    x, y, *_ = page.evaluate(PLACE, ["#put p", "in all"])
    page.mouse.move(x, y)
    page.wait_for_selector("#put p:not(.copies):not([title])", timeout=SLOW)


def test_without_a_clipboard_the_older_way_copies(reading):
    page = reading
    page.evaluate("() => { Object.defineProperty(navigator.clipboard, 'writeText', {value: () => Promise.reject(new Error('no'))}); }")
    page.evaluate(PUT, "<p>took 0.027 s in all</p>")
    copies(page, "#put p", "0.027 s", "0.027 s")
    page.evaluate("() => { document.execCommand = () => false; }")
    click_on(page, "#put p", "0.027 s")
    assert wait_for(lambda: page.wait_for_timeout(50) or page.inner_text(".copied").startswith("not copied"), 20)
