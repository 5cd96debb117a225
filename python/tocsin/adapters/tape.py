"""TensorFlow's GradientTape in an eager loop, as the original's hook takes it: ``wrap_tape``."""

from typing import Any, List


def wrap(hook: Any, tape: Any) -> None:
    """``gradient()`` of this tape tells the hook what it computes; what it gives is left as it is."""
    inner = tape.gradient

    def gradient(target: Any, sources: Any, *args: Any, **kwargs: Any) -> Any:
        given = inner(target, sources, *args, **kwargs)
        if hook.enabled:
            with hook.sink.guard("wrap_tape"):
                _tell(hook, target, _list(sources), _list(given))
        return given

    tape.gradient = gradient


def _list(value: Any) -> List[Any]:
    return list(value) if isinstance(value, (list, tuple)) else [value]


def _tell(hook: Any, target: Any, variables: List[Any], gradients: List[Any]) -> None:
    """The loss, and where they are due gradients, and weights before the update; then the step ends."""
    if not hasattr(target, "numpy"):
        raise TypeError("inside a tf.function there are no values to read: see tocsin.keras.watch()")
    value = target.numpy()
    if getattr(value, "size", 1) == 1:
        hook.log(loss=float(value))
    if hook.should_save_step():
        for variable, gradient in zip(variables, gradients):
            name = getattr(variable, "path", variable.name).split(":")[0]
            hook.emit(name, variable.numpy(), role="bias" if name.endswith("bias") else "weight")
            if gradient is not None:
                dense = getattr(gradient, "values", gradient)  # of an embedding: the rows that it has
                hook.emit("gradient/" + name, dense.numpy(), role="gradient")
    hook.step()
