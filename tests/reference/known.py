"""Faults of the engine that are known: known_faults.txt, one test per line with its reason. Such a test is expected to fail,
strictly: when it passes, its line has to go. Random streams that meet a fault only now and then say "rare:" first."""
import pathlib

import pytest

FILE = pathlib.Path(__file__).parent / "known_faults.txt"
AWAITED = pathlib.Path(__file__).parent / "awaited_rules.txt"


def faults():
    """{test id: reason}"""
    out = {}
    for line in FILE.read_text().splitlines():
        name, _, reason = line.partition("  # ")
        if line.strip() and not line.startswith("#"):
            assert reason, f"known_faults.txt: say why {name} fails"
            out[name.strip()] = reason
    return out


def awaited():
    """Rules that the reference has and the engine has not."""
    return [line for line in AWAITED.read_text().splitlines() if line and not line.startswith("#")]


def parameters(rules):
    """pytest parameters of {test id: rule}, marked where a fault is known or the engine lacks the rule."""
    known, lacking = faults(), awaited()

    def marks(name):
        if rules[name] in lacking:
            return pytest.mark.skip(reason="the engine does not have the rule")
        if name not in known:
            return ()
        return pytest.mark.xfail(strict=not known[name].startswith("rare:"), reason=known[name])
    return [pytest.param(name, id=name, marks=marks(name)) for name in rules]
