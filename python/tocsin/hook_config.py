"""The hook's configuration as SageMaker Debugger writes it: its classes, its parameters, its JSON file."""

from .settings.hook_config import (
    CollectionConfig, DebuggerHookConfig, INTERVAL, INTERVAL_XGBOOST, Parameters, REDUCTIONS, Read, ReductionConfig,
    SaveConfig, SaveConfigMode, collection_body, read,
)

__all__ = ["CollectionConfig", "DebuggerHookConfig", "INTERVAL", "INTERVAL_XGBOOST", "Parameters", "REDUCTIONS", "Read",
           "ReductionConfig", "SaveConfig", "SaveConfigMode", "collection_body", "read"]
