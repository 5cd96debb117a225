"""Cyclomatic complexity of C++ functions: one, and one for each if, for, while, case, catch, ?, && and ||.

Lambdas and local classes count for the function that they stand in. Reads files as clang-format leaves them: `a && b` is
a decision, `T&& x` is not.
"""

import re

LIMIT = 20
NOISE = re.compile(
    r'//[^\n]*|/\*.*?\*/|^[ \t]*#(?:[^\n\\]|\\.)*'        # comments, directives
    r'|R"(\w*)\(.*?\)\1"|"(?:[^"\\\n]|\\.)*"'             # strings
    r"|(?<![0-9A-Fa-f])'(?:[^'\\\n]|\\.)+'", re.DOTALL | re.MULTILINE)
TOKEN = re.compile(r"\w+|::|->|(?<=\s)&&(?=\s)|(?<=\s)\|\|(?=\s)|\S")
DECISIONS = {"if", "for", "while", "case", "catch", "?", "&&", "||"}
SCOPES = {"namespace", "class", "struct", "union", "enum", "extern"}
BEFORE_BODY = {")", "}", "const", "noexcept", "override", "final", "mutable", "try", "&"}


def blanked(text):
    """Without comments, strings and directives; lines stay where they are."""
    return NOISE.sub(lambda found: "\n" * found.group().count("\n") + " ", text)


def without_templates(head):
    """A declaration behind its `template <…>` and attributes."""
    at = 0
    while at < len(head) and head[at] in ("template", "["):
        opening, closing = ("<", ">") if head[at] == "template" else ("[", "]")
        depth = 0
        while at < len(head):
            depth += (head[at] == opening) - (head[at] == closing)
            at += 1
            if depth == 0 and head[at - 1] == closing:
                break
    return head[at:]


def kind_of_brace(head):
    """What `{` begins behind these tokens: "scope", "function" or "values"."""
    said = without_templates(head)
    if said and said[0] in SCOPES:
        return "scope"
    if "(" not in said or said.count("(") > said.count(")"):
        return "values" if said else "scope"
    behind = said[len(said) - said[::-1].index(")"):]
    return "function" if said[-1] in BEFORE_BODY or "->" in behind else "values"


def name_of(head):
    said = without_templates(head)
    at = said.index("(")
    start = at
    while start > 0 and (re.fullmatch(r"\w+|::|~", said[start - 1])) and not (
            start < at and re.fullmatch(r"\w+", said[start]) and re.fullmatch(r"\w+", said[start - 1])):
        start -= 1
    return "".join(said[start:at]) or "operator"


def functions(text):
    """(line, name, complexity) of each function that is defined in a file."""
    text = blanked(text)
    found, stack, head = [], [], []
    name, line, count = None, 0, 0
    for token in TOKEN.finditer(text):
        word = token.group()
        if word == "{":
            kind = "block" if name is not None else kind_of_brace(head)
            if kind == "function":
                name, line, count = name_of(head), text.count("\n", 0, token.start()) + 1, 1
            stack.append((kind, head))
            head = []
        elif word == "}" and stack:
            kind, before = stack.pop()
            if kind == "function":
                found.append((line, name, count))
                name = None
            head = before + ["}"] if kind == "values" else []
        elif name is not None:
            count += word in DECISIONS
        elif word == ";" or (word == ":" and head and head[-1] in ("public", "private", "protected")):
            if head.count("(") == head.count(")"):
                head = []
        else:
            head.append(word)
    return found


def problems(root, paths, limit=LIMIT):
    """How many functions were seen, and a line for each above the limit."""
    seen, lines = 0, []
    for path in paths:
        for line, name, count in functions((root / path).read_text(errors="replace")):
            seen += 1
            if count > limit:
                lines.append(f"{path}:{line}: {name} has a cyclomatic complexity of {count}, more than {limit}: "
                             "split it into functions that say what they do")
    return seen, lines
