"""Records, judges, reports: the command behind bench/detection/run."""
import argparse
import json
import os
import pathlib
import re
import subprocess
import sys

from bench.detection import judge, report, visible
from bench.detection.corpus import sets
from bench.detection.record import NOTES, job_names, jobs_of, known

ROOT = pathlib.Path(__file__).resolve().parents[2]


def _spread(names):
    """Lists for two recorders of about the same work: one per processor of a small machine."""
    count = max(1, min(int(os.environ.get("JOBS", os.cpu_count() or 1)), len(names)))
    return [names[at::count] for at in range(count)]


def _record(chosen, names):
    more = [] if chosen.faults is None else ["--faults", chosen.faults]
    running = [subprocess.Popen([sys.executable, "-m", "bench.detection.record", "--out", chosen.out, "--jobs", ",".join(part),
                                 "--seeds", str(chosen.seeds), "--healthy", str(chosen.healthy), *more]) for part in _spread(names)]
    failed = [one.wait() for one in running]
    if any(failed):
        raise SystemExit(f"recording failed: exit codes {failed}")


def _judge(chosen, names):
    path, beside = pathlib.Path(chosen.out) / "verdicts.json", pathlib.Path(chosen.out) / "signs.json"
    verdicts = json.loads(path.read_text()) if path.exists() else {}
    signs = json.loads(beside.read_text()) if beside.exists() else {}
    for name in names:
        folder = pathlib.Path(chosen.out) / name
        if (folder / NOTES).exists():
            verdicts[name] = judge.judge(folder)
            path.write_text(json.dumps(verdicts))
            signs[name] = judge.signs(folder)
            beside.write_text(json.dumps(signs))
            print(f"{name}: {len(verdicts[name])} runs judged", file=sys.stderr, flush=True)


def _page(page, tables):
    """Puts each table between its marks, where the page has them."""
    text = page.read_text()
    for name, body in tables.items():
        begin, end = f"<!-- table:begin {name} -->", "<!-- table:end -->"
        text = re.sub(re.escape(begin) + ".*?" + re.escape(end), lambda _: f"{begin}\n\n{body}\n\n{end}", text, flags=re.S)
    page.write_text(text)


def _report(chosen):
    verdicts = json.loads((pathlib.Path(chosen.out) / "verdicts.json").read_text())
    runs = [run for run in report.load(chosen.out, verdicts) if run.job in chosen.jobs]
    default = judge.default_group()
    signs = json.loads((pathlib.Path(chosen.out) / "signs.json").read_text())
    tables = {"summary": report.summary(runs, default), "jobs": report.per_job(runs, default),
              "faults": report.per_fault(runs, default), "rules": report.per_rule(runs),
              "signs": report.first_signs(runs, {uid: counts for job in signs.values() for uid, counts in job.items()})}
    for name, body in tables.items():
        print(f"\n== {name}\n{body}")
    if chosen.page:
        _page(chosen.page, tables)


def _visible(chosen):
    verdicts = json.loads((pathlib.Path(chosen.out) / "verdicts.json").read_text())
    runs = [run for run in report.load(chosen.out, verdicts) if run.job in chosen.jobs]
    body, (alarmed, whole) = visible.visible(pathlib.Path(chosen.out), runs, judge.default_group())
    body += f"\n\nOf {whole} healthy runs the statistics of {alarmed} leave those of the others by as much in their first {visible.WINDOW} saved steps."
    print(body)
    if chosen.page:
        _page(chosen.page, {"visible": body})


def main():
    parser = argparse.ArgumentParser(prog="bench/detection/run", description=__doc__)
    parser.add_argument("step", nargs="?", default="all", choices=("record", "judge", "report", "visible", "all"))
    parser.add_argument("--out", default=str(ROOT / "build" / "detection"), help="folder of the recorded runs; what is there is kept")
    parser.add_argument("--seeds", type=int, default=5, help="faulty runs per fault and job")
    parser.add_argument("--healthy", type=int, default=20, help="healthy runs per job")
    parser.add_argument("--jobs", default="", help="names, with commas; all by default")
    parser.add_argument("--set", choices=tuple(sets.SETS), help="the jobs of one set, in place of --jobs")
    parser.add_argument("--faults", help="names, with commas; all by default")
    parser.add_argument("--page", type=pathlib.Path, metavar="FILE",
                        help="write the tables between the marks of this page: a dated report in docs/reports")
    chosen = parser.parse_args()
    if chosen.set and chosen.jobs:
        parser.error("--set and --jobs exclude each other")
    chosen.jobs = jobs_of(chosen.set) if chosen.set else chosen.jobs.split(",") if chosen.jobs else job_names()
    if chosen.step in ("record", "all"):
        _record(chosen, chosen.jobs)
    if chosen.step in ("judge", "all"):
        _judge(chosen, [name for name in chosen.jobs if known(pathlib.Path(chosen.out) / name)])
    if chosen.step in ("judge", "report", "all"):
        _report(chosen)
    if chosen.step == "visible":
        _visible(chosen)


if __name__ == "__main__":
    main()
