"""What people complain about in pages of other tools, each a test by its number (tests/complaints.md)."""
import importlib.abc
import inspect
import re
import subprocess
import sys

import pytest

from tests.e2e.test_curves import CONFIG, asked, environment, run_with, train
from tests.support.hook_support import wait_for
from tests.support.oidc_proxy import OidcProxy
from tests.support.program import ROOT

LOSS = ".chart[data-name=loss][data-mode=train]"


@pytest.fixture(scope="module")
def ended(module_server, tmp_path_factory):
    """A run of 3000 steps that has ended."""
    folder = tmp_path_factory.mktemp("ended")
    one = module_server(CONFIG.format(journal=folder / "journal"))
    one.wait_for("ready")
    assert train(folder, folder / "journal", 3000).wait(60) == 0
    uid = run_with(one, 3000)
    assert uid and wait_for(lambda: asked(one, f"/api/v1/runs/{uid}")["run"]["state"] == "ended", 20)
    return one, uid


@pytest.fixture
def going(server, tmp_path):
    """A run that goes on, fifty steps in a second; nothing stops it."""
    one = server(CONFIG.format(journal=tmp_path / "journal").replace(", actions: [stop]", ""))
    one.wait_for("ready")
    job = train(tmp_path, tmp_path / "journal", 100000, 0.02)
    try:
        uid = run_with(one, 60)
        assert uid
        yield one, uid
    finally:
        job.kill()
        job.wait()


def base_of(server):
    return f"http://{server.wait_for('started')['http']}"


def opened(browser, server, path):
    page = browser.new_context(viewport={"width": 1440, "height": 900}).new_page()
    page.goto(base_of(server) + path)
    page.wait_for_selector(f"{LOSS} canvas")
    page.wait_for_selector(".live.good")
    return page


def shown(page):
    """Which steps the page says that it shows."""
    return tuple(int(one) for one in re.search(r"steps (\d+) to (\d+)", page.inner_text("#curves .tools")).groups())


def test_u06_zooming_in_brings_single_steps(ended, browser):
    one, uid = ended
    page = opened(browser, one, f"/runs/{uid}")
    assert re.search(r"1 point = (4|8) steps", page.inner_text(f"{LOSS} figcaption"))
    page.goto(f"{base_of(one)}/runs/{uid}?from=600&to=800")
    page.wait_for_selector(f"{LOSS} figcaption:has-text('1 point = 1 step.')")
    assert "greatest 50 at step 700" in page.inner_text(f"{LOSS} figcaption"), "the spike of one step"
    page.context.close()


def test_u10_u11_what_is_no_number_is_counted_with_its_step_at_every_zoom(ended, browser):
    one, uid = ended
    page = opened(browser, one, f"/runs/{uid}")
    for where in ("", "?from=290&to=310", "?from=0&to=2048"):
        page.goto(f"{base_of(one)}/runs/{uid}{where}")
        page.wait_for_selector(f"{LOSS} figcaption:has-text('2 not finite, first at step 300')")
    page.context.close()


def test_u22_the_first_screen_asks_little_and_draws_few_charts(ended, browser):
    one, uid = ended
    context = browser.new_context(viewport={"width": 1440, "height": 900})
    page = context.new_page()
    requests = []
    page.on("request", lambda request: requests.append(request.url) if "/api/" in request.url else None)
    page.goto(f"{base_of(one)}/runs/{uid}")
    page.wait_for_selector(f"{LOSS} canvas")
    page.wait_for_selector(".live.good")
    page.wait_for_timeout(200)
    first = [url for url in requests if not url.endswith("/stream")]
    # The stream says hello once it is there, and everything is asked once more.
    assert len(set(first)) <= 4 and len(first) <= 8, requests
    assert 1 <= page.locator(".chart canvas").count() <= 6
    context.close()


