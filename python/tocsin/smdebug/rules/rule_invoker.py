"""``smdebug.rules.rule_invoker``."""

from tocsin.rules.rule_invoker import invoke, invoke_rule

__all__ = ["invoke", "invoke_rule"]
