"""``smdebug.profiler``."""
