"""Runs that do not answer are ended by the platform that runs them: by the leader, once, and never another one."""
import json
import os
import time

from tests.fakes.kubernetes import Kubernetes
from tests.fakes.ray import Ray
from tests.fakes.sagemaker import SageMaker
from tests.fakes.slurm_programs import SlurmPrograms
from tests.fakes.slurmrestd import Slurmrestd
from tests.support import unwilling_run
from tests.support.on_call import changes
from tests.support.program import run_cli
from tests.support.unwilling_run import PRIVATE, config_of, in_job, issues_of, wait_until

train = unwilling_run.train


def kubernetes_section(fake):
    return f"kubernetes: {{url: '{fake.url}', token: {fake.token}, {PRIVATE}}}"


def patches(fake):
    return [one for one in fake.requests if one["method"] == "PATCH"]


def test_a_run_that_does_not_answer_is_stopped_by_kubernetes(server, tmp_path, train):
    with Kubernetes(grace=1.0) as fake:
        uid = fake.create("bert")
        one = server(config_of(tmp_path, kubernetes_section(fake)))
        one.wait_for("ready")
        process = train(in_job(uid))
        fake.on_pods_end[fake.at("bert")] = process.terminate
        one.wait_for("stop_state_changed", to="platform_graceful", by="platform")
        stopped = one.wait_for("stop_state_changed", to="stopped", by="platform")
        # Whoever sees it first: the platform, or the agent that watches the process.
        assert "Job ml/bert is suspended, no pod is left" in stopped["reason"] or stopped["reason"] == "job lost"
        assert process.wait(30) == -15
        assert fake.effects == [("patch", "jobs", "bert")] and fake.refused == []
        assert not one.all("process_signalled"), "the node's agent leaves it to the platform"
        log = json.dumps(one.events)
        assert fake.token not in log


def test_kill_9_leads_to_one_stop(server, tmp_path, train):
    """Between the command and the call, and again between the call and the end."""
    with Kubernetes(grace=6.0) as fake:
        uid = fake.create("bert")
        config = config_of(tmp_path, kubernetes_section(fake), ack="3s")
        first = server(config)
        first.wait_for("ready")
        process = train(in_job(uid))
        fake.on_pods_end[fake.at("bert")] = process.terminate
        first.wait_for("stop_asked")
        first.kill()
        assert patches(fake) == []
        time.sleep(3)  # the deadline passes while nobody is there
        second = server(config)
        second.wait_for("platform_asked")
        second.kill()
        assert len(patches(fake)) == 1
        third = server(config)
        third.wait_for("stop_state_changed", to="stopped", by="platform")
        assert process.wait(30) == -15
        assert len(patches(fake)) == 1 and fake.effects == [("patch", "jobs", "bert")]


def test_another_job_of_that_name_is_left_alone(server, tmp_path, train):
    with Kubernetes() as fake:
        uid = fake.create("bert")
        one = server(config_of(tmp_path, kubernetes_section(fake), ack="2s"))
        one.wait_for("ready")
        process = train(in_job(uid))
        one.wait_for("stop_asked")
        fake.create("bert")  # deleted, and made again
        stale = one.wait_for("stop_state_changed", to="rejected_stale", by="platform")
        assert "is another object now" in stale["reason"]
        assert fake.effects == [] and patches(fake) == []
        assert process.poll() is None
        end = time.monotonic() + 10
        while not (found := issues_of(tmp_path, "stop_failed")) and time.monotonic() < end:
            time.sleep(0.2)
        assert found and "is another object now" in json.dumps(found)


def test_a_job_that_is_replaced_between_reading_and_asking_is_left_alone(server, tmp_path, train):
    """The server's own test of the uid: nothing that we could do would be in time."""
    class Racing(Kubernetes):
        def _patched(self, at, headers, body):
            if not self.effects and at in self.objects:
                self.create("bert")
            return super()._patched(at, headers, body)

    with Racing() as fake:
        uid = fake.create("bert")
        one = server(config_of(tmp_path, kubernetes_section(fake)))
        one.wait_for("ready")
        train(in_job(uid))
        one.wait_for("stop_state_changed", to="rejected_stale", by="platform")
        assert len(patches(fake)) == 1 and patches(fake)[0]["status"] == 422 and fake.effects == []


def test_who_may_not_ask_says_so(server, tmp_path, train):
    with Kubernetes(may=("get",)) as fake:
        uid = fake.create("bert")
        one = server(config_of(tmp_path, kubernetes_section(fake)))
        one.wait_for("ready")
        train(in_job(uid))
        failed = one.wait_for("stop_state_changed", to="failed", by="platform")
        assert "403" in failed["reason"] and "cannot patch" in failed["reason"]


