"""What nobody uses: functions of the product that only tests call, and configuration keys that are read into nothing.

Functions come from the object files (`nm`, `readelf`): one that is defined for others to call and that no product file
refers to, its own included, is uncalled. Seen are functions with a body in a .cc file; functions of headers and
virtual ones are not. The C interface of the hook counts as called when the Python package calls it.

Keys come from the text: a key is read into a variable or a member (`in.optional("key", cfg.key, …)`), and that name
has to occur elsewhere.
"""

import json
import pathlib
import re
import subprocess

ROOMS = ("core", "config", "ingest", "rules", "routing", "actions", "collectors", "insights", "app")
READ = re.compile(r'\bin\w*\.(?:optional|required|any|optional_secret|choice|list|map|text|number|duration)\(\s*"([a-z_0-9]+)"\s*,\s*'
                  r'([A-Za-z_][\w.>\-\[\]]*)\s*[,)]')
WORD = re.compile(r"[A-Za-z_]\w*")


def output(*command, text=None):
    return subprocess.run(command, input=text, text=True, capture_output=True, check=True).stdout


def demangled(names):
    names = sorted(names)
    return dict(zip(names, output("c++filt", text="\n".join(names)).splitlines()))


def objects_of(build):
    """The object files of what is shipped; None when one is missing or older than its source."""
    database = build / "compile_commands.json"
    entries = json.loads(database.read_text()) if database.exists() else []
    out = []
    for entry in entries:
        output_name = re.search(r" -o (\S+)", entry["command"]).group(1)
        if not output_name.startswith(tuple(room + "/" for room in ROOMS)):
            continue
        made, source = build / output_name, pathlib.Path(entry["file"])
        if not made.exists() or made.stat().st_mtime < source.stat().st_mtime:
            return None
        out.append(str(made))
    return out or None


def functions_without_caller(objects, root):
    """Demangled names, without their parameters where that is clear."""
    defined, used = set(), set()
    for line in output("nm", "--defined-only", *objects).splitlines():
        parts = line.split()
        if len(parts) == 3 and parts[1] == "T":
            defined.add(parts[2])
    for line in output("readelf", "-rW", *objects).splitlines():
        parts = line.split()
        if len(parts) >= 5 and parts[2].startswith("R_"):
            used.add(parts[4])
    names = demangled(defined | used)
    spoken = {names[one] for one in used}
    called_by_python = set()
    for path in (root / "python").rglob("*.py"):
        called_by_python.update(re.findall(r'(?:\.|\["|getattr\([\w.]+, ")(tocsin_\w+)', path.read_text()))
    uncalled = {names[one] for one in defined} - spoken - called_by_python
    overloads = {}
    for name in {names[one] for one in defined}:
        overloads.setdefault(split(name)[0], set()).add(name)
    out = set()
    for name in uncalled:
        function, parameters = split(name)
        if not name.startswith("tocsin") or is_special(function):
            continue
        # One of several that are called is told apart by its parameters.
        out.add(function if overloads[function] <= uncalled else function + parameters)
    return sorted(out)


def split(name):
    """`routing::Router::find_run` and its parameters, without our own namespace."""
    depth, end = 0, len(name)
    for at, letter in enumerate(name):
        if letter == "(" and depth == 0 and not name.startswith("(anonymous", at):
            end = at
            break
        depth += {"<": 1, ">": -1}.get(letter, 0)
    return name[:end].replace("[abi:cxx11]", "").removeprefix("tocsin::"), name[end:].replace("tocsin::", "")


def is_special(function):
    """Constructors, destructors and assignments: their type is what is used or not."""
    parts = function.split("::")
    return parts[-1].startswith(("operator=", "~")) or (len(parts) > 1 and parts[-1] == parts[-2])


def without_comments(text):
    return re.sub(r'//[^\n]*|/\*.*?\*/|"(?:\\.|[^"\\\n])*"', " ", text, flags=re.DOTALL)


def keys_nobody_reads(root, files):
    """`file: key` of every key whose value goes nowhere."""
    sources = {path: (root / path).read_text() for path in files
               if path.startswith(ROOMS) and path.endswith((".cc", ".h"))}
    words = {path: WORD.findall(without_comments(READ.sub(" ", text))) for path, text in sources.items()}
    everywhere = {}
    for path, found in words.items():
        for word in found:
            everywhere[word] = everywhere.get(word, 0) + 1
    out = []
    for path, text in sources.items():
        for key, target in READ.findall(text):
            name = WORD.findall(target)[-1]
            member = target != name
            # One occurrence is the declaration.
            count = everywhere.get(name, 0) if member else words[path].count(name)
            if count <= 1:
                out.append(f"{path}: {key}")
    return sorted(set(out))


def allowed(path):
    """Lines `name  # reason`; a line without a reason is an error."""
    names, problems = {}, []
    for number, line in enumerate(path.read_text().splitlines(), 1):
        name, _, reason = (part.strip() for part in line.partition("#"))
        if not name:
            continue
        if not reason:
            problems.append(f"{path.name}:{number}: {name} has no reason")
        names[name] = number
    return names, problems


def check(root, build, files, allow_list):
    """(functions looked for?, problems as text)"""
    allow, problems = allowed(allow_list)
    found = [(one, "nobody reads this key") for one in keys_nobody_reads(root, files)]
    objects = objects_of(build)
    built = objects is not None
    if built:
        found += [(one, "only tests call it, or nobody") for one in functions_without_caller(objects, root)]
    for name, what in found:
        if name not in allow:
            problems.append(f"{name}: {what}")
    known = {name for name, _ in found}
    for name, number in allow.items():
        if name not in known and (built or ": " in name):
            problems.append(f"{allow_list.name}:{number}: {name} is used by now, or gone: take the line away")
    return built, "\n".join(problems)
