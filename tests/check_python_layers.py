#!/usr/bin/env python3
"""Checks which room of python/tocsin may import which, as tests/python_layers.txt says.

usage: check_python_layers.py ROOT. Prints every breach as file:line and exits 1 if there is one.

A room is a folder of the package. A file at the top is a room of its own: a door, which only hands on what a room has, or a leaf.
An import inside a function counts like any other: it decides when something is loaded, not who depends on whom.
"""
import ast
import pathlib
import re
import sys

PACKAGE = "tocsin"
TABLE = "tests/python_layers.txt"
TOP = "."  # the package's own __init__.py


class Rules:
    """tests/python_layers.txt."""

    def __init__(self, text):
        self.rooms, self.doors, self.libraries, self.lines = {}, {}, {}, {}
        sections = {"rooms": self.rooms, "doors": self.doors, "libraries": self.libraries}
        section = None
        for number, line in enumerate(text.splitlines(), 1):
            heading = re.match(r"\[(\w+)\]", line)
            words = line.split("#")[0].strip()
            if heading:
                section = heading[1]
            elif words and section in sections:
                name, listed = words.split(":")
                sections[section][name.strip()] = listed.split()
                self.lines[(section, name.strip())] = number
            elif words:
                raise SystemExit(f"{TABLE}:{number}: no section [{section}]")

    def at(self, section, name):
        return f"{TABLE}:{self.lines[(section, name)]}"


class Module:
    """One file of the package: its name without `tocsin.`, its room, what it imports."""

    def __init__(self, root, path):
        self.path = path.relative_to(root).as_posix()
        inside = path.relative_to(root / "python" / PACKAGE)
        self.is_package = path.name == "__init__.py"
        self.parts = inside.with_suffix("").parts[:-1] if self.is_package else inside.with_suffix("").parts
        self.name = ".".join(self.parts)
        self.file = inside.as_posix()
        self.folder = inside.parent.as_posix()
        self.tree = ast.parse(path.read_text(encoding="utf-8"), self.path)

    def room(self):
        return self.folder if self.folder != "." else self.name or TOP

    def imported(self):
        """(line, absolute name of a module, name taken from it or None) of every import, wherever it stands."""
        package = (PACKAGE, *self.parts)[:None if self.is_package else -1]
        for node in ast.walk(self.tree):
            if isinstance(node, ast.Import):
                yield from ((node.lineno, alias.name, None) for alias in node.names)
            elif isinstance(node, ast.ImportFrom):
                base = ".".join([*package[:len(package) - node.level + 1], *filter(None, [node.module])]) if node.level else node.module
                yield from ((node.lineno, base, alias.name) for alias in node.names)
            elif isinstance(node, ast.Call) and getattr(node.func, "attr", getattr(node.func, "id", "")) == "import_module":
                name = node.args[0].value if node.args and isinstance(node.args[0], ast.Constant) else ""
                yield node.lineno, ".".join(package) + name if name.startswith(".") else name or "a name made while it runs", None


class Package:
    """All modules, and the edges between them."""

    def __init__(self, root):
        files = sorted((root / "python" / PACKAGE).rglob("*.py"))
        self.modules = {module.name: module for module in (Module(root, path) for path in files)}
        self.edges = [(module, line, self.modules[target]) for module in self.modules.values()
                      for line, target in self.inner(module) if self.modules[target] is not module]

    def inner(self, module):
        """(line, name) of the modules of the package that this one imports."""
        for line, base, name in module.imported():
            if base.split(".")[0] != PACKAGE:
                continue
            inside = base[len(PACKAGE) + 1:]
            if name is not None and f"{inside}.{name}".lstrip(".") in self.modules:
                inside = f"{inside}.{name}".lstrip(".")
            if inside in self.modules:
                yield line, inside


def check_edges(rules, package):
    used = set()
    for module, line, target in package.edges:
        here, there = module.room(), target.room()
        if target.name in rules.doors:
            if here != TOP:
                yield f"{module.path}:{line}: {target.name} is a door for users; import what stands behind it ({rules.doors[target.name][0]})"
        elif here in rules.doors:
            if target.file not in rules.doors[here]:
                yield f"{module.path}:{line}: the door {here} hands on {' '.join(rules.doors[here])}, not {target.file}"
            used.add((here, target.file))
        elif here != there:
            if there not in rules.rooms.get(here, ()):
                yield f"{module.path}:{line}: {here} may not import {there}"
            used.add((here, there))
    for section, table in (("rooms", rules.rooms), ("doors", rules.doors)):
        for name, allowed in table.items():
            for one in allowed:
                if (name, one) not in used:
                    yield f"{rules.at(section, name)}: {name} imports nothing of {one}; take it out"


