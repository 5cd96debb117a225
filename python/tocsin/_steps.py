"""Which step a loop is in: one clock per loop, whoever drives it."""

import weakref
from typing import Any, Callable, Optional

from . import _client
from ._device_queue import DeviceQueue

# What was said of the present step.
FRESH = "fresh"    # nothing yet
LOGGED = "logged"  # scalars, and the update is still to come
HELD = "held"      # updated, and kept open for the log() that may follow


class StepClock:
    """A small machine of three states; every arrow that ends a step leads to ``FRESH``.

    ======  ==========  ==============  =================  ==========================
    state   log()       an update ends  a step is ended    an update begins, the mode
                                        (``hook.step()``)  changes, the hook closes
    ======  ==========  ==============  =================  ==========================
    FRESH   LOGGED      HELD            ends [1]_          FRESH
    LOGGED  LOGGED      ends            ends               LOGGED, or FRESH [2]_
    HELD    ends        HELD            ends               ends
    ======  ==========  ==============  =================  ==========================

    .. [1] Not in training beside an optimizer that ends its own steps: this would count one more.
    .. [2] A mode that changes begins another step; an update does not.
    """

    def __init__(self, client: _client.Client, queue: DeviceQueue) -> None:
        self.mode = "train"
        self.state = FRESH
        # Steps ended here and not yet in the library, because a device still computes for them.
        self.ahead = 0
        # model.train() and model.eval() set the mode, until the script does.
        self.follows = True
        # Asked when the end of the present step is told: did mixed precision leave its update out?
        self._skipped: Optional[Callable[[], bool]] = None
        self._queue = queue
        self._client = client
        self._model: Callable[[], Any] = _nobody
        self._drivers: "weakref.WeakSet[Any]" = weakref.WeakSet()

    # ---- who drives

    def drive(self, driver: Any) -> None:
        """As long as ``driver`` lives, its updates end the steps of training."""
        self._drivers.add(driver)

    def follow_model(self, model: Any) -> None:
        """The flag ``training`` of the first model is the mode; when it is gone, of the next one."""
        if self._model() is None:
            self._model = weakref.ref(model)

    def follow(self) -> None:
        """Takes over the mode of the model that is followed."""
        model = self._model()
        if model is None or not self.follows:
            return
        mode = "train" if model.training else "eval"
        if mode != self.mode:
            self.change_mode(mode)

    # ---- the arrows

    def logged(self) -> None:
        if self.state is HELD:
            self._end(0)
        else:
            self.state = LOGGED

    def begin_update(self) -> None:
        """An update of the parameters begins: the mode is ``train``, a step that was held open for
        its log() ends. Gradients and weights are read between here and the update."""
        if self._queue.waiting:
            self._queue.drain()
        if self.state is HELD:
            self._end(0)
        # A model that is trained in its eval state (no dropout, frozen statistics) says nothing
        # about modes.
        if self.follows:
            model = self._model()
            if model is not None and not model.training:
                self.follows = False
        if self.mode != "train":
            self.change_mode("train")

    def end_update(self, skipped: Optional[Callable[[], bool]] = None,
                   after: Optional[Any] = None) -> None:
        """The update is done. The step ends now, or after the log() that follows.

        ``skipped`` tells whether mixed precision left the update out, once the event ``after`` (None:
        at once) is done.
        """
        if skipped is not None:
            self._skipped = skipped
            if after is not None:
                self._queue.put(_nothing, after=after)
        # A script that logs before the update has said everything; one that logs after it gets the
        # step held open for that.
        if self.state is LOGGED:
            self._end(0)
        else:
            self.state = HELD

    def end_step(self, skipped: bool = False) -> None:
        """Ends a step where no update does. ``skipped``: mixed precision left the update out."""
        if self.state is FRESH and self.mode == "train" and not skipped and len(self._drivers) > 0:
            return
        self._end(_client.STEP_OPTIMIZER_SKIPPED if skipped else 0)

    def change_mode(self, mode: str) -> None:
        self.close()
        self.mode = mode
        self.state = FRESH
        if self._queue.waiting:
            self._queue.put(self._client.set_mode, _client.MODES[mode])
        else:
            self._client.set_mode(_client.MODES[mode])

    def close(self) -> None:
        """Nothing more is said of a step that was held open."""
        if self.state is HELD:
            self._end(0)

    def _end(self, flags: int) -> None:
        self.state = FRESH
        skipped, self._skipped = self._skipped, None
        if self._queue.waiting:
            self.ahead += 1
            self._queue.put(self._end_late, flags, skipped)
        else:
            self._client.step_end(flags if skipped is None else _with(flags, skipped))

    def _end_late(self, flags: int, skipped: Optional[Callable[[], bool]]) -> None:
        self.ahead -= 1
        self._client.step_end(flags if skipped is None else _with(flags, skipped))


def _with(flags: int, skipped: Callable[[], bool]) -> int:
    return flags | _client.STEP_OPTIMIZER_SKIPPED if skipped() else flags


def _nobody() -> None:
    return None


_nothing = _nobody
