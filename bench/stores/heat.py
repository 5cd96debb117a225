#!/usr/bin/env python3
"""The heat map of 1 000 tensors and 2 000 steps in a browser: frames while it is moved along and while values come, beside an empty page.

usage: PYTHONPATH=python:.:$(tools/page_tests) python3 bench/stores/heat.py. /usr/bin/chromium and PyPI's playwright are wanted. The store is
written by the program's own writers (store_fill.cc); meanwhile a step of all tensors comes each half second. Exit code 1: a target was missed.
"""
import sys
import threading
import time
import uuid

from playwright.sync_api import sync_playwright

from bench.page_bench import EMPTY, TWO_FRAMES, frames_of, p95, sweep
from bench.stores.measure import Place, line, load, missed, program
from tests.support import journal as records_of
from tocsin import wire

TENSORS, STEPS, EVERY = 1000, 2000, 0.5
MOVE = """([from, to]) => { const query = new URLSearchParams(location.search); query.set('from', from); query.set('to', to);
  history.replaceState(null, '', location.pathname + '?' + query); dispatchEvent(new PopStateEvent('popstate')); }"""


class Coming(threading.Thread):
    """Steps of the same tensors, from another client of the worker."""

    def __init__(self, journal, uid):
        super().__init__(daemon=True)
        self.journal, self.uid, self.ended, self.sent = journal, uid, False, 0
        self.rows = [{"name": at + 100, "meta": 3 << 8 | 1 << 18, "count": 4096, "sum": 1.0, "sumsq": 41.0, "m2": 40.0, "abs_sum": 409.0, "min": -1.0, "max": 1.0,
                      "negative": 2000} for at in range(TENSORS)]
        self.start()

    def run(self):
        while not self.ended:
            self.sent += 1
            step = STEPS + self.sent
            head = wire.header(uuid.UUID(self.uid), worker="worker_0", rank=0, world_size=1, incarnation=2, time=time.time_ns(), sequence=self.sent,
                               step=step, global_step=step, mode=wire.TRAIN)
            records_of.append(self.journal, ("telemetry", self.uid, wire.encode_frame(head, wire.SUMMARY, self.rows)))
            time.sleep(EVERY)


def busy(session):
    """Seconds of processor time that the page's thread has worked."""
    return next(one["value"] for one in session.send("Performance.getMetrics")["metrics"] if one["name"] == "TaskDuration")


def main():
    place = Place()
    folder, source = place.begun()
    writer = program("store_fill", folder, source, 2, 0, TENSORS * STEPS * 12, stdout=-1)
    uid = writer.communicate()[0].split()[0]
    server, base = place.serve()
    server.wait_for("ready")
    try:
        with sync_playwright() as playwright:
            browser = playwright.chromium.launch(executable_path="/usr/bin/chromium", args=["--no-sandbox"])
            page = browser.new_context(viewport={"width": 1440, "height": 900}).new_page()
            page.goto(EMPTY)
            still = p95(frames_of(page, lambda: sweep(page, {"x": 0, "y": 0, "width": 1400, "height": 800})))
            coming = Coming(place.journal, uid)
            page.goto(f"{base}/runs/{uid}/tensors")
            page.wait_for_selector(".heat canvas")
            page.wait_for_timeout(1000)
            box = page.locator(".heat canvas").first.bounding_box()
            session = page.context.new_cdp_session(page)
            session.send("Performance.enable", {"timeDomain": "threadTicks"})
            spent = busy(session)
            sweep(page, box, 2)
            line("processor time of the page for one move of the pointer", (busy(session) - spent) * 1000 / 120, "ms", None, TWO_FRAMES)
            line(f"heat map of {TENSORS} × {STEPS} under the pointer, 95th percentile", p95(frames_of(page, lambda: sweep(page, box, 2))), "ms", still, TWO_FRAMES)

            def move():
                for at in range(60):
                    page.evaluate(MOVE, [at * 5, STEPS - 300 + at * 5])
                    page.wait_for_timeout(30)

            line(f"heat map of {TENSORS} × {STEPS} moved along, 95th percentile", p95(frames_of(page, move)), "ms", still, TWO_FRAMES)
            spent = busy(session)
            move()
            line("processor time of the page for one move of the range", (busy(session) - spent) * 1000 / 60, "ms", None, TWO_FRAMES)
            coming.ended = True
            coming.join()
            print(f"{coming.sent} steps came meanwhile, load {load()}")
            browser.close()
    finally:
        server.kill()
        place.remove()
    return 1 if missed else 0


if __name__ == "__main__":
    sys.exit(main())
