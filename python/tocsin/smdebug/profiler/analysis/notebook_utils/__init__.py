"""``smdebug.profiler.analysis.notebook_utils``."""
