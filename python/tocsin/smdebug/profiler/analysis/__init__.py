"""``smdebug.profiler.analysis``."""