def check_names(rules, package):
    """Every room and file at the top is listed, every line is of one that is there, and every folder is a package."""
    present = {module.room() for module in package.modules.values()}
    for name in sorted(present - set(rules.rooms) - set(rules.doors)):
        yield f"python/{PACKAGE}/{name}: {TABLE} does not list it"
    for section, table in (("rooms", rules.rooms), ("doors", rules.doors)):
        for name in table:
            if name not in present:
                yield f"{rules.at(section, name)}: there is no {name}"
    for folder in sorted({module.folder for module in package.modules.values()}):
        if folder.replace("/", ".").lstrip(".") not in package.modules:
            yield f"python/{PACKAGE}/{folder}: no __init__.py"


def check_doors(rules, package):
    for name in rules.doors:
        module = package.modules.get(name)
        for node in module.tree.body if module else ():
            handed = isinstance(node, (ast.Import, ast.ImportFrom)) or (isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant))
            main = isinstance(node, ast.If) and "__main__" in ast.unparse(node.test)
            exported = isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == "__all__"
            if not (handed or main or exported):
                yield f"{module.path}:{node.lineno}: a door only hands on; this belongs to {' '.join(rules.doors[name])}"


def check_libraries(rules, package):
    used = set()
    for module in package.modules.values():
        for line, base, _ in module.imported():
            library = base.split(".")[0]
            if library in sys.stdlib_module_names or library in (PACKAGE, "__future__"):
                continue
            places = rules.libraries.get(library, [])
            fitting = [place for place in places if module.file == place or (place.endswith("/") and module.file.startswith(place))]
            used.update((library, place) for place in fitting)
            if not fitting:
                yield f"{module.path}:{line}: {base}: " + (f"{library} belongs to {' '.join(places)}" if places else f"{TABLE} knows no {library}")
    for library, places in rules.libraries.items():
        for place in places:
            if (library, place) not in used:
                yield f"{rules.at('libraries', library)}: {place} imports no {library}; take it out"


def circle(edges):
    """Some circle among {name: [name, …]}, as names in order, or None."""
    done = set()

    def search(name, way):
        if name in way:
            return [*way[way.index(name):], name]
        if name in done:
            return None
        for following in edges.get(name, ()):
            found = search(following, [*way, name])
            if found:
                return found
        done.add(name)
        return None

    return next(filter(None, (search(name, []) for name in edges)), None)


def check_circles(rules, package):
    of_modules = {}
    for module, _, target in package.edges:
        of_modules.setdefault(module.name or TOP, []).append(target.name or TOP)
    for what, edges, where in (("rooms", rules.rooms, TABLE), ("modules", of_modules, f"python/{PACKAGE}")):
        found = circle(edges)
        if found:
            yield f"{where}: a circle of {what}: {' → '.join(found)}"


def check_lists(root, package):
    """The list of packages that a build of the wheel by setuptools reads."""
    listed = set(re.findall(rf'"({PACKAGE}[\w.]*)"', (root / "python" / "pyproject.toml").read_text().partition("packages =")[2].partition("]")[0]))
    folders = {".".join([PACKAGE, *filter(None, [module.name])]) for module in package.modules.values() if module.is_package}
    for name in sorted(folders ^ listed):
        yield f"python/pyproject.toml: {'lacks the package' if name in folders else 'lists what is no package:'} {name}"


def breaches(root):
    rules = Rules((root / TABLE).read_text(encoding="utf-8"))
    package = Package(root)
    yield from check_names(rules, package)
    yield from check_edges(rules, package)
    yield from check_doors(rules, package)
    yield from check_libraries(rules, package)
    yield from check_circles(rules, package)
    yield from check_lists(root, package)


def main():
    found = list(breaches(pathlib.Path(sys.argv[1])))
    print("\n".join(found) if found else "python layers: every import is one that its room may make")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
