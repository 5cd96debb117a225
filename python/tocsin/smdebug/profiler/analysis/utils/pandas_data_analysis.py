"""``smdebug.profiler.analysis.utils.pandas_data_analysis``."""

from tocsin.analysis.profiles import PandasFrameAnalysis, Resource, StatsBy

__all__ = ["PandasFrameAnalysis", "Resource", "StatsBy"]
