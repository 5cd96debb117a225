"""The states of a step and the events that change them: one table, for Python and for the library.

:class:`~tocsin.loop.steps.StepClock` reads the table here. The library has it in ``collectors/hook/abi/step_arrows.h``, which
``tools/step_arrows`` writes from this file. ``docs/decisions/0009-one-table-of-steps.md`` says why.
"""

from typing import Dict

FRESH = "fresh"  # nothing was said of the step
LOGGED = "logged"  # scalars were logged, and the update is still to come
OPEN = "open"  # one optimizer has updated, and others of the loop follow
OPEN_LOGGED = "open_logged"  # as OPEN, and scalars came before the first update
HELD = "held"  # updated, and kept open for the log() that may follow
STATES = (FRESH, LOGGED, OPEN, OPEN_LOGGED, HELD)

ENDS = "ends"  # in place of a state: the step ends, and the next one is FRESH

Arrows = Dict[str, str]  # state before an event: state after it, or ENDS


def _arrows(*after: str) -> Arrows:
    return dict(zip(STATES, after))


EVENTS: Dict[str, Arrows] = {
    # Values are logged. A script that logs after the update says by this that the step is over.
    "log":               _arrows(LOGGED, LOGGED, OPEN, OPEN_LOGGED, ENDS),
    # A name is logged that this step has already, after the leader's update: it belongs to the next step.
    "log_again":         _arrows(FRESH,  LOGGED, ENDS, ENDS,        HELD),
    # An update is done, and no optimizer of the loop is left that has not updated in this step.
    "update":            _arrows(HELD,   ENDS,   HELD, ENDS,        HELD),
    # An update is done, and other optimizers of the loop are to follow.
    "update_of_several": _arrows(OPEN,   OPEN_LOGGED, OPEN, OPEN_LOGGED, OPEN),
    # Another optimizer than the leader begins one more update in this step.
    "go_on":             _arrows(FRESH,  LOGGED, OPEN, OPEN_LOGGED, OPEN),
    # The update of the next step begins, or the hook closes: nothing more is said of this step.
    "close":             _arrows(FRESH,  LOGGED, ENDS, ENDS,        ENDS),
    # A model is applied.
    "forward":           _arrows(FRESH,  LOGGED, OPEN, OPEN_LOGGED, ENDS),
    # A loop that names its modes goes to another one: what was logged is all.
    "name_mode":         _arrows(FRESH,  ENDS,   OPEN, OPEN_LOGGED, HELD),
    # The mode is another one. Scalars that were logged belong to the step that begins there.
    "change_mode":       _arrows(FRESH,  FRESH,  ENDS, ENDS,        ENDS),
    # ``hook.step()``.
    "step":              _arrows(ENDS,   ENDS,   ENDS, ENDS,        ENDS),
}
