"""`tocsin issues resolve`: a person ends an issue, whoever was told hears of it with the reason, and a new report is news."""
from tests.support.on_call import ask, changes, issue, router
from tests.support.program import run_cli
from tests.support.receiver import wait_for
from tests.support.webhook_receiver import WebhookReceiver


def test_a_person_ends_an_issue_and_a_new_report_is_a_new_alarm(server, tmp_path):
    with WebhookReceiver() as hook:
        path = router(tmp_path, hook)
        program = server(path)
        program.wait_for("ready", timeout=60)
        issue(path, "disk")
        hook.wait(1)
        identity = wait_for(lambda: [line.split()[0] for line in run_cli("issues", "list", "-c", path)[1].splitlines() if "disk is wrong" in line], 20, "listed")[0]

        code, out, err = run_cli("issues", "resolve", identity, "-c", path)
        assert code == 2 and "--note" in err
        code, out, err = run_cli("issues", "resolve", identity, "--note", "x", "--dry-run", "-c", path)
        assert (code, out) == (0, f"would resolve {identity}: disk is wrong\n"), err
        code, out, err = run_cli("issues", "resolve", "ffffffff", "--note", "x", "-c", path)
        assert code == 1 and "no issue with ID ffffffff; see: tocsin issues list" in err
        assert len(hook.records) == 1

        code, told = ask("issues", "resolve", identity, "--note", "it was replaced", "--author", "ada", config=path)
        assert code == 0 and (told["status"], told["resolution"]) == ("resolved", "manual")
        hook.wait(2)
        closed = hook.records[1]["json"]
        [ended] = closed["issues"]
        assert closed["kind"] == "close" and ended["resolution"] == "manual" and ended["ending"]["summary"] == "Resolved by ada: it was replaced", closed
        assert ended["annotations"]["summary"] == "disk is wrong", "what was found stays"
        code, out, err = run_cli("issues", "resolve", identity, "--note", "again", "-c", path)
        assert code == 1 and "over already" in err, err
        assert [change[:2] for change in changes(tmp_path / "data")] == [("ada", "issue.resolved")]

        issue(path, "disk")
        hook.wait(3)
        assert hook.records[2]["json"]["kind"] == "open", "reported again, it is a new alarm"
