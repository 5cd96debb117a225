"""Which rules shall judge in this process, and which of them may stop it: what the user gave, as the library takes it."""

import json
import os
from typing import Any, Optional


def rules_text(rules: Any, config: Optional[str]) -> str:
    """As the library takes them: names with commas between, a path, or YAML text."""
    if rules is True:
        return str(config or os.environ.get("TOCSIN_CONFIG") or "default")
    if isinstance(rules, str):
        return rules
    if isinstance(rules, dict):
        return json.dumps(rules)
    if isinstance(rules, (list, tuple)):
        if all(isinstance(rule, str) for rule in rules):
            return ",".join(rules)
        groups = [rule for rule in rules if rule == "default" or str(rule).startswith("all_")]
        others = [rule for rule in rules if rule not in groups]
        return json.dumps({"rule_groups": groups, "rules": others})
    return os.fspath(rules)


def stop_text(stop: Any) -> Optional[str]:
    """A severity or names of rules; ``True`` is for what ends a training anyway."""
    if stop is None or stop is False:
        return None
    if stop is True:
        return "error"
    return stop if isinstance(stop, str) else ",".join(str(name) for name in stop)
