"""``smdebug.exceptions``."""

from tocsin.exceptions import (
    IndexReaderException, InsufficientInformationForRuleInvocation, InvalidCollectionConfiguration, InvalidWorker, MissingCollectionFiles,
    NoMoreData, NoMoreProfilerData, RuleEvaluationConditionMet, ShapeUnavailableForStep, StepNotYetAvailable, StepUnavailable,
    TensorUnavailable, TensorUnavailableForStep,
)

__all__ = ["IndexReaderException", "InsufficientInformationForRuleInvocation", "InvalidCollectionConfiguration", "InvalidWorker",
           "MissingCollectionFiles", "NoMoreData", "NoMoreProfilerData", "RuleEvaluationConditionMet", "ShapeUnavailableForStep",
           "StepNotYetAvailable", "StepUnavailable", "TensorUnavailable", "TensorUnavailableForStep"]
