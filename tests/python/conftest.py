"""What tests of the hook share beside tests/support/hook_support.py."""
import pytest


@pytest.fixture(autouse=True)
def spool(tmp_path, monkeypatch):
    """What a hook cannot deliver stays with the test."""
    monkeypatch.setenv("TOCSIN_SPOOL", str(tmp_path / "spool"))


@pytest.fixture
def out(tmp_path):
    """A directory for a run; whatever hook is still open closes with the test."""
    import tocsin
    yield str(tmp_path / "journal")
    hook = tocsin.get_hook()
    if hook is not None:
        hook.close(timeout=1)
