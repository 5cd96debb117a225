"""What rules read is what hook and collectors write. Each flag, statistic, track, attribute and scalar of the wire has a reader among the rules and
a writer among ours, or stands here with the reason why not; `tocsin check` and `rules list` say the same of rules whose input nobody here sends."""
import pathlib
import re

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[2]

# Read by rules, and written by whom it says: no hook and no collector of ours does.
GIVEN = {
    "track dataloader": "loading processes themselves (app/config/input_check.cc)",
    "track op.cpu": "a profiler of the user's (app/config/input_check.cc)",
    "track op.gpu": "a profiler of the user's (app/config/input_check.cc)",
    "track communication": "other producers; our hook tells it as the phase of that name, which the same rules read",
    "statistic depth": "producers of trees; our XGBoost callback logs the scalar trees/depth, which the same rules read",
    "attribute axis": "callers of the C interface; where nobody says it, units lie along axis 1",
    "attribute direction": "JSON producers, and callers of the C interface",
    "scalar clip_norm": "the script, which alone knows its limit (docs/rules/gradient_clipping.md)",
    "scalar clipped": "the script (docs/rules/gradient_clipping.md)",
    "scalar grad_norm": "the script, or Lightning's and the Trainer's own log",
}
# Written, and judged by no rule: for people and for who reads the topic.
TOLD = {
    "flag Approximate": "who reads sums from the topic has to know how far they go (docs/wire.md)",
    "statistic value_counts": "selected by rules of one's own in Python (tocsin.Rule), and shown",
    "attribute unit": "JSON producers say it to who reads the topic",
}
READERS = ("rules",)
WRITERS = ("collectors/hook", "collectors", "python/tocsin")


def text(*places, skip=()):
    out = []
    for place in places:
        for path in sorted((ROOT / place).rglob("*")):
            if path.suffix in (".cc", ".h", ".py") and path.relative_to(ROOT).as_posix() not in skip:
                out.append(path.read_text(encoding="utf-8"))
    return "\n".join(out)


def constants():
    """{name of C++: name of Python} of the row flags."""
    flags = dict(re.findall(r"constexpr std::uint64_t k(\w+) = 1ULL << (\d+)", (ROOT / "core/codes.h").read_text(encoding="utf-8")))
    client = (ROOT / "python/tocsin/library/abi.py").read_text(encoding="utf-8")
    python = {}
    for names, values in re.findall(r"^(FLAG_[\w, ]+) = ([\d <,]+)$", client, re.MULTILINE):
        for name, value in zip(names.split(", "), values.split(", ")):
            python[value.split("<< ")[1]] = name
    return {name: python.get(bit) for name, bit in flags.items()}


def pairs():
    """{what: (a rule reads it, one of ours writes it)}"""
    rules, ours = text(*READERS), text(*WRITERS, skip=("python/tocsin/library/abi.py", "python/tocsin/wire.py"))
    out = {}
    for flag, python in constants().items():
        out[f"flag {flag}"] = (f"meta::k{flag}" in rules, f"meta::k{flag}" in ours or f"{python}" in ours)
    frame = text("core")
    for kind in ("SparseStat", "VectorStat"):
        body = re.search(rf"enum class {kind} : std::uint16_t {{(.*?)}};", frame, re.DOTALL).group(1)
        for name in re.findall(r"^\s*(\w+) =", body, re.MULTILINE):
            out[f"statistic {name}"] = (f"{kind}::{name}" in rules, re.search(rf"{kind}::{name}\b", ours) is not None)
    wire = (ROOT / "docs/wire.md").read_text(encoding="utf-8")
    for track in re.findall(r"`([\w.]+)[/<>\w]*`", re.search(r"\*\*Tracks\*\* of spans: (.*?)\. Phases", wire, re.DOTALL).group(1)):
        # Beside the phase of that name, a track is one where its name is registered as one.
        out[f"track {track}"] = (f'"{track}' in rules, re.search(rf'(phase_track_ = names_.put\(|NAME_TRACK, )"{track}"', ours) is not None)
    keys = re.search(r"Keys of attrs: (.*?); of a worker", wire, re.DOTALL).group(1)
    for key in re.findall(r"`(\w+)`", keys):
        judged = re.search(rf"(name|known|who\.name|entry)(\.|->){key}\b", text("rules", skip=("rules/engine/units/dictionaries.cc", "rules/engine/memory/run.h")))
        out[f"attribute {key}"] = (judged is not None, f'"{key}"' in text("collectors/hook", "collectors") or f'"{key}":' in text("python/tocsin"))
    for scalar in ("loss_scale", "learning_rate", "grad_norm", "clip_norm", "clipped"):
        out[f"scalar {scalar}"] = (f'"{scalar}"' in rules, re.search(rf'"{scalar}"', text("python/tocsin/adapters")) is not None)
    out.update(ledger())
    return out


