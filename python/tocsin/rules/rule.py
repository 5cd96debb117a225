"""What a rule is: a class that is asked, step by step, whether its condition holds."""

import logging
import re
from typing import Any, Dict, List, Optional, Tuple

from tocsin.exceptions import RuleEvaluationConditionMet
from tocsin.modes import ModeKeys
from . import saving
from .refreshing import no_refresh
from .trial import Tensor, Trial

MOST_ISSUES = 1000  # at one step
_OURS = frozenset({"base_trial", "other_trials", "trials", "req_tensors", "rule_name", "logger", "action_str"})


class RequiredTensors:
    """Tensors and steps that a rule needs before it judges."""

    def __init__(self, base_trial: Trial, other_trials: Optional[List[Trial]] = None) -> None:
        self._base = base_trial
        self._trials = [base_trial] + list(other_trials or [])
        self._wanted: Dict[int, Dict[str, List[int]]] = {}
        self.clear()

    def _of(self, trial: Optional[Trial]) -> Dict[str, List[int]]:
        return self._wanted.setdefault(id(trial if trial is not None else self._base), {})

    def add(self, name: str, steps: List[int], trial: Optional[Trial] = None, should_match_regex: bool = False) -> None:
        of = trial if trial is not None else self._base
        names = [known for known in of.tensor_names() if re.match(name, known)] if should_match_regex else [name]
        for one in names:
            known = self._of(trial).setdefault(one, [])
            known.extend(step for step in steps if step not in known)

    need_tensor = add  # its older name

    def get_names(self, trial: Optional[Trial] = None) -> List[str]:
        return list(self._of(trial))

    def get_tensor_steps(self, name: str, trial: Optional[Trial] = None) -> List[int]:
        return list(self._of(trial).get(name, []))

    def get(self, trial: Optional[Trial] = None) -> List[Tensor]:
        of = trial if trial is not None else self._base
        return [of.tensor(name) for name in self._of(trial)]

    def fetch(self) -> None:
        """Raises what says which of them is missing (tocsin.exceptions)."""
        for trial in self._trials:
            for name, steps in self._of(trial).items():
                tensor = trial.tensor(name)
                for step in steps:
                    trial.wait_for_steps([step])
                    tensor._row(step, ModeKeys.GLOBAL, None)

    def clear(self) -> None:
        self._wanted.clear()


class Rule:
    """Derive from it, and say in ``invoke_at_step`` whether the condition holds at a (global) step.

    Arguments of the constructor beside the trials come from the configuration. What the attributes
    hold is kept over restarts as far as it is plain data (numbers, texts, lists, maps, sets, arrays);
    ``save`` and ``load`` are there for everything else.
    """

    def __init__(self, base_trial: Trial, action_str: str = "", other_trials: Optional[List[Trial]] = None) -> None:
        if isinstance(action_str, (list, tuple)):  # of the original's first versions, which had no actions
            action_str, other_trials = "", list(action_str)
        self.base_trial = base_trial
        self.other_trials = list(other_trials or [])
        self.trials = [base_trial] + self.other_trials
        self.action_str = action_str  # of the original; routes decide here who is told
        self.rule_name = type(self).__name__
        self.req_tensors = RequiredTensors(base_trial, self.other_trials)
        self.logger = logging.getLogger("tocsin.rules")
        self.report: Dict[str, Any] = {"RuleTriggered": 0, "Violations": 0, "Details": {}, "Datapoints": 0,
                                       "RuleParameters": ""}
        self._issues: List[Dict[str, Any]] = []

    @property
    def required_tensors(self) -> RequiredTensors:
        return self.req_tensors

    def set_required_tensors(self, step: int) -> None:
        """Fills ``req_tensors`` with what ``invoke_at_step`` is going to look at. Nothing by default."""

    def invoke_at_step(self, step: int) -> bool:
        """True: the condition is met."""
        raise NotImplementedError(f"{self.rule_name} has no invoke_at_step(self, step)")

    def issue(self, message: str = "", *, key: str = "", severity: Optional[str] = None,
              evidence: Optional[Dict[str, Any]] = None, observed: Optional[Tuple[str, float]] = None,
              threshold: Optional[Tuple[str, str, float]] = None, recommendation: str = "") -> None:
        """The condition is met, and this is to be told of it. ``key``: of what, where a rule judges
        several things alone, for instance the name of a tensor. ``observed``: name and number;
        ``threshold``: comparison, name and number."""
        if len(self._issues) >= MOST_ISSUES:
            raise ValueError(f"more than {MOST_ISSUES} issues at one step")
        if severity not in (None, "info", "warning", "error", "critical"):
            raise ValueError(f"severity {severity!r}: expected info, warning, error or critical")
        told: Dict[str, Any] = {"key": str(key), "summary": str(message), "recommendation": recommendation}
        if severity:
            told["severity"] = severity
        if evidence:
            told["values"] = saving.presentable(evidence)
        if observed:
            told["observed_name"], told["observed"] = str(observed[0]), saving.presentable(float(observed[1]))
        if threshold:
            told["operator"], told["threshold_name"] = str(threshold[0]), str(threshold[1])
            told["threshold"] = saving.presentable(float(threshold[2]))
        self._issues = [one for one in self._issues if one["key"] != told["key"]] + [told]

    def evaluate(self, step: int) -> List[Dict[str, Any]]:
        """One step: what there is to tell, nothing when the condition does not hold."""
        self._issues = []
        try:
            self.base_trial.wait_for_steps([step])
            with no_refresh(self.trials):
                self.req_tensors.clear()
                self.set_required_tensors(step)
                self.req_tensors.fetch()
                if self.invoke_at_step(step) and not self._issues:
                    self.issue()
        except RuleEvaluationConditionMet:
            if not self._issues:
                self.issue()
        issues, self._issues = self._issues, []
        return issues

    def invoke(self, step: int) -> None:
        """One step. Raises RuleEvaluationConditionMet when the condition is met."""
        if self.evaluate(step):
            raise RuleEvaluationConditionMet(self.rule_name, step)

    def save(self) -> Any:
        """What ``load`` is given after a restart, as plain data."""
        kept, left = saving.attributes_of(self, _OURS)
        for name in left:
            if name not in self.__dict__.setdefault("_unsaved", {}):
                self._unsaved[name] = True
                self.logger.warning("%s.%s is no plain data: after a restart it is what __init__ makes of it",
                                    self.rule_name, name)
        return kept

    def load(self, saved: Any) -> None:
        for name, value in saved.items():
            setattr(self, name, saving.merged(getattr(self, name, None), value))