def test_u25_one_cursor_over_all_charts(ended, browser):
    one, uid = ended
    page = opened(browser, one, f"/runs/{uid}?from=600&to=800")
    page.wait_for_selector(".chart[data-name=grad_norm] canvas")
    page.focus(f"{LOSS} .plot")
    page.keyboard.press("Home")
    for _ in range(10):
        page.keyboard.press("ArrowRight")
    mine = page.inner_text(f"{LOSS} .read")
    other = page.inner_text(".chart[data-name=grad_norm] .read")
    assert mine.startswith("step 610:") and other.startswith("step 610:"), (mine, other)
    value = float(re.match(r"step 610: ([0-9.e-]+)", mine).group(1))
    assert float(re.match(r"step 610: ([0-9.e-]+)", other).group(1)) == pytest.approx(2 * value, rel=1e-4)
    assert page.get_attribute(f"{LOSS} .read", "aria-live") == "polite"
    assert page.get_attribute(".chart[data-name=grad_norm] .read", "aria-live") == "off", "one of them speaks"
    page.context.close()


def test_u30_the_address_shows_the_same_in_another_browser(ended, browser):
    one, uid = ended
    page = opened(browser, one, f"/runs/{uid}?from=600&to=800&log=true&v=grad_norm,loss")
    other = opened(browser, one, page.url.removeprefix(base_of(one)))
    for each in (page, other):
        each.wait_for_selector(".chart[data-name=grad_norm] canvas")
        each.wait_for_timeout(300)
    boxes = [each.locator("#curves").screenshot() for each in (page, other)]
    assert boxes[0] == boxes[1], "to the pixel"
    page.context.close()
    other.context.close()


def ink(page, name, x):
    """Where a line is drawn at step x: as parts of the height of the plot, 0 at its top."""
    return page.evaluate("""([name, x]) => {
      const chart = document.querySelector(`.chart[data-name="${name}"]`);
      const [canvas, over] = [chart.querySelector("canvas"), chart.querySelector(".u-over")];
      const [whole, inner, unit] = [canvas.getBoundingClientRect(), over.getBoundingClientRect(), devicePixelRatio];
      const [from, to] = /steps (\\d+) to (\\d+)/.exec(document.querySelector("#curves .tools").textContent).slice(1).map(Number);
      const left = Math.round(((inner.left - whole.left) + inner.width * (x - from) / (to - from)) * unit);
      const [top, height] = [Math.round((inner.top - whole.top) * unit), Math.round(inner.height * unit)];
      const seen = canvas.getContext("2d").getImageData(left - 1, top, 3, height).data;
      const rows = new Set();
      for (let at = 0; at < seen.length; at += 4)  // the first colour of the light theme, #0334d4
        if (seen[at + 3] > 128 && seen[at] < 80 && seen[at + 1] < 110 && seen[at + 2] > 150) rows.add(Math.floor(at / 4 / 3) / height);
      return [...rows];
    }""", [name, x])


ODD = """
import tocsin
hook = tocsin.watch(run="odd", job="odd")
nan = float("nan")
for step in range(61):
    hook.log(lone=nan if step in (29, 31) else 1.0, small=10.0 ** (step / 5 - 12), giant=1e9 if step == 30 else 1.0 + step / 60)
    hook.step()
hook.close()
"""


def test_u11_u13_u15_what_is_drawn_is_what_was_logged(server, browser, tmp_path):
    one = server(CONFIG.format(journal=tmp_path / "journal"))
    one.wait_for("ready")
    subprocess.run([sys.executable, "-c", ODD], env=environment(tmp_path / "journal"), check=True, timeout=60)
    uid = run_with(one, 61, "giant")
    context = browser.new_context(viewport={"width": 1440, "height": 900}, color_scheme="light")
    page = context.new_page()
    page.goto(f"{base_of(one)}/runs/{uid}?v=lone,giant,small")
    for name in ("lone", "giant", "small"):
        page.wait_for_selector(f".chart[data-name={name}] canvas")
    page.wait_for_timeout(500)
    assert shown(page) == (0, 60)
    assert ink(page, "lone", 30) and not ink(page, "lone", 29) and not ink(page, "lone", 31), "a value between two NaN is a dot"
    low, high = (sum(rows) / len(rows) for rows in (ink(page, "giant", 5), ink(page, "giant", 55)))
    assert low - high > 0.4, "the others are not flattened"
    assert min(ink(page, "giant", 30)) < 0.12, "and what lies beyond is an arrow at the edge"
    page.click("button:has-text('Logarithmic')")
    page.wait_for_timeout(500)
    places = [sum(rows) / len(rows) for rows in (ink(page, "small", step) for step in (10, 30, 50))]  # 1e-10, 1e-6, 1e-2
    assert places[0] - places[1] == pytest.approx(places[1] - places[2], abs=0.02) and places[0] - places[1] > 0.25, places
    context.close()