def ledger():
    """The same of the fields that docs/ledger.md lists."""
    page = (ROOT / "docs/ledger.md").read_text(encoding="utf-8")
    ours = text("python/tocsin")
    of_classes = text("rules/builtin", skip=("rules/builtin/shared/ledger_rows.h",))
    others = text("rules/builtin", skip=("rules/builtin/shared/ledger_rows.h", "rules/builtin/data/ledger_classes.h"))
    out = {}
    for heading, form in (("Fields of a loss call", r"\bF::{}\b|\bLedgerCall::{}\b|field(_of)?\(\"{}\"|\"{}\""), ("The plan", r"\[{}\]"),
                          ("Embeddings", r"\"{}\""), ("Precision", r"\"ledger/precision/{}\"|\"{}\""), ("Rewards", r"\"{}\""),
                          ("Target networks", r"\"{}\""), ("Worlds", r"\bWorldSums::{}\b|\bsums\[{}\]"),
                          ("Movement", r"field == \"{}\""),
                          ("Classes", r"\bLedgerClass::{}\b|\bC::{}\b|\bsums\[{}\]|field == \"{}\"")):
        rules = of_classes if heading == "Classes" else others
        table = re.search(rf"^## {heading}\n.*?(?=^## )", page, re.DOTALL | re.MULTILINE).group(0)
        for cells in re.findall(r"^\| (`\w+`(?:, `\w+`)*) \|", table, re.MULTILINE):
            for field in re.findall(r"`(\w+)`", cells):
                name = "k" + "".join(part.capitalize() for part in field.split("_")) if heading == "The plan" else field.removeprefix("class_")
                out[f"ledger {field}"] = (re.search(form.replace("{}", name), rules) is not None, f'"{name}"' in ours or f'"{field}"' in ours or f"{field}=" in ours)
    return out


PAIRS = pairs()


@pytest.mark.parametrize("what", PAIRS)
def test_each_input_has_a_reader_and_a_writer_or_a_reason(what):
    read, written = PAIRS[what]
    assert read or written or what in TOLD, "nobody reads or writes it: remove it from the tables and from docs/wire.md"
    assert (read and not written) == (what in GIVEN), "a rule reads what nobody here writes" if read else "it is written now: take it out of GIVEN"
    assert (written and not read) == (what in TOLD) or (what in TOLD and not written), "nobody judges by what is written"


def test_the_tables_name_nothing_else():
    assert set(GIVEN) | set(TOLD) <= set(PAIRS)


def test_rules_whose_tracks_nobody_here_sends_are_said_by_the_program():
    said = (ROOT / "app/config/input_check.cc").read_text(encoding="utf-8")
    for what, reason in GIVEN.items():
        if "app/config/input_check.cc" in reason:
            assert what.removeprefix("track ") in said, what
    for rule in re.findall(r'{"(\w+)",\s*"Tocsin itself sends no', said):
        page = (ROOT / f"docs/rules/{rule}.md").read_text(encoding="utf-8")
        assert "No part of Tocsin sends" in page, f"docs/rules/{rule}.md"
        assert re.search(r'"(op\.cpu|op\.gpu|dataloader/)', text("rules/builtin") + text("rules/evaluate"))


def test_a_rule_asks_only_for_what_the_hook_gives():
    """Collections and statistics that built-in rules need."""
    table = (ROOT / "core/collections.cc").read_text(encoding="utf-8")
    known = set(re.findall(r'\.name = "(\w+)"', table))
    words = set(re.findall(r'"(\w+)"', (ROOT / "core/statistics.cc").read_text(encoding="utf-8")))
    asked = 0
    for path in sorted((ROOT / "rules/builtin").rglob("*.cc")):
        for needs in re.findall(r"std::vector<Need> needs\([^)]*\) {\s*return (.*?);\s*}", path.read_text(encoding="utf-8"), re.DOTALL):
            asked += 1
            for collection, statistics in re.findall(r'{"(\w+)"(?:, {([^}]*)})?', needs):
                assert collection in known, (path.name, collection)
                for statistic in re.findall(r'"(\w+)', statistics):
                    assert statistic in words | {"raw"}, (path.name, statistic)
    assert asked > 20
