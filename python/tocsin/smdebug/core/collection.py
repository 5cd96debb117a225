"""``smdebug.core.collection``."""

from tocsin.compat.collection_keys import CollectionKeys

__all__ = ["CollectionKeys"]