def test_u29_chosen_curves_are_there_for_the_next_run_of_the_job(ended, browser, tmp_path):
    one, uid = ended
    context = browser.new_context(viewport={"width": 1440, "height": 900})
    page = context.new_page()
    page.goto(f"{base_of(one)}/runs/{uid}")
    page.click("summary:has-text('Other curves')")
    page.uncheck(".picker label:has-text('lr,') input, .picker label:has-text('lr train') input")
    page.wait_for_selector(".chart[data-name=lr]", state="detached")
    page.goto(f"{base_of(one)}/runs/{uid}")  # as a link to another run of the job would
    page.wait_for_selector(f"{LOSS} canvas")
    page.wait_for_timeout(300)
    assert page.locator(".chart[data-name=lr]").count() == 0
    page.click("summary:has-text('Other curves')")
    page.click("button:has-text('Usual curves')")
    page.wait_for_selector(".chart[data-name=lr] canvas")
    context.close()


class Outside(importlib.abc.MetaPathFinder):
    """Nothing but the standard library and Tocsin can be imported."""

    def find_spec(self, name, path=None, target=None):
        if name.split(".")[0] in sys.stdlib_module_names | {"tocsin", "sitecustomize"}:
            return None
        raise ImportError(f"{name} is not of the standard library")


def test_u47_the_analysis_package_needs_nothing_else():
    program = "import sys, importlib.abc\n" + inspect.getsource(Outside) + "sys.meta_path.insert(0, Outside())\n"
    done = subprocess.run([sys.executable, "-c", program + "import tocsin.analysis, tocsin.smdebug.trials\n"
                           "try:\n  import numpy\nexcept ImportError: print('kept out')"],
                          env={"PYTHONPATH": str(ROOT / "python"), "PATH": "/usr/bin"}, capture_output=True, text=True, timeout=60)
    assert done.returncode == 0 and done.stdout == "kept out\n", done.stderr


RESUMED = """
import os, pickle, signal, sys, time, tocsin
hook = tocsin.watch(run="again", job="again")
begin = 0
if len(sys.argv) > 1:
    with open(sys.argv[1], "rb") as file:
        hook.load_state_dict(pickle.load(file))
    begin = 100
for step in range(begin, 200):
    if begin == 0 and step == 100:
        with open("state", "wb") as file:
            pickle.dump(hook.state_dict(), file)
    if begin == 0 and step == 150:
        time.sleep(1.5)  # what is queued is sent
        os.kill(os.getpid(), signal.SIGKILL)
    hook.log(loss=2.0 if begin == 0 else 1.0)
    hook.step()
hook.close()
"""


def test_u16_u17_a_resumed_run_is_one_line_with_a_mark(server, browser, tmp_path):
    one = server(CONFIG.format(journal=tmp_path / "journal"))
    one.wait_for("ready")
    first = subprocess.run([sys.executable, "-c", RESUMED], env=environment(tmp_path / "journal"), cwd=tmp_path, timeout=60)
    assert first.returncode == -9
    subprocess.run([sys.executable, "-c", RESUMED, "state"], env=environment(tmp_path / "journal"), cwd=tmp_path, check=True, timeout=60)
    uid = run_with(one, 250)
    assert uid
    page = opened(browser, one, f"/runs/{uid}")
    page.wait_for_selector("#curves .marks:has-text('step 100: attempt 2 goes on from here with 1 rank; ')")
    assert "last 1 at step 199" in page.inner_text(f"{LOSS} figcaption")
    assert "replaced by a later attempt" in page.inner_text(f"{LOSS} .keys"), "the replaced part is named"
    assert page.locator(f"{LOSS} .keys > span").count() == 2, "one line, and what was replaced"
    page.focus(f"{LOSS} .plot")
    page.keyboard.press("End")
    assert page.inner_text(f"{LOSS} .read").startswith("step 199:")
    before, after = (ink(page, "loss", step) for step in (50, 170))
    assert min(before) < min(after), "2, then 1"
    page.context.close()


