"""``smdebug.profiler.analysis.notebook_utils.heatmap``."""

from tocsin.analysis.charts import Heatmap

__all__ = ["Heatmap"]
