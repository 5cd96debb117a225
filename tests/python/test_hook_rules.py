"""watch(rules=…): the engine in a thread of the training process, with nothing else started."""
import json
import os
import pathlib
import subprocess
import sys
import warnings

import pytest
from tests.support.small_model import backward, make

import tocsin
from tocsin.reading import Tensors

NAN = float("nan")
ROOT = pathlib.Path(__file__).resolve().parents[2]
BINARY = os.environ.get("TOCSIN_BINARY", "")


def train(hook, steps=40, bad_from=25):
    for step in range(steps):
        hook.log(loss=NAN if step >= bad_from else 1.0 / (step + 1))
        hook.step()
        if hook.should_stop():
            return step
    return None


def ids(issues):
    return sorted(issue["id"] for issue in issues)


def script(tmp_path, text, **environment):
    """Runs `text` as a program of its own; what it printed and said."""
    path = tmp_path / "train.py"
    path.write_text(text)
    return subprocess.run([sys.executable, str(path)], capture_output=True, text=True, timeout=120, cwd=tmp_path,
                          env={**os.environ, "PYTHONPATH": str(ROOT / "python"), **environment}, check=False)


@pytest.mark.skipif(not BINARY, reason="compares with the program")
def test_the_same_ids_as_the_program_gives_for_the_same_recording(out):
    model, optimizer = make()
    hook = tocsin.watch(model, optimizer, out=out, rules="default")
    for step in range(40):
        loss = backward(model, optimizer)
        if step == 25:
            for parameter in model.parameters():
                parameter.grad[...] = NAN
        hook.log(loss=loss)
        optimizer.step()
    hook.close()
    ours = hook.issues()
    assert {issue["rule"] for issue in ours} >= {"exploding_tensor"}
    told = subprocess.run([BINARY, "evaluate", "--from", out, "--rules", "default", "--format", "json"],
                          capture_output=True, text=True, check=False)
    assert told.returncode == 1, told.stderr
    assert ids(ours) == ids(json.loads(told.stdout)["issues"])


def test_a_person_sees_an_issue_when_it_fires_and_what_followed_is_no_line(out, capfd):
    hook = tocsin.watch(out=out, rules="default")
    train(hook, steps=30, bad_from=20)
    found = [issue for issue in hook.issues() if issue["rule"] == "exploding_tensor"]
    assert found and found[0]["severity"] == "error" and "step 20" in found[0]["text"]
    assert "exploding_tensor at step 20" in capfd.readouterr().err  # before close()
    hook.close()
    assert "over:" not in capfd.readouterr().err  # an issue that ends with its run is no news
    assert hook.stats()["judge"]["dropped"] == 0


def test_a_stop_is_obeyed_and_names_its_reason(out):
    hook = tocsin.watch(out=out, rules=["exploding_tensor"], stop="exploding_tensor")
    stopped = None
    for step in range(2000):
        hook.log(loss=NAN if step >= 20 else 0.5)
        hook.step()
        stopped = hook.should_stop()
        if stopped:
            break
        hook.flush(1.0)
    assert stopped and stopped.rule == "exploding_tensor" and 20 <= step < 40
    hook.acknowledge_stop()
    hook.close()
    assert hook.stats()["judge"]["stops"] == 1


def test_without_stop_nobody_stops(out):
    hook = tocsin.watch(out=out, rules="exploding_tensor")
    assert train(hook) is None
    hook.flush()
    assert hook.should_stop() is None


def test_several_ranks_are_not_stopped_one_by_one(out, monkeypatch):
    monkeypatch.setenv("RANK", "1")
    monkeypatch.setenv("WORLD_SIZE", "2")
    hook = tocsin.watch(out=out, run="two", rules="exploding_tensor", stop=True)
    assert train(hook) is None and hook.issues()
    assert hook.should_stop() is None and "several ranks" in hook.stats()["judge"]["error"]


def test_what_a_rule_needs_is_captured_at_its_request(out):
    torch = pytest.importorskip("torch")
    model = torch.nn.Sequential(torch.nn.Linear(4, 4), torch.nn.ReLU(), torch.nn.Linear(4, 1))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    hook = tocsin.watch(model, optimizer, out=out, rules=[{"use": "dead_relu"}])
    for _ in range(30):
        loss = model(torch.randn(8, 4)).pow(2).mean()
        optimizer.zero_grad()
        loss.backward()
        hook.log(loss=loss)
        optimizer.step()
        hook.flush(1.0)
    assert hook.stats()["commands_received_total"] >= 1
    hook.close()
    assert [row for row in Tensors(out).get() if row["role"] == "activation_out"]


@pytest.mark.parametrize("rules, why", [("exploding_tensr", "exploding_tensor"), ("missing.yaml", "missing.yaml"),
                                        ([{"use": "exploding_tensor", "with": {"threshold": "x"}}], "threshold")])
def test_rules_that_cannot_be_read_leave_the_hook_on(out, rules, why):
    with pytest.warns(RuntimeWarning, match=why):
        hook = tocsin.watch(out=out, rules=rules)
    assert hook.enabled and train(hook) is None
    assert hook.issues() == [] and why in hook.stats()["judge"]["error"]


