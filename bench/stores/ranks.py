#!/usr/bin/env python3
"""512 ranks in a browser: until the table of ranks and the time line are painted, and frames while they are scrolled, beside an empty page and 8 ranks.

usage: PYTHONPATH=python:.:$(tools/page_tests) python3 bench/stores/ranks.py. /usr/bin/chromium and PyPI's playwright are wanted. A run of 64 nodes
with 8 ranks each comes through a journal (day_feed.cc), 300 steps of five phases. Exit code 1: a target was missed.
"""
import json
import sys
import time

from playwright.sync_api import sync_playwright

from bench.page_bench import EMPTY, TWO_FRAMES, frames_of, p95, sweep
from bench.stores.day import stored
from bench.stores.measure import Place, get, line, load, missed, program, quantile, timed

STEP, STEPS = 20, 300
SCREENS = (("ranks", "main table tbody tr"), ("timeline", "main canvas"))
SHOWN, ANSWER = 1500, 300  # ms


def written(place, nodes):
    """A server with one run, and the run's uid."""
    server, base = place.serve()
    server.wait_for("ready")
    feed = program("day_feed", place.journal, int(time.time()) - STEP * STEPS, STEP, 1, nodes, stdin=-1, stdout=-1)
    feed.communicate(f"{STEP * STEPS}\n")
    while not (found := json.loads(get(base, "/api/v1/runs"))["items"]):
        time.sleep(0.2)
    while not stored(base, found[0]["uid"], STEPS - 1):
        time.sleep(0.2)
    return server, base, found[0]["uid"]


def figures(page, base, uid):
    """By screen: milliseconds until it is shown, and the frames while it is scrolled."""
    out = {"answer": quantile([timed(base, f"/api/v1/runs/{uid}/ranks") for _ in range(20)], 0.99)}
    for screen, ready in SCREENS:
        begun = time.perf_counter()
        page.goto(f"{base}/runs/{uid}/{screen}")
        page.wait_for_selector(ready)
        out[screen] = (time.perf_counter() - begun) * 1000
        page.wait_for_timeout(500)
        out[screen + " frames"] = p95(frames_of(page, lambda: [(page.mouse.wheel(0, 500 if at < 30 else -500), page.wait_for_timeout(30)) for at in range(60)]))
    return out


def main():
    few, many = Place(), Place()
    servers = []
    try:
        with sync_playwright() as playwright:
            browser = playwright.chromium.launch(executable_path="/usr/bin/chromium", args=["--no-sandbox"])
            page = browser.new_context(viewport={"width": 1440, "height": 900}).new_page()
            page.goto(EMPTY)
            still = p95(frames_of(page, lambda: sweep(page, {"x": 0, "y": 0, "width": 1400, "height": 800})))
            both = []
            for place, nodes in ((few, 1), (many, 64)):
                server, base, uid = written(place, nodes)
                servers.append(server)
                both.append(figures(page, base, uid))
            browser.close()
    finally:
        for server in servers:
            server.kill()
        few.remove()
        many.remove()
    base, ours = both
    print(f"beside 8 ranks, load {load()}")
    line("512 ranks: the answer, 99th percentile", ours["answer"], "ms", base["answer"], ANSWER)
    for screen, _ in SCREENS:
        line(f"512 ranks: {screen} shown", ours[screen], "ms", base[screen], SHOWN)
        line(f"512 ranks: {screen} scrolled, 95th percentile of frames", ours[screen + " frames"], "ms", still, TWO_FRAMES)
    return 1 if missed else 0


if __name__ == "__main__":
    sys.exit(main())
