"""``smdebug.profiler.analysis.utils.merge_timelines``."""

from tocsin.analysis.jobs import MergedTimeline

__all__ = ["MergedTimeline"]
