"""The picture of the house, drawn from tests/layers.txt: which rooms and inner rooms there are, and which they know.

tests/check_layers.py holds the file to the includes, so that the picture is what the includes say.
"""
import pathlib
import re
import sys

ROOT = pathlib.Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT / "tests"))
import check_layers  # noqa: E402

HOUSE = re.compile(r"(<!-- house:begin (?P<what>[\w/]+) -->\n)(?P<body>.*?)(<!-- house:end -->)", re.DOTALL)


def layers():
    return check_layers.Rules((ROOT / "tests" / "layers.txt").read_text())


def without_shortcuts(ways):
    """Only the ways that no longer way stands for: a picture of them has no line too many."""
    def reached(start, skip):
        seen, waiting = set(), [other for other in ways[start] if other != skip]
        while waiting:
            one = waiting.pop()
            if one not in seen:
                seen.add(one)
                waiting.extend(ways[one])
        return seen
    return {start: {other for other in others if other not in reached(start, other)} for start, others in ways.items()}


def rooms_picture(rules):
    """Rooms as a graph: an arrow leads from a room to one that it includes."""
    ways = without_shortcuts({room: set(known) for room, known in rules.rooms.items()})
    lines = ["```mermaid", "flowchart TD", *(f'  {room.replace("/", "_")}["{room}"]' for room in ways)]
    lines += [f"  {room.replace('/', '_')} --> {other.replace('/', '_')}" for room in ways for other in sorted(ways[room])]
    return "\n".join([*lines, "```"]) + "\n"


def inner_table(rules, room):
    """The inner rooms of a room, those that know nothing first."""
    folders = [folder for folder in rules.holds if rules.room_of(folder + "/") == room]
    ways = {folder: {other for mine, other in rules.knows if mine == folder} for folder in folders}
    level = {}

    def depth(folder):
        if folder not in level:
            level[folder] = 1 + max((depth(other) for other in ways[folder]), default=-1)
        return level[folder]

    short = {folder: "." if folder == room else folder[len(room) + 1:] for folder in folders}
    nearest = without_shortcuts(ways)
    out = "| Inner room | Holds | Knows, directly |\n|---|---|---|\n"
    for folder in sorted(folders, key=lambda one: (depth(one), one)):
        known = ", ".join(f"`{short[other]}`" for other in sorted(nearest[folder])) or "–"
        out += f"| `{short[folder]}` | {rules.holds[folder]} | {known} |\n"
    return out


def with_house(text):
    """`<!-- house:begin rooms -->` gets the graph, `<!-- house:begin ROOM -->` the table of its inner rooms."""
    if not HOUSE.search(text):
        return text
    rules = layers()

    def fill(match):
        what = match["what"]
        if what != "rooms" and what not in rules.rooms:
            raise SystemExit(f"<!-- house:begin {what} -->: there is no room {what}")
        return f"{match[1]}\n{rooms_picture(rules) if what == 'rooms' else inner_table(rules, what)}\n{match[4]}"
    return HOUSE.sub(fill, text)
