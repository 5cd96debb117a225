#!/usr/bin/env python3
"""A full store: how soon the program is ready on it, how soon the first screen is painted, a series of 26 points in a run of 10^8 values.

usage: PYTHONPATH=python:.:$(tools/page_tests) python3 bench/stores/opens.py [--full] [--folder FOLDER]
By itself the store has 100 runs, 256 MiB and a run of 10^7 values; with --full 1 000 runs, 8 GiB and 10^8 values, which wants 20 GB in FOLDER and
takes a quarter of an hour. It is written by the program's own writers (store_fill.cc). The baseline is the same program on a store of two runs.
Exit code 1: a target was missed.
"""
import argparse
import json
import os
import sys
import time

from playwright.sync_api import sync_playwright

from bench.stores.measure import Place, cpu_seconds, get, line, load, missed, program, quantile, resident_mib, timed

WATCH = """
addEventListener("DOMContentLoaded", () => {
  const look = () => { if (document.querySelector(".run-name a")) requestAnimationFrame(() => requestAnimationFrame(() => { window.painted = performance.now(); }));
                       else requestAnimationFrame(look); };
  look();
});
"""
READY, PAINTED, SPARSE, READS = 2.0, 1000, 50, 50


def filled(place, runs, size, values):
    """The uid of the run with so many values."""
    folder, source = place.begun()
    begun = time.perf_counter()
    writer = program("store_fill", folder, source, runs, size, values, stdout=-1)
    uid, written = writer.communicate()[0].split()
    assert writer.returncode == 0
    # As after a start: what is on the disk is not in memory.
    for file in folder.glob("*.db"):
        with open(file, "rb") as opened:
            os.fsync(opened.fileno())
            os.posix_fadvise(opened.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)
    bytes_of = sum(file.stat().st_size for file in folder.glob("*.db"))
    print(f"{runs} runs, {bytes_of / 2**30:.2f} GiB, a run of {int(written):,} values, in {time.perf_counter() - begun:.0f} s", flush=True)
    return uid


def first_screen(playwright, base):
    """Milliseconds from the request of the first screen until its rows are painted, each in a browser that has seen nothing."""
    browser = playwright.chromium.launch(executable_path="/usr/bin/chromium", args=["--no-sandbox"])
    page = browser.new_context(viewport={"width": 1440, "height": 900}).new_page()
    page.add_init_script(WATCH)
    page.goto(base + "/")
    page.wait_for_function("() => window.painted")
    took = page.evaluate("window.painted")
    browser.close()
    return took


def opened(playwright, place, uid):
    """Figures of one store by name."""
    out = {}
    begun = time.perf_counter()
    server, base = place.serve()
    try:
        server.wait_for("ready", 120)
        out["ready"] = time.perf_counter() - begun
        out["painted"] = first_screen(playwright, base)
        out["again"] = quantile([first_screen(playwright, base) for _ in range(3)], 0.5)
        out["runs"] = timed(base, "/api/v1/runs?order=trouble&limit=50")
        sparse = f"/api/v1/runs/{uid}/series?name=eval_loss"
        assert len(json.loads(get(base, sparse))["series"][0]["x0"]) == 26
        out["sparse"] = quantile([timed(base, sparse) for _ in range(READS)], 0.99)
        out["nodes"] = quantile([timed(base, "/api/v1/nodes") for _ in range(5)], 0.5)
        out["memory"] = resident_mib(server.process.pid, "VmHWM")
        out["cpu"] = cpu_seconds(server.process.pid)
    finally:
        server.kill()
    return out


def main():
    asked = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    asked.add_argument("--full", action="store_true", help="8 GiB, 1 000 runs, 10^8 values")
    asked.add_argument("--folder", help="where the store is written; its parent must be there")
    asked = asked.parse_args()
    runs, size, values = (1000, 8 * 2**30, 10**8) if asked.full else (100, 256 * 2**20, 10**7)
    with sync_playwright() as playwright:
        small, large = Place(asked.folder), Place(asked.folder)
        try:
            base = opened(playwright, small, filled(small, 2, 2**23, 10**6))
            uid = filled(large, runs, size, values)
            ours = opened(playwright, large, uid)
        finally:
            small.remove()
            large.remove()
    print(f"beside a store of two runs, load {load()}")
    line("from the start of the program until it is ready", ours["ready"], "s", base["ready"], READY, 2)
    line("first screen, its runs painted, after a start", ours["painted"], "ms", base["painted"], PAINTED)
    line("the same, asked again", ours["again"], "ms", base["again"], PAINTED)
    line("the list of 50 runs", ours["runs"], "ms", base["runs"], None)
    line(f"26 points of a run of {values:,} values, 99th percentile", ours["sparse"], "ms", base["sparse"], SPARSE)
    line("nodes", ours["nodes"], "ms", base["nodes"], None)
    line("memory at most", ours["memory"], "MiB", base["memory"], None)
    line("processor time of all this", ours["cpu"], "s", base["cpu"], None, 2)
    return 1 if missed else 0


if __name__ == "__main__":
    sys.exit(main())
