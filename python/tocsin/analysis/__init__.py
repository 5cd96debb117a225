"""What a run was and is, in a notebook or a script (docs/analysis.md).

    from tocsin.analysis import create_trial

    trial = create_trial("run1")                             # a directory
    trial = create_trial("http://127.0.0.1:9760", run="4e30")  # a server
    trial.series("loss").to_pandas()
"""

from tocsin.rules.refreshing import no_refresh, refresh
from .frame import Frame, NotInstalled
from .http import Server, ServerError
from .issues import Issue, issues, runs
from .opening import create_trial

__all__ = ["Frame", "Issue", "NotInstalled", "Server", "ServerError", "create_trial", "issues", "no_refresh", "refresh", "runs"]