def test_u18_a_reload_and_new_values_keep_zoom_and_place(going, browser):
    one, uid = going
    page = opened(browser, one, f"/runs/{uid}?from=5&to=45")
    page.evaluate("window.scrollTo(0, 240)")
    before = shown(page)
    assert before == (5, 44)
    page.wait_for_timeout(1500)  # some seventy steps
    assert shown(page) == before and page.evaluate("window.scrollY") == 240
    page.reload()
    page.wait_for_selector(f"{LOSS} canvas")
    assert shown(page) == before
    page.click("summary:has-text('Other curves')")
    page.check(".picker label:has-text('step_seconds') input")
    page.wait_for_timeout(300)
    assert shown(page) == before, "adding a curve moves nothing"
    page.context.close()


def test_u19_a_view_of_older_steps_stays_and_says_how_many_are_new(going, browser):
    one, uid = going
    page = opened(browser, one, f"/runs/{uid}?from=5&to=45")
    page.wait_for_selector("button:has-text('new steps →')")
    first = int(page.inner_text("button:has-text('new steps →')").split()[0])
    wait_for(lambda: int(page.inner_text("button:has-text('new steps →')").split()[0]) > first, 10)
    page.click("button:has-text('new steps →')")
    page.wait_for_function("() => !location.search.includes('to=')")
    assert wait_for(lambda: shown(page)[0] > 45, 10), shown(page)
    left = shown(page)
    assert wait_for(lambda: shown(page)[1] > left[1] and shown(page)[0] == left[0], 10), "now it follows"
    page.context.close()


PROXIED = ("auth: {{proxy: {{trusted: [127.0.0.1/32], secret_file: {file}, user_header: X-Forwarded-User, "
           "groups_header: X-Forwarded-Groups, roles: {{ml-oncall: operator}}}}}}")


def test_u31_a_link_survives_the_login_of_a_proxy(server, browser, tmp_path):
    (tmp_path / "proxy").write_text("between-the-two-of-us-0123456789")
    (tmp_path / "proxy").chmod(0o600)
    one = server(CONFIG.format(journal=tmp_path / "journal").replace("http: {", f"http: {{{PROXIED.format(file=tmp_path / 'proxy')}, "))
    one.wait_for("ready")
    assert train(tmp_path, tmp_path / "journal", 400).wait(60) == 0
    proxy = OidcProxy(one.wait_for("started")["http"], "between-the-two-of-us-0123456789", "anna", "ml-oncall")
    with proxy as base:
        context = browser.new_context()
        page = context.new_page()
        page.goto(base + "/")
        page.wait_for_selector(".run-head a", timeout=20000)
        link = page.get_attribute(".run-head a", "href")
        context.close()
        page = browser.new_context().new_page()  # somebody else, who is not logged in
        page.goto(base + link + "?log=true")
        page.wait_for_selector("#where")
        assert proxy.logins[-1] == link + "?log=true" and page.url == base + link + "?log=true"
        page.goto(base + "/system")
        page.wait_for_selector("text=anna: operator")
        page.context.close()


SHORT = """
import sys, tocsin
hook = tocsin.watch(run=sys.argv[1], job=sys.argv[1])
for step in range(5):
    hook.log(loss=1.0)
    hook.step()
hook.close()
"""


def test_u36_ten_windows_of_the_page_are_live(server, browser, tmp_path):
    one = server(CONFIG.format(journal=tmp_path / "journal"))
    one.wait_for("ready")

    def short_run(name):
        subprocess.run([sys.executable, "-c", SHORT, name], env=environment(tmp_path / "journal"), check=True, timeout=60)
    context = browser.new_context()
    pages = [context.new_page() for _ in range(10)]
    streams = []
    for page in pages:
        page.on("request", lambda request: streams.append(request.url) if request.url.endswith("/stream") else None)
        page.goto(base_of(one) + "/")
    for page in pages:
        page.wait_for_selector(".live.good")
    assert len(streams) == 1, "a browser has six connections for all windows of a server"
    short_run("first")
    for page in pages:
        page.wait_for_selector(".run:has-text('first')", timeout=15000)
    pages[0].close()  # the one that held the stream: another takes over
    short_run("second")
    for page in pages[1:]:
        page.wait_for_selector(".run:has-text('second')", timeout=15000)
    assert len(streams) == 2
    context.close()
