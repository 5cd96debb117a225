"""``smdebug.rules.rule``."""

from tocsin.rules.rule import RequiredTensors, Rule

__all__ = ["RequiredTensors", "Rule"]
