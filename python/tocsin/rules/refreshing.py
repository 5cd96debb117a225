"""Whether a trial looks for new values at each call: ``with no_refresh(trial): …`` keeps what it has."""

from contextlib import contextmanager
from typing import Any, Iterable, Iterator, List, Union

from .trial import Trial


@contextmanager
def no_refresh(trials: Union[Trial, Iterable[Trial]]) -> Iterator[Any]:
    """Inside, these trials (one or several) show what they had at its begin, so that several calls see the same steps."""
    listed = _listed(trials)
    for trial in listed:
        trial.maybe_refresh()
        trial.frozen += 1
    try:
        yield trials
    finally:
        for trial in listed:
            trial.frozen -= 1


@contextmanager
def refresh(trials: Union[Trial, Iterable[Trial]]) -> Iterator[Any]:
    """Inside, these trials look for new values at each call, also within ``no_refresh``."""
    listed = _listed(trials)
    before = [trial.frozen for trial in listed]
    for trial in listed:
        trial.frozen = 0
    try:
        yield trials
    finally:
        for trial, frozen in zip(listed, before):
            trial.frozen = frozen


def _listed(trials: Any) -> List[Trial]:
    return [one for one in (trials if isinstance(trials, (list, tuple)) else [trials]) if isinstance(one, Trial)]
