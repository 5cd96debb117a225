"""Lists, the page and a server's trial as they were at a time; and what cannot be told so says why."""
import collections
import pathlib
import random
import subprocess
import sys
import time
import urllib.parse
import uuid

import numpy
import pytest

from tests.e2e.test_complaints import LOSS, base_of
from tests.e2e.test_curves import CONFIG, SCRIPT, asked, environment, refused, run_with
from tests.e2e.test_inbound import ask
from tests.e2e.test_page_acts import pictured
from tests.e2e.test_store_ages import moved
from tests.support.hook_support import wait_for
from tests.support.issues import at as time_text
from tests.support.issues import raise_issues
from tocsin.analysis import create_trial


@pytest.fixture(scope="module")
def told(module_server, tmp_path_factory):
    """The server, the run, its issues, when the first was reported, and when the end of the last was. Its loss is NaN for seconds."""
    folder = tmp_path_factory.mktemp("past")
    one = module_server(CONFIG.format(journal=folder / "journal"))
    one.wait_for("ready")
    script = folder / "train.py"
    script.write_text(SCRIPT.replace("step in (300, 301)", "300 <= step < 800"))
    assert subprocess.run([sys.executable, script, "1200", "0.005"], env=environment(folder / "journal"), cwd=folder, timeout=120).returncode in (0, 77)
    uid = run_with(one, 400)
    assert uid and wait_for(lambda: asked(one, f"/api/v1/runs/{uid}")["run"]["state"] == "ended", 30)

    def over():
        lines = [line for line in asked(one, f"/api/v1/runs/{uid}/history")["items"] if line["kind"] == "issue"]
        begun = sorted(line["time"] for line in lines if line["state"] == "firing")
        gone = sorted(line["time"] for line in lines if line["state"] == "resolved")
        return (begun[0], gone[-1]) if begun and gone else None
    first, last = wait_for(over, 30)
    issues = [issue for issue in asked(one, "/api/v1/issues")["items"] if issue["run"]["uid"] == uid]
    assert issues and all(issue["status"] == "resolved" for issue in issues)
    return one, uid, issues, first, last


def test_the_list_of_issues_is_told_as_it_was(told):
    one, uid, issues, first, last = told
    assert asked(one, "/api/v1/issues", at=moved(first, -1))["items"] == []
    then = asked(one, "/api/v1/issues", at=moved(first, 1))
    assert then["as_of"].startswith(moved(first, 1)[:19]) and then["items"]
    assert all(issue["status"] == "firing" and issue["ends_at"] is None for issue in then["items"]), then
    after = asked(one, "/api/v1/issues", at=moved(last, 1))["items"]
    assert {issue["key"] for issue in after} == {issue["key"] for issue in issues}
    assert all(issue["status"] == "resolved" for issue in after)
    for name, value, wanted in (("status", "firing", True), ("status", "resolved", False), ("run", uid, True), ("run", "0" * 36, False),
                                ("rule", then["items"][0]["rule"], True), ("rule", "none_such", False), ("severity", "info", False),
                                ("filter", f'job="{then["items"][0]["job"]}"', True), ("filter", 'job="none"', False)):
        found = asked(one, "/api/v1/issues", at=moved(first, 1), **{name: value})["items"]
        assert bool(found) is wanted, (name, value, found)
    for when in (moved(first, 1), moved(last, 1)):
        for issue in asked(one, "/api/v1/issues", at=when)["items"]:
            assert issue == asked(one, f"/api/v1/issues/{issue['key']}/{issue['episode']}", at=when)["issue"]
    page = asked(one, "/api/v1/issues", at=moved(last, 1), limit=1)
    rest = []
    while page["next"]:
        rest += page["items"]
        page = asked(one, "/api/v1/issues", at=moved(last, 1), limit=1, cursor=page["next"])
    assert [issue["key"] for issue in rest + page["items"]] == [issue["key"] for issue in after]


def test_many_issues_of_several_runs_are_told_as_each_is_told_alone(server, tmp_path):
    """Reports of 24 issues of three runs and of none come in turns: some fire again, become worse, end, and begin anew."""
    one = server(CONFIG.format(journal=tmp_path / "journal"))
    one.wait_for("ready")
    chance = random.Random(26)
    runs = [*(str(uuid.UUID(int=chance.getrandbits(128), version=4)) for _ in range(3)), None]
    said = collections.defaultdict(list)  # by number: the newest report of each episode
    moments = []
    for turn in range(7):
        batch = []
        for number in chance.sample(range(24), 12):
            run = runs[number % 4]
            ends = bool(said[number]) and said[number][-1] == "firing" and chance.random() < 0.4
            if not said[number] or (said[number][-1] == "resolved" and not ends):
                said[number].append("firing")
            said[number][-1] = "resolved" if ends else "firing"
            about = {"run": {"uid": run, "attempt": 1, "job": f"job-{number % 4}"}} if run else {}
            batch.append(({"rule": f"rule_{number % 5}", "unit": str(number)},
                          {"status": "resolved" if ends else "firing", "severity": chance.choice(["warning", "error", "critical"]), **about}))
        raise_issues(tmp_path / "journal", *batch)
        time.sleep(0.05)
        moments.append((time_text(time.time()), sorted((str(number), status) for number, episodes in said.items() for status in episodes)))
        time.sleep(0.05)
    wanted = len(moments[-1][1])

    def kept():
        status, _ = one.get(f"/api/v1/issues?at={moments[-1][0]}")
        return status == 200 and len(asked(one, "/api/v1/issues", at=moments[-1][0], limit=1000)["items"]) == wanted
    assert wait_for(kept, 30)
    again = 0
    for when, scanned in moments:
        items = asked(one, "/api/v1/issues", at=when, limit=1000)["items"]
        assert sorted((issue["labels"]["unit"], issue["status"]) for issue in items) == scanned, when
        for issue in items:
            assert issue == asked(one, f"/api/v1/issues/{issue['key']}/{issue['episode']}", at=when)["issue"]
            again += issue["episode"] > 1
    assert again > 0, "some began anew"



