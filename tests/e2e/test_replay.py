"""`tocsin replay`: a past span judged again beside what was told then, on a journal and on Kafka; `--sweep`."""
import json
import random

import pytest

from tests.e2e.test_evaluate_recorded import START, SECOND, at, empty_journal, train, write
from tests.e2e.test_recovery import wait_until
from tests.support.program import ROOT, run_cli
from tests.support.telemetry import JournalWriter, firing_ids, journal_events, journal_records, kafka_events, kafka_produce, scalar
from tocsin import wire

pytestmark = pytest.mark.apart

LIVE = "rules: [exploding_tensor]\nhttp: {listen: '127.0.0.1:0'}\n"


def replayed(config, *arguments, expect):
    code, out, err = run_cli("replay", "-c", config, "--format", "json", *arguments)
    assert code == expect, out + err
    return json.loads(out)


def told(server, tmp_path, records):
    """A journal whose telemetry a live engine has judged by LIVE; the configuration that it had."""
    folder, config = tmp_path / "data", tmp_path / "tocsin-0.yaml"
    engine = server(f"transport: {{journal: {folder}}}\n{LIVE}", role="evaluate")
    engine.wait_for("ready", timeout=60)
    JournalWriter(folder).append(*records)
    wait_until(lambda: firing_ids(journal_events(folder, "issues")), 30, "the live issue")
    engine.kill()
    return folder, config


def losses(run, steps, bad=()):
    return [scalar(run, "loss", "NaN" if step in bad else 1.0 / (step + 1), step) for step in range(steps)]


def test_the_same_rules_tell_the_same_and_nothing_is_written(server, tmp_path):
    folder, config = told(server, tmp_path, losses("r", 30, bad=[7]))
    before = [len(journal_records(folder, topic)) for topic in ("issues", "rules-state", "telemetry")]
    answer = replayed(config, expect=0)["compared"]
    assert (answer["added"], answer["gone"], answer["same"]) == (0, 0, 1)
    [one] = answer["differences"]
    assert one["replay"]["id"] == one["live"]["id"] and one["replay"]["step"] == 7
    assert [len(journal_records(folder, topic)) for topic in ("issues", "rules-state", "telemetry")] == before


def test_other_rules_show_what_comes_and_what_goes(server, tmp_path):
    _, config = told(server, tmp_path, losses("r", 30, bad=[7]) + losses("late", 30, bad=[20, 21, 22]))
    rules = tmp_path / "new.yaml"
    rules.write_text("rules:\n  - {use: exploding_tensor, with: {start_step: 15}}\n"
                     "  - {name: low, select: 'metric(\"loss\")', when: 'value < 0.04'}\n")
    answer = replayed(config, "--rules", rules, expect=1)["compared"]
    changes = {(one["change"], one["rule"]) for one in answer["differences"]}
    assert changes == {("gone", "exploding_tensor"), ("same", "exploding_tensor"), ("added", "low")}
    [gone] = [one for one in answer["differences"] if one["change"] == "gone"]
    assert gone["replay"] is None and gone["live"]["step"] == 7
    code, out, err = run_cli("replay", "-c", config, "--rules", rules)
    assert code == 1, err
    assert f"added {answer['added']}, gone 1, same 1" in out
    code, out, _ = run_cli("replay", "-c", config, "--rules", "overfit")
    assert code == 0 and "not compared: 2 of other rules" in out


@pytest.fixture
def hour(tmp_path):
    """A minute per step for an hour; NaN at minutes 10 and 40 of two runs."""
    train(tmp_path / "hook", "healthy")
    folder = empty_journal(tmp_path / "hook", tmp_path / "hour")
    write(folder, [at(60 * step, scalar(run, "loss", "NaN" if step == bad else 1.0, step))
                   for step in range(60) for run, bad in (("early", 10), ("late", 40))])
    return folder


def span(folder, *arguments, expect=1):
    code, out, err = run_cli("replay", "--out", folder, "--rules", "exploding_tensor", "--format", "json", *arguments)
    assert code == expect, out + err
    return json.loads(out)


def minute(number):
    import datetime
    return datetime.datetime.fromtimestamp(START / SECOND + 60 * number, datetime.timezone.utc).strftime("%Y-%m-%dT%H:%M:%SZ")