def test_a_stop_by_nobody_is_said(out):
    with pytest.warns(RuntimeWarning, match="overfit"):
        hook = tocsin.watch(out=out, rules=["overfit"], stop="overfitt")
    assert hook.enabled


def test_a_file_of_rules(out, tmp_path):
    file = tmp_path / "rules.yaml"
    file.write_text("rules: [{use: exploding_tensor, name: mine, severity: critical}]\n"
                    "transport: {journal: elsewhere}\n")
    hook = tocsin.watch(out=out, rules=file)
    train(hook)
    assert {(issue["rule"], issue["severity"]) for issue in hook.issues()} == {("mine", "critical")}


def test_another_run_has_its_own_judge_and_the_former_keeps_its_issues(out):
    first = tocsin.watch(out=out, job="a", rules="exploding_tensor")
    train(first)
    second = tocsin.watch(out=out, job="b", rules="exploding_tensor")
    assert second is not first and not first.enabled
    train(second, bad_from=1000)
    assert second.issues() == []
    kept = first.issues()
    assert kept and {issue["run"]["job"] for issue in kept} == {"a"}
    second.close()
    assert first.issues() == kept


def test_rules_for_an_open_hook_are_refused_in_words(out):
    hook = tocsin.watch(out=out)
    with pytest.warns(RuntimeWarning, match="first watch"):
        assert tocsin.watch(rules="default") is hook


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork here")
def test_a_forked_child_judges_nothing_and_the_parent_goes_on(out):
    hook = tocsin.watch(out=out, rules="exploding_tensor")
    train(hook, bad_from=1000)
    child = os.fork()
    if child == 0:
        try:
            hook.log(loss=NAN)
            hook.close()
            os._exit(0 if hook.issues() == [] else 1)
        finally:
            os._exit(2)
    assert os.waitpid(child, 0)[1] == 0
    train(hook)
    assert hook.issues()


def test_what_it_costs_is_counted(out):
    hook = tocsin.watch(out=out, rules="default")
    train(hook, steps=300)
    hook.flush()
    hook.close()
    judge = hook.stats()["judge"]
    assert 0 < judge["seconds"] < 5 and judge["records"] >= 5 and judge["waiting"] == 0
    assert hook.stats()["hook_seconds_total"] >= 0.9 * judge["seconds"]


TRAIN = """
import tocsin
from tocsin.reading import Tensors
hook = tocsin.watch(out="run1", job="j", rules={rules})
for step in range(60):
    hook.log(loss=float("nan") if step == 59 else 0.1)
    hook.step()
print("engine" if "libtocsin_engine" in open("/proc/self/maps").read() else "none")
"""


def test_a_script_that_ends_without_close_is_told_all_the_same(tmp_path):
    done = script(tmp_path, TRAIN.format(rules='"default"'))
    assert done.returncode == 0 and done.stdout == "engine\n", done.stderr
    assert done.stderr.count("exploding_tensor at step 59") == 1, done.stderr


def test_who_asks_for_no_rules_does_not_load_the_engine(tmp_path):
    done = script(tmp_path, TRAIN.format(rules="None"))
    assert done.returncode == 0 and done.stdout == "none\n", done.stderr


def test_without_the_engines_library_the_hook_is_a_hook(tmp_path):
    done = script(tmp_path, TRAIN.format(rules='"default"'), TOCSIN_ENGINE_LIBRARY="/nonexistent.so")
    assert done.returncode == 0 and done.stdout == "none\n"
    assert "rules in this process need" in done.stderr


def test_quiet_is_quiet(out, capfd, monkeypatch):
    monkeypatch.setenv("TOCSIN_QUIET", "1")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        hook = tocsin.watch(out=out, rules="default")
        train(hook)
        assert hook.issues()
        hook.close()
    assert capfd.readouterr().err == ""


@pytest.mark.parametrize("rules", ({"rules": [{"use": "exploding_tensor", "actions": ["stop", "look"]}, "overfit"]},
                                   [{"use": "exploding_tensor", "actions": ["stop", "look"]}, {"use": "overfit"}]))
def test_actions_that_nobody_carries_out_here_are_named_at_once(out, capfd, rules):
    hook = tocsin.watch(out=out, rules=rules)
    said = capfd.readouterr().err
    assert "nothing is done for the actions of exploding_tensor (stop, look). watch(stop=" in said
    assert train(hook) is None and {issue["rule"] for issue in hook.issues()} == {"exploding_tensor"}
    hook.close()


def test_a_whole_configuration_of_a_server_is_taken(out, tmp_path, capfd):
    """Of its sections those that judge."""
    config = tmp_path / "tocsin.yaml"
    config.write_text("rules: [exploding_tensor]\nevidence: {keep: first_signs}\nreports: {at_end: html}\nroute: {receiver: r}\n"
                      "receivers: {r: {publish_metric: {}}}\n")
    hook = tocsin.watch(out=out, rules=str(config))
    assert hook.stats()["judge"]["error"] == "" and hook.stats()["judge"]["rules"] == 1
    hook.close()
    assert "receivers" not in capfd.readouterr().err
