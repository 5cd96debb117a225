"""``torch.jit.script`` compiles the hooks of a module: it gets the modules without ours, which come back with the next captured step."""

import functools
import weakref
from typing import Any, Iterable, List

from .copies import is_ours

_SCRIPTED = "__prepare_scriptable__"  # asked by torch.jit.script


def hide_from_scripting(modules: Iterable[Any]) -> None:
    """These have hooks of ours."""
    for module in modules:
        if module is not None and not hasattr(type(module), _SCRIPTED) and _SCRIPTED not in vars(module):
            setattr(module, _SCRIPTED, _Scripted(module))


def show_to_scripting(modules: Iterable[Any]) -> None:
    """Hooks were removed from these, which may have others of ours."""
    for module in modules:
        if module is not None and isinstance(vars(module).get(_SCRIPTED), _Scripted) and not any(
                is_ours(hook) for hooks in (module._forward_pre_hooks, module._forward_hooks) for hook in hooks.values()):
            del vars(module)[_SCRIPTED]


def taken_out(handles: List[Any]) -> bool:
    """Whether a hook that one of these handles stands for is not there any more."""
    for handle in handles:
        hooks = handle.hooks_dict_ref()
        if hooks is not None and handle.id not in hooks:
            return True
    return False


class _Scripted:
    """Gives the module, or its copy, without hooks of ours."""

    def __init__(self, model: Any) -> None:
        self._model = weakref.ref(model)

    def __call__(self) -> Any:
        model = self._model()
        for module in model.modules():
            for hooks in (module._forward_pre_hooks, module._forward_hooks):
                for key, hook in list(hooks.items()):
                    if is_ours(hook):
                        del hooks[key]
            vars(module).pop(_SCRIPTED, None)
        return model

    def __deepcopy__(self, memo: Any) -> "_Scripted":
        return _Scripted(memo.get(id(self._model()), self._model()))

    def __reduce__(self) -> Any:
        return functools.partial, (self._model().get_submodule, "")  # gives the copy itself
