"""The custom resources that Tocsin suspends: of each the part of its public contract that Tocsin reads or writes, as a structural schema.

JobSet v1alpha2 (jobset.sigs.k8s.io), Kubeflow Training Operator v1, Kubeflow Trainer v2 (v1alpha1), KubeRay v1, Kueue v1beta1 and v1beta2.
"""
import collections

BOOLEAN, TEXT, NUMBER = {"type": "boolean"}, {"type": "string"}, {"type": "integer", "format": "int32"}


def record(**members):
    return {"type": "object", "properties": members}


def items(one):
    return {"type": "array", "items": one}


CONDITIONS = items({**record(type=TEXT, status={"type": "string", "enum": ["True", "False", "Unknown"]}, reason=TEXT, message=TEXT,
                             lastTransitionTime={"type": "string", "format": "date-time"}), "required": ["type", "status"]})
COUNTS = items(record(name=TEXT, active=NUMBER, ready=NUMBER, suspended=NUMBER, succeeded=NUMBER, failed=NUMBER))

Custom = collections.namedtuple("Custom", "group version kind spec status running suspended")

SUSPENDED = [{"type": "Suspended", "status": "True", "reason": "Suspended", "message": ""}]
CUSTOM = {
    "jobset": Custom("jobset.x-k8s.io", "v1alpha2", "JobSet", record(suspend=BOOLEAN),
                     record(conditions=CONDITIONS, replicatedJobsStatus=COUNTS),
                     {"replicatedJobsStatus": [{"name": "workers", "active": 2}]},
                     {"replicatedJobsStatus": [{"name": "workers", "active": 0, "suspended": 1}], "conditions": SUSPENDED}),
    "pytorchjob": Custom("kubeflow.org", "v1", "PyTorchJob", record(runPolicy=record(suspend=BOOLEAN, cleanPodPolicy=TEXT)),
                         record(conditions=CONDITIONS, replicaStatuses={"type": "object", "additionalProperties": record(active=NUMBER)}),
                         {"replicaStatuses": {"Master": {"active": 1}, "Worker": {"active": 1}}},
                         {"replicaStatuses": {"Master": {}, "Worker": {}}, "conditions": SUSPENDED}),
    "trainjob": Custom("trainer.kubeflow.org", "v1alpha1", "TrainJob", record(suspend=BOOLEAN),
                       record(conditions=CONDITIONS, jobsStatus=COUNTS),
                       {"jobsStatus": [{"name": "node", "active": 1}]},
                       {"jobsStatus": [{"name": "node", "active": 0}], "conditions": SUSPENDED}),
    "rayjob": Custom("ray.io", "v1", "RayJob", record(suspend=BOOLEAN, entrypoint=TEXT), record(jobDeploymentStatus=TEXT, jobStatus=TEXT),
                     {"jobDeploymentStatus": "Running", "jobStatus": "RUNNING"}, {"jobDeploymentStatus": "Suspended", "jobStatus": ""}),
}
WORKLOAD = Custom("kueue.x-k8s.io", "v1beta1", "Workload", record(active=BOOLEAN, queueName=TEXT), record(conditions=CONDITIONS), {}, {})
