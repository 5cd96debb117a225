#!/usr/bin/env python3
"""From a value logged in a training script until it is on the screen, beside the time until the API has the same value.

usage: PYTHONPATH=python:.:$(tools/page_tests) python3 bench/stores/shown.py. /usr/bin/chromium and PyPI's playwright are wanted. A script with
the hook logs a loss at irregular times; a browser shows the run. A value counts as shown at the first frame in which its step, or a later one,
is named under the chart and the chart has been drawn since. The API is asked each 20 ms meanwhile. Exit code 1: a target was missed.
"""
import http.client
import json
import os
import random
import subprocess
import sys
import threading
import time
import urllib.parse

from playwright.sync_api import sync_playwright

from bench.stores.measure import Place, line, load, missed, quantile
from tests.support.hook_support import wait_for

VALUES, FIRST = 260, 20  # the first ones are not counted: the page is being opened
MEAN, LEAST, MOST = 0.25, 0.01, 2.0  # seconds between values
ASKED_EVERY = 0.02
SCRIPT = """
import json, sys, time, tocsin
waits = json.loads(sys.stdin.readline())
hook = tocsin.watch(run="shown", job="shown")
def value(step):
    at = time.time_ns()
    hook.log(loss=3.0 / (1 + step / 50))
    hook.step()
    print(step, at, flush=True)
for step in range(FIRST):
    value(step)
sys.stdin.readline()
for step, wait in enumerate(waits, FIRST):
    time.sleep(wait)
    value(step)
sys.stdin.readline()
hook.close()
"""
# Each line that a canvas of the chart strokes is noted; the frame after it is on the screen.
WATCH = """
const stroke = CanvasRenderingContext2D.prototype.stroke;
let drawn = -1, named = -1, since = 0;
window.shown = [];
CanvasRenderingContext2D.prototype.stroke = function (...given) {
  if (this.canvas.closest?.(".chart[data-name=loss]")) drawn = performance.now();
  return stroke.apply(this, given);
};
const read = () => {
  const text = document.querySelector(".chart[data-name=loss] figcaption")?.textContent ?? "";
  const step = Number(/last [^;]* at step (\\d+)/.exec(text)?.[1] ?? -1);
  if (step > named) { named = step; since = performance.now(); }
};
new MutationObserver(read).observe(document, { subtree: true, childList: true, characterData: true });
// The caption is written first, then the chart is drawn.
let told = -1;
const look = () => {
  if (named > told && drawn >= since) { const step = told = named; requestAnimationFrame(() => window.shown.push([step, performance.now()])); }
  requestAnimationFrame(look);
};
requestAnimationFrame(look);
"""


class Asked(threading.Thread):
    """The last step that the API has, asked again and again over one connection."""

    def __init__(self, base, uid):
        super().__init__(daemon=True)
        self.where, self.path, self.ended, self.seen = urllib.parse.urlsplit(base).netloc, f"/api/v1/runs/{uid}/names?name=loss", False, []
        self.start()

    def run(self):
        connection = http.client.HTTPConnection(self.where, timeout=30)
        while not self.ended:
            connection.request("GET", self.path)
            items = json.loads(connection.getresponse().read())["items"]
            step = items[0]["last_step"] if items else -1
            if not self.seen or step > self.seen[-1][0]:
                self.seen.append((step, time.time_ns()))
            time.sleep(ASKED_EVERY)


def page_clock(page):
    """Nanoseconds of the wall clock at 0 of the page's clock: of many exchanges the shortest is the most exact."""
    best = None
    for _ in range(50):
        before = time.time_ns()
        there = page.evaluate("performance.now()")
        after = time.time_ns()
        if best is None or after - before < best[0]:
            best = after - before, (before + after) / 2 - there * 1e6
    return best[1]


def waits_of(logged, seen):
    """Milliseconds from each value until its step or a later one was seen."""
    out, at = [], 0
    for step, begun in logged:
        while at < len(seen) and seen[at][0] < step:
            at += 1
        if at == len(seen):
            raise SystemExit(f"step {step} was never seen")
        out.append((seen[at][1] - begun) / 1e6)
    return out


def measured(server, base, place):
    chance = random.Random(11)
    waits = [min(MOST, max(LEAST, chance.expovariate(1 / MEAN))) for _ in range(VALUES - FIRST)]
    script = SCRIPT.replace("FIRST", str(FIRST))
    job = subprocess.Popen([sys.executable, "-c", script], env={**os.environ, "TOCSIN_OUT": str(place.journal)}, stdin=subprocess.PIPE,
                           stdout=subprocess.PIPE, text=True)
    try:
        tell = lambda text: (job.stdin.write(text + "\n"), job.stdin.flush())
        tell(json.dumps(waits))
        runs = wait_for(lambda: server.get("/api/v1/runs")[0] == 200 and json.loads(server.get("/api/v1/runs")[1])["items"], 60)
        uid = runs[0]["uid"]
        with sync_playwright() as playwright:
            browser = playwright.chromium.launch(executable_path="/usr/bin/chromium", args=["--no-sandbox"])
            page = browser.new_context(viewport={"width": 1440, "height": 900}).new_page()
            page.add_init_script(WATCH)
            page.goto(f"{base}/runs/{uid}")
            page.wait_for_selector(".live.good")
            page.wait_for_function(f"() => window.shown.length && window.shown[window.shown.length - 1][0] >= {FIRST - 1}")
            page.evaluate("document.querySelector('.chart[data-name=loss]').scrollIntoView()")
            zero = page_clock(page)
            asked = Asked(base, uid)
            tell("")
            logged = [[int(word) for word in job.stdout.readline().split()] for _ in range(VALUES)][FIRST:]
            page.wait_for_function(f"() => window.shown.some(([step]) => step >= {VALUES - 1})", timeout=10_000)
            assert wait_for(lambda: asked.seen[-1][0] >= VALUES - 1, 10)
            asked.ended = True
            drift = abs(page_clock(page) - zero) / 1e6
            shown = [(step, zero + at * 1e6) for step, at in page.evaluate("window.shown")]
            browser.close()
    finally:
        job.kill()
        job.wait()
    return waits_of(logged, shown), waits_of(logged, asked.seen), drift


def main():
    place = Place()
    place.journal.mkdir(parents=True, exist_ok=True)
    server, base = place.serve()
    server.wait_for("ready")
    try:
        shown, had, drift = measured(server, base, place)
    finally:
        server.kill()
        place.remove()
    print(f"{len(shown)} values, {MEAN} s apart in the mean; the clocks went {drift:.1f} ms apart meanwhile; load {load()}")
    line("value logged, until it is on the screen, p50", quantile(shown, 0.5), "ms", quantile(had, 0.5), 600)
    line("value logged, until it is on the screen, p99", quantile(shown, 0.99), "ms", quantile(had, 0.99), 1000)
    return 1 if missed else 0


if __name__ == "__main__":
    sys.exit(main())
