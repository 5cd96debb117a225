"""``smdebug.profiler.analysis.notebook_utils.timeline_charts``."""

from tocsin.analysis.charts import TimelineCharts

__all__ = ["TimelineCharts"]
