#!/usr/bin/env python3
"""Checks what may stand where, as tests/layers.txt says: which rooms, inner rooms, libraries, clocks, sleeps, threads,
locks, chance and environment, and that tests enter a room by its door.

usage: check_layers.py ROOT [--inner]. Prints every breach as file:line and exits 1 if there is one.
--inner: prints the section [inner] as the includes are now, to be compared with the file.

A room's door is <room>/<last part of room>.h with the headers that it includes from its room; every header of core is
public. An inner room is a folder of a room with code; the room's own folder is written `.`.
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
    "lock": re.compile(r"\bcore::(?:Mutex|CondVar|StoppableCondVar)\b"),
    "bare_lock": re.compile(r"\bstd::(?:\w+_)?mutex\b|\bstd::condition_variable\w*|\bpthread_(?:mutex|rwlock|cond)_"
                            r"|\bstd::(?:lock_guard|unique_lock|scoped_lock|shared_lock)\b"),
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
        self.doors = {}  # header beside a room's door: line
        self.knows = {}  # (inner room, inner room that it may include): line
        self.inner_doors = {}  # header that other inner rooms may include: line
        self.holds = {}  # inner room: what is in it, in words
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
            elif section == "doors":
                self.doors[words] = number
            elif section == "inner":
                self.read_inner(words, line.partition("#")[2].strip(), number)
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
        self.has_doors = {folder_of(header) for header in self.inner_doors}

    def read_inner(self, words, holds, number):
        """`room/folder: folders it includes | headers that others include  # what it holds`, relative to the room."""
        folder, rest = words.split(":", 1)
        if not holds:
            raise SystemExit(f"tests/layers.txt:{number}: say what {folder} holds, behind a #")
        self.holds[folder.strip()] = holds
        room = self.room_of(folder.strip() + "/")
        others, _, headers = rest.partition("|")
        for other in others.split():
            self.knows[(folder.strip(), room if other == "." else f"{room}/{other}")] = number
        for header in headers.split():
            self.inner_doors[f"{folder.strip()}/{header}"] = number

    def room_of(self, path):
        """The room that holds this file: the longest name that fits."""
        fitting = [room for room in self.rooms if path.startswith(room + "/")]
        return max(fitting, key=len) if fitting else None

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
        for header, number in self.doors.items():
            if ("doors", header) not in self.needed:
                yield f"tests/layers.txt:{number}: no other room includes {header}; take it out"
        for (folder, other), number in self.knows.items():
            if ("knows", folder, other) not in self.needed:
                yield f"tests/layers.txt:{number}: {folder} includes nothing of {other}; take it out"
        for header, number in self.inner_doors.items():
            if ("inner", header) not in self.needed:
                yield f"tests/layers.txt:{number}: no other inner room includes {header}; take it out"
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


def door_of(room):
    return f"{room}/{room.split('/')[-1]}.h"


def doors(root, room):
    """The room's public headers."""
    door = root / door_of(room)
    inner = re.findall(rf'#include "({room}/[^"]+)"', door.read_text()) if door.exists() else []
    return {door_of(room), *inner}


def folder_of(path):
    return path.rsplit("/", 1)[0]


def unlisted(root, rules):
    """Folders with code that [inner] does not name."""
    for room in rules.rooms:
        for folder in sorted({folder_of(path) for path, _ in sources(root, room) if rules.room_of(path) == room} - set(rules.holds)):
            yield f"tests/layers.txt: [inner] has no line for {folder}; tests/check_layers.py . --inner prints it"


def check_include(rules, room, where, path, quote, target, public):
    if quote == '"':
        other = rules.room_of(target)
        if other is None:
            return
        if other == room:
            yield from check_inner(rules, where, path, target, public)
        elif target in rules.doors:
            rules.needed.add(("doors", target))
        elif other not in rules.rooms[room]:
            yield f"{where}: {room} may not include {other}"
        elif other not in EVERY_HEADER_PUBLIC and target != door_of(other):
            yield f"{where}: include {other} by its door {door_of(other)}, not {target}"
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


