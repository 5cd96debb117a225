"""Clang's thread-safety analysis of the sources that can reach a mutex, without a build.

Fields with GUARDED_BY are private, so a source can break a rule if it or a header that it names includes core/mutex.h.
The sources of one folder go to the compiler as one unit: that costs a third. Where they do not fit together, each goes by itself.
"""

import pathlib
import re
import shlex
import subprocess

DOOR = "core/mutex.h"
INCLUDE = re.compile(r'^\s*#\s*include\s+"([^"]+)"', re.MULTILINE)
TAKES_A_WORD = {"-I", "-isystem", "-D", "-include"}


def includes(root, path):
    return INCLUDE.findall((root / path).read_text(errors="replace"))


def concerned(root, path):
    """Whether this source, or a header that it names, includes core/mutex.h."""
    named = includes(root, path)
    return DOOR in named or any(DOOR in includes(root, one) for one in named if (root / one).is_file())


def flags_of(command):
    """Of a compile command what changes the meaning of the source."""
    out, words = [], shlex.split(command)
    for at, word in enumerate(words):
        if word in TAKES_A_WORD:
            out += [word, words[at + 1]]
        elif word.startswith(("-I", "-D", "-std=", "-isystem")):
            out.append(word)
    return tuple(out)


def groups(root, files, commands):
    """[(flags, sources)]: what can go to the compiler as one unit. `commands`: compile command by source."""
    found = {}
    for path in sorted(path for path in files if path in commands and concerned(root, path)):
        found.setdefault((flags_of(commands[path]), pathlib.Path(path).parent), []).append(path)
    return [(flags, sources) for (flags, _), sources in found.items()]


def compile_unit(root, flags, sources):
    unit = "".join(f'#include "{root / source}"\n' for source in sources)
    return subprocess.run(["clang++-14", *flags, "-x", "c++", "-fsyntax-only", "-Wthread-safety", "-Werror=thread-safety", "-"],
                          cwd=root, input=unit, text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, check=False)


def problems(root, flags, sources):
    """What Clang says of these sources; empty: nothing."""
    ran = compile_unit(root, flags, sources)
    if ran.returncode == 0:
        return ""
    if len(sources) == 1 or "-Werror,-Wthread-safety" in ran.stdout:
        return "\n".join(line for line in ran.stdout.replace(f"{root}/", "").splitlines() if "warning" not in line) + "\n"
    return "".join(problems(root, flags, [source]) for source in sources)
