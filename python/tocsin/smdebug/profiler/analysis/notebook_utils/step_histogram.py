"""``smdebug.profiler.analysis.notebook_utils.step_histogram``."""

from tocsin.analysis.charts import StepHistogram

__all__ = ["StepHistogram"]