def check_inner(rules, where, path, target, public):
    """From one inner room into another: both the way and the header must be listed. The room's door is everybody's."""
    mine, other = folder_of(path), folder_of(target)
    if mine == other or target in public:
        return
    rules.needed.update({("knows", mine, other), ("inner", target)})
    if (mine, other) not in rules.knows:
        yield f"{where}: {mine} may not include {other} (tests/layers.txt, [inner])"
    elif target not in rules.inner_doors:
        yield f"{where}: {target} is no door of {other} (tests/layers.txt, [inner])"


def circles(rules):
    """Ways that lead back to where they began."""
    ways = {}
    for mine, other in rules.knows:
        ways.setdefault(mine, []).append(other)
    done, path = set(), []

    def walk(folder):
        if folder in path:
            yield f"tests/layers.txt: a circle: {' -> '.join([*path[path.index(folder):], folder])}"
            return
        if folder in done:
            return
        path.append(folder)
        for other in ways.get(folder, ()):
            yield from walk(other)
        path.pop()
        done.add(folder)

    for folder in sorted(ways):
        yield from walk(folder)


def check_room(root, rules, room):
    public = doors(root, room)
    for path, lines in sources(root, room):
        if rules.room_of(path) != room:
            continue
        for number, line in enumerate(lines, 1):
            where = f"{path}:{number}"
            include = INCLUDE.match(line)
            if include:
                yield from check_include(rules, room, where, path, *include.groups(), public)
                continue
            code = bare(line)
            for section, words in GUARDED.items():
                found = words.search(code)
                if found and not rules.allows(section, rules.places[section], path):
                    yield f"{where}: {found[0].strip('( ')}: no {section} here (tests/layers.txt says where)"


def check_tests(root, rules, folder):
    """Tests and benches use what users of a room use; unit tests of a room also the doors of its inner rooms."""
    public = {room: doors(root, room) for room in rules.rooms}
    for path, lines in sources(root, folder):
        own = rules.room_of(path.removeprefix("tests/unit/")) if path.startswith("tests/unit/") else None
        for number, line in enumerate(lines, 1):
            include = INCLUDE.match(line)
            target = include[2] if include and include[1] == '"' else ""
            room = rules.room_of(target)
            if room is None or room in EVERY_HEADER_PUBLIC or target in public[room] or target in rules.doors:
                continue
            if room == own and (target in rules.inner_doors or folder_of(target) not in {room, *rules.has_doors}):
                continue
            listed = [key for key in rules.tests if key[1] == target and path.startswith(key[0])]
            rules.needed.update(("tests", key) for key in listed)
            if not listed:
                yield f"{path}:{number}: enter {room} by its door {door_of(room)}, not {target}"


def inner_section(root, rules):
    """[inner] as the includes are."""
    knows, headers = {}, {}
    for room in rules.rooms:
        public = doors(root, room)
        for path, lines in sources(root, room):
            if rules.room_of(path) != room:
                continue
            knows.setdefault(folder_of(path), set())
            for line in lines:
                include = INCLUDE.match(line)
                target = include[2] if include and include[1] == '"' else ""
                if rules.room_of(target) != room or target in public or folder_of(target) == folder_of(path):
                    continue
                other = folder_of(target)
                knows[folder_of(path)].add("." if other == room else other[len(room) + 1:])
                headers.setdefault(other, set()).add(target[len(other) + 1:])
    for folder in sorted(knows):
        ways, inside = " ".join(sorted(knows[folder])), " ".join(sorted(headers.get(folder, ())))
        yield " ".join(filter(None, [f"{folder}:", ways, inside and f"| {inside}", f" # {rules.holds.get(folder, '?')}"]))


def breaches(root):
    rules = Rules((root / "tests" / "layers.txt").read_text())
    for room in rules.rooms:
        yield from check_room(root, rules, room)
    for folder in TESTS:
        yield from check_tests(root, rules, folder)
    yield from circles(rules)
    yield from unlisted(root, rules)
    yield from rules.unneeded()


def main():
    if "--inner" in sys.argv:
        root = pathlib.Path(sys.argv[1])
        print("\n".join(inner_section(root, Rules((root / "tests" / "layers.txt").read_text()))))
        return 0
    found = list(breaches(pathlib.Path(sys.argv[1])))
    print("\n".join(found) if found else "layers: everything stands where it may")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
