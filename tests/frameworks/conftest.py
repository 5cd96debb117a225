"""Tests on the frameworks of tests/frameworks/requirements.txt; `make test-frameworks` has them, Debian's Python has not."""
import importlib.util

import pytest

import tocsin

_WANTED = ("transformers", "accelerate", "lightning")
if any(importlib.util.find_spec(name) is None for name in _WANTED):
    collect_ignore_glob = ["test_*.py"]


@pytest.fixture
def out(tmp_path):
    """A directory for a run; whatever hook is still open closes with the test."""
    yield str(tmp_path / "journal")
    hook = tocsin.get_hook()
    if hook is not None:
        hook.close(timeout=1)
