"""tools/docs: a registered part appears in every table, index and count; one that is gone disappears."""

import importlib.machinery
import importlib.util
import json
import pathlib

ROOT = pathlib.Path(__file__).resolve().parents[2]


def load():
    loader = importlib.machinery.SourceFileLoader("tocsin_docs", str(ROOT / "tools" / "docs"))
    module = importlib.util.module_from_spec(importlib.util.spec_from_loader(loader.name, loader))
    loader.exec_module(module)
    return module


docs = load()


def test_the_parts_are_those_of_the_registration_lines():
    for room in ("rules", "actions", "collectors"):
        files = {path.stem for path in (ROOT / room).rglob("builtin/**/*.cc")}
        assert set(docs.parts_of(room)) == files


def test_lists_and_counts_follow_the_registration():
    text = ("Words.\n\n- **Actions** (2): [a](docs/actions/a.md),\n  [gone](docs/actions/gone.md); each with\n  more.\n"
            "- **Guarantees**: many.\n")
    assert docs.with_lists(text, lambda room: ["a", "new"]) == (
        "Words.\n\n- **Actions** (2): [a](docs/actions/a.md), [new](docs/actions/new.md); each with more.\n"
        "- **Guarantees**: many.\n")
    index = "**Rules**: [a](rules/a.md) ·\n[b](rules/b.md)\n\nElse\n"
    assert docs.with_lists(index, lambda room: ["a", "b", "c"]) == (
        "**Rules**: [a](rules/a.md) · [b](rules/b.md) · [c](rules/c.md)\n\nElse\n")


def test_counts_follow_the_registration():
    text = "[3 rules](docs/rules/README.md), [1 actions](docs/actions/README.md), [3 rules](docs/rules/overfit.md)"
    assert docs.with_counts(text, lambda room: ["a", "b"]) == (
        "[2 rules](docs/rules/README.md), [2 actions](docs/actions/README.md), [3 rules](docs/rules/overfit.md)")


def test_a_long_list_breaks_after_its_dots():
    names = [f"name_{n}" for n in range(12)]
    filled = docs.with_lists("**Rules**: [name_0](rules/name_0.md)\n", lambda room: names)
    assert len(filled.splitlines()) > 1
    assert all(line.startswith(("**Rules**", "[")) and len(line) <= 140 for line in filled.splitlines())


def test_a_new_part_gets_a_row_from_its_page_and_written_rows_stay():
    text = "| Action | Does | Repeats |\n|---|---|---|\n| [gone](gone.md) | x | y |\n| [email](email.md) | own words | z |\n\nEnd\n"
    assert docs.with_rows(text, ["email", "webhook"], "docs/actions") == (
        "| Action | Does | Repeats |\n|---|---|---|\n| [email](email.md) | own words | z |\n"
        "| [webhook](webhook.md) | Posts each notification as JSON to a URL, signed so that the receiver can tell that it is "
        "genuine |  |\n\nEnd\n")


def test_the_row_of_a_new_rule_has_what_its_descriptor_says(monkeypatch):
    monkeypatch.setattr(docs, "binary", lambda: "/bin/true")
    monkeypatch.setattr(docs, "tocsin", lambda *arguments: json.dumps({"needs": "losses < 0", "severity": "info"}))
    text = "| Rule | Finds | Needs | Severity |\n|---|---|---|---|\n| [overfit](overfit.md) | own words | z | error |\n\nEnd\n"
    assert docs.with_rows(text, ["overfit", "input_range"], "docs/rules").splitlines()[2:4] == [
        "| [overfit](overfit.md) | own words | z | error |",
        "| [input_range](input_range.md) | The model's inputs do not look scaled | losses &lt; 0 | info |"]


def test_the_table_of_a_rule_has_its_own_parameters_and_shared_ones_of_another_value(monkeypatch):
    described = {"parameters": [
        {"name": "collection_names", "type": "texts", "range": "", "help": "tensors", "tocsin": [], "original": []},
        {"name": "low", "type": "number", "range": ">= 0", "help": "the least", "tocsin": 5e-4, "original": 0},
        {"name": "min_hits", "type": "integer", "range": "", "help": "hits", "tocsin": 3, "original": 1},
        {"name": "own", "type": "string", "range": "", "help": "a < b", "tocsin": ""}]}
    monkeypatch.setattr(docs, "tocsin", lambda *arguments: json.dumps(described))
    keys = docs.rule_keys("any")
    docs.rule_keys.cache_clear()
    usual = [docs.docs_common.Key("collection_names", "`[]` | `[]`", "texts: tensors"), docs.docs_common.Key("min_hits", "`1` | `1`", "integer: hits")]
    table = docs.docs_common.rule_table(keys, docs.docs_common.common_parameters([usual, usual, keys]))
    assert table.splitlines()[2:] == [
        "| `low` | `0.0005` | `0` | number, >= 0: the least |",
        '| `own` | `""` | – | string: a &lt; b |',
        "| `min_hits` | `3` | `1` | integer: hits |",
        "",
        "Beside these it has the [parameters that rules share](README.md#parameters-that-rules-share). "
        "A shared parameter stands here if its value differs."]


def test_keys_that_every_action_has_stand_on_one_page():
    rows = [(f"receivers.<name>.{action}.{key}", f" string | {value} |  | {help} |") for action, key, value, help in (
        ("a", "id", "–", "its name"), ("a", "max_age", "`1d`", "age"), ("a", "url", "–", "where"), ("a", "allow_private", "–", "networks"),
        ("b", "id", "–", "its name"), ("b", "max_age", "`1d`", "age"), ("b", "allow_private", "–", "networks"),
        ("c", "id", "–", "its name"), ("c", "max_age", "`5m`", "age"))]
    common = docs.docs_common
    assert [line.split("`")[1] for line in common.common_action_table(rows, "every-action").splitlines()[2:]] == ["id", "max_age"]
    assert [line.split("`")[1] for line in common.common_action_table(rows, "every-http-action").splitlines()[2:]] == ["allow_private"]
    assert common.action_table(rows, "a").splitlines()[2:] == [
        "| `url` | string | – |  | where |", "",
        "Beside these it has the keys of [every action](keys.md#every-action) and of [every action over HTTP](keys.md#every-action-over-http)."]
    assert "| `max_age` | string | `5m` |  | age |" in common.action_table(rows, "c")
    assert common.action_table(rows, "none") == ""
