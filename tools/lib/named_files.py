"""Files that pages and comments name, and that do not exist.

A name counts as one of ours when it begins with a folder of the repository and has a suffix (`rules/engine/engine.cc`,
`ingest/wire/*.h`, `collectors/hook/commands/command_reader.{h,cc}`). In a page it also counts without one (`tools/kafka`,
`bench/decode_bench`: a program, a folder). It counts alone as a source (`step_clock.h`), as in a comment of C++ (state.cc). A
placeholder (`rules/builtin/<name>.cc`) fits when something fits it.
"""

import fnmatch
import pathlib
import re

SUFFIX = r"\.(?:h|cc|py|md|txt|ya?ml|json|jsonl|cmake|sh|lock|service|\*|\{[\w,]+\})"
# In a page, within code marks and alone.
SOURCE = re.compile(r"`((?:[\w*-]+/)*[\w*-]+\.(?:h|cc|\*|\{h,cc\}))`")
COMMENT = re.compile(r"//.*")
ALONE = re.compile(r"(?<![\w/.<>*-])([a-z_0-9]+\.(?:h|cc))\b(?!\()")
INCLUDED = re.compile(r"#\s*include\s+<([^>]+)>")
READ = {".md", ".h", ".cc", ".py", ".txt", ".cmake", ".yaml", ".sh", ""}
# The first speaks of what was; tests of tools make up files.
LEFT_OUT = re.compile(r"CHANGELOG\.md|tests/data/.+|.*/test_\w+\.py")


def globs(name):
    """What a name stands for: `a.{h,cc}` both, `<name>` anything."""
    name = re.sub(r"<[^>]*>", "*", name)
    several = re.search(r"\{([\w,]+)\}", name)
    if not several:
        return [name]
    return [name[:several.start()] + one + name[several.end():] for one in several[1].split(",")]


class Repository:
    """Its files, relative to its root."""

    def __init__(self, files):
        self.files = sorted(files)
        self.folders = {parent.as_posix() for file in files for parent in pathlib.PurePosixPath(file).parents}
        first = sorted({file.split("/")[0] for file in files if "/" in file and not file.startswith(".")})
        heads = "|".join(map(re.escape, first))
        self.path = re.compile(rf"(?<![\w/.:$}}>~-])((?:{heads})/[\w./*<>{{}},-]*?{SUFFIX})(?![\w/*])")
        self.bare = re.compile(rf"`((?:{heads})/[\w./-]*\w)/?`")

    def named(self, path, text):
        """(line, name) of every file that a text names."""
        page = path.endswith(".md")
        for number, line in enumerate(text.splitlines(), 1):
            if not page and "#include" in line:
                continue
            found = {match[1] for match in self.path.finditer(line)}
            if path.endswith((".h", ".cc")) and COMMENT.search(line):
                found |= {match[1] for match in ALONE.finditer(COMMENT.search(line)[0])}
            if page:
                found |= {match[1] for pattern in (SOURCE, self.bare) for match in pattern.finditer(line)}
            for name in sorted(found):
                yield number, name

    def has(self, name, page):
        """From the root, beside the page, or anywhere below a folder; a program stands for its source."""
        if name in self.folders:
            return True
        folder = pathlib.PurePosixPath(page).parent.as_posix()
        for pattern in globs(name):
            forms = [pattern, f"{folder}/{pattern}", f"*/{pattern}"]
            if not pathlib.PurePosixPath(pattern).suffix:
                forms += [f"{pattern}.cc", f"{pattern}.py"]
            if not any(fnmatch.fnmatchcase(file, form) for file in self.files for form in forms):
                return False
        return True


def missing(root, files):
    """One line per name of a file that is not there."""
    repository = Repository(files)
    problems, texts = [], {}
    for path in files:
        if pathlib.PurePosixPath(path).suffix not in READ or LEFT_OUT.fullmatch(path):
            continue
        try:
            texts[path] = (root / path).read_text()
        except (UnicodeDecodeError, FileNotFoundError):
            continue
    # Headers of libraries may be spoken of too.
    foreign = {name.split("/")[-1] for text in texts.values() for name in INCLUDED.findall(text)}
    for path, text in texts.items():
        problems += [f"{path}:{number}: {name} does not exist" for number, name in repository.named(path, text)
                     if name not in foreign and not repository.has(name, path)]
    return problems
