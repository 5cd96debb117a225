"""A pytest plugin (`-p tests.support.in_time`): tests begin for as long as there is time, and what is left out is said.

TOCSIN_TESTS_MINUTES=n: n minutes from the start; without it nothing changes. Each day begins with another file, so that a run that
is always cut short comes to all of them in time.
"""
import os
import time

import pytest

clock = time.monotonic
_MINUTES = float(os.environ.get("TOCSIN_TESTS_MINUTES") or 0)
_UNTIL = clock() + 60 * _MINUTES
_left_out = []


def _from_another_file_each_day(items, day):
    files = list(dict.fromkeys(item.path for item in items))
    if not files:
        return items
    first = day % len(files)
    place = {path: number for number, path in enumerate(files[first:] + files[:first])}
    return sorted(items, key=lambda item: place[item.path])


def pytest_collection_modifyitems(items):
    if _MINUTES:
        items[:] = _from_another_file_each_day(items, int(time.time()) // 86400)


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_setup(item):
    if _MINUTES and clock() > _UNTIL:
        _left_out.append(item)
        pytest.skip(f"no time after {_MINUTES:g} minutes")


def pytest_terminal_summary(terminalreporter):
    if _left_out:
        terminalreporter.write_line(f"NOT WHOLE within {_MINUTES:g} minutes: {len(_left_out)} tests left out")
