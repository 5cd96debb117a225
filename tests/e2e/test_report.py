"""`tocsin report`: one page of a run from what rules found and summed up; outside bytes stay text, and the page loads nothing."""
import html.parser
import json
import os
import random
import re
import subprocess
import sys
import textwrap

import pytest

from tests.e2e.test_every_rule import SUM_UP, chosen
from tests.e2e.test_recovery import wait_until
from tests.reference import frames, tables
from tests.support import journal
from tests.support.program import BUILD, ROOT, Server, run_cli
from tests.support.telemetry import JournalWriter, journal_events, kafka_events, kafka_produce, scalar
from tocsin import wire
from tocsin.debugger import rule_job_summary

EVIL_JOB = "\"><script>alert('job')</script>"
EVIL_RUN = "<img src=x onerror=alert(1)>"
EVIL_TENSOR = "gradient/</title></style><svg onload=alert(2)>&amp;"

TRAIN = """
import math, random, sys
import numpy, tocsin
job, run, tensor = sys.argv[1:]
chance = random.Random(7)
hook = tocsin.watch(run=run, job=job, capture={"every": "1 step", "overhead": "100%"})
for step in range(60):
    values = [1e-2 * chance.gauss(0, 1) * (math.inf if step == 30 else 1) for _ in range(64)]
    hook.emit(tensor, numpy.array(values, "f4"), role="gradient")
    with hook.span("<b>odd</b>"):
        hook.log(loss=2.0 / (1 + step))
    hook.step()
hook.close()
"""

# A tag or an attribute that is not named here is a fault, whatever it holds.
TAGS = {"html", "head", "meta", "title", "style", "body", "h1", "h2", "dl", "dt", "dd", "nav", "a", "section", "p", "ul", "li", "span",
        "div", "table", "thead", "tbody", "tr", "th", "td", "details", "summary", "footer",
        "figure", "figcaption", "svg", "g", "line", "text", "rect", "circle", "polyline", "polygon", "image"}
ATTRIBUTES = {"lang", "charset", "http-equiv", "content", "name", "href", "id", "class", "viewbox", "role", "aria-label", "x", "y", "x1",
              "x2", "y1", "y2", "cx", "cy", "r", "width", "height", "points", "text-anchor", "preserveaspectratio"}


class Strict(html.parser.HTMLParser):
    """Refuses what a report has no business to hold; `text` is what people read."""

    def __init__(self, page):
        super().__init__(convert_charrefs=True)
        self.open, self.text, self.tags = [], "", []
        self.feed(page)
        self.close()
        assert self.open == [], self.open

    def handle_starttag(self, tag, attributes):
        if tag == "script":  # data, which no browser runs
            assert dict(attributes) == {"type": "application/json", "id": "report"}
            self.open.append(tag)
            return
        assert tag in TAGS, tag
        for name, value in attributes:
            assert name in ATTRIBUTES, (tag, name)
            if name == "href":
                allowed = r"data:image/png;base64,[A-Za-z0-9+/]+=*" if tag == "image" else r"#s\d+"
                assert re.fullmatch(allowed, value), value
        self.tags.append(tag)
        if tag != "meta":
            self.open.append(tag)

    def handle_startendtag(self, tag, attributes):
        self.handle_starttag(tag, attributes)
        self.handle_endtag(tag)

    def handle_endtag(self, tag):
        assert self.open and self.open.pop() == tag, tag

    def handle_data(self, data):
        if self.open[-1:] == ["script"]:
            json.loads(data)
        elif self.open[-1:] != ["style"]:
            self.text += data + "\n"


def page_of(path):
    page = path.read_bytes().decode()  # strictly: it is UTF-8
    assert "default-src 'none'" in page
    assert "url(" not in page and "@import" not in page
    return Strict(page)


def report(*arguments, expect=0):
    code, out, err = run_cli("report", *arguments)
    assert code == expect, out + err
    return out if expect == 0 else err


@pytest.fixture(scope="module")
def evil(tmp_path_factory):
    """A recording whose names are markup."""
    folder = tmp_path_factory.mktemp("report")
    script = folder / "train.py"
    script.write_text(textwrap.dedent(TRAIN))
    environment = {**os.environ, "TOCSIN_OUT": str(folder / "run1"), "PYTHONPATH": str(ROOT / "python"), "TOCSIN_QUIET": "1",
                   "TOCSIN_LIBRARY": os.environ.get("TOCSIN_LIBRARY", str(BUILD / "collectors/hook/libtocsin_client.so.0"))}
    subprocess.run([sys.executable, script, EVIL_JOB, EVIL_RUN, EVIL_TENSOR], env=environment, cwd=folder, check=True, timeout=60)
    return folder / "run1"


