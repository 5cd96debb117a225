"""smdebug.core.modes."""

from ..modes import ModeKeys

__all__ = ["ModeKeys"]
