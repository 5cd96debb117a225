"""What a run was and is, in a notebook or a script (docs/analysis.md).

    from tocsin.analysis import create_trial

    trial = create_trial("run1")                             # a directory
    trial = create_trial("http://127.0.0.1:9760", run="4e30")  # a server
    trial.series("loss").to_pandas()
"""

from tocsin.rules.refreshing import no_refresh, refresh
from .charts import Heatmap, MetricsHistogram, StepHistogram, StepTimelineChart, TimelineCharts
from .class_activation import activation_map
from .copied import copy_run
from .exports import export
from .frame import Frame, NotInstalled
from .http import Server, ServerError
from .issues import Issue, issues, runs
from .jobs import MergedTimeline, TrainingJob
from .opening import create_trial
from .python_profiles import PyinstrumentAnalysis, PythonProfileAnalysis, cProfileAnalysis, cProfileStats
from .tensor_plot import tensor_plot
from .trace_parse import NoTrace
from .trace_set import Traces, traces
from .profiles import NoProfilerData, PandasFrame, PandasFrameAnalysis, Profile, Resource, StatsBy

__all__ = ["Frame", "Heatmap", "Issue", "MergedTimeline", "MetricsHistogram", "NoProfilerData", "NoTrace", "NotInstalled", "PandasFrame",
           "PandasFrameAnalysis", "Profile", "PyinstrumentAnalysis", "PythonProfileAnalysis", "Resource", "Server", "ServerError", "StatsBy", "StepHistogram", "StepTimelineChart",
           "TimelineCharts", "Traces", "TrainingJob", "activation_map", "cProfileAnalysis", "cProfileStats", "copy_run", "create_trial", "export", "issues", "no_refresh", "refresh", "runs", "tensor_plot",
           "traces"]
