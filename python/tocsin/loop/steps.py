"""Which step a loop is in: one clock per loop, whoever drives it."""

import weakref
from typing import Any, Callable, FrozenSet, Iterable, List, Optional, Set, Tuple

from tocsin.library import abi
from tocsin.tensors.device_queue import DeviceQueue
from .step_arrows import ENDS, EVENTS, FRESH, HELD, OPEN, OPEN_LOGGED, STATES, Arrows

FIRST, MANUAL = "first_optimizer", "manual"  # of `capture.step_by`, beside the name of an optimizer
# Updates of others during which the leader may stand still: of a step that lasts longer the leader
# is one that the script has given up.
PATIENCE = 128
_UPDATED = (OPEN, OPEN_LOGGED, HELD)
_LOG, _LOG_AGAIN, _UPDATE, _UPDATE_OF_SEVERAL, _GO_ON, _CLOSE, _FORWARD, _NAME_MODE, _CHANGE_MODE, _STEP = (
    EVENTS[event] for event in ("log", "log_again", "update", "update_of_several", "go_on", "close", "forward", "name_mode",
                                "change_mode", "step"))


class StepClock:
    """A small machine: step_arrows.py has its states, and what each event makes of them.

    Which event a call is, is decided here. An update is the last of its step when every optimizer of the loop has updated in
    the step; with ``step_by: manual`` none is. ``end_step()`` ends no step of training beside an optimizer that ends its own
    steps, which would count one more.

    The leader is the first optimizer of the loop, or the one that ``step_by`` names. Optimizers that
    are watched before any of them has updated belong to one loop; one that comes later begins another.

    Most steps are like the one before: one optimizer, training, nothing captured, nothing on a device. For those the clock
    is lent (``lend()``) to functions of the library (collectors/hook/abi/abi_steps.cc), which take the same arrows without a line
    of Python. Whoever looks at ``state`` or ``number``, at ``quiet`` of the client, or makes something wait for a device,
    takes it back by that, and the next step is done here.
    """

    def __init__(self, client: abi.Client, queue: DeviceQueue, step_by: str = FIRST) -> None:
        self.mode = "train"
        self._state = FRESH
        # Steps ended here and not yet in the library, because a device still computes for them.
        self.ahead = 0
        self._number = 0  # steps ended here
        self._lent = self._kept = False
        self._keepers: FrozenSet[str] = frozenset()
        self._borrower: Callable[[], Any] = _nobody
        # model.train() and model.eval() set the mode, until the script does.
        self.follows = True
        # True: one optimizer at most, and it ends the steps. What several need is not looked at then.
        self.simple = step_by != MANUAL
        self._step_by = step_by
        # Asked when the end of the present step is told: did mixed precision leave its update out?
        self._skipped: Optional[Callable[[], bool]] = None
        self._queue = queue
        self._client = client
        self.model: Callable[[], Any] = _nobody  # the one that is followed
        # Told how the model's flag `training` stood in a step: when it changes, and in every step in
        # which it does not fit the mode.
        self.tell_training: Callable[[bool], None] = _nothing_of
        self._training: Optional[bool] = None  # at the present step's update
        self._state_matters = True
        self.evaluates = False  # it has been applied in its eval state since it last was in its training state
        self.applied: Optional[bool] = None  # a watched model, since the mode began; None: nobody sees it
        self.leaving: List[Callable[[str], None]] = []  # told of the mode that ends, while its step is still there
        self._told: Tuple[str, Optional[bool]] = ("", None)
        self._drivers: List[Tuple["weakref.ref[Any]", str]] = []
        self._known: Set[int] = set()  # id() of each
        self._moved = False  # one of them has updated
        self._updated: Set[int] = set()  # id() of those that have in the present step
        self._others = 0  # updates since the leader's last
        self._logged_names: Set[str] = set()

    # ---- lent to functions of the library

    @property
    def state(self) -> str:
        if self._lent:
            self.take_back()
        return self._state

    @state.setter
    def state(self, state: str) -> None:
        if self._lent:
            self.take_back()
        self._state = state

    @property
    def number(self) -> int:
        """Steps ended here."""
        if self._lent:
            self.take_back()
        return self._number

    def peek(self) -> Tuple[Any, ...]:
        """Something else than before when the loop has moved; for another thread, which takes nothing back."""
        return self._lent and self._client.peek_steps() or (self._state, self._number)

    def nothing_due(self) -> bool:
        """Nothing is captured at the present step. Takes nothing back."""
        found = self._lent and self._client.peek_steps()
        return bool(found[2]) if found else self._client.quiet and not self.ahead

    def lend(self, lend: Callable[..., Any], borrower: Any, *what: Any) -> None:
        """After an update of the one driver: if the next step can be like most. ``lend(model, *what, state, number,
        quiet)`` takes the clock; ``borrower.goes_on(rate, updating)`` is called when it is taken back: the learning rate that
        was told last, and whether an update has begun."""
        if self._lent or self._kept or not self.simple or self.ahead or self._queue.waiting or self.mode != "train" \
                or self._skipped is not None or self._training is False \
                or (self._state_matters and self._told is not _TRAINING_IN_TRAIN) or self.model() is None:
            return
        lend(self.model, *what, STATES.index(self._state), self._number, self._client.quiet)
        self._lent, self._borrower = True, weakref.ref(borrower)
        self._client.lent = self._queue.lent = self.take_back

    def keep(self, kept: bool, who: str = "trace") -> None:
        """True: from its next call on the loop is seen here, at every step, until ``who`` says False. From any thread: it takes
        nothing back by itself."""
        self._keepers = self._keepers | {who} if kept else self._keepers - {who}
        self._kept = bool(self._keepers)
        self._client.want_steps(int(self._kept))

    def bring_back(self) -> None:
        """As ``take_back()``, if it is lent."""
        if self._lent:
            self.take_back()

    def take_back(self) -> None:
        """Goes on here, where the library's functions are."""
        self._lent = False
        self._client.lent = self._queue.lent = None
        taken = self._client.take_steps()
        if not taken:  # closed, or a forked child
            return
        state, self._number, quiet, updating, rate = taken
        self._client.quiet = bool(quiet)
        self._state = STATES[state]
        # Otherwise it would not have been done there.
        self._training = True if updating or self._state is HELD else None
        borrower = self._borrower()
        if borrower is not None:
            borrower.goes_on(rate, bool(updating))

    # ---- who drives

    def drive(self, driver: Any, name: str = "") -> None:
        """As long as ``driver`` lives, its updates end the steps of training, together with those of
        the other drivers of its loop."""
        if self._moved:
            self._drivers, self._moved = [], False
        self._join(driver, name)

    def _join(self, driver: Any, name: str) -> None:
        if self.state is HELD and self.simple:
            self._updated.update(self._known)
        self._drivers.append((weakref.ref(driver, self._driver_gone), name))
        self._look()

    def drivers(self) -> List[Any]:
        """Those of the present loop that live."""
        return [driver for driver in (ref() for ref, _ in self._drivers) if driver is not None]

    def begun(self) -> bool:
        """One of them has updated: who is watched from now on belongs to another loop."""
        return self._moved

    def let_go(self, driver: Any) -> None:
        """Its updates end no steps any more; a step that was held open for what might follow ends."""
        if id(driver) in self._known:
            self.close()
            self._drivers = [one for one in self._drivers if one[0]() is not driver]
            self._look()

    def _driver_gone(self, reference: Any) -> None:
        self._drivers = [one for one in self._drivers if one[0] is not reference]
        self._look()

    def _look(self) -> None:
        self._known = {id(driver) for driver in self.drivers()}
        self.simple = self._step_by != MANUAL and len(self._drivers) < 2

    def _leader(self) -> Any:
        for reference, name in self._drivers:
            if name and name == self._step_by:
                return reference()
        return self._drivers[0][0]() if self._drivers else None

    def follow_model(self, model: Any, state_matters: bool = True) -> None:
        """The flag ``training`` of the first model is the mode; when it is gone, of the next one."""
        if self.model() is None:
            self.model = weakref.ref(model)
            self._state_matters = state_matters

    def follow(self) -> None:
        """Takes over the mode of the model that is followed."""
        model = self.model()
        if model is None or not self.follows:
            return
        mode = "train" if model.training else "eval"
        if mode != self.mode:
            self.change_mode(mode)

    # ---- the arrows

    def will_log(self, names: Iterable[str]) -> None:
        """Before values of these names are published, where a loop is not ``simple``."""
        names = set(names)
        if self._step_by != MANUAL and id(self._leader()) in self._updated and names & self._logged_names:
            self._take(_LOG_AGAIN)
        self._logged_names |= names

    def logged(self) -> None:
        self._take(_LOG)

    def begin_update(self, driver: Any = None) -> bool:
        """An update of the parameters begins: the mode is ``train``, a step that was held open for
        its log() ends. Gradients and weights are read between here and the update. ``driver``: who
        updates, where several do. True: nothing is due at this step, as ``quiet()`` says."""
        if self._queue.waiting:
            self._queue.drain()
        if driver is not None and id(driver) not in self._known:
            self._join(driver, "")  # of a loop before, and used again
        state = self.state
        if state is HELD and (self.simple or driver is None or driver is self._leader()):
            self._take(_CLOSE)
        elif state in _UPDATED:
            self._take(_CLOSE if self._begins_next(driver) else _GO_ON)
        # A model that is trained in its eval state (no dropout, frozen statistics) says nothing
        # about modes.
        model = self.model()
        if model is not None:
            self._training = training = model.training
            if not training:
                self.follows = self.evaluates = False
        if self.mode != "train":
            self.change_mode("train")
        return self._client.quiet and self.simple and not self.ahead

    def end_update(self, driver: Any = None, skipped: Optional[Callable[[], bool]] = None,
                   after: Optional[Any] = None) -> None:
        """The update is done. The step ends now, or after the log() that follows, or when the other
        optimizers of the loop have updated too.

        ``skipped`` tells whether mixed precision left the update out, once the event ``after`` (None:
        at once) is done.
        """
        self._moved = True
        if skipped is not None:
            self._skipped = skipped
            if after is not None:
                self._queue.put(_nothing, after=after)
        # A script that logs before the update has said everything; one that logs after it gets the step held open for that.
        self._take(_UPDATE if self.simple or self._all_updated(driver) else _UPDATE_OF_SEVERAL)

    def quiet(self) -> bool:
        """Nothing is due at the present step, and nobody has to be asked whose turn it is."""
        return self._client.quiet and self.simple and not self.ahead

    def end_step(self, skipped: bool = False) -> None:
        """Ends a step where no update does. ``skipped``: mixed precision left the update out."""
        if self.state is FRESH and self.mode == "train" and not skipped and self._drivers \
                and self._step_by != MANUAL:
            return
        self._take(_STEP, abi.STEP_OPTIMIZER_SKIPPED if skipped else 0)

    def leave_for(self, mode: str) -> None:
        """A loop that names its modes goes to another one: what was said of the step is all."""
        if mode != self.mode:
            self._take(_NAME_MODE)

    def next_step(self) -> None:
        """Ends the present step, whatever was said of it."""
        self._take(_STEP)

    def change_mode(self, mode: str) -> None:
        self.close()
        self.leave()
        self._take(_CHANGE_MODE)
        self.mode = mode
        self.applied = self.applied and False
        if self._queue.waiting:
            self._queue.put(self._client.set_mode, abi.MODES[mode])
        else:
            self._client.set_mode(abi.MODES[mode])

    def leave(self) -> None:
        """The mode ends."""
        for leaves in list(self.leaving):
            leaves(self.mode)

    def close(self) -> None:
        """Nothing more is said of a step that was held open."""
        self._take(_CLOSE)

    def begin_forward(self) -> None:
        """A model is applied: what was held open for a log() is over."""
        found = self._lent and self._client.peek_steps()
        if not found or _FORWARD[STATES[found[0]]] is ENDS:
            self._take(_FORWARD)

    def held(self) -> bool:
        """The update is done, and the step is kept open for a log(). Takes nothing back."""
        found = self._lent and self._client.peek_steps()
        return (STATES[found[0]] if found else self.state) is HELD

    def position(self) -> Tuple[str, int]:
        """Tells steps apart. Takes nothing back."""
        found = self._lent and self._client.peek_steps()
        return self.mode, int(found[1]) if found else self.number

    def ended_ahead(self) -> int:
        """Steps whose update is done and whose end the library has not been told: what a device still
        computes for, and the one that is held open. Ranks differ in both (one logs, one has the
        faster device), and must not differ in where they say they are."""
        if self.state is HELD and self.mode == "train":
            return self.ahead + 1
        return self.ahead

    # ---- several optimizers in one loop

    def _begins_next(self, driver: Any) -> bool:
        """An update begins in a step in which another one has ended: whether it is of the next step."""
        if self._step_by == MANUAL:
            return False
        leader = self._leader()
        if driver is None or driver is leader:
            self._others = 0
            return driver is None or id(leader) in self._updated
        self._others += 1
        if self._others <= PATIENCE:
            return False
        self._others = 0
        self._drivers = [one for one in self._drivers if one[0]() is not leader]
        self._look()
        return True

    def _all_updated(self, driver: Any) -> bool:
        self._updated.add(id(driver))
        return self._step_by != MANUAL and all(id(one) in self._updated for one in self.drivers())

    def _take(self, arrows: Arrows, flags: int = 0) -> None:
        after = arrows[self.state]
        if after is ENDS:
            self._end(flags)
        else:
            self._state = after

    def _end(self, flags: int) -> None:
        self.state = FRESH
        if self._training is True and self._told is _TRAINING_IN_TRAIN and self.mode == "train":
            self._training = None
        else:
            self._look_at_training()
        self._number += 1
        if self._updated or self._logged_names:
            self._updated.clear()
            self._logged_names.clear()
        skipped, self._skipped = self._skipped, None
        if self._queue.waiting:
            self.ahead += 1
            self._queue.put(self._end_late, flags, skipped)
        else:
            client = self._client
            client.quiet = client.step_end(flags if skipped is None else _with(flags, skipped))

    def _look_at_training(self) -> None:
        training, self._training = self._training, None
        if not self._state_matters:
            return
        if training is None:
            model = self.model()
            # What is evaluated may be another one, a copy with averaged weights: this one's flag is nobody's then.
            if model is None or (self.applied is False and self.mode != "train"):
                return
            # A loop may evaluate first, and then say so: validate() has put it back by now.
            training = model.training and not (self.evaluates and self.mode != "train")
        if training != (self.mode == "train") or self._told != (self.mode, training):
            self._told = _TRAINING_IN_TRAIN if training and self.mode == "train" else (self.mode, training)
            self.tell_training(training)

    def _end_late(self, flags: int, skipped: Optional[Callable[[], bool]]) -> None:
        self.ahead -= 1
        self._client.quiet = self._client.step_end(flags if skipped is None else _with(flags, skipped))


def _with(flags: int, skipped: Callable[[], bool]) -> int:
    return flags | abi.STEP_OPTIMIZER_SKIPPED if skipped() else flags


def _nobody() -> None:
    return None


def _nothing_of(_: bool) -> None:
    return None


_nothing = _nobody
_TRAINING_IN_TRAIN = ("train", True)
