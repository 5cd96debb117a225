"""What programs of 2016–2020 expect of Python and of libraries beside Keras, under today's names. Plots are left out."""
import importlib.machinery
import sys
import time
import types

NUMPY_NAMES = {"float": float, "int": int, "bool": bool, "object": object, "str": str}
PLOTTING = ("matplotlib", "matplotlib.pyplot", "seaborn")


class Nothing:
    """Takes every call, attribute and item, and does nothing."""

    def __init__(self, *_, **__):
        pass

    def __call__(self, *_, **__):
        return self

    def __getattr__(self, name):
        if name.startswith("__"):
            raise AttributeError(name)
        return self

    def __getitem__(self, _):
        return self

    def __iter__(self):
        return iter((self, self))  # figure, axes = plt.subplots()


class _Plots(types.ModuleType):
    """A module of plotting that draws nothing."""

    def __getattr__(self, name):
        if name.startswith("__"):
            raise AttributeError(name)
        return Nothing()


class OneHotEncoder:
    """scikit-learn's before 0.22: `categorical_features` are encoded and come first, the other columns follow."""

    def __init__(self, categorical_features):
        self._columns = list(categorical_features)

    def fit_transform(self, table):
        """An object with toarray(), as the sparse matrix has."""
        import numpy
        values = numpy.asarray(table, dtype=float)
        encoded = [(values[:, at, None] == numpy.unique(values[:, at])[None]).astype(float) for at in self._columns]
        rest = numpy.delete(values, self._columns, axis=1)
        whole = numpy.concatenate([*encoded, rest], axis=1)
        return types.SimpleNamespace(toarray=lambda: whole)


def _encoder(preprocessing):
    """Today's encoder, but the old one where the old argument is given."""
    today = preprocessing.OneHotEncoder

    def encoder(*args, categorical_features=None, **kwargs):
        return today(*args, **kwargs) if categorical_features is None else OneHotEncoder(categorical_features)
    return encoder


def install():
    """Puts the old names in place, for this process alone."""
    import numpy
    if isinstance(sys.modules.get(PLOTTING[0]), _Plots):
        return
    for name, kind in NUMPY_NAMES.items():
        if name not in numpy.__dict__:
            setattr(numpy, name, kind)
    if not hasattr(time, "clock"):
        time.clock = time.perf_counter
    for name in PLOTTING:
        module = _Plots(name)
        module.__spec__, module.__path__ = importlib.machinery.ModuleSpec(name, None), []
        sys.modules[name] = module
    import sklearn.preprocessing
    sklearn.preprocessing.OneHotEncoder = _encoder(sklearn.preprocessing)
