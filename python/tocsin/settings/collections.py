"""The collections of a hook, for the script that reads and extends them before its first step."""

import json
from typing import Any, Dict, Iterable, Iterator, List, Mapping, Optional

from tocsin.library import abi
from tocsin.process.contain import Errors

# Collections that not every framework and optimizer can fill, and what it takes. Whoever asks for one in vain is told at the end.
_SELDOM = {"optimizer_variables": "give watch() an optimizer of PyTorch that remembers something, or use tocsin.keras.TocsinCallback; "
                                  "other frameworks have none"}


class Collection:
    """One of them. ``tensor_names`` are those that belong to it so far; ``settings`` are the keys of
    ``capture.collections`` (docs/hook.md) that are set."""

    def __init__(self, owner: "Collections", name: str) -> None:
        self._owner = owner
        self.name = name

    def __repr__(self) -> str:
        return f"Collection({self.name!r}, {self.settings})"

    @property
    def settings(self) -> Dict[str, Any]:
        return dict(self._owner.look().get(self.name, {}).get("config", {}))

    @property
    def tensor_names(self) -> List[str]:
        return list(self._owner.look().get(self.name, {}).get("tensors", ()))

    @property
    def include_regex(self) -> List[str]:
        return list(self.settings.get("include", ()))

    def include(self, *patterns: Any) -> "Collection":
        """Tensors whose names one of these finds (RE2, searched anywhere) belong to it, too."""
        given: List[str] = []
        for pattern in patterns:
            given.extend([pattern] if isinstance(pattern, str) else pattern)
        settings = self.settings
        return self.change(include=[*settings.get("include", ()), *given])

    def add_module_tensors(self, module: Any, inputs: bool = False, outputs: bool = True) -> "Collection":
        """What a module of a watched PyTorch model takes or gives."""
        kinds = "|".join(kind for kind, wanted in (("input", inputs), ("output", outputs)) if wanted)
        paths = self._owner.paths_of(module)
        if not paths or not kinds:
            raise ValueError("add_module_tensors: a module of a watched model, and inputs or outputs of it")
        return self.include(*(f"^{_escaped(path)}_({kinds})_\\d+$" for path in paths))

    def change(self, **settings: Any) -> "Collection":
        """Sets keys of ``capture.collections``: ``every="5 steps"``, ``statistics=["median"]``; None
        takes one away."""
        merged = {**self.settings, **settings}
        self._owner.define(self.name, {key: value for key, value in merged.items()
                                       if value is not None or key == "end_step"})
        return self


class Collections(Mapping[str, Collection]):
    """``hook.collections``: by name. A change that cannot be made is counted and said, not raised."""

    def __init__(self, client: Optional[abi.Client], errors: Errors, adapters: Any = tuple) -> None:
        self._client, self._errors, self._adapters = client, errors, adapters

    def __getitem__(self, name: str) -> Collection:
        if name not in self.look():
            raise KeyError(name)
        return Collection(self, name)

    def __iter__(self) -> Iterator[str]:
        return iter(self.look())

    def __len__(self) -> int:
        return len(self.look())

    def add(self, name: Any, include: Iterable[str] = (), **settings: Any) -> Collection:
        """A further collection, or another body for one that is there: ``add("relu",
        include=["relu.*_output"], every="50 steps")``. ``name`` may be a ``CollectionConfig``."""
        if not isinstance(name, str):
            from .hook_config import read  # seldom needed, and not small

            for one, body in read([name]).capture["collections"].items():
                if one == name.name:
                    self.define(one, body)
            return Collection(self, name.name)
        patterns = [include] if isinstance(include, str) else list(include)
        self.define(name, {**({"include": patterns} if patterns else {}), **settings})
        return Collection(self, name)

    def told(self, all_of_them: bool) -> List[str]:
        """In words: which patterns have found no tensor; ``all_of_them``: what every collection holds."""
        lines = []
        for name, one in self.look().items():
            config, tensors = one.get("config", {}), one.get("tensors", [])
            if all_of_them:
                some = ", ".join(tensors[:3]) + (", …" if len(tensors) > 3 else "")
                lines.append(f"collection {name}: {len(tensors)} tensors" + (f" ({some})" if some else ""))
            elif not tensors and config.get("include") and not config.get("roles"):
                lines.append(f"collection {name} held nothing: no name has " + " or ".join(config["include"]))
            elif not tensors and name in _SELDOM:
                lines.append(f"collection {name} held nothing: {_SELDOM[name]}")
        return lines

    # ---- for a Collection

    def look(self) -> Dict[str, Any]:
        try:
            return {} if self._client is None else self._client.collections()
        except Exception as error:  # noqa: BLE001
            self._errors.add("collections", error)
            return {}

    def define(self, name: str, body: Dict[str, Any]) -> None:
        if self._client is None:
            return
        try:
            self._client.define(json.dumps({name: body}))
            for adapter in self._adapters():
                getattr(adapter, "look_at_modules", _nothing)()
        except Exception as error:  # noqa: BLE001
            self._errors.add("collections", error)

    def paths_of(self, module: Any) -> List[str]:
        found = []
        for adapter in self._adapters():
            path = getattr(adapter, "path_of", lambda _: None)(module)
            if path is not None:
                found.append(path)
        return found


def _nothing() -> None:
    pass


def _escaped(text: str) -> str:
    return "".join(one if one.isalnum() or one == "_" else "\\" + one for one in text)
