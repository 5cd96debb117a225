#!/usr/bin/env python3
"""What the page costs in a browser, beside an empty page in the same browser: paint, frames, the list of 10 000 runs, requests, bytes.

usage: PYTHONPATH=python:.:$(tools/page_tests) python3 bench/page_bench.py. TOCSIN_BINARY names the program; /usr/bin/chromium and PyPI's playwright
are wanted. Exit code 1: a target was missed. The run is synthetic: 64 metrics, to which a step comes each 50 ms.
"""
import json
import math
import os
import pathlib
import random
import re
import subprocess
import sys
import tempfile
import time
import urllib.request

from playwright.sync_api import sync_playwright

from bench.stores.measure import cpu_seconds
from tests.e2e.test_page_many import RUNS, stored_runs
from tests.e2e.test_page_marks import belongs_here
from tests.support.hook_support import wait_for
from tests.support.program import ROOT, Server
from tests.support.written_journal import WrittenJournal

METRICS = ["loss", *(f"metric_{number:02}" for number in range(63))]
STEPS, LIVE = 2000, 0.05
RESTS = 70  # seconds: what a page asks each minute is seen
TWO_FRAMES = 34  # ms: frames of a screen with 60 of them a second take 16.7, 33.3, 50 …, give or take a tenth
THROTTLE = 4  # the processor is so many times slower while the page is painted
CONFIG = """
transport: {{journal: {journal}}}
rules: [{{use: exploding_tensor}}]
route: {{receiver: nobody}}
receivers: {{nobody: {{}}}}
http: {{listen: '127.0.0.1:0'}}
"""
EMPTY = "data:text/html,<!doctype html><title>empty</title><h1 id=headline>empty</h1>"
WATCH = """
addEventListener("DOMContentLoaded", () => {
  const look = () => { if (document.getElementById("headline")) requestAnimationFrame(() => requestAnimationFrame(() => { window.painted = performance.now(); })); else requestAnimationFrame(look); };
  look();
});
"""
FRAMES = """() => { window.frames_seen = []; let last = performance.now(); window.watching = true;
  const next = (now) => { window.frames_seen.push(now - last); last = now; if (window.watching) requestAnimationFrame(next); }; requestAnimationFrame(next); }"""
missed = []


def line(name, value, unit, baseline, target, digits=1):
    good = value <= target
    if not good:
        missed.append(name)
    ratio = f"{value / baseline:8.2f} × {baseline:.{digits}f}" if baseline else "       –"
    print(f"{name:58} {value:9.{digits}f} {unit:10} {ratio:20} ≤ {target:<8} {'pass' if good else 'miss'}", flush=True)


def written(folder):
    chance = random.Random(7)
    run = WrittenJournal(folder, names=tuple(METRICS))
    run.held = []
    run.event(0, "start", launch="k", job="bench")
    for step in range(STEPS):
        run.scalars(0, [(name, step, math.exp(-step / 700) + chance.gauss(0, 0.05)) for name in METRICS])
        run.step_end(0, step)
    run.sealed()
    return run


class Going:
    """The run goes on: its metrics come to the journal as a hook of another process would bring them."""

    def __init__(self, folder):
        self.program = subprocess.Popen([sys.executable, "-c", f"""
import time, tocsin
hook = tocsin.watch(run="going", job="going")
step = 0
while True:
    hook.log(**{{name: 1.0 / (1 + step) for name in {METRICS[:12]!r}}})
    hook.step()
    step += 1
    time.sleep({LIVE})
"""], env={**os.environ, "TOCSIN_OUT": str(folder)})

    def end(self):
        self.program.kill()
        self.program.wait()


def p95(frames):
    return sorted(frames)[int(len(frames) * 0.95)]


def painted(context, address, throttle=THROTTLE):
    """Milliseconds to the first contentful paint, and to the headline."""
    page = context.new_page()
    page.add_init_script(WATCH)
    context.new_cdp_session(page).send("Emulation.setCPUThrottlingRate", {"rate": throttle})
    page.goto(address)
    page.wait_for_function("() => window.painted")
    first = page.evaluate("performance.getEntriesByName('first-contentful-paint')[0]?.startTime ?? NaN")
    head = page.evaluate("window.painted")
    page.close()
    return first, head