@pytest.fixture(scope="module")
def cases(tmp_path_factory):
    """A recording of cases worked by hand, each a run: of every rule one that fires, of those that sum up all that tell."""
    folder = tmp_path_factory.mktemp("cases") / "journal"
    runs = {}
    config = folder.parent / "t.yaml"
    config.write_text(f"transport: {{journal: {folder}}}\nrules: [overfit]\nhttp: {{listen: '127.0.0.1:0'}}\n")
    maker = Server(config, role="evaluate")  # of the empty journal
    try:
        maker.wait_for("ready", timeout=60)
    finally:
        maker.kill()
    picked = [(rule, case) for (rule, fires), case in chosen().items() if fires]
    picked += [(rule, case) for rule, case in tables.load().values() if rule in SUM_UP and "tells" in case]
    for number, (rule, case) in enumerate(picked):
        uid = str(wire.run_uid("every", f"case {number}"))
        rules = folder.parent / f"rules-{number}.yaml"
        rules.write_text(json.dumps({"rules": tables.rules(rule, case)}))
        runs[uid] = (rule, rules)
        journal.append(folder, *[("telemetry", uid, frames.encode(record, uid)) for record in tables.records(case)])
    return folder, runs


def test_outside_bytes_stay_text(evil, tmp_path):
    report("--from", evil, "--html", tmp_path / "page.html")
    page = page_of(tmp_path / "page.html")
    assert EVIL_JOB in page.text and EVIL_TENSOR in page.text and "<b>odd</b>" in page.text
    assert "exploding_tensor" in page.text and "open" not in page.open
    assert "polyline" in page.tags, "the loss is drawn"


def test_the_text_and_the_json_say_the_same(evil):
    text = report("--from", evil)
    assert text.startswith("Training report: " + EVIL_JOB)
    assert "First sign, at train 30: " in text and "Step durations" in text
    told = json.loads(report("--from", evil, "-o", "json"))
    assert told["job"] == EVIL_JOB and told["outcome"] == "completed"
    assert [one["first"]["rule"] for one in told["issues"]] == ["exploding_tensor"]
    assert {"profiler_report", "create_xgboost_report"} <= {one["rule"] for one in told["rules"]}


def told_of(cases, uid, type_):
    folder, runs = cases
    _, rules = runs[uid]
    told = json.loads(report(uid, "--from", folder, "--rules", rules, "-o", "json"))
    return [one["summary"] for one in told["rules"] if one["type"] == type_ and one["summary"]]


def test_every_rule_has_its_report(cases, tmp_path):
    folder, runs = cases
    for uid, (rule, rules) in runs.items():
        if rule in SUM_UP:
            continue
        report(uid, "--from", folder, "--rules", rules, "--html", tmp_path / "page.html")
        assert "each with its evidence" in page_of(tmp_path / "page.html").text, rule


def test_the_sections_of_a_boosting(cases, tmp_path):
    folder, runs = cases
    shown = set()
    for uid, (rule, rules) in runs.items():
        if rule != "create_xgboost_report":
            continue
        report(uid, "--from", folder, "--rules", rules, "--html", tmp_path / "page.html")
        page = page_of(tmp_path / "page.html")
        lines = page.text.splitlines()
        for summary in told_of(cases, uid, "create_xgboost_report"):
            shown |= set(summary)
            for name, curve in summary.get("metrics", {}).items():
                assert name in lines and f"{curve['last']:.6g}" in lines, name
            for kind, one in summary.get("feature_importance", {}).items():
                assert all(feature in lines for feature in one["shares"]), kind
            for row in summary.get("confusion", {}).get("matrix", []):
                assert all(f"{cell:.6g}" in lines for cell in row)
            if "roc" in summary:
                assert f"area {summary['roc']['area']:.6g}" in lines
            assert all(name in lines for name in summary.get("error_by_label", {}))
            for name, value in summary.get("residuals", {}).items():
                assert f"{value:.6g}" in lines, name
    assert shown >= {"metrics", "feature_importance", "confusion", "roc", "residuals", "error_by_label", "class_accuracy", "trees", "hyperparameters"}


