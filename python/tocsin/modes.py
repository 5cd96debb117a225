"""What a training process does at a step."""

from enum import Enum


class ModeKeys(Enum):
    """GLOBAL counts the steps of all modes, in the order in which they ran."""

    TRAIN = 1
    EVAL = 2
    PREDICT = 3
    GLOBAL = 4


TRAIN, EVAL, PREDICT, GLOBAL = ModeKeys.TRAIN, ModeKeys.EVAL, ModeKeys.PREDICT, ModeKeys.GLOBAL
