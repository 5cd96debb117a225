"""What goes wrong when tensors are read, and how a rule says that its condition is met."""


class RuleError(Exception):
    """All of this module."""


class MissingData(RuleError):
    """Something that was asked for is not there: no verdict is possible at this step."""


class TensorUnavailable(MissingData):
    """No step has a tensor of that name."""

    def __init__(self, tname):
        self.tname = tname
        super().__init__(f"tensor {tname} is not there")


class TensorUnavailableForStep(MissingData):
    """The tensor is there, but not what was asked for at this step."""

    def __init__(self, tname, step, mode=None, has_reductions=False, what="value"):
        self.tname, self.step, self.mode = tname, step, mode
        text = f"tensor {tname} has no {what} at step {step}"
        if mode is not None:
            text += f" of mode {getattr(mode, 'name', mode)}"
        if has_reductions:
            text += "; its reductions are there: use reduction_value()"
        super().__init__(text)


class ElementsUnavailableForStep(TensorUnavailableForStep):
    """The tensor is there, its elements are not: they travel on request."""

    def __init__(self, tname, step, mode=None, why=""):
        super().__init__(tname, step, mode, has_reductions=True)
        self.why = why
        self.args = (f"{self.args[0]}. {why}",)


class ShapeUnavailableForStep(TensorUnavailableForStep):
    def __init__(self, tname, step, mode=None):
        super().__init__(tname, step, mode, what="shape")


class StepUnavailable(MissingData):
    """Nothing was saved at this step, or it lies further back than is kept."""

    def __init__(self, step, mode=None):
        self.step, self.mode = step, mode
        super().__init__(f"step {step} is not there" + (f" in mode {mode.name}" if mode is not None else ""))


class StepNotYetAvailable(MissingData):
    """The step lies ahead."""

    def __init__(self, step, mode=None):
        self.step, self.mode = step, mode
        super().__init__(f"step {step} has not come yet")


class NoMoreData(RuleError):
    """The recording ends before this step."""

    def __init__(self, step=None, mode=None, last_step=None):
        self.step, self.mode, self.last_step = step, mode, last_step
        super().__init__(f"nothing was saved from step {step} on" if step is not None else "nothing more was saved")


class InvalidWorker(MissingData):
    def __init__(self, worker):
        self.worker = worker
        super().__init__(f"there is no worker {worker}")


class InsufficientInformationForRuleInvocation(MissingData):
    """For rules: this step cannot be judged."""

    def __init__(self, rule_name, message):
        self.rule_name = rule_name
        super().__init__(f"{rule_name}: {message}")


class RuleEvaluationConditionMet(RuleError):
    """The condition of a rule holds: raised by ``invoke``, or by a rule instead of returning True."""

    def __init__(self, rule_name="", step=None, end_of_rule=False):
        self.rule_name, self.step, self.end_of_rule = rule_name, step, end_of_rule
        super().__init__(f"the condition of {rule_name or 'the rule'} is met"
                         + (f" at step {step}" if step is not None else ""))


class NoMoreProfilerData(RuleError):
    """The run has ended, and has no samples or spans from this time on."""

    def __init__(self, timestamp=None):
        self.timestamp = timestamp
        super().__init__("no more samples and spans" + (f" from {timestamp} on" if timestamp is not None else ""))


class InvalidCollectionConfiguration(RuleError):
    """A collection by this name holds nothing."""

    def __init__(self, c_name=""):
        self.c_name = c_name
        super().__init__(f"the collection {c_name} holds nothing")


class IndexReaderException(RuleError):
    """A recording cannot be read."""


class MissingCollectionFiles(RuleError, FileNotFoundError):
    """There is no recording at this place."""
