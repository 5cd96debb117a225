"""Tests against a real control plane of Kubernetes; `make test-kubernetes` has one (tools/kubernetes)."""
import os

import pytest
import yaml

from tests.e2e import conftest as e2e
from tests.kubernetes.custom_kinds import CUSTOM, WORKLOAD
from tests.kubernetes.training_jobs import Place
from tests.support import unwilling_run
from tests.support.control_plane import ControlPlane
from tests.support.program import ROOT

server, train = e2e.server, unwilling_run.train
if "TOCSIN_KUBERNETES" not in os.environ:
    collect_ignore_glob = ["test_*.py"]


@pytest.fixture(scope="session")
def cluster(tmp_path_factory):
    """A control plane with the kinds of training jobs, the service account `tocsin/tocsin`, and a node that a test plays."""
    one = ControlPlane(tmp_path_factory.mktemp("cluster"), os.environ["TOCSIN_KUBERNETES"])
    try:
        one.start()
        for kind in CUSTOM.values():
            one.define(kind.group, kind.version, kind.kind, kind.spec, kind.status)
        one.define(WORKLOAD.group, "v1beta1", WORKLOAD.kind, WORKLOAD.spec, WORKLOAD.status, more_versions=("v1beta2",))
        one.node("node-1")
        one.namespace("tocsin")
        one.token = one.account("tocsin", "tocsin")
        yield one
    finally:
        one.stop()


@pytest.fixture
def place(cluster, tmp_path):
    """A namespace of training jobs in which Tocsin may do what deploy/kubernetes/stop-jobs.yaml says, and nothing else."""
    one = Place(cluster, f"ml-{os.urandom(3).hex()}", tmp_path)
    text = (ROOT / "deploy" / "kubernetes" / "stop-jobs.yaml").read_text()
    one.rights = list(yaml.safe_load_all(text.replace("namespace: ml", f"namespace: {one.space}")))
    for right in one.rights:
        cluster.apply(right)
    return one
