"""Another copy of RE2 in the process, shown to everybody: TensorFlow 2 loads its own with ``RTLD_GLOBAL``.

A library of ours that is linked with the system's RE2 (a build, ``make install``, the deb) would then call functions of that
other version, and crash the training. The library of the wheel has its RE2 inside and calls no other. See ``dlopen(3)``.
"""

import ctypes
import os

_CONSTRUCTOR = "_ZN3re23RE2C1EPKc"  # re2::RE2::RE2(const char*): every version has it
_ENGINE = "libtocsin_engine.so.0"


def _is_shown() -> bool:
    return hasattr(ctypes.CDLL(None), _CONSTRUCTOR)


def _is_linked(path: str) -> bool:
    """Does the library take RE2 from the system? One that is looked up by the loader is an installed one, which does."""
    if os.sep not in path:
        return True
    try:
        with open(path, "rb") as file:
            return b"libre2.so" in file.read()
    except OSError:
        return False


def mode_for(path: str) -> int:
    """How ``path`` is to be loaded; ``OSError`` where it cannot be without danger to the process.

    ``RTLD_DEEPBIND`` makes it find its own RE2 first. It would find its own ``malloc`` first, too: where another one is
    preloaded, memory would be freed by who has not given it.
    """
    if not _is_shown() or not _is_linked(path):
        return ctypes.DEFAULT_MODE
    if os.environ.get("LD_PRELOAD"):
        raise OSError("another RE2 is loaded for everybody (TensorFlow's), and LD_PRELOAD is set: take the library of the wheel, "
                      "which has its own, or import tensorflow after tocsin.watch()")
    return ctypes.DEFAULT_MODE | os.RTLD_DEEPBIND


def load_engine(path: str, mode: int) -> None:
    """The library of rules beside ``path``, the same way, before the hook's library looks for it."""
    beside = os.path.join(os.path.dirname(path), _ENGINE)
    if mode != ctypes.DEFAULT_MODE and os.path.exists(beside):
        try:
            ctypes.CDLL(beside, mode=mode)
        except OSError:
            pass  # rules in this process say why, when they are asked for
