"""Counts how a page or a help text reads, so that one reading is enough.

A page is measured without its code blocks and without what stands between generated markers (`<!-- config:begin … -->`
to `<!-- config:end -->`). Inline code and a link are the words that a reader sees, code counts as one. A bullet, a
numbered item and a paragraph end the sentence before them; headings and bold lead-ins are no sentences.
"""

import pathlib
import re
import typing

MEAN_WORDS = 20.0
LONGEST_SENTENCE = 40
LONGEST_CELL = 25
LINES = 250

GENERATED = re.compile(r"^<!-- (\w+):begin[^\n]*-->\n.*?^<!-- \1:end -->\n?", re.MULTILINE | re.DOTALL)
FENCE = re.compile(r"^([ \t]*)(```+|~~~+).*?^[ \t]*\2[ \t]*$\n?", re.MULTILINE | re.DOTALL)
COMMENT = re.compile(r"<!--.*?-->", re.DOTALL)
IMAGE = re.compile(r"!\[[^\]]*\]\([^)]*\)")
LINK = re.compile(r"\[([^\]]*)\](\([^)]*\)|\[[^\]]*\])")
TAG = re.compile(r"</?[a-z][^>]*>", re.IGNORECASE)
CODE = re.compile(r"(`+)(?:(?!\1).)+?\1", re.DOTALL)
ITEM = re.compile(r"[ \t]*(?:[-*+]|\d+[.)])[ \t]+")
LEAD_IN = re.compile(r"\A\*\*[^*]+\*\*(?<=[.:]\*\*)\s+|\A\*\*[^*]+\*\*[.:]\s+")
ABBREVIATION = re.compile(r"\b(e\.g|i\.e|etc|vs|cf|approx|resp)\.(?=\s+[^\sA-Z]|,)|\b(e\.g|i\.e|vs|cf)\.(?=\s)")
END = re.compile(r"[.!?]+[\"'”)\]*_]*(?=\s|$)")
CELL_END = re.compile(r"(?<!\\)\|")


class Figures(typing.NamedTuple):
    """Of one page, in the order of the list's columns."""
    mean: float
    sentence: int
    cell: int
    lines: int

    def over(self, allowed):
        """[(what, figure, allowed)] of each figure that is above."""
        return [(what, ours, limit) for what, ours, limit in zip(NAMES, self, allowed) if ours > limit]


NAMES = ("words per sentence", "words in the longest sentence", "words in the longest cell", "lines")
LIMITS = Figures(MEAN_WORDS, LONGEST_SENTENCE, LONGEST_CELL, LINES)


def seen(text):
    """`text` as a reader sees it, a span of code as one word."""
    text = CODE.sub("code", text)
    text = IMAGE.sub(" ", text)
    text = LINK.sub(r"\1", text)
    return TAG.sub(" ", text)


def words(text):
    return sum(1 for token in text.split() if re.search(r"\w", token))


def blocks(prose):
    """Paragraphs and items; headings and tables left out."""
    block = []
    for line in [*prose.splitlines(), ""]:
        line = re.sub(r"^[ \t]*>[ \t]?", "", line)
        starts = ITEM.match(line)
        ends = not line.strip() or line.lstrip().startswith(("#", "|"))
        if (ends or starts) and block:
            yield "\n".join(block)
            block = []
        if not ends:
            block.append(line[starts.end():] if starts else line.strip())


def sentences(text):
    """Words of each sentence of a page."""
    found = []
    for block in blocks(COMMENT.sub("", without_code(text))):
        block = ABBREVIATION.sub(lambda match: match[0].replace(".", ""), LEAD_IN.sub("", seen(block), 1))
        found += [count for count in map(words, END.split(block)) if count]
    return found


def cells(text):
    """Words of each cell of the tables of a page."""
    rows = [line.strip() for line in without_code(text).splitlines() if line.lstrip().startswith("|")]
    return [words(cell) for row in rows for cell in CELL_END.split(seen(row))]


def without_code(text):
    return FENCE.sub("\n", GENERATED.sub("\n", text))


def measured(text):
    counts = sentences(text)
    mean = round(sum(counts) / len(counts), 1) if counts else 0.0
    return Figures(mean, max(counts, default=0), max(cells(text), default=0), len(GENERATED.sub("", text).splitlines()))


def figures_of(page, root):
    found = measured(page.read_text(encoding="utf-8"))
    return found._replace(lines=0) if page == root / "CHANGELOG.md" else found


# ---- the list of pages that are not there yet

