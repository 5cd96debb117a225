"""What `tocsin schema vocabulary` says, as tables of pages and as the module that the Python package carries."""

import re
import textwrap

VOCABULARY = re.compile(r"(<!-- vocabulary:begin (?P<table>\w+) -->\n)(?P<body>.*?)(<!-- vocabulary:end -->)", re.DOTALL)


def collection_table(collections):
    out = "| Collection | Holds | Roles | By name, where no role is stated | Saved by itself |\n|---|---|---|---|---|\n"
    for one in collections:
        roles = ", ".join(one["roles"]) or "–"
        pattern = f"`{one['include']}`" if one["include"] else "–"
        if one["exclude"]:
            pattern += f", not `{one['exclude']}`"
        saved = "yes" if one["standard"] else "–"
        if one["statistics"]:
            saved += ", with " + ", ".join(f"`{word}`" for word in one["statistics"])
        if one["modes"]:
            saved += "; in " + ", ".join(one["modes"]) + " only"
        out += f"| `{one['name']}` | {one['holds']} | {roles} | {pattern} | {saved} |\n"
    return out


def column_table(statistics):
    out = "| # | Column | Meaning |\n|---|---|---|\n"
    for one in statistics:
        if one["form"] == "column":
            out += f"| {one['id']} | `{one['name']}` | {one['meaning']} |\n".replace("|x|", "\\|x\\|")
    return out


def asked_table(statistics):
    out = "| Statistic | Number | Asked for by | Meaning | From the hook |\n|---|---|---|---|---|\n"
    for one in statistics:
        if one["form"] in ("column", "derived"):
            continue
        number = f"{one['id']:#x}" if one["id"] >= 0x8000 else str(one["id"])
        word = one["request"] + (f"({', '.join(one['parameters'])})" if one["parameters"] else "")
        meaning = one["meaning"].replace("|", "\\|")
        out += (f"| `{one['name']}` | {one['form']} {number} | " + (f"`{word}`" if word else "–")
                + f" | {meaning} | {'yes' if one['given'] else '–'} |\n")
    return out


def with_vocabulary(text, words):
    """The tables between vocabulary markers."""
    def fill(match):
        tables = {"collections": lambda: collection_table(words["collections"]),
                  "columns": lambda: column_table(words["statistics"]),
                  "asked": lambda: asked_table(words["statistics"])}
        return f"{match[1]}\n{tables[match['table']]()}\n{match[4]}"
    return VOCABULARY.sub(fill, text)


def python_vocabulary(words):
    """python/tocsin/library/vocabulary.py: the package works without the program beside it."""
    out = '"""The words and codes of the library. Written by tools/docs from `tocsin schema vocabulary`."""\n'
    for name in ("modes", "dtypes", "roles"):
        pairs = ", ".join(f'"{word}":\N{NO-BREAK SPACE}{code}' for word, code in words[name].items())
        filled = textwrap.fill(f"{name.upper()} = {{{pairs}}}", 100, subsequent_indent=" " * (len(name) + 4))
        out += "\n" + filled.replace("\N{NO-BREAK SPACE}", " ") + "\n"
    asked = dict.fromkeys(one["request"] for one in words["statistics"] if one["request"])
    for name, listed in (("COLLECTIONS", [one["name"] for one in words["collections"]]), ("STATISTICS", asked)):
        listed = ", ".join(f'"{word}"' for word in listed)
        out += "\n" + textwrap.fill(f"{name} = ({listed})", 100, subsequent_indent=" " * (len(name) + 4)) + "\n"
    pairs = []
    for role in words["roles"]:
        taken = [one["name"] for one in words["collections"] if role in one["roles"]]
        if taken:
            names = "\N{NO-BREAK SPACE}".join(f'"{name}",' for name in taken)
            pairs.append(f'"{role}":\N{NO-BREAK SPACE}({names})')
    filled = textwrap.fill(f"COLLECTIONS_OF = {{{', '.join(pairs)}}}", 100, subsequent_indent=" " * 18)
    return out + "\n" + filled.replace("\N{NO-BREAK SPACE}", " ") + "\n"
