"""Runs the fetched programs with the hook attached, has them judged, prints the table.

    bench/detection/programs/run [record|judge|table|all] [--cache DIR] [--out DIR] [--seconds 30] [--programs a,b]

A recording is a folder per program: a journal, `runs.jsonl` as the corpus has it, and `failed.json`: {version: reason} of what did not train."""
import argparse
import json
import multiprocessing
import os
import pathlib
import re
import sys
import time

from bench.detection import judge
from bench.detection.programs import child, digits, listing, tables
from bench.detection.programs.fetch import cache as usual_cache
from bench.detection.record import NOTES, known

ROOT = pathlib.Path(__file__).resolve().parents[3]
NOISE = re.compile(r"^(\s*$|[IWE]\d{4} |WARNING|\s+\^|\d+/\d+)")


def _last_words(log, cache):
    """The line that says why a program ended, without the folder that it lies in."""
    lines = [line for line in log.read_text(errors="replace").replace(f"{cache}/", "").splitlines() if not NOISE.match(line)]
    said = [line.strip() for line in lines if re.match(r"^\w*(\.\w+)*(Error|Exception|Interrupt)\b", line)]
    return (said or lines or ["it said nothing"])[-1][:160]


def _in_child(log, arguments):
    descriptor = os.open(log, os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
    os.dup2(descriptor, 1)
    os.dup2(descriptor, 2)
    child.main(arguments)


def _digits(chosen):
    return chosen.cache / "deeplocalize" / listing.read(chosen.list)["digits"]


def _train(program, version, chosen, folder):
    """(note of the run, None) or (None, why there is none)."""
    path, log, note = chosen.cache / program["repository"] / program[version], folder / f"{version}.log", folder / f"{version}.json"
    if not path.exists():
        return None, "the file is not there"
    note.unlink(missing_ok=True)
    table = _digits(chosen)
    arguments = ["--out", str(folder / "journal"), "--job", program["name"], "--title", f"{program['name']}-{version}-{time.time_ns()}",
                 "--note", str(note), "--seconds", str(chosen.seconds), *(["--digits", str(table)] if table.exists() else []), str(path)]
    # A fork has the frameworks imported already, which takes longer than most of these trainings.
    running = multiprocessing.get_context("fork").Process(target=_in_child, args=(log, arguments))
    running.start()
    running.join(60 + 20 * chosen.seconds)
    if running.is_alive():
        running.kill()
        running.join()
        return None, "it took too long"
    return (json.loads(note.read_text()), None) if note.exists() else (None, _last_words(log, chosen.cache))


def _note(program, version, told):
    return {"run": told["run"], "job": program["name"], "fault": None if version == "corrected" else program["question"], "seed": 0,
            "steps": told["steps"], "every": 10, "onset": 0, "slow": False, "tuning": False}


def record(chosen, programs):
    """Runs what has no note yet."""
    child.prepare()
    if _digits(chosen).exists():
        digits.read(str(_digits(chosen)))  # once: forks find it read
    for program in programs:
        folder = chosen.out / program["name"]
        folder.mkdir(parents=True, exist_ok=True)
        there, failed = {note["fault"] is None for note in known(folder)}, {}
        for version in listing.VERSIONS:
            if program[version] is None or (version == "corrected") in there:
                continue
            told, why = (None, program["cannot"]) if "cannot" in program else _train(program, version, chosen, folder)
            if told:
                with open(folder / NOTES, "a", encoding="utf-8") as notes:
                    notes.write(json.dumps(_note(program, version, told)) + "\n")
            else:
                failed[version] = why
            print(f"{program['name']} {version}: {told['steps'] if told else why}", flush=True)
        (folder / "failed.json").write_text(json.dumps(failed))


def judged(chosen, programs):
    """Writes what the deployed engine says of each recording."""
    verdicts = {}
    for program in programs:
        if known(chosen.out / program["name"]):
            verdicts[program["name"]] = judge.judge(chosen.out / program["name"])
    (chosen.out / "verdicts.json").write_text(json.dumps(verdicts))


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("step", nargs="?", default="all", choices=("record", "judge", "table", "all"))
    parser.add_argument("--cache", type=pathlib.Path, default=usual_cache(), help="folder of the fetched programs")
    parser.add_argument("--list", type=pathlib.Path, default=listing.FOLDER / "programs.json", help="which programs there are")
    parser.add_argument("--out", type=pathlib.Path, default=ROOT / "build" / "programs", help="folder of the recordings; what is there is kept")
    parser.add_argument("--seconds", type=float, default=30.0, help="processor time of a training")
    parser.add_argument("--programs", default="", help="names, with commas; all by default")
    chosen = parser.parse_args()
    chosen.cache, chosen.out = chosen.cache.resolve(), chosen.out.resolve()
    listed = listing.read(chosen.list)
    wrong = listing.problems(listed)
    if wrong:
        parser.error("; ".join(wrong))
    programs = [one for one in listed["programs"] if not chosen.programs or one["name"] in chosen.programs.split(",")]
    chosen.out.mkdir(parents=True, exist_ok=True)
    if chosen.step in ("record", "all"):
        record(chosen, programs)
    if chosen.step in ("judge", "all"):
        judged(chosen, programs)
    if chosen.step in ("judge", "table", "all"):
        print(tables.of(chosen.out, programs, listed["repositories"]))


if __name__ == "__main__":
    sys.exit(main())
