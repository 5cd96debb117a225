"""Compare with the completed runs of the same job: the band beside NumPy's percentiles of the frames, and where a run leaves it."""
import json
import time

import numpy
import pytest

from tests.e2e.test_curves import asked, refused
from tests.e2e.test_fleet import CONFIG
from tests.support import axe, journal
from tests.support.hook_support import wait_for
from tests.support.program import ROOT, Server
from tocsin import wire

STEPS, LEFT = 300, 120
# name: (job, outcome, label lr, steps)
RUNS = {**{f"s{at}": ("ladder", "completed", "0.1", STEPS) for at in range(5)}, "short": ("ladder", "completed", "0.2", 150), "failed": ("ladder", "failed", "0.1", STEPS),
        "other": ("another", "completed", "0.1", STEPS), "late": ("ladder", "completed", "0.5", STEPS), "open": ("ladder", None, "0.1", STEPS),
        "one": ("pair", "completed", "1", 50), "two": ("pair", "completed", "2", 50), "three": ("pair", "completed", "3", 50), **{f"z{at}": ("", "completed", "0.1", 50) for at in range(4)}}


def uid_of(name):
    return str(wire.run_uid("baseline", name))


def values_of(name):
    chance = numpy.random.default_rng(sorted(RUNS).index(name))
    values = 2 / (1 + numpy.arange(RUNS[name][3]) / 40) + chance.normal(0, 0.02, RUNS[name][3])
    if name == "late":
        values = 2 / (1 + numpy.arange(STEPS) / 40)  # within, then far above; a moment outside before does not count
        values[[30, 31]] += 1
        values[LEFT:] += 0.5
        values[200] = numpy.nan
    return values


def of_run(name):
    job, outcome, rate, _ = RUNS[name]
    uid, sequence = wire.run_uid("baseline", name), 0

    def head(step):
        nonlocal sequence
        sequence += 1
        return wire.header(uid, world_size=1, incarnation=7, step=step, global_step=step, time=time.time_ns(), sequence=sequence)
    frames = [wire.encode_dictionary(head(0), [{"type": 4, "name": "worker_0"}, {"type": 2, "dtype": 2, "role": wire.ROLES["loss"], "name": "loss"}]),
              wire.encode_lifecycle(head(0), {"event": "start", "job": job, "launch": name, "node": "n1", "labels": {"lr": rate, "team": "x"}, "worker": "worker_0"}),
              wire.encode_frame(head(len(values_of(name)) - 1), wire.SCALAR, [
                  {"name": wire.xxh64("loss"), "step": step, "global_step": step, "time": time.time_ns(), "value": value, "meta": 5 << 8} for step, value in enumerate(values_of(name))])]
    if outcome:
        frames.append(wire.encode_lifecycle(head(len(values_of(name)) - 1), {"event": "end", "outcome": outcome, "exit_code": 0 if outcome == "completed" else 1}))
    return [("telemetry", wire.route_key(uid), frame) for frame in frames]


@pytest.fixture(scope="module")
def ladder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("baseline")
    (folder / "tocsin.yaml").write_text(CONFIG.format(journal=folder / "journal"))
    one = Server(folder / "tocsin.yaml", role="up")
    one.wait_for("ready")
    journal.append(folder / "journal", *(record for name in RUNS for record in of_run(name)))

    def complete():
        status, text = one.get("/api/v1/runs?state=ended")
        runs = json.loads(text)["items"] if status == 200 else []
        if len(runs) != len(RUNS) - 1:
            return None
        names = [asked(one, f"/api/v1/runs/{uid_of(name)}/names", name="loss")["items"] for name in RUNS]
        return all(items and items[0]["stored"] == RUNS[name][3] for name, items in zip(RUNS, names))
    assert wait_for(complete, 40)
    yield one
    one.kill()


def test_runs_without_a_job_are_no_siblings(ladder):
    alone = compared(ladder, "z0")
    assert alone["job"] == "" and alone["siblings"] == [] and alone["band"] is None


