"""``smdebug.profiler.analysis.notebook_utils.training_job``."""

from tocsin.analysis.jobs import TrainingJob

__all__ = ["TrainingJob"]
