"""A rule over a recording, in this process."""

from typing import List, Optional

from tocsin.exceptions import MissingData, NoMoreData, RuleEvaluationConditionMet
from .rule import Rule


def invoke_rule(rule_obj: Rule, start_step: int = 0, end_step: Optional[int] = None,
                raise_eval_cond: bool = False) -> List[int]:
    """Judges the (global) steps from ``start_step`` up to, without, ``end_step`` (None: all that were
    saved). Steps that lack what the rule needs are skipped. Returns the steps at which the condition
    was met; ``raise_eval_cond``: the first one is raised."""
    met: List[int] = []
    rule_obj.base_trial.refresh()
    for step in rule_obj.base_trial.steps():
        if step < start_step or (end_step is not None and step >= end_step):
            continue
        try:
            rule_obj.invoke(step)
        except MissingData as missing:
            rule_obj.logger.debug("%s, step %d: %s", rule_obj.rule_name, step, missing)
        except NoMoreData:
            break
        except RuleEvaluationConditionMet as condition:
            rule_obj.logger.info("%s", condition)
            met.append(step)
            if raise_eval_cond:
                raise
    return met


invoke = invoke_rule
