"""smdebug.core.collection: names of the built-in collections."""

from ..compat.collection_keys import CollectionKeys

__all__ = ["CollectionKeys"]
