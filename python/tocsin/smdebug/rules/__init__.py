"""``smdebug.rules``."""

from tocsin.rules.rule import RequiredTensors, Rule
from tocsin.rules.rule_invoker import invoke, invoke_rule

__all__ = ["RequiredTensors", "Rule", "invoke", "invoke_rule"]
