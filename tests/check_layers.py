#!/usr/bin/env python3
"""Checks what may stand where, as tests/layers.txt says: which rooms, libraries, clocks, sleeps, threads, locks,
chance and environment, and that tests enter a room by its door.

usage: check_layers.py ROOT. Prints every breach as file:line and exits 1 if there is one.

A room's door is <room>/<room>.h with the headers that it includes from its room; every header of core is public.
"""
import pathlib
import re
import sys

# Doors are <room>/<room>.h. core has no single door: each of its headers is public.
EVERY_HEADER_PUBLIC = {"core"}
TESTS = ("tests", "bench")
INCLUDE = re.compile(r'^\s*#\s*include\s+(["<])([^">]+)[">]')

# What a section guards, by the words of the code.
GUARDED = {
    "clock": re.compile(r"_clock::now\b|\bclock_gettime\s*\(|\bgettimeofday\s*\(|(?<![\w.>:])time\s*\(\s*(?:nullptr|NULL|0|&)"),
    "sleep": re.compile(r"\bsleep_for\b|\bsleep_until\b|\busleep\s*\(|\bnanosleep\s*\(|(?<![\w.>:])sleep\s*\("),
    "thread": re.compile(r"\bstd::j?thread\b(?!::)|\bpthread_create\b|\bstd::async\b"),
    "lock": re.compile(r"\bstd::(?:shared_|recursive_|timed_)*mutex\b|\bstd::condition_variable\w*|\bpthread_mutex"),
    "chance": re.compile(r"\brandom_device\b|\bmt19937\w*|\bdefault_random_engine\b|(?<![\w.>])s?rand\s*\("),
    "environment": re.compile(r"\b(?:secure_)?getenv\s*\(|\bgethostname\s*\("),
}
SYSTEM = re.compile(r"(?:(?:sys|net|netinet|arpa|linux|asm)/)?[a-z0-9_]+\.h")
# Headers of the C library that are C++'s under their older names.
PLAIN = {"stdint.h", "stddef.h", "signal.h", "math.h", "string.h", "assert.h"}


class Rules:
    """tests/layers.txt."""

    def __init__(self, text):
        self.rooms, self.libraries, self.places, self.tests = {}, {}, {name: {} for name in ("system", *GUARDED)}, {}
        section = None
        for number, line in enumerate(text.splitlines(), 1):
            heading = re.match(r"\[(\w+)\]", line)
            if heading:
                section = heading[1]
                continue
            words = line.split("#")[0].strip()
            if not words:
                continue
            if section == "rooms":
                room, allowed = words.split(":")
                self.rooms[room.strip()] = set(allowed.split())
            elif section == "libraries":
                prefix, places = words.split(":", 1)
                self.libraries[prefix.strip()] = {place: number for place in places.split()}
            elif section == "tests":
                folder, headers = words.split(":", 1)
                if "#" not in line:
                    raise SystemExit(f"tests/layers.txt:{number}: say why, behind a #")
                for header in headers.split():
                    self.tests[(folder.strip(), header)] = number
            elif section in self.places:
                self.places[section].update({place: number for place in words.split()})
            else:
                raise SystemExit(f"tests/layers.txt:{number}: no section [{section}]")
        self.needed = set()  # (section, place) that something relies on

    def allows(self, section, table, path):
        """Is `path` one of the places of `table`, or below one?"""
        fitting = [place for place in table if path == place or (place.endswith("/") and path.startswith(place))]
        self.needed.update((section, place) for place in fitting)
        return bool(fitting)

    def unneeded(self):
        for prefix, places in self.libraries.items():
            for place, number in places.items():
                if (prefix, place) not in self.needed:
                    yield f"tests/layers.txt:{number}: {place} includes no {prefix}; take it out"
        for section, places in self.places.items():
            for place, number in places.items():
                if (section, place) not in self.needed:
                    yield f"tests/layers.txt:{number}: [{section}] {place} needs no leave; take it out"
        for (folder, header), number in self.tests.items():
            if ("tests", (folder, header)) not in self.needed:
                yield f"tests/layers.txt:{number}: no test of {folder} includes {header}; take it out"


def bare(line):
    """Without comment and texts, in which words are only words."""
    return re.sub(r'"(?:\\.|[^"\\])*"', '""', line).split("//")[0]


def sources(root, folder):
    for path in sorted((root / folder).rglob("*")):
        if path.suffix in {".h", ".cc"}:
            yield path.relative_to(root).as_posix(), path.read_text().splitlines()


def doors(root, room):
    """The room's public headers."""
    door = root / room / f"{room}.h"
    inner = re.findall(rf'#include "({room}/[^"]+)"', door.read_text()) if door.exists() else []
    return {f"{room}/{room}.h", *inner}


def check_include(rules, room, where, path, quote, target):
    other = target.split("/")[0]
    if quote == '"':
        if other in rules.rooms and other != room:
            if other not in rules.rooms[room]:
                yield f"{where}: {room} may not include {other}"
            elif other not in EVERY_HEADER_PUBLIC and target != f"{other}/{other}.h":
                yield f"{where}: include {other} by its door {other}/{other}.h, not {target}"
        return
    owners = [prefix for prefix in rules.libraries if target.startswith(prefix)]
    if owners:
        if not rules.allows(owners[0], rules.libraries[owners[0]], path):
            yield f"{where}: <{target}> belongs to {' '.join(sorted(rules.libraries[owners[0]]))}"
    elif target in PLAIN or re.fullmatch(r"[a-z_]+", target):
        return
    elif SYSTEM.fullmatch(target):
        if not rules.allows("system", rules.places["system"], path):
            yield f"{where}: <{target}> is the operating system's; {path} gets what it needs as values or ports"
    else:
        yield f"{where}: <{target}> is of no library that tests/layers.txt knows"


def check_room(root, rules, room):
    for path, lines in sources(root, room):
        for number, line in enumerate(lines, 1):
            where = f"{path}:{number}"
            include = INCLUDE.match(line)
            if include:
                yield from check_include(rules, room, where, path, *include.groups())
                continue
            code = bare(line)
            for section, words in GUARDED.items():
                found = words.search(code)
                if found and not rules.allows(section, rules.places[section], path):
                    yield f"{where}: {found[0].strip('( ')}: no {section} here (tests/layers.txt says where)"


def check_tests(root, rules, folder):
    """Tests and benches use what users of a room use; unit tests of a room also its inner folders."""
    public = {room: doors(root, room) for room in rules.rooms}
    for path, lines in sources(root, folder):
        own = path.split("/")[2] if path.startswith("tests/unit/") else None
        for number, line in enumerate(lines, 1):
            include = INCLUDE.match(line)
            target = include[2] if include and include[1] == '"' else ""
            room = target.split("/")[0]
            if room not in rules.rooms or room in EVERY_HEADER_PUBLIC or target in public[room]:
                continue
            if room == own and target.count("/") > 1:
                continue
            listed = [key for key in rules.tests if key[1] == target and path.startswith(key[0])]
            rules.needed.update(("tests", key) for key in listed)
            if not listed:
                yield f"{path}:{number}: enter {room} by its door {room}/{room}.h, not {target}"


def breaches(root):
    rules = Rules((root / "tests" / "layers.txt").read_text())
    for room in rules.rooms:
        yield from check_room(root, rules, room)
    for folder in TESTS:
        yield from check_tests(root, rules, folder)
    yield from rules.unneeded()


def main():
    found = list(breaches(pathlib.Path(sys.argv[1])))
    print("\n".join(found) if found else "layers: everything stands where it may")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
