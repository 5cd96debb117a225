"""``smdebug.profiler.analysis.python_profile_analysis``."""

from tocsin.analysis import PyinstrumentAnalysis, PythonProfileAnalysis, cProfileAnalysis

__all__ = ["PyinstrumentAnalysis", "PythonProfileAnalysis", "cProfileAnalysis"]