def test_the_sections_of_the_profiler(cases, tmp_path):
    folder, runs = cases
    shown = set()
    for uid, (rule, rules) in runs.items():
        if rule != "profiler_report":
            continue
        report(uid, "--from", folder, "--rules", rules, "--html", tmp_path / "page.html")
        lines = page_of(tmp_path / "page.html").text.splitlines()
        for summary in told_of(cases, uid, "profiler_report"):
            shown |= set(summary)
            assert f"{summary['run']['seconds']:.6g}" in lines
            for mode, spread in summary.get("step_seconds", {}).items():
                assert f"{mode} ({spread['count']} steps)" in lines and f"{spread['max']:.6g}" in lines
            for name, record in summary["rules"].items():
                assert name in lines and (record["description"] in lines)
                for unit, found in record.get("details", {}).items():
                    assert f"{unit}: {found['summary']}" in lines
    assert shown >= {"run", "gpus", "step_seconds", "rules", "overall_system_usage"}


def live(config, events, write):
    """Reports of a run that a live engine judges, before and after its end."""
    steps = [scalar("digits", "loss", "NaN" if step == 3 else 1.0, step, job="digits") for step in range(5)]
    write(steps)
    wait_until(lambda: any(data.get("rule") == "exploding_tensor" and data.get("status") == "firing" for data in events()), 60, "the issue")
    text = report("digits", "-c", config)
    assert "not over, as far as is known" in text and "loss became NaN" in text
    assert "when the run has ended" in text, "what the report lacks is said"
    return text


CONFIG = "rules: [exploding_tensor, profiler_report, create_xgboost_report]\nhttp: {listen: '127.0.0.1:0'}\n"


def test_of_what_was_told_in_a_journal(server, tmp_path):
    config = tmp_path / "t.yaml"
    config.write_text(f"transport: {{journal: {tmp_path / 'data'}}}\n{CONFIG}")
    engine = server(config, role="evaluate")
    engine.wait_for("ready", timeout=60)
    uid = str(wire.run_uid("every", "bottleneck"))
    case = chosen()["create_xgboost_report", False]
    journal.append(tmp_path / "data", *[("telemetry", uid, frames.encode(record, uid)) for record in tables.records(case)])
    wait_until(lambda: any(data["run"]["uid"] == uid and data.get("rule") == "create_xgboost_report" and data.get("summary")
                           for _, data, _ in journal_events(tmp_path / "data", "issues")), 60, "the summary")
    stand = {one["RuleConfigurationName"]: one for one in rule_job_summary(str(tmp_path / "data"), uid)}
    assert stand["create_xgboost_report"]["RuleEvaluationStatus"] in ("InProgress", "NoIssuesFound")
    assert stand["create_xgboost_report"]["RuleEvaluationJobArn"] == f"{uid}/create_xgboost_report"
    live(config, lambda: [data for _, data, _ in journal_events(tmp_path / "data", "issues")],
         lambda records: JournalWriter(tmp_path / "data").append(*records))
    report(uid, "-c", config, "--html", tmp_path / "page.html")
    assert "XGBoost training" in page_of(tmp_path / "page.html").text
    assert "name one:" in report("-c", config, expect=1)
    assert "no run" in report("no such", "-c", config, expect=1)
    assert "cannot be written" in report(uid, "-c", config, "--html", tmp_path / "none" / "page.html", expect=1)
    assert not (tmp_path / "none").exists()


def test_of_what_was_told_over_kafka(server, kafka, tmp_path):
    prefix = f"report{random.randrange(10**9)}"
    config = tmp_path / "t.yaml"
    config.write_text(f"transport: {{kafka: {{bootstrap.servers: '{kafka}'}}}}\ntopics: {{prefix: {prefix}, partitions: 2}}\n{CONFIG}")
    server(config, role="evaluate").wait_for("ready", timeout=60)
    live(config, lambda: [data for _, data, _ in kafka_events(kafka, f"{prefix}.issues.v1")],
         lambda records: kafka_produce(kafka, f"{prefix}.telemetry.v1", records))


def test_what_cannot_be_read_is_said(tmp_path):
    assert "there is no journal" in report("--from", tmp_path / "none", expect=4)
    assert "there is no journal" in report("--out", tmp_path / "none", expect=4)
    assert "--from" in report("--rules", "overfit", expect=2)
