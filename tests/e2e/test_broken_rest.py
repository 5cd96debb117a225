"""A configuration whose rules or receivers are broken: who looks and steers goes on, who serves does not."""
import json
import re

import pytest

from tests.e2e.test_recovery import wait_until
from tests.support.program import run_cli
from tests.support.telemetry import JournalWriter, journal_events, scalar

RULES = "rules: [exploding_tensor]\nhttp: {listen: '127.0.0.1:0'}\n"
BROKEN = {"unknown key": "rulez: []\n", "unclosed bracket": "rules: [overfit\n", "unset variable": "receivers: {a: {webhook: {url: '${NOT_SET}'}}}\n",
          "tab": "rules:\n\t- overfit\n", "missing include": "include: nowhere.yaml\n"}


@pytest.fixture(scope="module")
def journal(tmp_path_factory):
    """A journal with one open issue of one running run, and its folder."""
    from tests.support.program import Server
    folder = tmp_path_factory.mktemp("broken")
    config = folder / "good.yaml"
    config.write_text(f"transport: {{journal: {folder / 'data'}}}\n{RULES}")
    program = Server(config, role="evaluate")
    try:
        program.wait_for("ready")
        JournalWriter(folder / "data").append(*[scalar("digits", "loss", "NaN" if step == 3 else 1.0, step, job="digits") for step in range(5)])
        program.wait_for("issue_fired")
        assert program.stop() == 0
    finally:
        program.kill()
    return folder


@pytest.fixture(params=BROKEN, ids=lambda name: name.replace(" ", "-"))
def broken(journal, request):
    path = journal / f"{request.param.replace(' ', '-')}.yaml"
    path.write_text(f"{BROKEN[request.param]}transport: {{journal: {journal / 'data'}}}\n")
    assert run_cli("check", path)[0] == 3
    return path


LOOKS = [("status",), ("issues", "list"), ("silence", "list"), ("silence", "add", "job=\"x\"", "--comment", "c", "--dry-run"),
         ("stop", "digits", "--dry-run"), ("capture", "digits", "--stacks", "--dry-run"), ("report", "digits"), ("topics", "plan")]


@pytest.mark.parametrize("words", LOOKS, ids=" ".join)
def test_it_needs_the_transport_only_and_says_so_in_one_line(broken, words):
    code, out, err = run_cli(*words, "-c", broken)
    assert code in (0, 1) and (out or 'no run "digits"' in err), err
    err = err.splitlines()[0]
    assert f"using journal {broken.parent / 'data'} of {broken}" in err, err
    assert "the rest of that file is broken" in err and f"tocsin check {broken}" in err


def test_machines_get_clean_json_all_the_same(broken):
    code, out, _ = run_cli("issues", "list", "-c", broken, "--output", "json")
    assert code == 0 and [one["rule"] for one in json.loads(out)] == ["exploding_tensor"]


@pytest.mark.parametrize("words", LOOKS, ids=" ".join)
def test_a_place_needs_no_file(journal, broken, words):
    for flag in ("--from", "--out"):
        code, out, err = run_cli(*words, flag, journal / "data", env={"TOCSIN_CONFIG": str(broken)})
        assert code in (0, 1) and (out or 'no run "digits"' in err), err
        assert "the rest of that file is broken" not in err, err


def test_who_serves_refuses_it(broken):
    code, _, err = run_cli("up", "-c", broken)
    assert code == 3 and "error" in err


def test_a_wrong_transport_is_refused_with_its_place(tmp_path):
    path = tmp_path / "t.yaml"
    path.write_text("transport: {jornal: ./d}\n")
    code, _, err = run_cli("status", "-c", path)
    assert code == 3 and f"{path}:1:13" in err and 'did you mean "journal"?' in err and "--from" in err


def test_what_is_used_without_a_file_is_said(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    code, _, err = run_cli("status")
    assert code == 4 and f"using journal {tmp_path / 'tocsin-data'}" in err and "--from" in err


def test_a_silence_is_written_although_the_rest_is_broken(journal, broken):
    code, out, err = run_cli("silence", "add", "--job", "digits", "--comment", "known", "-c", broken, "-o", "json")
    assert code == 0, err
    identity = json.loads(out)["id"]
    code, out, _ = run_cli("silence", "expire", identity, "-c", broken)
    assert code == 0 and identity in out


def test_a_refused_record_is_told_with_its_field(server, tmp_path):
    config = tmp_path / "t.yaml"
    config.write_text(f"transport: {{journal: {tmp_path / 'data'}}}\n{RULES}")
    program = server(config, role="evaluate")
    program.wait_for("ready")
    JournalWriter(tmp_path / "data").append(("telemetry", "x", b"{\"not\": \"a record\"}"))
    wait_until(lambda: list(journal_events(tmp_path / "data", "dlq")), 30, "the dead letter")
    code, out, _ = run_cli("status", "-c", config)
    assert code == 1 and re.search(r"1 records? could not be read and lies? in the topic dlq; newest: \w+: \w+", out), out
