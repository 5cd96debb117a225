"""``import smdebug.pytorch as smd``."""

from tocsin.compat.smdebug import (
    Collection, CollectionConfig, CollectionKeys, DebuggerHookConfig, Hook, ReductionConfig, SaveConfig, SaveConfigMode,
    create_from_json_file, create_trial, del_hook, get_hook, modes, set_hook,
)

__all__ = ["Collection", "CollectionConfig", "CollectionKeys", "DebuggerHookConfig", "Hook", "ReductionConfig", "SaveConfig",
           "SaveConfigMode", "create_from_json_file", "create_trial", "del_hook", "get_hook", "modes", "set_hook"]
