"""What an adapter of a framework may call: steps, names, values. Everything else is private.

The head of ``loop/sink.py`` shows how an adapter is written.
"""

from .loop.sink import Sink, TRAINING

__all__ = ["Sink", "TRAINING"]
