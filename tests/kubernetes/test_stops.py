"""Stops of runs in Kubernetes, against a real API server that enforces RBAC, TLS, tokens and the test of the uid."""
import json
import time

import pytest

from tests.kubernetes.custom_kinds import CUSTOM
from tests.support.between import Between
from tests.support.control_plane import make_authority
from tests.support.unwilling_run import config_of, issues_of, wait_until


def stop_failed(tmp_path):
    return json.dumps(wait_until(lambda: issues_of(tmp_path, "stop_failed")))


def stopped(one, process):
    one.wait_for("stop_state_changed", timeout=60, to="stopped", by="platform")
    assert process.wait(30) == -15


def test_a_job_is_suspended_and_its_pods_end(server, tmp_path, train, place):
    """With the Job controller of Kubernetes: it deletes the pods, and counts those that still end."""
    place.job(pods=2)
    names, environment = place.run()
    one = server(config_of(tmp_path, place.section()))
    one.wait_for("ready")
    process = train(environment)
    place.kubelet(names, process.terminate)
    stopped(one, process)  # whoever sees it first: the platform, or the agent that watches the process
    assert place.read("bert")["spec"]["suspend"] is True
    wait_until(lambda: not (status := place.read("bert")["status"]).get("active") and not status.get("terminating"))
    assert place.cluster.token not in json.dumps(one.events)


def test_what_a_job_says_while_its_pods_still_end_is_no_proof(server, tmp_path, train, place):
    place.job()
    names, environment = place.run()
    one = server(config_of(tmp_path, place.section()))
    one.wait_for("ready")
    process = train(environment)
    one.wait_for("platform_asked", timeout=60)
    job = wait_until(lambda: (now := place.read("bert"))["status"].get("terminating") and now)
    assert [each["status"] for each in job["status"]["conditions"] if each["type"] == "Suspended"] == ["True"]
    time.sleep(3)
    assert not [event for event in one.all("stop_state_changed") if event["to"] == "stopped"]
    for name in names:
        place.cluster.end_pod(place.space, name)
    end = one.wait_for("stop_state_changed", timeout=60, to="stopped", by="platform")
    assert end["reason"] == f"Job {place.space}/bert is suspended, no pod is left"
    assert process.poll() is None, "the platform is believed, not the process"


def test_a_job_is_deleted_with_its_pods_where_that_is_wanted(server, tmp_path, train, place):
    """In the foreground: the garbage collector takes the Job away when its pods are gone."""
    place.job()
    names, environment = place.run()
    one = server(config_of(tmp_path, place.section(more=", graceful: delete")))
    one.wait_for("ready")
    process = train(environment)
    one.wait_for("platform_asked", timeout=60)
    wait_until(lambda: place.read("bert")["metadata"].get("finalizers"))
    assert "foregroundDeletion" in place.read("bert")["metadata"]["finalizers"]
    place.kubelet(names, process.terminate)
    stopped(one, process)
    wait_until(lambda: place.is_gone("bert"))


def test_what_does_not_suspend_is_deleted_by_force(server, tmp_path, train, place):
    uid, at = place.custom("jobset")
    one = server(config_of(tmp_path, place.section(), more=", allow_force: true"))
    one.wait_for("ready")
    process = train(in_custom(place, "JobSet", uid))
    wait_until(lambda: place.is_gone("bert", **at), 60)  # no controller is there that would suspend it
    process.terminate()
    stopped(one, process)


def in_custom(place, kind, uid=None):
    out = {"TOCSIN_K8S_JOB": "bert", "TOCSIN_K8S_NAMESPACE": place.space, "TOCSIN_K8S_KIND": kind, "POD_NAME": "bert-0"}
    return {**out, "TOCSIN_K8S_JOB_UID": uid} if uid else out


@pytest.mark.parametrize("platform", CUSTOM)
def test_a_custom_kind_is_suspended(server, tmp_path, train, place, platform):
    """PyTorchJob's `runPolicy` is not there: it is made with the member `suspend`."""
    uid, at = place.custom(platform)
    if platform != "jobset":
        time.sleep(2)  # such a pod cannot know the uid: the object was made before the client opened
    one = server(config_of(tmp_path, place.section()))
    one.wait_for("ready")
    process = train(in_custom(place, CUSTOM[platform].kind, uid if platform == "jobset" else None))
    place.controller(platform, at, process.terminate)
    stopped(one, process)
    assert place.asked_to_suspend(place.read("bert", **at)) is True


@pytest.mark.parametrize("version", ["v1beta1", "v1beta2"])
def test_a_job_of_a_queue_is_stopped_by_its_workload(server, tmp_path, train, place, version):
    uid = place.job(queue="gpus")
    names, environment = place.run()
    workload = place.workload("bert", uid, version)
    one = server(config_of(tmp_path, place.section(more=f", kueue: {version}")))
    one.wait_for("ready")
    process = train(environment)
    place.kueue(workload, "bert")
    place.kubelet(names, process.terminate)
    stopped(one, process)
    assert place.read(workload, "workloads", f"kueue.x-k8s.io/{version}")["spec"]["active"] is False


# ---- another object under that name


