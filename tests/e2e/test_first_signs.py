"""Which issue of a run that explodes was the first sign: the API, the page and the report say the same, beside a scan over all of its issues."""
import subprocess
import sys

import pytest

from tests.e2e.test_complaints import base_of
from tests.e2e.test_curves import CONFIG, SCRIPT, asked, environment, run_with
from tests.support.hook_support import wait_for
from tests.support.issues import raise_issues


@pytest.fixture(scope="module")
def exploded(module_server, tmp_path_factory):
    """A run whose loss is NaN at step 300; behind it a rule that waits for its step tells of step 299, and one of a mode of its own of step 10."""
    folder = tmp_path_factory.mktemp("signs")
    one = module_server(CONFIG.format(journal=folder / "journal").replace(", actions: [stop]", ""))
    one.wait_for("ready")
    script = folder / "train.py"
    script.write_text(SCRIPT.replace("step in (300, 301)", "step >= 300"))
    # It goes on until the issues by hand are there.
    script.write_text(script.read_text().replace("hook.close()", "import pathlib\nwhile not pathlib.Path('done').exists(): time.sleep(0.05)\nhook.close()"))
    training = subprocess.Popen([sys.executable, script, "400"], env=environment(folder / "journal"), cwd=folder)
    try:
        uid = wait_for(lambda: run_with(one, 300), 60)
        assert uid
        head = wait_for(lambda: [issue for issue in asked(one, f"/api/v1/runs/{uid}")["issues"] if issue["rule"] == "exploding_tensor" and issue["mode"] == "train"], 60)[0]
        run = {"run": {"uid": uid, "attempt": head["attempt"], "job": "curves"}}
        later = {"severity": "warning", **run}
        raise_issues(folder / "journal", ({"rule": "by_hand", "unit": "waits", "run_uid": uid}, {**later, "step": head["step"] - 1, "mode": "train", "annotations": {"summary": "it waited for its step"}}),
                     ({"rule": "by_hand", "unit": "apart", "run_uid": uid}, {**later, "step": 10, "mode": "eval", "annotations": {"summary": "it counts other steps"}}))
        # The engine names no cause that it does not know: both are there, and the first one is still open.
        assert wait_for(lambda: sum(issue["rule"] == "by_hand" for issue in asked(one, f"/api/v1/runs/{uid}")["issues"]) == 2, 60)
        yield one, uid
    finally:
        (folder / "done").touch()
        training.wait(60)


def scanned(one, issues):
    """Those that began before `one`, by a scan."""
    return [other for other in issues if other["key"] != one["key"] and (other["attempt"], other["mode"]) == (one["attempt"], one["mode"]) and None not in (other["step"], one["step"])
            and other["step"] < one["step"] and (other["ends_at"] is None or other["ends_at"] >= one["starts_at"])]


def test_api_page_and_report_name_the_same_first_signs(exploded, browser):
    one, uid = exploded
    answer = asked(one, f"/api/v1/runs/{uid}")
    issues = answer["issues"]
    details = {(issue["key"], issue["episode"]): asked(one, f"/api/v1/issues/{issue['key']}/{issue['episode']}") for issue in issues}
    signs = set()
    for issue in issues:
        detail = details[issue["key"], issue["episode"]]
        before = scanned(issue, issues)
        assert {row["key"] for row in detail["earlier"]} == {row["key"] for row in before}
        assert [row["step"] for row in detail["earlier"]] == sorted(row["step"] for row in before)
        assert issue["first_sign"] == (detail["issue"]["caused_by"] == [] and before == []), issue
        assert {row["key"]: row["first_sign"] for row in detail["issues_of_run"]} == {row["key"]: row["first_sign"] for row in issues}
        if issue["first_sign"]:
            signs.add(issue["key"])
    summaries = {issue["summary"]: issue for issue in issues}
    waits = summaries["it waited for its step"]
    (exploding,) = (issue for issue in issues if issue["rule"] == "exploding_tensor" and issue["step"] == waits["step"] + 1 and details[issue["key"], issue["episode"]]["issue"]["caused_by"] == []
                    and issue["summary"].startswith("loss"))
    assert waits["first_sign"] and summaries["it counts other steps"]["first_sign"] and not exploding["first_sign"]
    listed = {issue["key"] for issue in asked(one, "/api/v1/issues", first_signs="true", run=uid, limit=1000)["items"]}
    assert listed == signs
    past = {issue["key"] for issue in asked(one, "/api/v1/issues", first_signs="true", run=uid, limit=1000, at=answer["as_of"])["items"]}
    assert past == signs

    page = browser.new_page()
    page.goto(f"{base_of(one)}/issues/{exploding['key']}/{exploding['episode']}")
    page.wait_for_selector("#first-sign")
    said = page.inner_text("#first-sign")
    assert "These began at earlier steps" in said and "it waited for its step" in said and "it counts other steps" not in said.split("this issue")[0], said
    page.goto(f"{base_of(one)}/issues/{waits['key']}/{waits['episode']}")
    page.wait_for_selector("text=This is the first sign: nothing before it explains it.")
    page.close()

    status, text = one.get(f"/api/v1/runs/{uid}/report.md")
    assert status == 200
    named = [line for line in text.splitlines() if "First sign, at" in line]
    assert len(named) == 1 and any(issue["summary"] in named[0] for issue in issues if issue["first_sign"]), named
    follows = {issue["summary"] for issue in issues if not issue["first_sign"]}
    rows = [line for line in text.splitlines() if "|" in line and any(summary in line for summary in summaries)]
    assert {summary for summary in summaries if any(summary in row and "(follows)" in row for row in rows)} <= follows
