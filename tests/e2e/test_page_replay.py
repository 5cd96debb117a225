"""Replay here: what another value of a rule's parameter would have found, by the API and on the page of an issue."""
import json
import urllib.error
import urllib.request

import pytest

from tests.e2e import test_page_acts
from tests.e2e.test_insights import asked
from tests.e2e.test_page_acts import OPERATOR, opened, pictured
from tests.support.hook_support import wait_for
from tests.support.program import run_cli

job = test_page_acts.job  # the fixture


def call(one, method, path, body=None):
    request = urllib.request.Request(f"{one.base}/api/v1{path}", None if body is None else json.dumps(body).encode(),
                                     {"Authorization": f"Bearer {OPERATOR}", "Content-Type": "application/json"}, method=method)
    try:
        with urllib.request.urlopen(request, timeout=20) as answer:
            return answer.status, json.loads(answer.read() or b"null")
    except urllib.error.HTTPError as error:
        return error.code, json.load(error)


def rows_of(page):
    return [[cell.inner_text() for cell in row.locator("th, td").all()[:3]] for row in page.locator("#replay tbody tr").all()]


def ended(one, task):
    return wait_for(lambda: (told := asked(one.server, f"/api/v1/tasks/{task}"))["state"] != "running" and told, 30)


def test_it_finds_what_the_command_line_finds(job, tmp_path):
    one = job()
    one.process.kill()
    one.process.wait()
    status, begun = call(one, "POST", f"/runs/{one.uid}/replay", {"rule": "exploding_tensor", "parameter": "min_hits", "values": [1, 3]})
    assert status == 202 and begun["values"] == ["1", "3"], begun
    told = ended(one, begun["task"])
    assert told["state"] == "done" and told["progress"] == 1 and told["by"] == "night-shift", told
    code, out, err = run_cli("evaluate", "--from", tmp_path / "journal", "--rules", "exploding_tensor", "--sweep", "min_hits=1,3", "-o", "json")
    assert code == 0, err
    keys = ("value", "first_step", "first_time", "issues")
    rows = [[row[key] for key in keys] for row in told["result"]["rows"]]
    assert rows == [[row[key] for key in keys] for row in json.loads(out)["rows"]]
    assert rows[0][1] == 40, "the gradient is no number from step 40 on"
    assert ("replay.begun", "night-shift") in one.changes()


def test_what_cannot_be_replayed_is_said(job):
    one = job()
    for body, status, says in [
            ({"rule": "exploding_tensr", "parameter": "min_hits", "values": "1"}, 400, 'did you mean "exploding_tensor"?'),
            ({"rule": "exploding_tensor", "parameter": "min_hit", "values": "1"}, 400, 'did you mean "min_hits"?'),
            ({"rule": "exploding_tensor", "parameter": "min_hits", "values": "many"}, 400, "many"),
            ({"rule": "exploding_tensor", "parameter": "min_hits", "value": "1"}, 400, 'did you mean "values"?'),
            ({"rule": "exploding_tensor", "parameter": "min_hits"}, 400, "values: expected LOW..HIGH")]:
        got, answer = call(one, "POST", f"/runs/{one.uid}/replay", body)
        assert got == status and says in answer["detail"] and "--sweep" not in answer["detail"], answer
    assert call(one, "GET", "/tasks/task-0-0")[0] == 404
    status, tried = call(one, "POST", f"/runs/{one.uid}/replay?dry_run=true", {"rule": "exploding_tensor", "parameter": "min_hits", "values": "1..3"})
    assert status == 200 and tried["task"] is None and tried["values"] == ["1", "2", "3"], tried
    assert "replay.begun" not in [what for what, _ in one.changes()]


def test_a_task_is_cancelled_and_a_server_ends_with_tasks(job):
    one = job()
    body = {"rule": "exploding_tensor", "parameter": "min_hits", "values": "1..200:200"}
    begun = [call(one, "POST", f"/runs/{one.uid}/replay", body) for _ in range(6)]
    assert begun[0][0] == 202 and {status for status, _ in begun} <= {202, 429}, begun
    assert all("insights.replays" in answer["detail"] for status, answer in begun if status == 429)
    assert call(one, "DELETE", f"/tasks/{begun[0][1]['task']}")[0] == 204
    assert ended(one, begun[0][1]["task"])["state"] in {"cancelled", "done"}
    assert ("task.cancelled", "night-shift") in one.changes()
    one.server.stop()


@pytest.mark.parametrize("width,theme", [(1440, "light"), (390, "dark")])
def test_the_page_of_an_issue_shows_a_row_per_value(job, browser, width, theme):
    one = job()
    page = opened(browser, one, width, theme)
    refused = []
    page.on("console", lambda line: refused.append(line.text) if line.type == "error" else None)
    page.on("pageerror", lambda error: refused.append(str(error)))
    page.click("#replay button:text-is('Replay here')")
    page.wait_for_selector("#replay input[type=password]")
    assert "This needs a token with the role operator (http.auth.tokens)." in page.inner_text("#replay")
    page.fill("#replay input[type=password]", OPERATOR)
    page.click("#replay button:has-text('Sign in')")
    page.wait_for_selector("#replay form.deed select option", state="attached")
    page.select_option("#replay select", "min_hits")
    assert page.is_disabled("#replay form.deed button[type=submit]"), "without a value there is nothing to judge"
    page.fill("#replay input[name=values]", "1, 1000000")
    page.locator("#replay").scroll_into_view_if_needed()
    pictured(page, f"replay-form-{width}-{theme}")
    page.click("#replay form.deed button[type=submit]")
    page.wait_for_selector("#replay tbody tr", timeout=30000)
    assert rows_of(page) == [["1", "yes", "40"], ["1000000", "no", "–"]]
    assert page.locator("#replay .said-of-replay").all_inner_texts() == [
        "△ on the chart of this page marks the first step of each.", "Nothing fires with min_hits 1000000."]
    page.wait_for_selector("#evidence .marks .replay")
    assert page.locator("#evidence .marks li:has(.replay)").all_inner_texts() == ["△ step 40: would fire with min_hits 1"]
    page.click("#evidence .marks-of button:has-text('replays')")
    assert page.locator("#evidence .marks .replay").count() == 0, "they are switched off like the others"
    page.click("#evidence .marks-of button:has-text('replays')")
    page.locator("#evidence").scroll_into_view_if_needed()
    pictured(page, f"replay-marks-{width}-{theme}")
    page.locator("#replay").scroll_into_view_if_needed()
    pictured(page, f"replay-{width}-{theme}")
    assert not refused, refused


