"""One file serves all programs: whatever stands in it, the training hook stays on and follows its own sections."""
import json
import os
import pathlib
import warnings

import pytest
import yaml

from tests.support.hook_support import Telemetry
from tests.support.program import run_cli

import tocsin

OWN = "cluster: c1\nlabels: {team: nlp}\ncapture:\n  every: 5 steps\n  collections: [gradients]\n"
ODD = [None, True, -1, 0.5, "text", "", [], [1, {"a": []}], {}, {"a": {"b": 1}}, "${NOT_SET_ANYWHERE}"]


@pytest.fixture(autouse=True)
def nothing_else(monkeypatch):
    for variable in ("TOCSIN_OUT", "TOCSIN_BROKERS", "TOCSIN_CONFIG", "NOT_SET_ANYWHERE"):
        monkeypatch.delenv(variable, raising=False)


def opened(tmp_path, text, **watch):
    """(counters, warnings) of a hook with this file; it is on."""
    file = tmp_path / "tocsin.yaml"
    file.write_bytes(text if isinstance(text, bytes) else text.encode())
    return opened_with(str(file), **watch)


def opened_with(file, **watch):
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        hook = tocsin.watch(config=file, **watch)
        assert hook.enabled, hook.stats()
        counters = hook.stats()
        hook.close(timeout=2)
    return counters, [str(one.message) for one in said if "nobody" not in str(one.message)]


def sections():
    """Every top-level key of the schema of the whole file, with the keys below it."""
    code, out, err = run_cli("schema")
    assert code == 0, err
    return json.loads(out)["properties"]


OWN_SECTIONS = {"transport", "topics", "cluster", "labels", "capture"}


def test_every_other_section_of_the_schema_may_hold_anything(tmp_path):
    known = sections()
    assert OWN_SECTIONS < set(known) and {"reports", "evidence", "rules", "route", "receivers"} < set(known)
    place = f"transport: {{journal: {tmp_path / 'data'}}}\n"
    for name in [*sorted(set(known) - OWN_SECTIONS - {"include"}), "of_a_newer_version", "version", "x-notes"]:
        for odd in ODD:
            counters, said = opened(tmp_path, place + OWN + yaml.safe_dump({name: odd}))
            assert (counters["out"], counters["effective_interval"]) == (str(tmp_path / "data"), 5), (name, odd)
            assert said == [], (name, odd)


def test_every_key_of_the_other_sections_may_hold_anything(tmp_path):
    """All of one section at once, a kind of value at a time."""
    def filled(schema, odd, depth=0):
        found = schema.get("properties") if depth < 4 else None
        return {key: filled(below, odd, depth + 1) for key, below in found.items()} if found else odd

    place = f"transport: {{journal: {tmp_path / 'data'}}}\n"
    for name, schema in sections().items():
        if name in OWN_SECTIONS or name == "include":  # files that are not there are told
            continue
        for odd in ODD:
            counters, said = opened(tmp_path, place + OWN + yaml.safe_dump({name: filled(schema, odd)}))
            assert counters["effective_interval"] == 5 and said == [], (name, odd, said)


@pytest.mark.parametrize("section", sorted(OWN_SECTIONS))
@pytest.mark.parametrize("odd", ODD[1:])
def test_an_own_section_that_is_wrong_is_at_most_one_warning_and_the_hook_is_on(tmp_path, monkeypatch, section, odd):
    monkeypatch.chdir(tmp_path)
    whole = yaml.safe_load(OWN)
    whole[section] = odd
    text = yaml.safe_dump(whole)
    counters, said = opened(tmp_path, text)
    line = 1 + next(number for number, text in enumerate(text.splitlines()) if text.startswith(section + ":"))
    assert len(said) <= 1
    if said:
        assert (f"tocsin.yaml:{line}:" in said[0] or f"tocsin.yaml:{line + 1}:" in said[0]) and section in said[0] and "the hook is on" in said[0]
    if section != "capture":
        assert counters["effective_interval"] == 5


def test_a_wrong_key_is_named_with_its_place_and_the_rest_holds(tmp_path):
    counters, said = opened(tmp_path, "capture:\n  evry: 3 steps\n  scalars: 2 steps\n  collections: [gradients]\n", out=str(tmp_path / "data"))
    assert len(said) == 1 and "tocsin.yaml:2:3: error: unknown key \"evry\"; did you mean \"every\"" in said[0]
    assert counters["effective_interval"] == 10