def test_a_span_is_cut_at_its_times_and_offsets(hour):
    def steps(*arguments, expect=1):
        return [one["replay"]["step"] for one in span(hour, *arguments, expect=expect)["compared"]["differences"]]
    assert steps() == [10, 40]
    assert steps("--from", minute(11)) == [40]
    assert steps("--to", minute(40)) == [10]
    assert steps("--from", minute(10), "--to", minute(11)) == [10]
    assert steps("--from", minute(20), "--to", minute(30), expect=0) == []
    assert steps("--from", "@22", "--to", "@100") == [40]
    assert steps("--from", minute(30), "--warm-up", "30m") == [40]
    assert span(hour, "--from", minute(30), "--warm-up", "30m")["records"] == 120
    assert span(hour, "--from", minute(30))["records"] == 60
    assert steps("--run", str(wire.run_uid("", "early"))) == [10]


@pytest.mark.parametrize("arguments, code, words", [
    (["--from", "yesterday"], 2, "--from yesterday: expected a time such as"),
    (["--to", "@x"], 2, "--to @x: expected"),
    (["--from", "1h", "--to", "2h"], 2, "is not before --to"),
    (["--from", "@5", "--to", "@5"], 2, "is not before --to @5"),
    (["--warm-up", "1h"], 2, "--warm-up needs a time in --since"),
    (["--from", "@1", "--warm-up", "1h"], 2, "--warm-up needs a time in --from"),
    (["--from", "2h", "--warm-up", "long"], 2, "expected a duration"),
    (["--partition", "3"], 2, "no partition 3"),
    (["--from", "2001-01-01", "--to", "2001-01-02"], 4, "no telemetry of a run"),
    (["--run", "nobody"], 2, "no run nobody"),
    (["--sweep", "min_hits"], 2, "expected [RULE.]PARAMETER="),
    (["--sweep", "min_hit=1..3"], 2, 'did you mean "min_hits"?'),
    (["--sweep", "exploding_tensr.min_hits=1..3"], 2, 'did you mean "exploding_tensor"?'),
    (["--sweep", "min_hits=3..1"], 2, "the smaller one first"),
    (["--sweep", "min_hits=1..3:1"], 2, "STEPS must be"),
    (["--sweep", "min_hits=0,1"], 2, "min_hits"),
    (["--sweep", "min_hits=a"], 2, "neither a number nor a duration"),
    (["--sweep", "min_hits=1..3", "--sweep", "min_hits=4,5"], 2, "--sweep: one parameter is swept at a time, given were 2: run the command once for each"),
    (["--sweep", "tensor_regex=1..3"], 2, "only numbers, durations, switches and words are swept"),
    (["--frm", "2h"], 2, 'did you mean "--from"?'),
])
def test_what_is_wrong_is_said(hour, arguments, code, words):
    got, out, err = run_cli("replay", "--out", hour, "--rules", "exploding_tensor", *arguments)
    assert (got, out) == (code, "") and words in err, err


def test_rules_of_ones_own_are_swept_too(hour, tmp_path):
    rules = tmp_path / "own.yaml"
    rules.write_text("rules:\n"
                     "  - {name: later, select: 'metric(\"loss\")', when: 'step > 4 and nan == 0'}\n"
                     "  - {name: broken, select: 'metric(\"loss\")', when: 'nan > 0'}\n"
                     "  - {name: then, sequence: [later, broken], within: 1000 steps}\n"
                     "  - {name: product, select: 'metric(\"loss\")', when: 'value > 2 * step'}\n")

    def swept(what):
        """{value: first step} of the run whose loss is NaN at step 10."""
        code, out, err = run_cli("evaluate", "--from", hour, "--rules", rules, "--sweep", what, "--format", "json")
        assert code == 0, err
        return {row["value"]: row["first_step"] for row in json.loads(out)["rows"] if row["run"] == str(wire.run_uid("", "early"))}
    assert swept("later.limit=4,20,100") == {"4": 5, "20": 21, "100": None}
    assert swept("later.for=1..3") == {"1": 5, "2": 6, "3": 7}
    assert swept("then.within=1,5") == {"1": 10, "5": 10}  # what hits at step 9 goes on hitting until then
    assert swept("then.within=30s,90s") == {"30s": None, "90s": 10}  # a minute per step
    for what, word in (("product.limit=1,2", "stands by itself"), ("later.select=1,2", "only numbers, durations")):
        code, _, err = run_cli("evaluate", "--from", hour, "--rules", rules, "--sweep", what)
        assert code == 2 and word in err, err


