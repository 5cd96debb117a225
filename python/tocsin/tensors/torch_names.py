"""Names of PyTorch parameters, and what wrappers hide."""

from typing import Any, List

_WRAPPERS = ("DataParallel", "DistributedDataParallel", "FullyShardedDataParallel",
             "DeepSpeedEngine")
_INNER = ("_orig_mod", "_fsdp_wrapped_module", "_checkpoint_wrapped_module", "_forward_module")


def plain_name(name: str, wrapped: bool) -> str:
    """The parameter's own path, without what wrappers put into it."""
    parts = [part for part in name.split(".") if part not in _INNER]
    while wrapped and parts and parts[0] == "module":
        parts.pop(0)
    return ".".join(parts)


def is_wrapped(model: Any) -> bool:
    inner = getattr(model, "_orig_mod", model)
    return type(inner).__name__ in _WRAPPERS


def is_sharded(model: Any, parameters: List[Any]) -> bool:
    if any(hasattr(parameter, "to_local") for parameter in parameters):
        return True
    modules = getattr(model, "modules", None)
    return modules is not None and any("FullyShardedDataParallel" == type(module).__name__
                                       for module in modules())


def local(tensor: Any) -> Any:
    """This rank's part of a tensor that lies on several. What a collective still brings is ordered before
    what is launched next, not waited for."""
    if not hasattr(tensor, "to_local"):
        return tensor
    part = tensor.to_local()
    return part.wait() if type(part).__name__ == "AsyncCollectiveTensor" else part
