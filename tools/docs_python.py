"""The reference of the Python hook: signatures and docstrings, read from the source without importing it."""

import ast
import inspect
import os
import re

MARKED = re.compile(r"(<!-- python:begin (?P<names>[^>]+?) -->\n)(?P<body>.*?)(<!-- python:end -->)", re.DOTALL)
NAMED = re.compile(r"`\w+(?:=\w+)?`(?:,\s`\w+`)*(?:,$|:)")
HOOK = "Hook"
ELSEWHERE = {"OriginalNames"}  # the names of smdebug: docs/collections.md
INTERNAL = {"close_at_exit", "closing", "acknowledged", "forked", "say_wrong_calls"}


def parsed(source):
    return ast.parse(source.read_text(encoding="utf-8")).body


def public_parts(package):
    """{name: node} of the functions and classes that the package itself offers, by the imports of its `__init__.py`."""
    found = {}
    for line in parsed(package / "__init__.py"):
        if isinstance(line, ast.ImportFrom) and line.level == 1 and line.module:
            wanted = {alias.name for alias in line.names}
            found.update((node.name, node) for node in parsed(package / f"{line.module.replace('.', '/')}.py")
                         if isinstance(node, (ast.FunctionDef, ast.ClassDef)) and node.name in wanted)
    return found


def mixins(package, hook):
    """The classes that the hook is made of, the last one first."""
    names = [base.id for base in hook.bases if isinstance(base, ast.Name) and base.id not in ELSEWHERE]
    known = {node.name: node for source in sorted(package.rglob("*.py")) for node in parsed(source) if isinstance(node, ast.ClassDef)}
    return [known[name] for name in reversed(names)]


def declarations(package):
    """{`watch` or `Hook.log`: its node}: functions of the package, and the methods of its hook."""
    found = public_parts(package)
    hook = found[HOOK]
    for part in [*mixins(package, hook), hook]:
        for node in part.body:
            if isinstance(node, ast.FunctionDef) and not node.name.startswith("_") and node.name not in INTERNAL:
                found[f"{HOOK}.{node.name}"] = node
    return found


def signature(node):
    """The parameters with their defaults, without types."""
    for argument in ast.walk(node.args):
        if isinstance(argument, ast.arg):
            argument.annotation = None
    return re.sub(r"^self(, )?", "", ast.unparse(node.args))


def listed(paragraph):
    """A paragraph whose lines begin with the names of parameters, as a list with an item per parameter."""
    if not NAMED.match(paragraph):
        return paragraph
    return "\n".join(("- " if NAMED.match(line) else "  ") + line for line in paragraph.splitlines())


def linked(text, folder):
    """Pages that a docstring names, as links from the page's folder."""
    return re.sub(r"\bdocs/([\w/-]+)\.md", lambda match: f"[{match[1].rpartition('/')[2]}]({os.path.relpath(match[0], folder)})", text)


def entry(name, node, folder):
    shown = name.replace(f"{HOOK}.", "hook.") if "." in name else f"tocsin.{name}"
    decorators = {decorator.id for decorator in node.decorator_list if isinstance(decorator, ast.Name)}
    call = shown if "property" in decorators else f"{shown}({signature(node)})"
    plain = inspect.cleandoc(ast.get_docstring(node) or "").replace("``", "`")
    plain = re.sub(r":\w+:`(?:\w+\.)*(\w+)`", r"`\1`", plain)
    text = "\n\n".join(listed(paragraph) for paragraph in plain.split("\n\n"))
    return f"### {shown}\n\n```python\n{call}\n```\n\n{linked(text, folder)}\n"


def with_python(page, text, package):
    """The page's text with its entries filled in."""
    if not MARKED.search(text):
        return text
    found = declarations(package)
    listed = {name for match in MARKED.finditer(text) for name in match["names"].split()}
    missing = sorted(name for name in found if name.startswith(f"{HOOK}.") and name not in listed)
    if missing:
        raise SystemExit(f"{page}: the hook's methods {', '.join(missing)} are in none of its lists")
    unknown = sorted(listed - set(found))
    if unknown:
        raise SystemExit(f"{page}: the package has no {', '.join(unknown)}")
    folder = page.parent.relative_to(package.parents[1]).as_posix()
    return MARKED.sub(lambda match: match[1] + "\n" + "\n".join(entry(name, found[name], folder) for name in match["names"].split())
                      + "\n" + match[4], text)
