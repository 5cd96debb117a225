"""slurmrestd, as far as stopping jobs needs it.

Contract: Slurm REST API reference v0.0.41: GET and DELETE /slurm/v0.0.41/job/{job_id}, query `signal` and `flags`, headers
X-SLURM-USER-NAME and X-SLURM-USER-TOKEN, numbers as {"set", "infinite", "number"}, `job_state` as a list; slurm_errno.h: 2017 invalid job id,
2021 already done, 2006 access denied: in `errors` of an HTTP 200 or 500. scancel(1): SIGCONT, SIGTERM, after KillWait SIGKILL; a job that
was cancelled is CANCELLED and COMPLETING until its processes have ended.
"""
import re
import time

from tests.fakes.far_side import FarSide, Refused

JOB = re.compile(r"/slurm/v0\.0\.41/job/(\d+)")
SIGNALS = {"TERM", "KILL", "USR1", "USR2", "INT", "CONT", "STOP"}
FLAGS = {"FULL_JOB", "BATCH_JOB", "ARRAY_TASK", "HURRY", "NO_SIBLING_JOBS", "VERBOSE", "CRON_JOBS", "HETEROGENEOUS_JOB", ""}


class Slurmrestd(FarSide):
    token = "canary-slurm-token"
    user = "tocsin"

    def __init__(self, kill_wait=0.0):
        super().__init__()
        self.kill_wait = kill_wait
        self.jobs = {}     # id → {"state": [...], "restart_cnt", "start_time", "cluster", "ends"}
        self.on_end = {}
        self.effects = []  # (signal or "cancel", id)

    def start(self, job_id, cluster="c1", restart_cnt=0, start_time=None):
        self.jobs[job_id] = {"state": ["RUNNING"], "restart_cnt": restart_cnt, "cluster": cluster,
                             "start_time": int(time.time()) if start_time is None else start_time, "ends": None}

    def text_of(self, message):
        return str(message)

    @staticmethod
    def _error(number, description, http=200):
        return http, {"jobs": [], "errors": [{"error_number": number, "error": description, "description": description, "source": "fake"}],
                      "warnings": []}

    def answer(self, method, path, query, headers, body):
        if headers.get("x-slurm-user-token") != self.token or headers.get("x-slurm-user-name") != self.user:
            raise Refused(401, {"errors": []}, "authentication failure")
        found = JOB.fullmatch(path)
        if not found or method not in ("GET", "DELETE"):
            raise Refused(404, "Unable find requested URL", f"no such path: {method} {path}")
        job_id = int(found[1])
        job = self.jobs.get(job_id)
        if job is None:
            return self._error(2017, "Invalid job id specified", 500)
        if job["ends"] and time.monotonic() >= job["ends"] and "COMPLETING" in job["state"]:
            job["state"] = ["CANCELLED"]
            self.on_end.pop(job_id, lambda: None)()
        if method == "GET":
            return 200, {"jobs": [{"job_id": job_id, "job_state": job["state"], "cluster": job["cluster"], "restart_cnt": job["restart_cnt"],
                                   "user_name": "ada", "start_time": {"set": True, "infinite": False, "number": job["start_time"]}}],
                         "errors": [], "warnings": []}
        if set(query) - {"signal", "flags"} or query.get("flags", "") not in FLAGS or ("signal" in query and query["signal"] not in SIGNALS):
            raise Refused(400, {"errors": []}, f"bad query {query}")
        if job["state"] != ["RUNNING"]:
            return self._error(2021, "Job/step already completing or completed")
        self.effects.append((query.get("signal", "cancel"), job_id))
        if query.get("signal", "KILL") == "KILL":
            job["state"] = ["CANCELLED", "COMPLETING"]
            job["ends"] = time.monotonic() + self.kill_wait
        return 200, {"errors": [], "warnings": []}
