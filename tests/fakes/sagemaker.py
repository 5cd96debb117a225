"""SageMaker's API, as far as stopping training jobs needs it.

Contract: Amazon SageMaker API reference: StopTrainingJob and DescribeTrainingJob (POST /, X-Amz-Target, application/x-amz-json-1.1, TrainingJobName of 1
to 63 characters), SigV4 for the service `sagemaker`; an empty 200 for a stop; 400 ResourceNotFound; 400 ValidationException for a job that has ended.
Stopping sends SIGTERM and allows 120 s: Stopping, then Stopped. CreationTime is in seconds since 1970, with a fraction.
"""
import json
import re
import time

from tests.fakes.aws_signature import signature_problem
from tests.fakes.far_side import FarSide, Refused


class SageMaker(FarSide):
    region = "eu-central-1"
    access_key_id = "AKIDEXAMPLE"
    secret_access_key = "canary+sagemaker/secret"

    def __init__(self, allowed=0.0):
        super().__init__()
        self.allowed = allowed
        self.jobs = {}
        self.on_end = {}
        self.effects = []

    def create(self, name, created=None):
        arn = f"arn:aws:sagemaker:{self.region}:123456789012:training-job/{name.lower()}"
        self.jobs[name] = {"arn": arn, "status": "InProgress", "created": time.time() if created is None else created, "ends": None}
        return arn

    def text_of(self, message):
        return str(message)

    @staticmethod
    def _refused(kind, message):
        return Refused(400, {"__type": kind, "message": message}, f"{kind}: {message}")

    def answer(self, method, path, query, headers, body):
        problem = signature_problem(method, path, headers, body, service="sagemaker", region=self.region, access_key_id=self.access_key_id,
                                    secret_access_key=self.secret_access_key)
        if problem:
            raise self._refused(problem.split(":")[0], problem)
        if method != "POST" or path != "/" or headers.get("content-type") != "application/x-amz-json-1.1":
            raise self._refused("SerializationException", f"{method} {path} {headers.get('content-type')}")
        asked = json.loads(body)
        if set(asked) != {"TrainingJobName"} or not re.fullmatch(r"[a-zA-Z0-9](-*[a-zA-Z0-9]){0,62}", asked["TrainingJobName"]):
            raise self._refused("ValidationException", f"{asked}")
        operation = headers.get("x-amz-target", "")
        job = self.jobs.get(asked["TrainingJobName"])
        if job is None:
            raise self._refused("ResourceNotFound", "Requested resource not found.")
        if job["ends"] and time.monotonic() >= job["ends"] and job["status"] == "Stopping":
            job["status"] = "Stopped"
            self.on_end.pop(asked["TrainingJobName"], lambda: None)()
        if operation == "SageMaker.DescribeTrainingJob":
            return 200, {"TrainingJobName": asked["TrainingJobName"], "TrainingJobArn": job["arn"], "TrainingJobStatus": job["status"],
                         "SecondaryStatus": "Training", "CreationTime": job["created"]}
        if operation != "SageMaker.StopTrainingJob":
            raise self._refused("UnknownOperationException", operation)
        if job["status"] != "InProgress":
            raise self._refused("ValidationException", f"The request was rejected because the training job is in status {job['status']}.")
        self.effects.append(("stop", asked["TrainingJobName"]))
        job["status"], job["ends"] = "Stopping", time.monotonic() + self.allowed
        return 200, ""