def compared(one, *names, **query):
    return asked(one, "/api/v1/compare", runs=",".join(uid_of(name) for name in names), name="loss", baseline="job", **query)


@pytest.mark.parametrize("points", [2000, 60])
def test_the_band_is_numpys_percentiles_of_completed_runs_of_the_job(ladder, points):
    answer = compared(ladder, "late", "open", points=points)
    siblings = [f"s{at}" for at in range(5)] + ["short"]
    assert set(answer["siblings"]) == {uid_of(name) for name in siblings} and answer["width"] == (1 if points == 2000 else 8)
    width, band = answer["width"], answer["band"]
    assert band["x0"] == list(range(0, STEPS, width))
    for at, x0 in enumerate(band["x0"]):
        means = [values_of(name)[x0:x0 + width].mean() for name in siblings if x0 < RUNS[name][3]]
        assert band["siblings"][at] == len(means)
        for percent in (5, 50, 95):
            assert band[f"p{percent}"][at] == pytest.approx(numpy.percentile(means, percent), rel=1e-9), (x0, percent)


@pytest.mark.parametrize("in_a_row", [1, 2, 10])
def test_a_run_leaves_the_band_where_so_many_points_in_a_row_are_outside(ladder, in_a_row):
    answer = compared(ladder, "late", "failed", "open", points=2000, in_a_row=in_a_row)
    band = answer["band"]
    for name, row in zip(("late", "failed", "open"), answer["runs"]):
        values = values_of(name)
        inside = [bool(low <= values[x] <= high) for x, low, high in zip(band["x0"], band["p5"], band["p95"])]  # NaN is not
        first = next((x for x in range(STEPS - in_a_row + 1) if not any(inside[x:x + in_a_row])), None)
        assert row["leaves_at"] == first, name
    if in_a_row == 10:
        assert LEFT - 9 <= answer["runs"][0]["leaves_at"] <= LEFT


def test_fewer_than_three_siblings_make_no_band_and_labels_differ(ladder):
    answer = compared(ladder, "one")
    assert answer["band"] is None and len(answer["siblings"]) == 2 and answer["runs"][0]["leaves_at"] is None
    (row,) = compared(ladder, "late", "open")["differences"]
    assert row == {"label": "lr", "values": ["0.5", "0.1"], "siblings": [{"value": "0.1", "runs": 5}, {"value": "0.2", "runs": 1}]}
    for query, field in (({"name": "loss"}, "runs"), ({"runs": uid_of("one")}, "name"), ({"runs": uid_of("one"), "name": "loss", "baseline": "jobb"}, "baseline")):
        status, said = refused(ladder, "/api/v1/compare", **query)
        assert status == 400 and said["field"] == field, said
    assert refused(ladder, "/api/v1/compare", runs="abcdef12", name="loss")[0] == 404


def test_the_page_draws_the_band_and_says_where_the_run_leaves_it(ladder, browser):
    base = f"http://{ladder.wait_for('started')['http']}"
    left = compared(ladder, "late")["runs"][0]["leaves_at"]
    shots = ROOT / "build" / "screens"
    shots.mkdir(parents=True, exist_ok=True)
    for width, theme in ((1440, "light"), (390, "dark")):
        context = browser.new_context(viewport={"width": width, "height": 900}, color_scheme=theme)
        axe.bring(context)
        page = context.new_page()
        page.goto(f"{base}/compare?runs={uid_of('late')},{uid_of('open')}")
        page.wait_for_selector(".chart canvas")
        assert page.locator(".keys > span").count() == 2
        page.click("text=Baseline of the job")
        page.wait_for_selector("#baseline")
        assert "baseline=job" in page.url and page.locator(".keys > span").count() == 3
        said = page.inner_text("#baseline")
        assert f"leaves the band at step {left}" in said and "6 completed runs of ladder" in said and "0.1 (5), 0.2 (1)" in said
        page.screenshot(path=shots / f"baseline-{width}-{theme}.png", full_page=True)
        assert page.evaluate("document.documentElement.scrollWidth") <= width
        assert axe.faults(page, "baseline") == {}
        context.close()
