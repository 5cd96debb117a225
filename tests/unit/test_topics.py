"""Every topic of core/topics.h and core/audit_topic.h is written and read by the product, and nobody spells its name anew."""

import pathlib
import re

ROOT = pathlib.Path(__file__).resolve().parents[2]
ROOMS = ("core", "config", "ingest", "rules", "routing", "actions", "collectors", "app")

NAMES = re.compile(r'inline constexpr const char\* (k\w+) = "([\w-]+)";')
# How records get their topic, and how a reader says what it reads.
WRITES = r"\.topic = (?:core::)?topic::{0};|record\((?:core::)?topic::{0},|OutRecord \w+\{{(?:core::)?topic::{0},"
READS = r"topics = \{{[^}}]*topic::{0}\b|kTopics\{{[^}}]*topic::{0}\b|state_topic = core::topic::{0};|lease\(core::topic::{0}\)|reader_of\([^;]*topic::{0}\)" \
        r"|topics\(\) const \{{ return \{{core::topic::{0}\}}"
# What is nobody's to write, or for other programs to read: as the table says.
NOTHING_WRITES = {"router-lease"}
OTHERS_READ = {"metrics"}


def sources():
    return {path.relative_to(ROOT).as_posix(): path.read_text()
            for room in ROOMS for path in sorted((ROOT / room).rglob("*.cc"))}


def declared(header):
    return dict(NAMES.findall(header))


def without_a_hand(header, files):
    """(topics that nothing writes, topics that nothing reads)"""
    text = "\n".join(files.values())
    names = declared(header)
    return ({name for constant, name in names.items() if not re.search(WRITES.format(constant), text)},
            {name for constant, name in names.items() if not re.search(READS.format(constant), text)})


def header():
    return "\n".join((ROOT / "core" / name).read_text() for name in ("topics.h", "audit_topic.h"))


def test_every_topic_has_a_writer_and_a_reader():
    assert len(declared(header())) > 10
    assert without_a_hand(header(), sources()) == (NOTHING_WRITES, OTHERS_READ)


def test_a_topic_without_a_hand_is_found():
    planned = header() + '\ninline constexpr const char* kPlanned = "router-planned";\n'
    unwritten, unread = without_a_hand(planned, sources())
    assert "router-planned" in unwritten and "router-planned" in unread
    quiet = {name: text for name, text in sources().items() if name != "collectors/hook/publish/announcer.cc"}
    quiet["ingest/events/events.cc"] = quiet["ingest/events/events.cc"].replace("record(core::topic::kAcks", "record(other")
    assert "acks" in without_a_hand(header(), quiet)[0]


def test_the_table_says_which_topics_have_no_hand_of_ours():
    table = (ROOT / "core" / "topics.cc").read_text()
    rows = dict(re.findall(r"\{topic::(k\w+),(.*?)\}(?=,\n    \{topic|,\n\};)", table, re.DOTALL))
    names = declared(header())
    assert set(rows) == set(names)
    assert {names[constant] for constant, row in rows.items() if '"other programs"' in row} == OTHERS_READ
    assert {names[constant] for constant, row in rows.items() if re.search(r'"",\s*"`', row)} == NOTHING_WRITES


def test_nobody_spells_a_topic_anew():
    spelled = re.compile(r'(?:topic (?:==|!=|=) |topics = \{[^}]*|\bpartitions\(|\blease\()"[\w-]+"')
    found = [f"{name}: {match[0]}" for name, text in sources().items() if name != "core/topics.cc"
             for match in spelled.finditer(text)]
    assert not found
