"""What a run was and is, in a notebook or a script (docs/analysis.md).

    from tocsin.analysis import create_trial

    trial = create_trial("run1")                             # a directory
    trial.tensor("loss").values()
"""

from tocsin.rules.refreshing import no_refresh, refresh
from .opening import create_trial

__all__ = ["create_trial", "no_refresh", "refresh"]
