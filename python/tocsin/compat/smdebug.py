"""smdebug's names over tocsin's hook, so that a script changes its import and nothing else:

    import tocsin.smdebug as smd                        # import smdebug.pytorch as smd

    hook = smd.Hook.create_from_json_file()             # or smd.Hook(out_dir, save_config=smd.SaveConfig(100))
    hook.register_module(model)
    hook.register_loss(criterion)
    hook.set_mode(smd.modes.TRAIN)

What a name does here stands at the method of :class:`tocsin.Hook`; what differs, in docs/collections.md.
"""

import os
import warnings
from typing import Any, Iterable, Optional

from tocsin import modes as _modes
from tocsin.hook import hook as _hook
from tocsin.hook.watching import watch
from tocsin.process import lifetime
from tocsin.settings.collections import Collection
from tocsin.settings.hook_config import CollectionConfig, DebuggerHookConfig, ReductionConfig, SaveConfig, SaveConfigMode, read as _read
from tocsin.settings.job_file import capture_of_json_file
from .collection_keys import CollectionKeys

__all__ = ["Collection", "CollectionConfig", "CollectionKeys", "DebuggerHookConfig", "Hook", "ReductionConfig", "SaveConfig",
           "SaveConfigMode", "create_from_json_file", "create_trial", "del_hook", "get_hook", "modes", "set_hook"]

modes = _modes.ModeKeys


def create_trial(*args: Any, **kwargs: Any) -> Any:
    """:func:`tocsin.trials.create_trial`; only loaded when it is called, as a training process needs none."""
    from tocsin.analysis.opening import create_trial as create
    return create(*args, **kwargs)


def create_from_json_file(json_file_path: Optional[str] = None) -> Optional[Any]:
    """The hook that this JSON file describes, else the one of SMDEBUG_CONFIG_FILE_PATH, else that of the job; None where there is
    no file. A file that is named and not there is an error."""
    capture = capture_of_json_file(json_file_path)
    return None if capture is None else watch(capture=capture)


class _Kind(type):
    def __instancecheck__(cls, instance: Any) -> bool:
        return isinstance(instance, _hook.Hook)


class Hook(metaclass=_Kind):
    """Gives the hook of the process with these settings: the one that is open if it has them, else a new one, and the run of the
    open one ends. Without settings, the open one. ``out_dir`` is a directory (``kafka://host:9092`` is one of ours), or a whole
    configuration: a ``DebuggerHookConfig``, a dictionary or a ``.json`` file with the keys of its JSON, collections. XGBoost's
    training callback is ``tocsin.xgboost.TocsinCallback``. Settings that are no setting raise ``ValueError``, as the original's do."""

    create_from_json_file = staticmethod(create_from_json_file)

    def __new__(cls, out_dir: Any = None, export_tensorboard: bool = False, tensorboard_dir: Optional[str] = None,
                dry_run: bool = False, reduction_config: Optional[ReductionConfig] = None,
                save_config: Optional[SaveConfig] = None, include_regex: Any = None,
                include_collections: Optional[Iterable[str]] = None, save_all: bool = False, include_workers: str = "one",
                **others: Any) -> Any:
        for name in others:
            warnings.warn(f"tocsin.smdebug.Hook: {name} is not used", RuntimeWarning, stacklevel=2)
        if _is_configuration(out_dir):
            return _hook_with(out_dir, _read(out_dir).out)
        given = {"export_tensorboard": export_tensorboard or None, "tensorboard_dir": tensorboard_dir, "dry_run": dry_run or None,
                 "save_all": save_all or None, "include_regex": include_regex}
        parameters = {key: value for key, value in given.items() if value is not None}
        for config in (save_config, reduction_config):
            if isinstance(config, dict):  # by mode
                config = SaveConfig(config)
            parameters.update({} if config is None else config.parameters())
        collections = [CollectionConfig(one) for one in include_collections or ()]
        open_hook = lifetime.open_hook()
        if open_hook is not None and not parameters and not collections and out_dir is None and include_workers == "one":
            return open_hook
        parameters["include_workers"] = include_workers
        return _hook_with(DebuggerHookConfig(hook_parameters=parameters, collection_configs=collections), out_dir)


def _is_configuration(given: Any) -> bool:
    return given is not None and (not isinstance(given, (str, os.PathLike)) or str(given).endswith(".json"))


def _hook_with(config: Any, out: Optional[str]) -> Any:
    """The open hook where it has been given the same, else a new one; an invalid configuration raises."""
    capture = _read(config).capture
    hook = lifetime.open_hook()
    if hook is not None:
        if out in (None, hook.said.get("out")) and capture == _read(hook.said.get("capture")).capture:
            return hook
        lifetime.end_former(hook)
    return watch(out=out, capture=config)


def get_hook(json_config_path: Optional[str] = None, create_if_not_exists: bool = False, hook_type: Any = None) -> Optional[Any]:
    """The open hook; with ``create_if_not_exists``, or where a JSON file says how, a new one."""
    del hook_type
    hook = lifetime.open_hook()
    if hook is None and (create_if_not_exists or json_config_path):
        hook = create_from_json_file(json_config_path)
        if hook is None and create_if_not_exists:
            hook = watch()
    return hook


def set_hook(custom_hook: Any) -> None:
    """From now on ``get_hook()`` gives this one."""
    lifetime.keep(custom_hook)


def del_hook() -> None:
    """Ends the run of the open hook; the next one is new."""
    hook = lifetime.open_hook()
    if hook is not None:
        hook.close()
