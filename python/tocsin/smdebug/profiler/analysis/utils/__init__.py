"""``smdebug.profiler.analysis.utils``."""