EARLY = """- name: early
  use: exploding_tensor
- name: never
  use: exploding_tensor
  with:
    min_hits: 1000000
"""


def test_another_text_of_the_rule_is_judged_as_the_command_line_judges_it(job, tmp_path):
    one = job()
    one.process.kill()
    one.process.wait()
    status, begun = call(one, "POST", f"/runs/{one.uid}/replay", {"yaml": EARLY})
    assert status == 202 and begun["rule"] is None and begun["parameter"] == "rule" and begun["values"] == ["early", "never"], begun
    told = ended(one, begun["task"])
    assert told["state"] == "done", told
    (tmp_path / "rules.yaml").write_text("rules:\n" + EARLY)
    code, out, err = run_cli("evaluate", "--from", tmp_path / "journal", "--rules", tmp_path / "rules.yaml", "-o", "json")
    assert code in (0, 1), err
    (of_run,) = json.loads(out)["runs"]
    assert {row["value"]: (row["first_step"], row["issues"]) for row in told["result"]["rows"]} == {
        rule["rule"]: (rule["first_step"], rule["issues"]) for rule in of_run["rules"]}
    assert [row["first_mode"] for row in told["result"]["rows"]] == ["train", None]


def test_a_text_that_is_wrong_is_told_by_line_and_column_and_reads_no_file(job, tmp_path):
    one = job()
    (tmp_path / "more.yaml").write_text("rules: [all_zero]\n")
    for text, says in [
            ("- use: exploding_tensor\n  with: {min_hit: 2}\n", 'line 2, column 10: '),
            ("- use: exploding_tensr\n", "line 1, column 8: "),
            ("- use: [\n", "line "), ("# nothing\n", "expected"),
            (f"include: {tmp_path}/more.yaml\nrules: [exploding_tensor]\n", "include"),
            (f"- source: {tmp_path}/train.py\n  type: python\n", "is a program"),
            ("- use: exploding_tensor\n" + "#" * 33_000, "at most 32768 bytes")]:
        status, answer = call(one, "POST", f"/runs/{one.uid}/replay?dry_run=true", {"yaml": text})
        assert status == 400 and says in answer["detail"], (text[:60], answer)
    status, answer = call(one, "POST", f"/runs/{one.uid}/replay?dry_run=true", {"yaml": EARLY, "rule": "exploding_tensor"})
    assert status == 400 and "alone" in answer["detail"], answer
    yaml = call(one, "GET", "/rules/exploding_tensor/parameters")[1]["yaml"]
    status, answer = call(one, "POST", f"/runs/{one.uid}/replay?dry_run=true", {"yaml": yaml})
    assert status == 200 and answer["values"] == ["exploding_tensor"], answer


@pytest.mark.parametrize("width,theme", [(1440, "dark"), (390, "light")])
def test_the_text_of_a_rule_is_edited_on_the_page_until_it_fires_elsewhere(job, browser, width, theme):
    one = job()
    page = opened(browser, one, width, theme)
    page.click("#replay button:text-is('Replay here')")
    page.fill("#replay input[type=password]", OPERATOR)
    page.click("#replay button:has-text('Sign in')")
    page.click("#replay button:has-text('Another text of the rule')")
    text = page.input_value("#replay textarea")
    assert "use: exploding_tensor" in text and "min_hits: 1  # default" in text, text
    page.fill("#replay textarea", text.replace("min_hits:", "min_hit:"))
    page.click("#replay form.deed button[type=submit]")
    page.wait_for_selector("#replay [role=alert]")
    line = text[:text.index("min_hits:")].count("\n") + 1
    assert page.inner_text("#replay [role=alert]").startswith(f"line {line}, column 5: "), page.inner_text("#replay [role=alert]")
    assert "min_hits" in page.inner_text("#replay [role=alert]")
    page.locator("#replay").scroll_into_view_if_needed()
    pictured(page, f"replay-text-wrong-{width}-{theme}")
    page.fill("#replay textarea", text.replace("min_hits: 1 ", "min_hits: 3 "))
    page.click("#replay form.deed button[type=submit]")
    page.wait_for_selector("#replay tbody tr", timeout=30000)
    of_value = call(one, "POST", f"/runs/{one.uid}/replay", {"rule": "exploding_tensor", "parameter": "min_hits", "values": "3"})[1]
    (row,) = ended(one, of_value["task"])["result"]["rows"]
    assert row["first_step"] > 40 and rows_of(page) == [["exploding_tensor", "yes", str(row["first_step"])]], row
    page.wait_for_selector(f"#evidence .marks li:has-text('step {row['first_step']}: would fire with the rule exploding_tensor')")
    page.locator("#replay").scroll_into_view_if_needed()
    pictured(page, f"replay-text-{width}-{theme}")