def test_a_job_of_a_queue_is_stopped_by_its_workload(server, tmp_path, train):
    with Kubernetes() as fake:
        uid = fake.create("bert", queue="gpus")
        one = server(config_of(tmp_path, kubernetes_section(fake)))
        one.wait_for("ready")
        process = train(in_job(uid))
        fake.on_pods_end[fake.at("bert")] = process.terminate
        one.wait_for("stop_state_changed", to="stopped", by="platform")
        assert process.wait(30) == -15
        assert [effect[1] for effect in fake.effects] == ["workloads"]


def test_a_run_that_answers_is_not_touched(server, tmp_path, train):
    with Kubernetes() as fake:
        uid = fake.create("bert")
        one = server(config_of(tmp_path, kubernetes_section(fake), ack="3s"))
        one.wait_for("ready")
        assert train(in_job(uid), asks=True).wait(30) == 77
        one.wait_for("stop_state_changed", to="stopped", by="platform")
        assert fake.requests == []


def test_on_kafka(server, tmp_path, train, kafka):
    with Kubernetes(grace=1.0) as fake:
        uid = fake.create("bert")
        config = tmp_path / "kafka.yaml"
        text = config_of(tmp_path, kubernetes_section(fake)).replace(
            f"transport: {{journal: {tmp_path / 'journal'}}}", f"transport: {{kafka: {{bootstrap.servers: '{kafka}'}}}}\ntopics: {{prefix: ends{os.getpid()}}}")
        config.write_text(text)
        first = server(config)
        first.wait_for("ready", timeout=60)
        process = train({**in_job(uid), "TOCSIN_CONFIG": str(config), "TOCSIN_OUT": ""})
        fake.on_pods_end[fake.at("bert")] = process.terminate
        first.wait_for("platform_asked", timeout=60)
        first.kill()
        second = server(config)
        second.wait_for("stop_state_changed", timeout=90, to="stopped", by="platform")
        assert process.wait(30) == -15
        assert fake.effects == [("patch", "jobs", "bert")] and len(patches(fake)) == 1


def test_slurm(server, tmp_path, train):
    with Slurmrestd(kill_wait=1.0) as fake:
        fake.start(77)
        section = f"slurm: {{url: '{fake.url}', token: {fake.token}, user: {fake.user}, {PRIVATE}}}"
        one = server(config_of(tmp_path, section))
        one.wait_for("ready")
        process = train({"SLURM_JOB_ID": "77", "SLURM_CLUSTER_NAME": "c1", "SLURM_JOB_START_TIME": str(fake.jobs[77]["start_time"])})
        fake.on_end[77] = process.terminate
        one.wait_for("stop_state_changed", to="stopped", by="platform")
        assert process.wait(30) == -15
        assert fake.effects == [("cancel", 77)] and fake.refused == []


def test_slurm_does_not_cancel_a_requeued_job(server, tmp_path, train):
    with Slurmrestd() as fake:
        fake.start(77)
        section = f"slurm: {{url: '{fake.url}', token: {fake.token}, user: {fake.user}, {PRIVATE}}}"
        one = server(config_of(tmp_path, section, ack="2s"))
        one.wait_for("ready")
        train({"SLURM_JOB_ID": "77", "SLURM_CLUSTER_NAME": "c1", "SLURM_JOB_START_TIME": str(fake.jobs[77]["start_time"])})
        one.wait_for("stop_asked")
        fake.jobs[77]["restart_cnt"] = 1
        one.wait_for("stop_state_changed", to="rejected_stale", by="platform")
        assert fake.effects == []


def scancel_section(fake, more=""):
    return f"scancel: {{scancel: {fake.folder}/scancel, squeue: {fake.folder}/squeue{more}}}"


def test_scancel(server, tmp_path, train):
    fake = SlurmPrograms(tmp_path / "slurm", kill_wait=1.0)
    began = int(time.time())
    one = server(config_of(tmp_path, scancel_section(fake)))
    one.wait_for("ready")
    process = train({"SLURM_JOB_ID": "77", "SLURM_CLUSTER_NAME": "c1", "SLURM_JOB_START_TIME": str(began)})
    fake.start(77, start_time=began, pid=process.pid)
    one.wait_for("stop_state_changed", to="stopped", by="platform")
    assert process.wait(30) == -15, "the proof is a state that was read, not the answer of scancel"
    assert fake.effects == [("cancel", 77)] and fake.refused == []


def test_scancel_leaves_a_requeued_job_alone(server, tmp_path, train):
    fake = SlurmPrograms(tmp_path / "slurm")
    began = int(time.time())
    fake.start(77, start_time=began, restart_cnt=1)
    one = server(config_of(tmp_path, scancel_section(fake)))
    one.wait_for("ready")
    train({"SLURM_JOB_ID": "77", "SLURM_CLUSTER_NAME": "c1", "SLURM_JOB_START_TIME": str(began)})
    one.wait_for("stop_state_changed", to="rejected_stale", by="platform")
    assert fake.effects == [] and fake.refused == []


