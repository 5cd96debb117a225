"""Ray's dashboard, as far as stopping jobs needs it.

Contract: Ray Jobs REST API: GET /api/jobs/{submission_id} (status, start_time in ms, submission_id, runtime_env), POST …/stop →
{"stopped": bool}, false where it did not run; 404 with "Job … does not exist"; JobStatus PENDING, RUNNING, STOPPED, SUCCEEDED, FAILED. Stopping is
asynchronous: SIGTERM, after RAY_JOB_STOP_WAIT_TIME_S SIGKILL.
"""
import re
import time

from tests.fakes.far_side import FarSide, Refused

JOB = re.compile(r"/api/jobs/([^/]+)(/stop)?")


class Ray(FarSide):
    def __init__(self, wait=0.0):
        super().__init__()
        self.wait = wait
        self.jobs = {}
        self.on_end = {}
        self.effects = []

    def submit(self, submission_id, start=None):
        self.jobs[submission_id] = {"status": "RUNNING", "start_time": int((time.time() if start is None else start) * 1000), "ends": None}

    def text_of(self, message):
        return str(message)

    def answer(self, method, path, query, headers, body):
        found = JOB.fullmatch(path)
        if not found or query or method != ("POST" if found[2] else "GET"):
            raise Refused(405, "405: Method Not Allowed", f"{method} {path} {query}")
        job = self.jobs.get(found[1])
        if job is None:
            return 404, f"Job {found[1]} does not exist"
        if job["ends"] and time.monotonic() >= job["ends"] and job["status"] == "RUNNING":
            job["status"] = "STOPPED"
            self.on_end.pop(found[1], lambda: None)()
        if found[2]:
            runs = job["status"] == "RUNNING" and job["ends"] is None
            if runs:
                self.effects.append(("stop", found[1]))
                job["ends"] = time.monotonic() + self.wait
            return 200, {"stopped": runs}
        return 200, {"type": "SUBMISSION", "submission_id": found[1], "job_id": None, "status": job["status"], "entrypoint": "python train.py",
                     "start_time": job["start_time"], "end_time": None, "runtime_env": {}, "metadata": {}}
