"""Keys that many parts have stand on one page: those of every action, of every action over HTTP, of every rule.

A page of a part lists its own keys, and of the common ones those whose value differs from the usual one.
"""
import collections
import typing

ACTIONS = "receivers.<name>."
ACTION_HEAD = "| Key | Type | Default | Valid | Meaning |\n|---|---|---|---|---|\n"
RULE_HEAD = "| Parameter | Preset `tocsin` | Preset `original` | Meaning |\n|---|---|---|---|\n"
RULE_PAGE = "README.md#parameters-that-rules-share"
SELECTION = "collection_names"  # a rule without it judges nothing that could be selected


class Key(typing.NamedTuple):
    name: str
    value: str    # the cells that may differ from part to part: its defaults
    meaning: str  # all other cells


def usual(parts, share=1.0):
    """{name: its key with the usual value}, of the keys that so many of `parts` have and mean the same by."""
    found = {}
    for name in dict.fromkeys(key.name for part in parts for key in part):
        meanings = collections.Counter(key.meaning for part in parts for key in part if key.name == name)
        meaning, count = meanings.most_common(1)[0]
        if count >= share * len(parts):
            keys = [key for part in parts for key in part if (key.name, key.meaning) == (name, meaning)]
            value = collections.Counter(key.value for key in keys).most_common(1)[0][0]
            found[name] = next(key for key in keys if key.value == value)
    return found


def other_than(common, keys):
    """The part's own keys, then the common ones that differ."""
    return sorted((key for key in keys if common.get(key.name) != key), key=lambda key: key.name in common)


# ---- actions

def action_keys(rows):
    """{action: its keys}, of the rows of the schema."""
    found = {}
    for path, rest in rows:
        if path.startswith(ACTIONS):
            action, _, key = path[len(ACTIONS):].partition(".")
            cells = rest.split("|")
            if key:
                found.setdefault(action, []).append(Key(key, cells[1], "|".join(cells[:1] + cells[2:])))
    return found


def action_row(key):
    head, _, tail = key.meaning.partition("|")
    return f"| `{key.name}` |{head}|{key.value}|{tail}\n"


def common_keys(actions):
    """({name: key} of every action, the same of every one over HTTP beyond these)."""
    every = usual(list(actions.values()))
    http = usual([keys for keys in actions.values() if any(key.name == "allow_private" for key in keys)])
    return every, {name: key for name, key in http.items() if name not in every}


def common_action_table(rows, which):
    every, http = common_keys(action_keys(rows))
    return ACTION_HEAD + "".join(map(action_row, (every if which == "every-action" else http).values()))


def action_table(rows, name):
    actions = action_keys(rows)
    if name not in actions:
        return ""
    every, http = common_keys(actions)
    own = other_than({**every, **http}, actions[name])
    links = ["[every action](keys.md#every-action)"]
    if any(key.name == "allow_private" for key in actions[name]):
        links.append("[every action over HTTP](keys.md#every-action-over-http)")
    beside = "Beside these it has the keys of " + " and of ".join(links) + "."
    if any(key.name in every or key.name in http for key in own):
        beside += " A common key stands here if its default differs."
    return (ACTION_HEAD + "".join(map(action_row, own)) + "\n" if own else "") + beside + "\n"


# ---- rules

def rule_keys(parameters):
    """Of [name, value with preset tocsin, with preset original or None, meaning]."""
    return [Key(name, f"`{ours}` | " + ("–" if theirs is None else f"`{theirs}`"), meaning) for name, ours, theirs, meaning in parameters]


def rule_row(key):
    return f"| `{key.name}` | {key.value} | {key.meaning} |\n"


def common_parameters(rules):
    """{name: key} of every rule: first those that choose what is judged, which some rules have no use for."""
    every = usual(rules)
    choice = usual([keys for keys in rules if any(key.name == SELECTION for key in keys)], 0.9)
    return {**{name: key for name, key in choice.items() if name not in every}, **every}


def common_rule_table(rules):
    return RULE_HEAD + "".join(map(rule_row, common_parameters(rules).values()))


def rule_table(keys, common):
    """The rule's own parameters, and of the common ones those with another value."""
    own = other_than(common, keys)
    if not keys:
        return ""
    chooses = any(key.name == SELECTION for key in keys)
    beside = f"Beside these it has {'the' if chooses else 'the last five'} [parameters that rules share]({RULE_PAGE})"
    missing = [f"`{name}`" for name in common if name not in [key.name for key in keys]] if chooses else []
    beside += (", without " + ", ".join(missing) if missing else "") + "."
    if any(key.name in common for key in own):
        beside += " A shared parameter stands here if its value differs."
    return (RULE_HEAD + "".join(map(rule_row, own)) + "\n" if own else "") + beside + "\n"
