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


def with_vocabulary(text, words):
    """The tables between vocabulary markers."""
    def fill(match):
        tables = {"collections": lambda: collection_table(words["collections"])}
        return f"{match[1]}\n{tables[match['table']]()}\n{match[4]}"
    return VOCABULARY.sub(fill, text)


def python_vocabulary(words):
    """python/tocsin/_vocabulary.py: the package works without the program beside it."""
    out = '"""The words and codes of the library. Written by tools/docs from `tocsin schema vocabulary`."""\n'
    for name in ("modes", "dtypes", "roles"):
        out += "\n" + textwrap.fill(f"{name.upper()} = {{" + ", ".join(f'"{word}": {code}' for word, code in words[name].items())
                                    + "}", 100, subsequent_indent=" " * (len(name) + 4)) + "\n"
    listed = ", ".join(f'"{one["name"]}"' for one in words["collections"])
    return out + "\n" + textwrap.fill(f"COLLECTIONS = ({listed})", 100, subsequent_indent=" " * 15) + "\n"