def middle(values):
    return sorted(values)[len(values) // 2]


def frames_of(page, act):
    """Lengths of the frames while something is done, in milliseconds."""
    page.evaluate(FRAMES)
    act()
    page.evaluate("window.watching = false")
    return page.evaluate("window.frames_seen")[2:]


def sweep(page, box, turns=4):
    """The pointer goes over a picture and back: every chart of the screen follows it."""
    for turn in range(turns):
        for at in range(60):
            page.mouse.move(box["x"] + box["width"] * (at + 1) / 62, box["y"] + box["height"] * (0.3 + 0.1 * turn))


def pan(page, steps=60):
    """The range moves, as keys and drags move it: each picture is drawn anew."""
    for at in range(steps):
        page.evaluate("([from, to]) => { const query = new URLSearchParams(location.search); query.set('from', from); query.set('to', to); history.replaceState(null, '', location.pathname + '?' + query); dispatchEvent(new PopStateEvent('popstate')); }",
                      [at * 10, 1000 + at * 10])
        page.wait_for_timeout(30)


def rest(page, server, address):
    """A page on a run that rests, and what the program does without it."""
    wait_for(lambda: all(run["state"] != "running" for run in json.loads(server.get("/api/v1/runs")[1])["items"]), 600)
    requests = []
    page.goto(address)
    page.wait_for_selector(".live.good")
    page.wait_for_timeout(10_000)
    page.on("request", lambda request: requests.append(request.url))
    idle = cpu_seconds(server.process.pid)
    page.wait_for_timeout(RESTS * 1000)
    idle = cpu_seconds(server.process.pid) - idle
    page.close()
    time.sleep(1)
    alone = cpu_seconds(server.process.pid)
    time.sleep(RESTS)
    alone = cpu_seconds(server.process.pid) - alone
    line("of a core, for a page on a run that rests, beyond none", max(0.0, idle - alone) / RESTS * 100, "%", None, 0.2, 2)
    line("of a core, the program with nothing to do", alone / RESTS * 100, "%", None, 100, 2)
    line(f"requests in {RESTS} s of a page on a run that rests", len(requests), "", None, 0, 0)
    for url in requests[:5]:
        print("  ", re.sub(r"^.*/api", "/api", url))


def main():
    with tempfile.TemporaryDirectory() as name, sync_playwright() as playwright:
        folder = pathlib.Path(name)
        print("writing 2 000 steps of 64 metrics", flush=True)
        written(folder / "journal")
        belongs_here(folder / "journal")
        (folder / "tocsin.yaml").write_text(CONFIG.format(journal=folder / "journal"))
        server = Server(folder / "tocsin.yaml", role="up")
        base = f"http://{server.wait_for('started')['http']}"
        server.wait_for("ready")
        ask = lambda path: json.loads(server.get(path)[1])
        runs = wait_for(lambda: server.get("/api/v1/runs")[0] == 200 and ask("/api/v1/runs")["items"], 60)
        uid = runs[0]["uid"]
        assert wait_for(lambda: (ask(f"/api/v1/runs/{uid}/names?name=loss")["items"] or [{"stored": 0}])[0]["stored"] >= STEPS, 120)
        browser = playwright.chromium.launch(executable_path="/usr/bin/chromium", args=["--no-sandbox"])
        context = browser.new_context(viewport={"width": 1440, "height": 900})
        bytes_of = {}
        for file in ("app.js", "chunk.js", "app.css", "heavy.js"):
            bytes_of[file] = int(subprocess.run(["node", "-e", f"console.log(require('zlib').brotliCompressSync(require('fs').readFileSync('{ROOT}/insights/web/dist/{file}')).length)"],
                                           capture_output=True, text=True, check=True).stdout)
        line("JavaScript and CSS of all screens, Brotli", sum(bytes_of.values()) / 1000, "kB", None, 120)
        line("those of the first screens", (sum(bytes_of.values()) - bytes_of["heavy.js"]) / 1000, "kB", None, 80)
        empty = [painted(context, EMPTY) for _ in range(5)]
        ours = [painted(context, f"{base}/runs/{uid}") for _ in range(5)]
        line(f"first contentful paint, processor {THROTTLE} × slower", middle([one[0] for one in ours]), "ms", middle([one[0] for one in empty]), 400)
        line(f"headline painted, processor {THROTTLE} × slower", middle([one[1] for one in ours]), "ms", middle([one[1] for one in empty]), 1000)

        page = context.new_page()
        page.goto(EMPTY)
        still = p95(frames_of(page, lambda: sweep(page, {"x": 0, "y": 0, "width": 1400, "height": 800})))
        job = Going(folder / "journal")
        try:
            twelve = ",".join(METRICS[:12])
            page.goto(f"{base}/runs/{uid}?v={twelve}&from=0&to=1000")
            page.wait_for_selector(".chart canvas")
            page.wait_for_timeout(1000)
            page.evaluate("document.querySelector('.charts').scrollIntoView()")
            box = page.locator(".chart .u-over").nth(0).bounding_box()
            line("12 charts under the pointer, 95th percentile of frames", p95(frames_of(page, lambda: sweep(page, box))), "ms", still, TWO_FRAMES)
            line("12 charts moved along, 95th percentile of frames", p95(frames_of(page, lambda: pan(page))), "ms", still, TWO_FRAMES)
        finally:
            job.end()
        store, = folder.rglob("insights.db")
        stored_runs(store, RUNS)
        begun = time.perf_counter()
        urllib.request.urlopen(f"{base}/api/v1/runs?order=trouble&limit=50&q=old-one").read()
        bare = (time.perf_counter() - begun) * 1000
        page.goto(base + "/")
        page.wait_for_selector(".run-name a")
        took = page.evaluate("""() => new Promise((done) => {
          const box = document.querySelector("input[type=search]"); const begun = performance.now();
          const look = () => (/1 run fits/.test(document.body.textContent) ? requestAnimationFrame(() => done(performance.now() - begun)) : requestAnimationFrame(look));
          box.value = "old-one"; box.dispatchEvent(new InputEvent("input", { bubbles: true })); look(); })""")
        line(f"filter of {RUNS} runs, until the result is shown", took, "ms", bare, 100)
        page.goto(base + "/")
        page.wait_for_selector(".run-name a")
        line(f"list of {RUNS} runs scrolled, 95th percentile of frames",
             p95(frames_of(page, lambda: [(page.mouse.wheel(0, 700), page.wait_for_timeout(30)) for _ in range(80)])), "ms", still, TWO_FRAMES)
        rest(page, server, f"{base}/runs/{uid}")
        browser.close()
        server.kill()
    return 1 if missed else 0


if __name__ == "__main__":
    sys.exit(main())