def test_deliveries_are_those_that_had_been_tried(told):
    one, _, _, first, last = told
    everything = asked(one, "/api/v1/deliveries")["items"]
    assert everything, "the stop was delivered to the run"
    for moment in (moved(first, -1), moved(everything[-1]["time"], 1), moved(last, 1)):
        then = asked(one, "/api/v1/deliveries", at=moment)["items"]
        assert then == [delivery for delivery in everything if delivery["time"] <= moment]


@pytest.mark.parametrize(("path", "word"), [
    ("/api/v1/nodes/n1/agent", "/api/v1/commands?node="), ("/api/v1/groups", "what holds now"),
    ("/api/v1/runs/{uid}/rules", "last status"), ("/api/v1/runs/{uid}/names", "as it is now"), ("/api/v1/status", "as it is now")])
def test_what_is_not_kept_by_time_says_so(told, path, word):
    one, uid, _, first, _ = told
    status, body = refused(one, path.format(uid=uid), at=first)
    assert status == 400 and body["field"] == "at" and word in body["detail"], body


def test_a_servers_trial_is_as_it_was(told):
    one, uid, _, first, _ = told
    whole, then = create_trial(base_of(one), run=uid), create_trial(base_of(one), run=uid, at=moved(first, 1))
    all_rows, rows = list(whole.series("loss")), list(then.series("loss"))
    assert 0 < len(rows) < len(all_rows) and then.loaded_all_steps
    same = all_rows[:len(rows)]
    assert [row["step"] for row in rows] == [row["step"] for row in same]
    assert numpy.array_equal([row["value"] for row in rows], [row["value"] for row in same], equal_nan=True)
    assert then.details["state"] == "running" and then.details["outcome"] is None and whole.details["state"] == "ended"
    assert len(then.steps()) < len(whole.steps())
    with pytest.raises(ValueError, match="gets no new values"):
        next(iter(then.live("loss")))
    with pytest.raises(ValueError, match="first heard of"):
        create_trial(base_of(one), run=uid, at="2001-01-01T00:00:00Z")
    with pytest.raises(ValueError, match="nothing is kept of that time"):
        create_trial(base_of(one), at="2001-01-01T00:00:00Z")
    with pytest.raises(ValueError, match="has passed"):
        create_trial(base_of(one), run=uid, at="2101-01-01T00:00:00Z")


@pytest.mark.parametrize("width,theme", [(1440, "light"), (390, "dark")])
def test_the_page_shows_the_past_and_leads_back(told, browser, width, theme):
    one, uid, _, first, _ = told
    page = browser.new_context(viewport={"width": width, "height": 900}, color_scheme=theme).new_page()
    wrong = []
    page.on("console", lambda line: wrong.append(line.text) if line.type == "error" else None)
    page.on("pageerror", lambda error: wrong.append(str(error)))
    page.goto(f"{base_of(one)}/runs/{uid}/history")
    page.wait_for_selector(".history li")
    line = page.locator(".history li:has(.kind:text-is('issue'))").last  # the first report
    line.locator("a:text-is('as it was then')").click()
    page.wait_for_selector(".then")
    assert urllib.parse.parse_qs(urllib.parse.urlsplit(page.url).query)["at"] == [first]
    assert page.inner_text(".then span").startswith(f"As of {first[:10]} {first[11:19]} UTC. Nothing here moves.")
    page.wait_for_selector(f"{LOSS} canvas")
    assert "running" in page.inner_text("h1") and "firing" in page.inner_text("#headline")
    assert page.locator(".live.good").count() == 0, "nothing moves"
    assert page.locator("button:text-is('Pin this run')").count() == 0 and "only told as it is now" in page.inner_text("main")
    then = int(page.inner_text("#curves .tools").split(" to ")[1].split()[0])
    pictured(page, f"past-run-{width}-{theme}")
    page.click("#headline a")
    page.wait_for_selector("#where")
    assert page.locator(".then").count() == 1 and "Firing" in page.inner_text("header.head")
    page.wait_for_selector("#evidence canvas")
    pictured(page, f"past-issue-{width}-{theme}")
    page.click("nav.bar a:text-is('Issues')")
    page.wait_for_selector("h2:text-matches('Open [1-9]')")
    pictured(page, f"past-issues-{width}-{theme}")
    page.click("nav.bar a:text-is('Runs')")
    page.wait_for_selector("[aria-label=runs] li >> text=running")
    pictured(page, f"past-runs-{width}-{theme}")
    page.click("nav.bar a:text-is('System')")
    page.wait_for_selector("text=This screen is only told as it is now.")
    page.go_back()
    page.click("[aria-label=runs] li a >> nth=0")
    page.wait_for_selector(f"{LOSS} canvas")
    page.click(".then button:text-is('Back to now')")
    page.wait_for_selector(".live.good")
    page.wait_for_selector("button:text-is('Pin this run')")
    page.wait_for_selector(f"{LOSS} canvas")
    assert "at=" not in page.url and page.locator(".then").count() == 0 and "running" not in page.inner_text("h1")
    page.wait_for_function("(then) => Number(document.querySelector('#curves .tools').textContent.match(/ to (\\d+)/)[1]) > then", arg=then)
    assert not wrong, wrong