def test_a_property_of_the_cluster_that_does_not_exist_leaves_the_cluster(tmp_path):
    counters, said = opened(tmp_path, "transport:\n  kafka: {bootstrap.servers: 'localhost:1', securty.protocol: ssl}\n")
    assert counters["out"] == "kafka://localhost:1"
    assert len(said) == 1 and "tocsin.yaml:2" in said[0] and "securty.protocol" in said[0]


BROKEN = ["rules: [{use: x\n", "rules:\n\t- use: x\n", 'rules: "never closed\n', "rules:\n  - name: a: b\n", "route: {a: b}}\n",
          "rules: *nowhere\n", b"rules: \xff\xfe\n", "---\nrules: []\n---\n"]


@pytest.mark.parametrize("broken", BROKEN)
@pytest.mark.parametrize("first", [True, False])
def test_another_section_that_is_no_yaml_is_one_warning_and_takes_nothing(tmp_path, broken, first):
    own = (f"transport: {{journal: {tmp_path / 'data'}}}\n" + OWN).encode()
    broken = broken if isinstance(broken, bytes) else broken.encode()
    counters, said = opened(tmp_path, broken + own if first else own + broken)
    assert (counters["out"], counters["effective_interval"]) == (str(tmp_path / "data"), 5)
    if not (broken.startswith(b'rules: "') and not first):  # a quote that the end of the file closes takes nothing away
        assert len(said) == 1 and "tocsin.yaml" in said[0]


def test_one_own_section_that_is_no_yaml_takes_nothing_from_the_others(tmp_path):
    counters, said = opened(tmp_path, f"transport: {{journal: {tmp_path / 'data'}}}\ncapture: {{every: [\ncluster: c\n")
    assert counters["out"] == str(tmp_path / "data") and len(said) == 1 and "capture" in said[0]


@pytest.mark.parametrize("text", ["", "# nothing\n", "\n\n", "---\n"])
def test_an_empty_file_says_nothing(tmp_path, text):
    assert opened(tmp_path, text, out=str(tmp_path / "data"))[1] == []


def test_marks_line_ends_anchors_and_includes_are_read(tmp_path):
    place = f"transport: {{journal: {tmp_path / 'data'}}}\n"
    (tmp_path / "more.yaml").write_text("capture: {every: 5 steps, collections: [gradients]}\nrules: {not: [rules]}\n")
    for text in [b"\xef\xbb\xbf" + (place + OWN).replace("\n", "\r\n").encode(),
                 place + "notes: &base {every: 5 steps}\ncapture: {<<: *base, collections: [gradients]}\n",
                 place + "include: more.yaml\n", place + "include: ['more.yaml', 'rules.d/*.yaml']\n"]:
        counters, said = opened(tmp_path, text)
        assert counters["effective_interval"] == 5 and said == [], (text, said)


def test_what_is_no_file_is_one_warning_and_the_hook_is_on(tmp_path):
    folder = tmp_path / "folder"
    folder.mkdir()
    hidden = tmp_path / "hidden.yaml"
    hidden.write_text(OWN)
    hidden.chmod(0)
    for file in [folder, tmp_path / "none.yaml", *([] if os.geteuid() == 0 else [hidden])]:
        _, said = opened_with(str(file), out=str(tmp_path / "data"))
        assert len(said) == 1 and str(file) in said[0]
    _, said = opened(tmp_path, f"include: none.yaml\n{OWN}", out=str(tmp_path / "data"))
    assert len(said) == 1 and "none.yaml" in said[0]


def test_a_hook_with_foreign_sections_publishes_what_it_measures(tmp_path):
    file = pathlib.Path(tmp_path / "tocsin.yaml")
    file.write_text(f"transport: {{journal: {tmp_path / 'data'}}}\nlabels: {{team: nlp}}\nreports: {{at_end: html}}\nevidence: {{keep: all}}\n")
    hook = tocsin.watch(config=str(file))
    hook.log(loss=float("nan"))
    hook.step()
    hook.close()
    telemetry = Telemetry(tmp_path / "data")
    assert telemetry.lifecycles("start")[0]["labels"] == {"team": "nlp"} and telemetry.steps() == [0]
