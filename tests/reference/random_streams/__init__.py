"""Seeded streams: what trainings of many kinds send, drawn at random, with a configuration of one rule each.

A generator is a function `<rule>(chance)` in any file of this folder. It draws from `chance` (a random.Random) and returns
(rules, records). Further generators of a rule, and those of another name, are marked with `common.of`."""
import importlib
import inspect
import pathlib

from tests.reference import story

FOLDER = pathlib.Path(__file__).parent


def _families():
    """{name of a family of streams: (rule, generator)}"""
    rules = {path.stem for path in (FOLDER.parent / "rules").glob("*.py")}
    out = {}
    for path in sorted(FOLDER.glob("[a-z]*.py")):
        module = importlib.import_module(f"{__name__}.{path.stem}")
        for name, make in inspect.getmembers(module, inspect.isfunction):
            if make.__module__ != module.__name__ or not (name in rules or hasattr(make, "rule")):
                continue
            family = getattr(make, "family", name)
            assert family not in out, f"two generators make the streams {family!r}"
            out[family] = (getattr(make, "rule", name), make)
    return out


FAMILIES = _families()


def make(family, seed):
    """(rules, records), the same for the same seed on every machine."""
    return FAMILIES[family][1](story.chance(family, seed))
