"""``smdebug.core``."""
