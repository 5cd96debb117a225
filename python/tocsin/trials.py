"""What a run has saved, step by step, as rules look at it: ``create_trial(directory)``."""

from .analysis.opening import create_trial
from .rules.trial import StepState, Tensor, Trial

__all__ = ["StepState", "Tensor", "Trial", "create_trial"]
