"""What a script takes back: what is not to be watched any more."""

from typing import Any

from ._contain import contained


class Steering:
    """Of a :class:`tocsin.Hook`."""

    @contained()
    def unwatch(self, model: Any = None) -> None:
        """Lets go of a model and its optimizers (None: of all that are watched): hooks are taken out, and its updates
        end no steps any more. The run goes on; ``watch()`` attaches again."""
        for adapter in self.sink.adapters():  # type: ignore[attr-defined]
            if model is None or getattr(adapter, "parts", tuple)()[:1] == (model,):
                self.sink.let_go(adapter)  # type: ignore[attr-defined]
