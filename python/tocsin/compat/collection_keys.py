"""smdebug.core.collection: names of the built-in collections."""

from tocsin.library.vocabulary import COLLECTIONS

CollectionKeys = type("CollectionKeys", (), {name.upper(): name for name in COLLECTIONS})

__all__ = ["CollectionKeys"]