def test_scancel_of_a_user_who_may_not_see_the_job_is_no_stop(server, tmp_path, train):
    fake = SlurmPrograms(tmp_path / "slurm", private=True)
    began = int(time.time())
    fake.start(77, start_time=began)
    one = server(config_of(tmp_path, scancel_section(fake)))
    one.wait_for("ready")
    train({"SLURM_JOB_ID": "77", "SLURM_CLUSTER_NAME": "c1", "SLURM_JOB_START_TIME": str(began)})
    one.wait_for("stop_state_changed", to="failed", by="platform")
    assert fake.effects == [] and fake.refused == []


def test_ray(server, tmp_path, train):
    with Ray(wait=1.0) as fake:
        fake.submit("raysubmit_a1")
        one = server(config_of(tmp_path, f"ray: {{url: '{fake.url}', {PRIVATE}}}"))
        one.wait_for("ready")
        process = train({"RAY_JOB_SUBMISSION_ID": "raysubmit_a1"})
        fake.on_end["raysubmit_a1"] = process.terminate
        one.wait_for("stop_state_changed", to="stopped", by="platform")
        assert process.wait(30) == -15
        assert fake.effects == [("stop", "raysubmit_a1")] and fake.refused == []


def test_sagemaker(server, tmp_path, train):
    with SageMaker(allowed=1.0) as fake:
        arn = fake.create("bert-1")
        section = (f"sagemaker: {{url: '{fake.url}', {PRIVATE}, aws: {{region: {fake.region}, access_key_id: {fake.access_key_id}, "
                   f"secret_access_key: '{fake.secret_access_key}'}}}}")
        one = server(config_of(tmp_path, section))
        one.wait_for("ready")
        process = train({"TRAINING_JOB_NAME": "bert-1", "TRAINING_JOB_ARN": arn})
        fake.on_end["bert-1"] = process.terminate
        one.wait_for("stop_state_changed", to="stopped", by="platform")
        assert process.wait(30) == -15
        assert fake.effects == [("stop", "bert-1")] and fake.refused == []


# ---- approval


def waiting(tmp_path):
    code, out, err = run_cli("stops", "list", "--from", tmp_path / "journal", "-o", "json")
    assert code == 0, err
    return [one for one in json.loads(out) if one["state"] == "awaiting_approval"]


def test_a_stop_waits_for_a_word_across_kill_9(server, tmp_path, train):
    config = config_of(tmp_path, "", more=", approval: always")
    first = server(config)
    first.wait_for("ready")
    process = train({}, asks=True)
    [stop] = wait_until(lambda: waiting(tmp_path))
    told = wait_until(lambda: issues_of(tmp_path, "stop_waits"))
    assert f"tocsin stops approve {stop['command_id']} --from {tmp_path / 'journal'}" in json.dumps(told)
    first.kill()
    second = server(config)
    second.wait_for("ready")
    time.sleep(1)
    assert process.poll() is None and not second.all("stop_asked"), "nobody has said so yet"
    code, out, err = run_cli("stops", "approve", stop["command_id"][:10], "--comment", "seen", "--from", tmp_path / "journal", "-o", "json")
    assert code == 0, (out, err)
    assert json.loads(out)["state"] == "requested"
    assert [change[1:] for change in changes(tmp_path / "journal")] == [("stop.approved", stop["command_id"])]
    assert process.wait(30) == 77
    code, out, _ = run_cli("stops", "show", stop["command_id"], "--from", tmp_path / "journal", "-o", "json")
    shown = json.loads(out)
    assert shown["approval"]["state"] == "approved" and shown["approval"]["comment"] == "seen"
    assert shown["args"]["approved_by"] == shown["approval"]["decided_by"] != ""
    code, out, _ = run_cli("stops", "approve", stop["command_id"], "--from", tmp_path / "journal")
    assert code == 1 and "does not wait" in out


def test_a_stop_that_is_rejected_does_not_come(server, tmp_path, train):
    one = server(config_of(tmp_path, "", more=", approval: 'job=bert'"))
    one.wait_for("ready")
    process = train({}, asks=True)
    [stop] = wait_until(lambda: waiting(tmp_path))
    code, out, err = run_cli("stops", "cancel", stop["command_id"], "--from", tmp_path / "journal")
    assert code == 0, err
    time.sleep(2)
    assert process.poll() is None and not one.all("stop_asked")
    assert waiting(tmp_path) == []
    assert [change[1:] for change in changes(tmp_path / "journal")] == [("stop.rejected", stop["command_id"])]


def test_nobody_says_a_word(server, tmp_path, train):
    one = server(config_of(tmp_path, "", more=", approval: always, approval_timeout: 2s"))
    one.wait_for("ready")
    process = train({}, asks=True)
    failed = wait_until(lambda: issues_of(tmp_path, "stop_failed"))
    assert "nobody approved it within 2s" in json.dumps(failed)
    assert process.poll() is None
