#!/usr/bin/env python3
"""Checks the one-way doors between rooms: who includes whom, and only through the door header.

usage: check_layers.py ROOT. Prints every breach as file:line and exits 1 if there is one.
"""
import pathlib
import re
import sys

# Third-party headers and the only rooms that may include them (app may include what it joins).
PRIVATE = {
    "yaml-cpp/": {"config"}, "librdkafka/": {"ingest"}, "sqlite3.h": {"ingest"}, "curl/": {"actions"}, "mosquitto": {"actions"}, "kainjow/": {"actions"},
    "hwy/": {"collectors"}, "re2/": {"config", "rules", "routing", "collectors", "app"},
    "spdlog/": {"app"}, "CLI/": {"app"}, "boost/": {"app", "collectors"}, "prometheus/": {"app"},
}
# Doors are <room>/<room>.h. core has no single door: each of its headers is public.
EVERY_HEADER_PUBLIC = {"core"}


def rooms(root):
    table = {}
    for line in (root / "tests" / "layers.txt").read_text().splitlines():
        line = line.split("#")[0].strip()
        if line:
            room, allowed = line.split(":")
            table[room.strip()] = set(allowed.split())
    return table


def breaches(root, table):
    include = re.compile(r'^\s*#include\s+(["<])([^">]+)[">]')
    for room, allowed in table.items():
        for path in sorted((root / room).rglob("*")):
            if path.suffix not in {".h", ".cc"}:
                continue
            for number, line in enumerate(path.read_text().splitlines(), 1):
                match = include.match(line)
                if not match:
                    continue
                where = f"{path.relative_to(root)}:{number}"
                target = match.group(2)
                other = target.split("/")[0]
                if match.group(1) == '"' and other in table and other != room:
                    if other not in allowed:
                        yield f"{where}: {room} may not include {other} (tests/layers.txt)"
                    elif other not in EVERY_HEADER_PUBLIC and target != f"{other}/{other}.h":
                        yield f"{where}: include {other} by its door {other}/{other}.h, not {target}"
                for prefix, owners in PRIVATE.items():
                    if target.startswith(prefix) and room not in owners:
                        yield f"{where}: {target} belongs to {', '.join(sorted(owners))}"


def main():
    root = pathlib.Path(sys.argv[1])
    found = list(breaches(root, rooms(root)))
    print("\n".join(found) if found else "layers: every include goes through an allowed door")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
