"""What a hook gives back of what it has sent."""

import os
import warnings
from typing import Any, Dict, List, Optional

from tocsin.process.contain import contained


class ReadsBack:
    """Of a :class:`tocsin.Hook`."""

    enabled: bool
    run: Optional[str]
    _out = ""
    _place: Dict[str, Any] = {}  # out, config, capture, as they were given
    _raw: Any = None

    def get_tensors(self, name: Optional[str] = None, step: Optional[int] = None, *, raw: bool = False) -> List[Any]:
        """Return what this run has written to its directory so far: see :meth:`tocsin.reading.Tensors.get`.

        The result is a list of dictionaries. It is empty when the run writes to a broker; :meth:`get_tensor` reads from
        there too. ``raw``: add ``elements``, an array, to the rows of tensors whose elements were sent.
        """
        if self.enabled:
            self.flush()  # type: ignore[attr-defined]
        return self._written(name, step, raw) or []

    @contained([], when_closed=True)
    def _written(self, name: Optional[str], step: Optional[int], raw: bool) -> List[Any]:
        from tocsin.reading.tensors import Tensors  # seldom needed, and not small

        if self.run is None or not os.path.isdir(self._out):
            return []
        rows = Tensors(self._out).get(name, step, self.run)
        if raw:
            from tocsin.reading.raw import HOW, NoRawTensor

            found = 0
            for row in rows:
                if "value" not in row:
                    try:
                        row["elements"] = self._tensors().value(row["name"], row["step"], row["mode"])
                        found += 1
                    except NoRawTensor:
                        continue
            if not found:
                warnings.warn(f"tocsin: no elements of {name or 'any tensor'} were sent: {HOW}", RuntimeWarning, stacklevel=4)
        return rows

    def get_tensor(self, name: str, step: int, mode: str = "train", worker: Optional[str] = None) -> Any:
        """Return the elements of a tensor at a step of a mode, wherever they were sent (docs/raw-tensors.md).

        The result is an array, or None with a warning that gives the reason. Waits at most 5 s for elements under way.
        """
        if self.enabled:
            self.flush()  # type: ignore[attr-defined]
        return self._elements(name, step, mode, worker)

    @contained(when_closed=True)
    def _elements(self, name: str, step: int, mode: str, worker: Optional[str]) -> Any:
        from tocsin.reading.raw import NoRawTensor

        try:
            return self._tensors().value(name, step, mode, worker)
        except NoRawTensor as why:
            warnings.warn(f"tocsin: {why}", RuntimeWarning, stacklevel=4)
            return None

    def _tensors(self) -> Any:
        if self._raw is None:
            from tocsin.reading.raw import RawTensors

            self._raw = RawTensors(str(self.run), **self._place)
        return self._raw
