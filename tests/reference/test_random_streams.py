"""Random streams: engine and reference agree on every issue, from the step at which it is first raised to the step that
resolves it, and on every rule's status at the end.

TOCSIN_STREAMS says how many streams each family has (`make reference` runs many); TOCSIN_SEED where they begin.
"""
import os
import pathlib

import pytest

from tests.reference import compare, engine, known, random_streams

STREAMS = int(os.environ.get("TOCSIN_STREAMS", "80"))
SEED = int(os.environ.get("TOCSIN_SEED", "0"))


@pytest.fixture(scope="module")
def judge():
    with engine.Engine() as one:
        yield one


@pytest.mark.parametrize("name", known.parameters({f"random/{family}": rule for family, (rule, _) in random_streams.FAMILIES.items()}))
def test_engine_and_reference_agree(judge, name):
    family = name.partition("/")[2]
    for seed in range(SEED, SEED + STREAMS):
        rules, records = random_streams.make(family, seed)
        if compare.differences(judge, rules, records):
            pytest.fail(f"{family}, seed {seed}:\n{compare.report(judge, rules, records)}", pytrace=False)


def test_every_rule_has_streams():
    rules = {path.stem for path in (pathlib.Path(__file__).parent / "rules").glob("*.py")} - {"__init__"}
    assert rules == {rule for rule, _ in random_streams.FAMILIES.values()}