def test_rules_in_python_are_swept_by_their_arguments_and_options(hour, tmp_path, monkeypatch):
    monkeypatch.setenv("PYTHONPATH", str(ROOT / "python"))
    (tmp_path / "late.py").write_text("from tocsin.rules import Rule\n"
                                      "class Late(Rule):\n"
                                      "    def __init__(self, base_trial, at=0, factor='1'):\n"
                                      "        super().__init__(base_trial)\n"
                                      "        self.at = range(at)[-1] + 1  # a whole number, as it was given\n"
                                      "    def invoke_at_step(self, step):\n"
                                      "        return step >= self.at\n")
    rules = tmp_path / "own.yaml"
    rules.write_text("rules: [{name: late, source: late.py, with: {at: 3, factor: '2'}, options: {min_hits: 2, timeout: 30s}}]\n")

    def swept(what):
        code, out, err = run_cli("evaluate", "--from", hour, "--rules", rules, "--sweep", what, "--format", "json", timeout=120)
        assert code == 0, err
        return {row["value"]: row["first_step"] for row in json.loads(out)["rows"] if row["run"] == str(wire.run_uid("", "early"))}
    assert swept("at=5,20,100") == {"5": 6, "20": 21, "100": None}
    assert swept("late.min_hits=1..3") == {"1": 3, "2": 4, "3": 5}
    assert swept("factor=1,2") == {"1": 4, "2": 4}
    code, _, err = run_cli("evaluate", "--from", hour, "--rules", rules, "--sweep", "late.att=1,2")
    assert code == 2 and 'did you mean "at"?' in err, err


def test_a_share_is_swept_as_one(hour, tmp_path):
    rules = tmp_path / "own.yaml"
    rules.write_text("rules: [{name: share, select: 'metric(\"loss\")', when: 'value * step / 100 >= 5%'}]\n")
    code, out, err = run_cli("evaluate", "--from", hour, "--rules", rules, "--sweep", "limit=7,20", "--format", "json")
    assert code == 0, err
    assert {row["value"]: row["first_step"] for row in json.loads(out)["rows"]} == {"7": 7, "20": 20}
    code, _, err = run_cli("evaluate", "--from", hour, "--rules", rules, "--sweep", "limt=7,20")
    assert code == 2 and 'did you mean "limit"?' in err, err


def test_a_sweep_tables_when_each_value_would_have_fired(hour):
    code, out, err = run_cli("evaluate", "--from", hour, "--rules", "exploding_tensor", "--sweep", "min_hits=1..3")
    assert code == 0, err
    lines = [line.split() for line in out.splitlines()]
    assert ["MIN_HITS", "RUNS", "FIRED", "ISSUES", "HOURS", "SAVED", "FALSE", "STOPS"] in lines
    # From minutes 10 and 40 to minute 59, of runs whose end was not recorded.
    assert ["1", "2", "of", "2", "2", "1.13", "0"] in lines and ["2", "0", "of", "2", "0", "0.00", "0"] in lines
    assert any(line[:2] == ["1", "10"] for line in lines) and any(line[:2] == ["1", "40"] for line in lines), out
    assert ["3", "–", "–", "0", "–"] in lines, out
    code, out, err = run_cli("evaluate", "--from", hour, "--rules", "exploding_tensor,loss_spike", "--sweep", "min_hits=1,2")
    assert code == 2 and "several rules have a parameter" in err and "exploding_tensor.min_hits=1,2" in err


def test_a_sweep_counts_completed_runs_as_false_stops(tmp_path):
    """A run whose loss is NaN for four steps, and that completed; switches are swept as well."""
    train(tmp_path / "hook", "exploding")
    code, out, err = run_cli("evaluate", "--from", tmp_path / "hook", "--rules", "exploding_tensor", "--sweep", "only_nan=true,false", "--format", "json")
    assert code == 0, err
    answer = json.loads(out)
    assert [one["value"] for one in answer["values"]] == ["true", "false"]
    assert all((one["runs_fired"], one["false_stops"], one["hours_saved"]) == (1, 1, 0) for one in answer["values"]), answer
    assert all(row["outcome"] == "completed" and 0 <= row["hours_left"] < 1 for row in answer["rows"]), answer


