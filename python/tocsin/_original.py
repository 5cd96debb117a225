"""Methods of the hook under the names that SageMaker Debugger's hooks have, for scripts that call them."""

from typing import Any, Dict, List, Optional

from ._collections import Collection, Collections
from ._contain import contained


class OriginalNames:
    """Of a :class:`tocsin.Hook`; each is a word for one of its own methods."""

    collections: Collections

    def get_collections(self) -> Dict[str, Collection]:
        return dict(self.collections)

    def get_collection(self, name: str, create: bool = True) -> Optional[Collection]:
        """``create``: makes one without patterns, which :meth:`Collection.include` gives some."""
        if name not in self.collections:
            return self.collections.add(name) if create else None
        return self.collections[name]

    def add_collection(self, collection: Any) -> Optional[Collection]:
        """A ``CollectionConfig``, or a collection of this hook."""
        return collection if isinstance(collection, Collection) else self.collections.add(collection)

    def save_scalar(self, name: str, value: Any, sm_metric: bool = False, timestamp: Any = None) -> None:
        """``log()`` of one value; ``sm_metric`` and ``timestamp`` are accepted: every scalar is exported, with
        the time at which it was logged."""
        del sm_metric, timestamp
        self.log({name: value})  # type: ignore[attr-defined]

    def get_profiler_data(self, name: Optional[str] = None, step: Optional[int] = None) -> List[Dict[str, Any]]:
        """Times of steps, phases and spans that this run has written to its directory so far: see
        :meth:`tocsin.reading.Tensors.times`. Empty when it writes to a broker."""
        if self.enabled:  # type: ignore[attr-defined]
            self.flush()  # type: ignore[attr-defined]
        return self._timed(name, step) or []

    @contained([], when_closed=True)
    def _timed(self, name: Optional[str], step: Optional[int]) -> List[Dict[str, Any]]:
        read = self._reading()  # type: ignore[attr-defined]
        return [] if read is None else read.times(name, step, self.run)  # type: ignore[attr-defined]

    def should_save_step(self, collection: Optional[str] = None) -> bool:
        """Whether a collection (None: any) is captured at the present step."""
        return bool(self.enabled and self.sink.wants(collection))  # type: ignore[attr-defined]
