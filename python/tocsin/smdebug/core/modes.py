"""``smdebug.core.modes``."""

from tocsin.modes import ModeKeys

__all__ = ["ModeKeys"]
