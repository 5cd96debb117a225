"""An API server of Kubernetes, as far as stopping jobs needs it. What it says is what kube-apiserver 1.36 says (tests/kubernetes).

Contract: Kubernetes API reference, "Job v1 batch", "DeleteOptions v1", "Status v1" (reasons NotFound, Invalid, Conflict, Unauthorized,
Forbidden); RFC 6902 for patches: a `test` that does not hold answers 422 and changes nothing; API concepts: preconditions.uid answers 409;
propagationPolicy Foreground keeps the object, with a deletionTimestamp, until its pods are gone. Job: suspending deletes the active pods, which
have their grace; the condition Suspended comes at once and `active` goes to 0, pods that still end are in `terminating`. Kueue API reference,
"Workload": spec.active false evicts it; a job of a queue that is suspended by others is started again.
"""
import copy
import json
import re
import time
import uuid

from tests.fakes.far_side import FarSide, Refused

KINDS = {
    ("apis/batch/v1", "jobs"): ("Job", "spec.suspend"),
    ("apis/jobset.x-k8s.io/v1alpha2", "jobsets"): ("JobSet", "spec.suspend"),
    ("apis/kubeflow.org/v1", "pytorchjobs"): ("PyTorchJob", "spec.runPolicy.suspend"),
    ("apis/kueue.x-k8s.io/v1beta1", "workloads"): ("Workload", "spec.active"),
}
PATH = re.compile(r"/(apis/[^/]+/[^/]+)/namespaces/([a-z0-9.-]+)/([a-z]+)(?:/([a-z0-9.-]+))?")
QUEUE = "kueue.x-k8s.io/queue-name"


def status(code, reason, message, name=""):
    return Refused(code, {"kind": "Status", "apiVersion": "v1", "status": "Failure", "reason": reason, "code": code, "message": message,
                          "details": {"name": name} if name else {}}, f"{code} {reason}: {message}")


