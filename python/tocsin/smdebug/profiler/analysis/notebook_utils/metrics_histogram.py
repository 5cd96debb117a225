"""``smdebug.profiler.analysis.notebook_utils.metrics_histogram``."""

from tocsin.analysis.charts import MetricsHistogram

__all__ = ["MetricsHistogram"]