def test_a_job_that_was_made_again_is_left_alone(server, tmp_path, train, place):
    place.job()
    _, environment = place.run()
    again = place.recreate()
    one = server(config_of(tmp_path, place.section()))
    one.wait_for("ready")
    process = train(environment)
    one.wait_for("stop_state_changed", timeout=60, to="rejected_stale", by="platform")
    assert f"Job {place.space}/bert is another object now: its uid is {again}" in stop_failed(tmp_path)
    assert "suspend" not in place.read("bert")["spec"] or place.read("bert")["spec"]["suspend"] is False
    assert process.poll() is None


def test_the_server_itself_refuses_a_patch_of_another_uid(server, tmp_path, train, place):
    """It is replaced between the reading and the request."""
    place.job()
    _, environment = place.run()
    with Between(place.cluster, {"PATCH": place.recreate}) as between:
        one = server(config_of(tmp_path, place.section(url=between.url)))
        one.wait_for("ready")
        train(environment)
        one.wait_for("stop_state_changed", timeout=60, to="rejected_stale", by="platform")
        assert between.asked("PATCH") == [422]
    assert place.read("bert")["spec"]["suspend"] is False
    assert "is another object now" in stop_failed(tmp_path)


def test_the_server_itself_refuses_a_deletion_of_another_uid(server, tmp_path, train, place):
    place.job()
    _, environment = place.run()
    with Between(place.cluster, {"DELETE": place.recreate}) as between:
        one = server(config_of(tmp_path, place.section(url=between.url, more=", graceful: delete")))
        one.wait_for("ready")
        train(environment)
        one.wait_for("stop_state_changed", timeout=60, to="rejected_stale", by="platform")
        assert between.asked("DELETE") == [409]
    assert "deletionTimestamp" not in place.read("bert")["metadata"]


def test_a_job_that_is_gone_is_over(server, tmp_path, train, place):
    place.job()
    _, environment = place.run()
    place.cluster.ask("DELETE", place.path("bert"), {"kind": "DeleteOptions", "apiVersion": "v1", "propagationPolicy": "Background"})
    wait_until(lambda: place.is_gone("bert"))
    one = server(config_of(tmp_path, place.section()))
    one.wait_for("ready")
    train(environment)
    end = one.wait_for("stop_state_changed", timeout=60, to="already_ended", by="platform")
    assert end["reason"] == f"Job {place.space}/bert is gone"


# ---- who may not


def test_without_a_right_the_sentence_of_the_server_is_told(server, tmp_path, train, place):
    place.may(["get"])
    place.job()
    _, environment = place.run()
    one = server(config_of(tmp_path, place.section()))
    one.wait_for("ready")
    train(environment)
    one.wait_for("stop_state_changed", timeout=60, to="failed", by="platform")
    told = stop_failed(tmp_path)
    assert f"Kubernetes answered 403 to the request to suspend Job {place.space}/bert" in told
    assert "system:serviceaccount:tocsin:tocsin" in told and "cannot patch resource" in told


def test_without_the_kind_the_stop_fails_at_once(server, tmp_path, train, place):
    """A kind that is not installed there is no job that is gone."""
    kind = CUSTOM["rayjob"]
    with place.cluster.without(kind.group, kind.kind):
        one = server(config_of(tmp_path, place.section()))
        one.wait_for("ready")
        process = train(in_custom(place, "RayJob"))
        one.wait_for("stop_state_changed", timeout=60, to="failed", by="platform")
        assert f"Kubernetes answered 404 to the question for RayJob {place.space}/bert: 404 page not found" in stop_failed(tmp_path)
        assert process.poll() is None


def test_a_token_is_read_again_when_it_was_rotated(server, tmp_path, train, place):
    place.token_file.write_text(place.cluster.expired(place.cluster.token))
    place.job()
    names, environment = place.run()
    one = server(config_of(tmp_path, place.section()))
    one.wait_for("ready")
    place.token_file.write_text(place.cluster.token)
    process = train(environment)
    place.kubelet(names, process.terminate)
    stopped(one, process)


def test_an_expired_token_is_told(server, tmp_path, train, place):
    place.token_file.write_text(place.cluster.expired(place.cluster.token))
    place.job()
    _, environment = place.run()
    one = server(config_of(tmp_path, place.section()))
    one.wait_for("ready")
    train(environment)
    one.wait_for("stop_state_changed", timeout=60, to="failed", by="platform")
    told = stop_failed(tmp_path)
    assert f"Kubernetes answered 401 to the question for Job {place.space}/bert: Unauthorized" in told
    assert place.token_file.read_text() not in told + json.dumps(one.events)


def test_a_server_of_another_authority_is_refused(server, tmp_path, train, place):
    place.job()
    _, environment = place.run()
    other, _ = make_authority(tmp_path, "other")
    one = server(config_of(tmp_path, place.section(ca=other)))
    one.wait_for("ready")
    train(environment)
    one.wait_for("stop_state_changed", timeout=60, to="failed", by="platform")
    assert "Kubernetes cannot be asked: SSL certificate problem" in stop_failed(tmp_path)
    assert "suspend" not in place.read("bert")["spec"] or place.read("bert")["spec"]["suspend"] is False
