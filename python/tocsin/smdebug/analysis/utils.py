"""``smdebug.analysis.utils``."""

from tocsin.rules.refreshing import no_refresh, refresh

__all__ = ["no_refresh", "refresh"]
