"""Jobs of a namespace, and how Tocsin is told of them."""
import threading
import time

import yaml

from tests.kubernetes.custom_kinds import CUSTOM
from tests.support.control_plane import PATCH, Refused
from tests.support.program import ROOT
from tests.support.unwilling_run import PRIVATE

QUEUE = "kueue.x-k8s.io/queue-name"


def documented_environment():
    """The lines that docs/launchers.md gives for the template of a Job's pods."""
    text = (ROOT / "docs" / "launchers.md").read_text()
    begin = text.index("```yaml\nenv:\n") + len("```yaml\n")
    return yaml.safe_load(text[begin:text.index("```", begin)])["env"]


class Place:
    def __init__(self, cluster, space, folder):
        self.cluster, self.space, self.folder = cluster, space, folder
        cluster.namespace(space)
        self.token_file = folder / "token"
        self.token_file.write_text(cluster.token)
        self.rights = []

    def section(self, url=None, ca=None, more=""):
        """`platforms.kubernetes`, as people write it: the token in a file, the cluster's authority."""
        tls = f", tls: {{ca_file: {ca or self.cluster.ca}}}"
        return f"kubernetes: {{url: '{url or self.cluster.url}', token_file: {self.token_file}, {PRIVATE}{tls}{more}}}"

    def path(self, name, resource="jobs", api="batch/v1", sub=""):
        return f"/apis/{api}/namespaces/{self.space}/{resource}/{name}{sub}"

    def read(self, name, resource="jobs", api="batch/v1"):
        return self.cluster.ask("GET", self.path(name, resource, api))

    def is_gone(self, name, resource="jobs", api="batch/v1"):
        try:
            self.read(name, resource, api)
        except Refused as refused:
            return refused.code == 404
        return False

    # ---- a Job, with the real controller

    def job(self, name="bert", pods=1, queue=None):
        """Its uid."""
        container = {"name": "train", "image": "example.com/train:1", "env": documented_environment()}
        template = {"spec": {"restartPolicy": "Never", "containers": [container], "terminationGracePeriodSeconds": 60}}
        labels = {QUEUE: queue} if queue else {}
        made = self.cluster.ask("POST", f"/apis/batch/v1/namespaces/{self.space}/jobs", {
            "metadata": {"name": name, "labels": labels}, "spec": {"parallelism": pods, "completions": pods, "template": template}})
        return made["metadata"]["uid"]

    def run(self, name="bert"):
        """Its pods run on the node of the test: their names, and the environment of the first one's process, as a kubelet makes it."""
        names = self.cluster.run_pods(self.space, "node-1", f"batch.kubernetes.io/job-name={name}")
        pod = self.cluster.ask("GET", f"/api/v1/namespaces/{self.space}/pods/{names[0]}")
        environment = {}
        for one in pod["spec"]["containers"][0]["env"]:
            path = one["valueFrom"]["fieldRef"]["fieldPath"]
            if path.startswith("metadata.labels["):
                environment[one["name"]] = pod["metadata"]["labels"][path[len("metadata.labels['"):-2]]
            else:
                environment[one["name"]] = pod["metadata"][path.removeprefix("metadata.")]
        return names, environment

    def recreate(self, name="bert"):
        """Deleted, and made again under its name."""
        self.cluster.ask("DELETE", self.path(name), {"kind": "DeleteOptions", "apiVersion": "v1", "propagationPolicy": "Background"})
        while not self.is_gone(name):
            time.sleep(0.05)
        return self.job(name)

    def kubelet(self, names, ended):
        """Pods that are being deleted end: `ended()`, then they are gone."""
        def watch():
            for name in names:
                path = f"/api/v1/namespaces/{self.space}/pods/{name}"
                while "deletionTimestamp" not in self.cluster.ask("GET", path)["metadata"]:
                    time.sleep(0.1)
            ended()
            for name in names:
                self.cluster.end_pod(self.space, name)
        threading.Thread(target=watch, daemon=True).start()

    # ---- custom resources, with the test as their controller

    def custom(self, platform, name="bert", spec=None):
        """A running one: its uid, and where it is."""
        kind = CUSTOM[platform]
        at = {"resource": kind.kind.lower() + "s", "api": f"{kind.group}/{kind.version}"}
        made = self.cluster.ask("POST", self.path("", **at)[:-1], {"apiVersion": at["api"], "kind": kind.kind, "metadata": {"name": name},
                                                                  "spec": spec or {}})
        self.cluster.ask("PATCH", self.path(name, **at, sub="/status"), {"status": kind.running}, PATCH)
        return made["metadata"]["uid"], at

    def controller(self, platform, at, ended, name="bert"):
        """Once it is asked to suspend, its pods end and its status says so."""
        def watch():
            while not self.asked_to_suspend(self.read(name, **at)):
                time.sleep(0.1)
            ended()
            self.cluster.ask("PATCH", self.path(name, **at, sub="/status"), {"status": CUSTOM[platform].suspended}, PATCH)
        threading.Thread(target=watch, daemon=True).start()

    @staticmethod
    def asked_to_suspend(one):
        return one["spec"].get("suspend") or one["spec"].get("runPolicy", {}).get("suspend")

    def workload(self, job, uid, version="v1beta1"):
        """Kueue's Workload of a Job."""
        api = f"kueue.x-k8s.io/{version}"
        owner = {"apiVersion": "batch/v1", "kind": "Job", "name": job, "uid": uid, "controller": True}
        name = f"job-{job}-{uid[:5]}"
        self.cluster.ask("POST", f"/apis/{api}/namespaces/{self.space}/workloads", {
            "apiVersion": api, "kind": "Workload", "spec": {"active": True, "queueName": "gpus"},
            "metadata": {"name": name, "labels": {"kueue.x-k8s.io/job-uid": uid}, "ownerReferences": [owner]}})
        return name

    def kueue(self, workload, job):
        """Ends the job of a Workload that is not active, as its controller does: it suspends the Job."""
        def watch():
            while self.read(workload, "workloads", "kueue.x-k8s.io/v1beta1")["spec"]["active"]:
                time.sleep(0.1)
            self.cluster.ask("PATCH", self.path(job), {"spec": {"suspend": True}}, PATCH)
        threading.Thread(target=watch, daemon=True).start()

    def may(self, verbs, group="batch"):
        """From now on Tocsin may do only this with the kinds of one group."""
        role = self.rights[0]
        for rule in role["rules"]:
            if rule["apiGroups"] == [group]:
                rule["verbs"] = verbs
        self.cluster.ask("PUT", f"/apis/rbac.authorization.k8s.io/v1/namespaces/{self.space}/roles/{role['metadata']['name']}", role)
