"""A pytest plugin of every run: a test that takes too long fails and says where each thread stood; the next test runs.

TOCSIN_TEST_LIMIT=s: seconds that each phase of a test has (600). Only Python code is interrupted: a main thread that stands in a
lock of a C library hears nothing, and the limit of the whole run (`timeout` in .ci/run) ends it.
"""
import contextlib
import faulthandler
import os
import pathlib
import signal
import sys
import threading

import pytest


class TookTooLong(BaseException):
    """No `except Exception` of a test or of the code under test takes it."""


def _forked_copies():
    """Children of this process that were forked and run nothing else. They would keep its output open, and who reads it waiting."""
    own = pathlib.Path("/proc/self/cmdline").read_bytes()
    for task in pathlib.Path("/proc/self/task").iterdir():
        for child in (task / "children").read_text().split():
            with contextlib.suppress(OSError):
                if pathlib.Path(f"/proc/{child}/cmdline").read_bytes() == own:
                    yield int(child)


@contextlib.contextmanager
def limited(name, seconds):
    """Raises TookTooLong in the block after so many seconds. Outside the main thread no signal is heard: the block has no limit."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return

    def interrupt(_number, _frame):
        print(f"\nTOO LONG: {name}: more than {seconds:g} s", file=sys.__stderr__, flush=True)
        faulthandler.dump_traceback(file=sys.__stderr__, all_threads=True)
        for child in _forked_copies():
            os.kill(child, signal.SIGKILL)
        raise TookTooLong(f"more than {seconds:g} s (TOCSIN_TEST_LIMIT)")

    before = signal.signal(signal.SIGALRM, interrupt)
    signal.setitimer(signal.ITIMER_REAL, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)


def _phase(item):
    with limited(item.nodeid, float(os.environ.get("TOCSIN_TEST_LIMIT") or 600)):
        yield


@pytest.hookimpl(hookwrapper=True)
def pytest_runtest_setup(item):
    yield from _phase(item)


@pytest.hookimpl(hookwrapper=True)
def pytest_runtest_call(item):
    yield from _phase(item)


@pytest.hookimpl(hookwrapper=True)
def pytest_runtest_teardown(item):
    yield from _phase(item)
