"""Tests on the frameworks of tests/frameworks/requirements.txt; `make test-frameworks` has them, Debian's Python has not."""
import importlib.util

import pytest

import tocsin
from tests.e2e import conftest as e2e

server = e2e.server
_WANTED = ("transformers", "accelerate", "lightning", "xgboost", "lightgbm", "sklearn", "jax", "optax", "keras", "tensorflow",
           "deepspeed", "tensorboard")
if any(importlib.util.find_spec(name) is None for name in _WANTED):
    collect_ignore_glob = ["test_*.py"]


@pytest.fixture
def out(tmp_path):
    """A directory for a run; whatever hook is still open closes with the test."""
    yield str(tmp_path / "journal")
    hook = tocsin.get_hook()
    if hook is not None:
        hook.close(timeout=1)


@pytest.fixture
def judged(server, out):
    """judged(rules) starts a tocsin over the journal `out`; the function it gives waits until the run has ended and returns
    the rules that fired, in order."""
    def start(rules):
        one = server(f"transport: {{journal: {out}}}\nrules: {rules}\nhttp: {{listen: '127.0.0.1:0'}}\n")
        one.wait_for("ready")

        def fired():
            one.wait_for("job_ended")
            return [event["rule"] for event in one.all("issue_fired")]
        return fired
    return start
