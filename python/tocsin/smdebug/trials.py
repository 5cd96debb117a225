"""``smdebug.trials``."""

from tocsin.analysis.opening import create_trial
from tocsin.rules.trial import Tensor, Trial

__all__ = ["Tensor", "Trial", "create_trial"]
