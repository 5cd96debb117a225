"""scancel and squeue, as far as stopping jobs needs them: two executables that share a state file.

Contract: scancel(1) and squeue(1) of Slurm 23.11. squeue: --noheader, --states=all, --jobs=<id>, --Format=<field:suffix,…> (each field is padded
to 20 characters before its suffix), SLURM_TIME_FORMAT=%s for times; "slurm_load_jobs error: Invalid job id specified" and exit code 1 for
a job that is purged; nothing at all for a job of another user where PrivateData=jobs. scancel: [--signal=NAME] [--full] <id>; without a signal
SIGCONT and SIGTERM, after KillWait SIGKILL; errors on stderr with exit code 1. Anything else is refused with exit code 64 and written down.
"""
import fcntl
import json
import os
import pathlib
import stat
import sys
import time

SIGNALS = {"TERM", "KILL", "USR1", "USR2", "INT", "CONT", "STOP"}
ENVIRONMENT = {"PATH", "LC_ALL", "SLURM_TIME_FORMAT", "SLURM_CONF"}
SHELL = {"PWD", "SHLVL", "_", "LC_CTYPE"}  # what interpreters add


class SlurmPrograms:
    """With `private`, squeue shows nothing. `kill_wait`: seconds until a cancelled job has ended."""

    def __init__(self, folder, kill_wait=0.0, private=False):
        self.folder = pathlib.Path(folder)
        self.folder.mkdir(parents=True, exist_ok=True)
        self.state = self.folder / "state.json"
        self.state.write_text(json.dumps({"jobs": {}, "effects": [], "refused": [], "kill_wait": kill_wait, "private": private}))
        root = pathlib.Path(__file__).resolve().parents[2]
        for name in ("scancel", "squeue"):
            path = self.folder / name
            path.write_text(f"#!{sys.executable} -IS\nimport sys\nsys.path.insert(0, {str(root)!r})\n"
                            f"from tests.fakes.slurm_programs import main\nmain({name!r}, {str(self.state)!r})\n")
            path.chmod(stat.S_IRWXU)

    def _changed(self, change):
        with open(self.state, "r+", encoding="utf-8") as file:
            return _locked(file, change)

    def start(self, job_id, restart_cnt=0, start_time=None, pid=None):
        job = {"state": "RUNNING", "restart_cnt": restart_cnt, "start_time": int(time.time()) if start_time is None else start_time,
               "ends": None, "pid": pid}
        self._changed(lambda state: state["jobs"].update({str(job_id): job}))

    def change(self, job_id, **fields):
        self._changed(lambda state: state["jobs"][str(job_id)].update(fields))

    @property
    def effects(self):
        return [tuple(one) for one in json.loads(self.state.read_text())["effects"]]

    @property
    def refused(self):
        return json.loads(self.state.read_text())["refused"]


def _locked(file, change):
    fcntl.flock(file, fcntl.LOCK_EX)
    file.seek(0)
    state = json.load(file)
    out = change(state)
    file.seek(0)
    file.truncate()
    json.dump(state, file)
    file.flush()
    return out


def _settle(state):
    """A cancelled job whose processes have had their time is over."""
    for job in state["jobs"].values():
        if job["ends"] and time.time() >= job["ends"] and job["state"] == "COMPLETING":
            job["state"] = "CANCELLED"
            if job["pid"]:
                os.kill(job["pid"], 15)
                job["pid"] = None


def squeue(arguments, state):
    options = dict(one.split("=", 1) if "=" in one else (one, True) for one in arguments)
    if set(options) != {"--noheader", "--states", "--jobs", "--Format"} or options["--states"] != "all" or not options["--jobs"].isdigit():
        return 64, "", f"squeue: unrecognized option in {arguments}"
    known = {"JobID": lambda id_, job: id_, "State": lambda _, job: job["state"], "RestartCnt": lambda _, job: str(job["restart_cnt"]),
             "StartTime": lambda _, job: str(job["start_time"]) if os.environ.get("SLURM_TIME_FORMAT") == "%s" else "2026-01-02T03:04:05"}
    fields = [one.split(":", 1) for one in options["--Format"].split(",")]
    if any(name not in known for name, *_ in fields):
        return 1, "", f"squeue: error: Invalid job format specification: {options['--Format']}"
    job = state["jobs"].get(options["--jobs"])
    if job is None:
        return 1, "", "slurm_load_jobs error: Invalid job id specified"
    if state["private"]:
        return 0, "", ""
    line = "".join(known[name](options["--jobs"], job).ljust(20)[:20] + (suffix[0] if suffix else "") for name, *suffix in fields)
    return 0, line + "\n", ""


def scancel(arguments, state):
    options = [one for one in arguments if one.startswith("-")]
    ids = [one for one in arguments if not one.startswith("-")]
    signal = next((one.split("=", 1)[1] for one in options if one.startswith("--signal=")), None)
    if len(ids) != 1 or not ids[0].isdigit() or set(options) - {f"--signal={signal}", "--full"} or (signal and signal not in SIGNALS):
        return 64, "", f"scancel: unrecognized option in {arguments}"
    job = state["jobs"].get(ids[0])
    if job is None:
        return 1, "", f"scancel: error: Kill job error on job id {ids[0]}: Invalid job id specified"
    if job["state"] != "RUNNING":
        return 1, "", f"scancel: error: Kill job error on job id {ids[0]}: Job/step already completing or completed"
    state["effects"].append([signal or "cancel", int(ids[0])])
    if signal in (None, "KILL"):
        job["state"], job["ends"] = "COMPLETING", time.time() + state["kill_wait"]
    return 0, "", ""


def main(name, path):
    arguments = sys.argv[1:]
    strange = set(os.environ) - ENVIRONMENT - SHELL
    with open(path, "r+", encoding="utf-8") as file:
        def run(state):
            _settle(state)
            if strange:
                state["refused"].append(f"{name} inherits {sorted(strange)}")
            code, out, err = {"squeue": squeue, "scancel": scancel}[name](arguments, state)
            if code == 64:
                state["refused"].append(f"{name} {arguments}")
            return code, out, err

        code, out, err = _locked(file, run)
    sys.stdout.write(out)
    sys.stderr.write(err + ("\n" if err else ""))
    sys.exit(code)
