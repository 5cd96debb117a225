"""`tocsin test FILE…`: golden issue files against recorded slices, and the commands of docs/replay.md as they stand there."""
import re
import shlex
import sys

import pytest
import yaml

from tests.e2e.test_evaluate_recorded import at, empty_journal, train, write
from tests.support.program import ROOT, run_cli
from tests.support.telemetry import scalar
from tocsin import wire

FILE = """# A run whose loss breaks at step 7.
from: slice
rules:
  - use: exploding_tensor   # kept as it is
expect:
  - {rule: exploding_tensor, run: %s, unit: "metric=loss mode=train worker=worker_0", step: 7}
"""


@pytest.fixture
def golden(tmp_path):
    """A golden file beside its slice, which it meets."""
    train(tmp_path / "hook", "healthy")
    folder = empty_journal(tmp_path / "hook", tmp_path / "slice")
    write(folder, [at(step, scalar("r", "loss", "NaN" if step == 7 else 1.0, step)) for step in range(20)])
    path = tmp_path / "breaks.test.yaml"
    path.write_text(FILE % str(wire.run_uid("", "r"))[:8])
    return path


def test_a_file_that_is_met_is_ok(golden):
    code, out, err = run_cli("test", golden)
    assert code == 0, out + err
    assert out == f"ok    {golden}: 1 issue\n"


@pytest.mark.parametrize("change, lines", [
    (("step: 7", "step: 8"), ["- {", "+ {"]),
    (("step: 7", "step: 7, kind: inf"), ["- {", "+ {"]),
    (("metric=loss", "metric=other"), ["- {", "+ {"]),
    (("  - {rule", "  # - {rule"), ["+ {"]),
    (("expect:\n", "expect:\n  - {rule: exploding_tensor, unit: none, step: 1}\n"), ["- {"]),
    (("use: exploding_tensor", "use: exploding_tensor\n    with: {start_step: 10}"), ["- {"]),
])
def test_each_difference_is_shown(golden, change, lines):
    golden.write_text(golden.read_text().replace(*change))
    code, out, err = run_cli("test", golden)
    assert code == 1, out + err
    assert out.startswith("FAIL  ")
    assert [line.strip()[:3] for line in out.splitlines()[1:]] == lines, out


def test_a_rule_that_fails_meets_no_file_and_none_is_written(golden, tmp_path, monkeypatch):
    monkeypatch.setenv("PYTHONPATH", str(ROOT / "python"))
    (tmp_path / "fails.py").write_text("from tocsin.rules import Rule\nclass Fails(Rule):\n"
                                       "    def invoke_at_step(self, step):\n        raise SystemExit('not today')\n")
    golden.write_text(f"from: slice\nplugins: {{python: {sys.executable}}}\nrules: [{{name: fails, source: fails.py}}]\nexpect: []\n")
    for update in ([], ["--update"]):
        code, out, err = run_cli("test", *update, golden)
        assert code == 1 and out == f"FAIL  {golden}: 0 issues\n  ! fails failed: SystemExit: not today\n", out + err
    rules = tmp_path / "rules.yaml"
    rules.write_text("rules: [{name: fails, source: fails.py}]\n")
    code, out, err = run_cli("evaluate", "--from", tmp_path / "slice", "--rules", rules)
    assert code == 1 and "fails  Error  SystemExit: not today" in out, out + err
    code, out, err = run_cli("replay", "--out", tmp_path / "slice", "--rules", rules)
    assert code == 1 and "fails failed: SystemExit: not today" in out, out + err
    code, out, err = run_cli("evaluate", "--from", tmp_path / "slice", "--rules", rules, "--format", "json", "--sweep", "fails.x=1")
    assert code == 2, out + err  # the file gives it no argument


def test_update_writes_what_is_found_and_keeps_the_rest(golden):
    golden.write_text(golden.read_text().replace("step: 7", "step: 9") + "engine: {max_open_units: 5}\n")
    code, out, err = run_cli("test", "--update", golden)
    assert code == 0 and out.startswith("written"), out + err
    text = golden.read_text()
    assert "# A run whose loss breaks at step 7." in text and "# kept as it is" in text and "engine: {max_open_units: 5}" in text
    [issue] = yaml.safe_load(text)["expect"]
    assert issue == {"rule": "exploding_tensor", "run": str(wire.run_uid("", "r"))[:8],
                     "unit": "metric=loss mode=train worker=worker_0", "step": 7, "severity": "error"}
    assert run_cli("test", golden)[0] == 0
    code, out, _ = run_cli("test", "--update", golden)
    assert code == 0 and out.startswith("same") and golden.read_text() == text


def test_every_file_is_tested_and_the_worst_counts(golden, tmp_path):
    other = tmp_path / "quiet.test.yaml"
    other.write_text("from: slice\nrules: [overfit]\nexpect: []\n")
    code, out, _ = run_cli("test", golden, other)
    assert code == 0 and out.count("ok    ") == 2
    other.write_text("from: slice\nrules: [exploding_tensor]\nexpect: []\n")
    code, out, _ = run_cli("test", other, golden)
    assert code == 1 and "FAIL" in out and "ok    " in out


@pytest.mark.parametrize("text, code, words", [
    ("from: slice\nrules: [exploding_tensr]\n", 3, "exploding_tensor"),
    ("from: slice\n", 3, "no rules"),
    ("rules: [overfit]\n", 3, "from"),
    ("from: slice\nrules: [overfit]\nexpct: []\n", 3, 'did you mean "expect"?'),
    ("from: slice\nrules: [overfit]\nexpect: [{rule: overfit, stp: 3}]\n", 3, "step"),
    ("from: nowhere\nrules: [overfit]\n", 4, "there is no journal"),
])
def test_what_is_wrong_with_a_file_is_said(golden, text, code, words):
    golden.write_text(text)
    got, _, err = run_cli("test", golden)
    assert got == code and words in err, err


def test_the_commands_of_the_page_work(tmp_path, monkeypatch):
    """Each line of docs/replay.md, in a folder that has what they name."""
    for kind in ("healthy", "exploding"):
        train(tmp_path / "run1", kind)
    (tmp_path / "tocsin.yaml").write_text(f"transport: {{journal: {tmp_path}/run1}}\nrules: [exploding_tensor]\n")
    for name in ("mine.yaml", "new.yaml"):
        (tmp_path / name).write_text("rules: [overfit, exploding_tensor]\n")
    page = (ROOT / "docs" / "replay.md").read_text()
    golden_text = re.search(r"```yaml\n(from: .*?)```", page, re.DOTALL)[1]
    (tmp_path / "golden").mkdir()
    (tmp_path / "golden" / "breaks.yaml").write_text(golden_text.replace("./slices/breaks", "../run1"))
    monkeypatch.chdir(tmp_path)
    ran = 0
    for block in re.findall(r"^```sh\n(.*?)^```", page, re.MULTILINE | re.DOTALL):
        for line in block.splitlines():
            words = shlex.split(line, comments=True)
            if not words or words[:3] == ["tocsin", "issues", "reproduce"]:  # needs an issue that was told: test_reproduce.py
                continue
            assert words[0] == "tocsin", line
            words = [str(one) for word in words[1:] for one in (sorted(tmp_path.glob(word)) if "*" in word else [word])]
            code, out, err = run_cli(*words)
            assert code in (0, 1) and out, (line, code, err)
            ran += 1
    assert ran > 8