def test_an_issue_leads_to_what_it_was(told, browser):
    one, _, issues, _, _ = told
    page = browser.new_page()
    page.goto(f"{base_of(one)}/issues/{issues[0]['key']}/newest")
    page.click("header.head a:text-is('as it was before it ended')")
    page.wait_for_selector(".then")
    page.wait_for_selector("header.head >> text=Firing")
    assert page.url.count("at=") == 1


def test_commands_are_those_that_had_been_asked_and_what_had_been_answered(told):
    one, uid, _, first, last = told
    now = asked(one, "/api/v1/commands")["items"]
    stops = [command for command in now if command["action"] == "stop"]
    assert stops and stops[0]["answers"], "the run was stopped"
    later = asked(one, "/api/v1/commands", at=moved(last, 1))["items"]
    assert [command["command_id"] for command in later] == [command["command_id"] for command in now]
    assert later == now, "nothing has changed since"
    assert asked(one, "/api/v1/commands", at=moved(first, -1))["items"] == []
    stop = stops[0]
    then = asked(one, "/api/v1/commands", at=moved(stop["answers"][0]["time"], -0.001), action="stop")["items"]
    assert [command["command_id"] for command in then] == [stop["command_id"]]
    assert then[0]["answers"] != stop["answers"] and then[0]["phase"] != stop["phase"], "its last answer had not been given"
    assert all(answer["time"] < stop["answers"][0]["time"] for answer in then[0]["answers"])
    for name, value, wanted in (("run", uid, True), ("run", "0" * 36, False), ("action", "stop", True), ("action", "capture", False), ("node", "n7", False)):
        assert bool(asked(one, "/api/v1/commands", at=moved(last, 1), **{name: value})["items"]) is wanted, (name, value)
    status, body = refused(one, "/api/v1/commands", at="2101-01-01T00:00:00Z")
    assert status == 400 and body["field"] == "at", body


def test_silences_are_as_they_stood(told):
    one, _, _, _, _ = told

    def listed(at=None):
        return {silence["id"]: (silence["state"], silence["comment"], silence["ends_at"]) for silence in asked(one, "/api/v1/silences", **({"at": at} if at else {}))["items"]}

    def change(method, path, body=None):
        token = pathlib.Path(asked(one, "/api/v1/status")["token_file"]).read_text().strip()
        status, answer = ask(one, method, path, body, headers={"Authorization": f"Bearer {token}"})
        assert status in (202, 204), answer
        return answer
    before = moved(asked(one, "/api/v1/silences")["as_of"], 0)
    made = change("POST", "/api/v1/silences", {"matchers": ['rule="none_such"'], "duration": "2h", "comment": "first"})["silence"]
    begun = asked(one, "/api/v1/silences")["as_of"]
    second = change("POST", "/api/v1/silences", {"id": made["id"], "version": made["version"], "matchers": ['rule="none_such"'], "duration": "3h", "comment": "second"})["silence"]
    changed, after_change = asked(one, "/api/v1/silences")["as_of"], listed()
    assert after_change[second["id"]][:2] == ("active", "second")
    change("DELETE", "/api/v1/silences/" + second["id"])
    assert listed()[second["id"]][0] == "expired"
    assert made["id"] not in listed(before) and second["id"] not in listed(before)
    assert listed(begun) == {**listed(before), made["id"]: ("active", "first", made["ends_at"])}
    assert listed(changed) == after_change
    assert listed(asked(one, "/api/v1/silences")["as_of"]) == listed()
    assert made["id"] in {silence["id"] for silence in asked(one, "/api/v1/silences", at=begun, state="active")["items"]}
    assert made["id"] not in {silence["id"] for silence in asked(one, "/api/v1/silences", at=begun, state="expired")["items"]}
    status, body = refused(one, "/api/v1/silences", at="2101-01-01T00:00:00Z")
    assert status == 400 and body["field"] == "at", body
