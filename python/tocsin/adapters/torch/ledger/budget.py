"""How often loss calls are measured for the ledger: a governor of its own, which looks at times only.

A step lasts as long as the clock says; what measuring takes is the thread's own time, so that a busy machine counts in one alone.
"""

from typing import Any, Dict, List

FIRST, MOST_CALLS = 64, 256  # measured steps of training before anything is left out, and calls of them: a step may have a call per micro-batch
SHARE = 0.002  # of the time of training
# A run of short steps may spend this in any case, 0.2 % of 50 seconds: until then every second step is measured at least. Short trainings
# would end before there is enough to judge by. Of longer steps the hook's whole share is promised to be 1 %.
ALLOWANCE, ALLOWED, SHORT = 0.1, 2, 5e-3
DENSE, DENSE_SHARE = 16, 0.005  # very short steps: up to every 16th as long as it costs no more than this
MOST = 1 << 12
_LATEST = 9  # times, of which the middle one counts


class Budget:
    """Of one hook, in training or in evaluation."""

    def __init__(self) -> None:
        self.every = 1  # steps
        self.calls = 0  # loss calls that were there to be measured, as far as they were seen one by one
        self.measured = 0
        self.seconds = 0.0
        self._begun = 0  # measured steps
        self._costs: List[float] = []  # of measured steps
        self._steps: List[float] = []  # seconds of a step without the ledger's
        self._began = 0.0  # the measured step before
        self._at = -1
        self._cost = 0.0  # of the present step
        self._spent = 0.0

    def begin(self, step: int, now: float) -> None:
        """A step begins that is measured."""
        self._begun += 1
        if self._at >= 0:
            if step > self._at:
                self._keep(self._steps, max(0.0, now - self._began - self._cost) / (step - self._at))
            self._keep(self._costs, self._cost)
            self._spent += _middle(self._costs)
            if self._begun > FIRST or self.measured >= MOST_CALLS:
                lasts = _middle(self._steps)
                every = _every(_middle(self._costs), lasts)
                self.every = min(every, ALLOWED) if lasts < SHORT and self._spent < ALLOWANCE else every
        self._at, self._began, self._cost = step, now, 0.0

    def add(self, seconds: float) -> None:
        """A call was measured, in so much processor time."""
        self.measured += 1
        self._cost += seconds
        self.seconds += seconds

    @staticmethod
    def _keep(times: List[float], one: float) -> None:
        times.append(one)
        if len(times) > _LATEST:
            times.pop(0)

    def as_dict(self) -> Dict[str, Any]:
        return {"calls": self.calls, "measured": self.measured, "every": self.every, "seconds": self.seconds}


def _every(cost: float, step: float) -> int:
    if not step > 0.0:
        return 1
    wanted = _power(cost / (SHARE * step))
    return wanted if wanted <= DENSE else max(DENSE, _power(cost / (DENSE_SHARE * step)))


def _power(ratio: float) -> int:
    every = 1
    while every < ratio and every < MOST:
        every *= 2
    return every


def _middle(times: List[float]) -> float:
    return sorted(times)[len(times) // 2] if times else 0.0