class Kubernetes(FarSide):
    token = "canary-kubernetes-token"

    def __init__(self, grace=0.0, may=("get", "list", "patch", "delete")):
        super().__init__()
        self.grace, self.may = grace, may
        self.objects = {}  # (api, namespace, resource, name) → object
        self.ends = {}     # the same → when its pods are gone
        self.pods = {}     # the same → how many
        self.on_pods_end = {}
        self.effects = []  # (verb, resource, name): what changed something

    # ---- what a test does

    def create(self, name, namespace="ml", resource="jobs", pods=1, queue=None):
        api = next(api for api, kind in KINDS if kind == resource)
        at = (api, namespace, resource, name)
        self.objects[at] = {"apiVersion": api.removeprefix("apis/"), "kind": KINDS[api, resource][0],
                            "metadata": {"name": name, "namespace": namespace, "uid": str(uuid.uuid4()), "resourceVersion": "1",
                                         "creationTimestamp": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()),
                                         "labels": {QUEUE: queue} if queue else {}},
                            "spec": {"runPolicy": {}} if resource == "pytorchjobs" else {}, "status": {"active": pods}}
        self.pods[at] = pods
        self.ends.pop(at, None)
        uid = self.objects[at]["metadata"]["uid"]
        if queue:
            workload = (*("apis/kueue.x-k8s.io/v1beta1", namespace, "workloads"), f"job-{name}-{uid[:5]}")
            self.objects[workload] = {"apiVersion": "kueue.x-k8s.io/v1beta1", "kind": "Workload",
                                      "metadata": {"name": workload[3], "namespace": namespace, "uid": str(uuid.uuid4()), "resourceVersion": "1",
                                                   "labels": {"kueue.x-k8s.io/job-uid": uid}, "ownerReferences": [{"uid": uid, "controller": True}]},
                                      "spec": {"active": True}, "status": {}}
        return uid

    def text_of(self, message):
        return json.dumps(message)

    # ---- what the server says

    def answer(self, method, path, query, headers, body):
        if headers.get("authorization") != f"Bearer {self.token}":
            raise status(401, "Unauthorized", "Unauthorized")
        found = PATH.fullmatch(path)
        if not found or (found[1], found[3]) not in KINDS:
            raise Refused(404, "404 page not found\n", f"no such path: {path}")
        at = (found[1], found[2], found[3], found[4])
        verb = {"GET": "get" if found[4] else "list", "PATCH": "patch", "DELETE": "delete"}.get(method)
        if verb is None:
            raise status(405, "MethodNotAllowed", method)
        if verb not in self.may:
            group = found[1].split("/")[1]
            raise status(403, "Forbidden", f'{found[3]}.{group} "{found[4]}" is forbidden: User "system:serviceaccount:tocsin:tocsin" cannot {verb} '
                         f'resource "{found[3]}" in API group "{group}" in the namespace "{found[2]}"', found[4])
        self._time_passes()
        if verb == "list":
            return 200, {"kind": "WorkloadList", "items": self._listed(found[1], found[2], found[3], query)}
        if at not in self.objects:
            raise status(404, "NotFound", f'{found[3]}.{found[1].split("/")[1]} "{found[4]}" not found', found[4])
        if verb == "get":
            return 200, copy.deepcopy(self.objects[at])
        if verb == "patch":
            return self._patched(at, headers, body)
        return self._deleted(at, headers, body)

    def _listed(self, api, namespace, resource, query):
        if set(query) - {"labelSelector"}:
            raise status(400, "BadRequest", f"unknown parameters {sorted(query)}")
        label, _, value = query.get("labelSelector", "").partition("=")
        return [copy.deepcopy(one) for (a, n, r, _), one in self.objects.items()
                if (a, n, r) == (api, namespace, resource) and (not label or one["metadata"].get("labels", {}).get(label) == value)]

    def _patched(self, at, headers, body):
        if headers.get("content-type") != "application/json-patch+json":
            raise status(415, "UnsupportedMediaType", headers.get("content-type", ""))
        changed = copy.deepcopy(self.objects[at])
        operations = json.loads(body)
        if not any(one.get("op") == "test" and one.get("path") == "/metadata/uid" for one in operations):
            self.refused.append((at[3], "a patch without a test of the uid"))
        for one in operations:
            self._apply(changed, one, at[3])
        member = KINDS[at[0], at[2]][1]
        self._check(changed, member, at[3])
        if changed != self.objects[at]:
            changed["metadata"]["resourceVersion"] = str(int(changed["metadata"]["resourceVersion"]) + 1)
            self.effects.append(("patch", at[2], at[3]))
        self.objects[at] = changed
        self._follow(at)
        return 200, copy.deepcopy(changed)

    @staticmethod
    def _apply(target, one, name):
        if set(one) != {"op", "path", "value"} or one["op"] not in ("test", "add", "replace"):
            raise status(400, "BadRequest", f"no operation: {one}", name)
        *way, last = [part.replace("~1", "/").replace("~0", "~") for part in one["path"].split("/")[1:]]
        for part in way:
            if not isinstance(target, dict) or part not in target:
                raise status(422, "Invalid", "the server rejected our request due to an error in our request")
            target = target[part]
        if one["op"] == "test":
            if target.get(last) != one["value"]:
                raise status(422, "Invalid", "the server rejected our request due to an error in our request")
        else:
            target[last] = one["value"]

    @staticmethod
    def _check(changed, member, name):
        value = changed
        for part in member.split("."):
            value = value.get(part) if isinstance(value, dict) else None
        if value is not None and not isinstance(value, bool):
            raise status(422, "Invalid", f"{member}: expected a boolean", name)
        if set(changed["metadata"]) - {"name", "namespace", "uid", "resourceVersion", "creationTimestamp", "labels", "ownerReferences",
                                       "deletionTimestamp", "finalizers"}:
            raise status(422, "Invalid", "unknown metadata", name)

    def _follow(self, at):
        """What controllers do with it."""
        one = self.objects[at]
        if at[2] == "workloads":
            owner = next((key for key, other in self.objects.items()
                          if other["metadata"]["uid"] == one["metadata"]["ownerReferences"][0]["uid"]), None)
            if owner and one["spec"].get("active") is False:
                self.objects[owner]["spec"]["suspend"] = True
                self._end_pods(owner)
            return
        suspended = one["spec"].get("suspend") or one["spec"].get("runPolicy", {}).get("suspend")
        if suspended and QUEUE in one["metadata"].get("labels", {}):
            one["spec"]["suspend"] = False  # Kueue owns it, and starts it again
        elif suspended:
            self._end_pods(at)

    def _end_pods(self, at):
        if at in self.ends:
            return
        self.ends[at] = time.monotonic() + self.grace
        one = self.objects[at]
        one["status"] = {"active": 0, "terminating": self.pods[at],
                         "conditions": [{"type": "Suspended", "status": "True", "reason": "JobSuspended"}]}

    def _time_passes(self):
        for at, when in list(self.ends.items()):
            if time.monotonic() < when or at not in self.objects:
                continue
            one = self.objects[at]
            one["status"]["terminating"] = 0
            if at in self.on_pods_end:
                self.on_pods_end.pop(at)()
            if "deletionTimestamp" in one["metadata"]:
                del self.objects[at]
                del self.ends[at]

    def _deleted(self, at, headers, body):
        if headers.get("content-type") != "application/json":
            raise status(415, "UnsupportedMediaType", headers.get("content-type", ""))
        options = json.loads(body)
        if set(options) - {"kind", "apiVersion", "propagationPolicy", "preconditions", "gracePeriodSeconds", "dryRun"}:
            raise status(400, "BadRequest", f"unknown options {sorted(options)}", at[3])
        wanted = options.get("preconditions", {}).get("uid")
        if wanted is None:
            self.refused.append((at[3], "a deletion without a precondition"))
        elif wanted != self.objects[at]["metadata"]["uid"]:
            raise status(409, "Conflict", f'Operation cannot be fulfilled on {at[2]} "{at[3]}": the UID in the precondition ({wanted}) does not match '
                         f"the UID in record ({self.objects[at]['metadata']['uid']}). The object might have been deleted and then recreated", at[3])
        one = self.objects[at]
        if "deletionTimestamp" not in one["metadata"]:
            one["metadata"]["deletionTimestamp"] = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())
            one["metadata"]["finalizers"] = ["foregroundDeletion"]
            self.effects.append(("delete", at[2], at[3]))
        self._end_pods(at)
        return 200, copy.deepcopy(one)

    def at(self, name, namespace="ml", resource="jobs"):
        return next(key for key in self.objects if key[1:] == (namespace, resource, name))


