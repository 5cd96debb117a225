"""Rules of your own in Python (docs/rules/python.md).

    from tocsin.rules import Rule

    class BigGradient(Rule):
        def __init__(self, base_trial, threshold=10.0):
            super().__init__(base_trial)
            self.threshold = float(threshold)

        def invoke_at_step(self, step):
            for name in self.base_trial.tensor_names(collection="gradients"):
                if self.base_trial.tensor(name).reduction_value(step, "mean", abs=True) > self.threshold:
                    return True
            return False

``tocsin rule-worker FILE`` judges live runs with it, ``invoke_rule`` a recorded one. A rule that was
written for Amazon SageMaker Debugger runs when ``smdebug`` in its imports becomes ``tocsin``.
"""

from tocsin.exceptions import RuleEvaluationConditionMet
from .recording import create_trial
from .rule import RequiredTensors, Rule
from .rule_invoker import invoke, invoke_rule
from .trial import StepState, Tensor, Trial

__all__ = ["RequiredTensors", "Rule", "RuleEvaluationConditionMet", "StepState", "Tensor", "Trial",
           "create_trial", "invoke", "invoke_rule"]