HEAD = """\
# Pages that do not read as the limits of tools/docs_writing.py ask, with their figures of today. The list only
# shrinks: a page may not get worse than its line, and `tools/docs` lowers a line when its page got better.
# words per sentence, longest sentence, longest cell, lines (- where the limit is met), page
"""


def listed(path):
    """{page: its figures}; of a page that a merge brought twice the lower ones."""
    found = {}
    for line in path.read_text(encoding="utf-8").splitlines() if path.exists() else []:
        if line.strip() and not line.startswith("#"):
            *figures, page = line.split(maxsplit=4)
            if len(figures) != 4:
                raise SystemExit(f"{path.name}: not four figures and a page: {line}")
            row = Figures(*(limit if figure == "-" else type(limit)(figure) for figure, limit in zip(figures, LIMITS)))
            found[page] = Figures(*map(min, row, found.get(page, row)))
    return found


def as_list(rows):
    """The file for {page: figures}: those within the limits are left out."""
    out = HEAD
    for page, figures in sorted(rows.items()):
        shown = [str(ours) if ours > limit else "-" for ours, limit in zip(figures, LIMITS)]
        if any(cell != "-" for cell in shown):
            out += "{:>5} {:>4} {:>4} {:>4}  {}\n".format(*shown, page)
    return out


def lowered(rows, figures):
    """The list where no page may be worse than it is, and none worse than it was allowed to be."""
    return {page: Figures(*map(min, rows[page], figures[page])) for page in rows if page in figures}


def problems(figures, path, write):
    """What pages do wrong. `write` lowers the list; it never raises it."""
    rows = listed(path)
    for page, ours in sorted(figures.items()):
        for what, figure, allowed in ours.over(Figures(*map(max, LIMITS, rows.get(page, LIMITS)))):
            yield f"{page}: {figure} {what}, allowed are {allowed}" + (f" ({path.name})" if allowed not in LIMITS else "")
    text = as_list(lowered(rows, figures))
    if path.exists() and text != path.read_text(encoding="utf-8"):
        if write:
            path.write_text(text, encoding="utf-8")
            print(f"wrote {path.name}")
        else:
            yield f"{path.name}: a page got better or is gone, and its line is not lowered; run `make docs`"


# ---- help texts

VERBS = frozenset("""
    accept add allow ask begin capture change check close compare continue copy create describe end export fail follow hold judge last
    limit list log look mark match mute name pass pin plan play print read record remove render replace replay report reset route run say send serve
    set show start stop switch take test treat use validate wait watch withdraw write
""".split())

def subcommands(text):
    """{name: what its line says} of a help text."""
    section = re.search(r"^Subcommands:\n((?:  .*\n)+)", text, re.MULTILINE)
    return dict(re.findall(r"^  (\S+) +(.*)$", section[1], re.MULTILINE)) if section else {}


def options(text):
    """[(option, what it does)] of a help text. What it does stands in one column, or on the next line."""
    lines = text.splitlines()
    column = next((line.index("Print this help") for line in lines if line.lstrip().startswith("-h,--help ")), 0)
    for line, following in zip(lines, [*lines[1:], ""]):
        if re.match(r"  --?\w", line):
            below = following.startswith(" " * column)
            yield line.split()[0], (following if below else line[column:]).strip()


def help_problems(command, text):
    """Lines of a command's help that do not begin with a verb, or end with a full stop."""
    lines = [("", (text.splitlines() or [""])[0]), *subcommands(text).items(), *options(text)]
    for name, line in lines:
        where = " ".join(part for part in (command, "--help", name) if part)
        first = line.split()[0].rstrip(",:") if line.split() else "nothing"
        if first.lower() not in VERBS or not first[0].isupper():
            yield f"{where}: begins with {first}, not with a verb of tools/docs_writing.py: {line}"
        if line.endswith("."):
            yield f"{where}: ends with a full stop: {line}"


def all_help_problems(run):
    """Of the program and all its commands; `run(*arguments)` gives what it prints."""
    waiting = [()]
    while waiting:
        command = waiting.pop()
        text = run(*command, "--help")
        yield from help_problems(" ".join(("tocsin", *command)), text)
        waiting += [(*command, name) for name in subcommands(text)]


def list_of(root):
    return root / "tools" / "writing.txt"


def page_problems(pages, root, write):
    """Of all pages of the project, beside the list."""
    figures = {pathlib.Path(page).relative_to(root).as_posix(): figures_of(page, root) for page in pages}
    yield from problems(figures, list_of(root), write)
