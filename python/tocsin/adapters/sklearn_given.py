"""Which inputs an output of a scikit-learn estimator belongs to.

A script says ``training.step(outputs=…, targets=…)``. While it is watched the estimator has a subclass of its class whose ``predict`` and its kin
remember what they were given, until the step ends or their result is gone; so nothing has to be said twice. The subclass has the name of its class,
and what is pickled or copied is of the class itself.
"""

import copyreg
import functools
import inspect
import weakref
from typing import Any, Callable, Dict, List, Tuple

METHODS = ("predict", "predict_proba", "predict_log_proba", "decision_function")
MAX_KEPT = 4
MAX_BYTES = 1 << 26  # of inputs that are kept


class GivenInputs:
    """Of one estimator. ``detach()`` gives it its class back."""

    def __init__(self, estimator: Any) -> None:
        self._kept: List[Tuple["weakref.ref[Any]", Any]] = []
        self._busy = False
        self._estimator: Callable[[], Any] = lambda: None
        try:
            known = weakref.ref(estimator)
            estimator.__class__ = _noting(type(estimator), known, self._note)
            self._estimator = known
        except TypeError:  # of another layout, or not to be referred to: then the script says it
            pass

    def of(self, outputs: Any) -> Any:
        """What the estimator was given when it gave these; None: it did not."""
        return next((inputs for result, inputs in self._kept if result() is outputs), None)

    def forget(self) -> None:
        """The step has ended."""
        self._kept = []

    def detach(self) -> None:
        estimator = self._estimator()
        self._kept = []
        if estimator is not None and getattr(type(estimator), "_tocsin_class", None) is not None:
            estimator.__class__ = type(estimator)._tocsin_class
        self._estimator = lambda: None

    def _note(self, method: Callable[..., Any], args: Tuple[Any, ...], options: Dict[str, Any]) -> Any:
        if self._busy:
            return method(*args, **options)  # a method of this estimator has called another one
        self._busy = True
        try:
            result = method(*args, **options)
        finally:
            self._busy = False
        inputs = args[0] if args else options.get("X")
        if getattr(inputs, "nbytes", MAX_BYTES) < MAX_BYTES and type(result).__module__ == "numpy":
            self._kept = [*self._kept[1 - MAX_KEPT:], (weakref.ref(result, self._gone), inputs)]
        return result

    def _gone(self, result: Any) -> None:
        self._kept = [one for one in self._kept if one[0] is not result]


class _Method:
    """In the place of a method, which may be there for some estimators of the class alone."""

    def __init__(self, inner: Any, known: "weakref.ref[Any]", note: Callable[..., Any]) -> None:
        self._inner, self._known, self._note = inner, known, note

    def __get__(self, one: Any, owner: Any = None) -> Any:
        method = self._inner.__get__(one, owner)
        if one is None or one is not self._known():
            return method
        return functools.wraps(method)(lambda *args, **options: self._note(method, args, options))


def _noting(plain: type, known: "weakref.ref[Any]", note: Callable[..., Any]) -> type:
    def reduced(self: Any, protocol: Any) -> Any:
        ours, self.__class__ = type(self), plain
        try:
            made, given, *state = self.__reduce_ex__(protocol)
        finally:
            self.__class__ = ours
        if getattr(made, "__name__", "") == "__newobj__" and len(given) == 1:  # which wants an object of this very class
            return (copyreg._reconstructor, (plain, object, None), *state)  # type: ignore[attr-defined]
        return (made, given, *state)

    body: Dict[str, Any] = {name: _Method(inspect.getattr_static(plain, name), known, note) for name in METHODS
                            if hasattr(inspect.getattr_static(plain, name, None), "__get__")}
    return type(plain.__name__, (plain,), {**body, "__reduce_ex__": reduced, "__module__": plain.__module__, "__qualname__": plain.__qualname__,
                                           "__doc__": plain.__doc__, "_tocsin_class": plain})
