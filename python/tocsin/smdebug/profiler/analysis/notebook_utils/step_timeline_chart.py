"""``smdebug.profiler.analysis.notebook_utils.step_timeline_chart``."""

from tocsin.analysis.charts import StepTimelineChart

__all__ = ["StepTimelineChart"]
