"""``smdebug.profiler.analysis.utils.profiler_data_to_pandas``."""

from tocsin.analysis.profiles import PandasFrame

__all__ = ["PandasFrame"]
