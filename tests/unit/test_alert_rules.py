"""The alert rules about Tocsin itself: what is shipped is what is declared, `promtool` takes it, each rule fires when it should,
and every metric that a rule asks for is one that the program has."""
import pathlib
import re
import shutil
import subprocess
import sys

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tools"))

import docs_alerts  # noqa: E402

CASES = ROOT / "tests" / "data" / "alerts" / "tocsin-alerts.test.yaml"


def promtool(*words):
    done = subprocess.run(["promtool", *map(str, words)], capture_output=True, text=True, check=False, timeout=60)
    return done.returncode, done.stdout + done.stderr


def test_what_is_shipped_is_what_is_declared():
    assert list(docs_alerts.stale(write=False)) == []


def the_programs_sources():
    return "\n".join(path.read_text() for room in ("actions", "app", "routing") for kind in ("*.cc", "*.h") for path in (ROOT / room).rglob(kind))


def test_the_table_of_the_page_has_the_programs_metrics_and_no_other():
    sources = the_programs_sources()
    table = docs_alerts.PAGE.read_text().split("## Metrics of the router")[1].split("|---|---|---|\n")[1].split("\n\n")[0]
    shown = {name for row in table.splitlines() for name in re.findall(r"`([a-z_]+)`", re.sub(r"\([^)]*\)", "", row.split("|")[1]))}
    assert len(shown) > 60
    # `part + "…"`: the loop around each stage names its own.
    assert {name for name in shown if f'"tocsin_router_{name}"' not in sources and f'"{name}"' not in sources} == set()
    assert set(re.findall(r'"tocsin_router_([a-z_]+)"', sources)) - shown == set()


def test_every_metric_is_one_that_the_program_has():
    sources = the_programs_sources()
    named = set(re.findall(r'"(tocsin_[a-z_]+)"', sources))
    named |= {"tocsin_router_" + name for name in re.findall(r'part \+ "([a-z_]+)"', sources)}
    assert docs_alerts.metrics() - named == set()
    assert 'part("tocsin_" + wiring.part' in sources and 'part + "state_faults_total"' in sources


def test_promtool_takes_the_rules_and_each_fires_when_it_should():
    code, said = promtool("check", "rules", docs_alerts.RULES)
    assert code == 0 and f"{len(docs_alerts.ALERTS)} rules found" in said, said
    code, said = promtool("test", "rules", CASES)
    assert code == 0, said


@pytest.mark.parametrize("name", [alert[0] for alert in docs_alerts.ALERTS])
def test_a_rule_that_never_fires_is_found(name, tmp_path):
    rules = tmp_path / "deploy" / "prometheus" / "tocsin-alerts.yaml"
    rules.parent.mkdir(parents=True)
    text = docs_alerts.RULES.read_text()
    broken = re.sub(rf"(- alert: {name}\n        expr: ).*", r"\1vector(0) > 1", text)
    assert broken != text
    rules.write_text(broken)
    cases = tmp_path / "tests" / "data" / "alerts" / CASES.name
    cases.parent.mkdir(parents=True)
    shutil.copy(CASES, cases)
    assert promtool("test", "rules", cases)[0] != 0