def test_a_sweep_over_decades_and_of_a_rule_with_parameters(hour, tmp_path):
    rules = tmp_path / "rules.yaml"
    rules.write_text("rules: [{name: fast, use: stalled_training_rule, with: {threshold: 70}}]\n")
    code, out, err = run_cli("evaluate", "--from", hour, "--rules", rules, "--sweep", "threshold=1..10000", "--format", "json")
    assert code == 0, err
    answer = json.loads(out)
    assert (answer["rule"], answer["parameter"]) == ("fast", "threshold")
    values = [one["value"] for one in answer["rows"] if one["run"] == answer["rows"][0]["run"]]
    assert values == ["1", "10", "100", "1000", "10000"]
    fired = {one["value"] for one in answer["rows"] if one["issues"]}
    assert fired == {"1", "10"}  # records are a minute apart


def test_a_sweep_keeps_the_other_parameters_and_takes_durations(hour, tmp_path):
    rules = tmp_path / "rules.yaml"
    rules.write_text("rules:\n  - {name: one, use: exploding_tensor, with: {cooldown: 90s, tensor_regex: 'lo$${s}|loss', start_step: 20}}\n"
                     "  - {name: mine, select: 'metric(\"loss\")', when: 'value > 1', for: 2}\n")
    code, out, err = run_cli("evaluate", "--from", hour, "--rules", rules, "--sweep", "cooldown=10s..10m:3", "--format", "json")
    assert code == 0, err
    rows = json.loads(out)["rows"]
    assert {one["value"] for one in rows} == {"10s", "1m17s", "10m"}
    assert {one["first_step"] for one in rows} == {None, 40}  # start_step: 20 holds
    code, _, err = run_cli("evaluate", "--from", hour, "--rules", rules, "--sweep", "mine.when=1..3")
    assert code == 2 and "mine.when is a text" in err


def test_a_sweep_leaves_out_runs_in_which_nothing_fires(hour):
    code, out, err = run_cli("evaluate", "--from", hour, "--rules", "exploding_tensor", "--sweep", "start_step=20..30:2")
    assert code == 0, err
    assert "no value fires in 1 run" in out and out.count("attempt") == 1


def test_a_kafka_topic_is_replayed_without_a_trace(server, kafka, tmp_path):
    prefix = f"replay{random.randrange(10**9)}"
    config = tmp_path / "tocsin-0.yaml"
    engine = server(f"transport: {{kafka: {{bootstrap.servers: '{kafka}'}}}}\ntopics: {{prefix: {prefix}, partitions: 4}}\n{LIVE}",
                    role="evaluate")
    engine.wait_for("ready", timeout=90)
    runs = [f"run-{number}" for number in range(6)]
    kafka_produce(kafka, f"{prefix}.telemetry.v1", [one for run in runs for one in losses(run, 20, bad=[9])])
    events = lambda: list(kafka_events(kafka, f"{prefix}.issues.v1"))  # noqa: E731
    wait_until(lambda: len(firing_ids(events())) == len(runs), 60, "live issues")
    engine.kill()
    before = len(events())
    answer = replayed(config, expect=0)
    assert answer["records"] == 20 * len(runs)
    assert (answer["compared"]["same"], answer["compared"]["gone"]) == (len(runs), 0)
    assert sorted(one["replay"]["id"] for one in answer["compared"]["differences"]) == firing_ids(events())
    assert replayed(config, "--rules", "exploding_tensor", "--run", str(wire.run_uid("", runs[0])), expect=0)["compared"]["same"] == 1
    assert replayed(config, "--from", "1h", expect=0)["records"] == 20 * len(runs)
    code, _, err = run_cli("replay", "-c", config, "--from", "@0")
    assert code == 2 and "name it with --partition" in err
    one = replayed(config, "--partition", "0", "--from", "@0", expect=0)  # what other partitions told is not compared
    assert one["records"] < 20 * len(runs)
    assert len(events()) == before
