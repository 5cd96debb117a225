"""Which samples a training has seen, and which an evaluation sees: fingerprints of 64 bits, in NumPy. Those whose last k bits are 0 are kept,
in training and in evaluation alike, and k grows so that 65 536 are enough. They never leave the process."""

import math
from typing import Any, Dict, List, Optional, Tuple

import numpy

MOST = 1 << 16
LEAST = 200
ALL = 0.9  # share of a batch's samples, or of the training's, that is as good as all


def mixed(hashes: Any) -> Any:
    """So that every bit depends on all (the end of MurmurHash3)."""
    out = hashes.astype(numpy.uint64)
    for shift, factor in ((33, 0xFF51AFD7ED558CCD), (33, 0xC4CEB9FE1A85EC53)):
        out ^= out >> numpy.uint64(shift)
        out *= numpy.uint64(factor)
    out ^= out >> numpy.uint64(33)
    return out


class Kept:
    """Distinct fingerprints in the order in which they came first, with how often each came."""

    def __init__(self, most: int = MOST) -> None:
        self._most, self._bits = most, 0
        self._new: List[Any] = []
        self._waiting = 0
        self._known = numpy.zeros(0, numpy.uint64)
        self._counts = numpy.zeros(0, numpy.int64)
        self.visits = 0  # samples, kept or not
        self.calls = 0  # batches that they came in

    @property
    def bits(self) -> int:
        return self._bits

    def add(self, hashes: Any) -> None:
        self.visits += len(hashes)
        self.calls += 1
        kept = hashes if self._bits == 0 else hashes[_last(hashes, self._bits)]
        if len(kept):
            self._new.append(kept)
            self._waiting += len(kept)
        if self._waiting > self._most:
            self._merge()

    def all(self, bits: int = 0) -> Tuple[Any, Any]:
        """(fingerprints, counts), of those that are kept with ``bits``."""
        self._merge()
        if bits <= self._bits:
            return self._known, self._counts
        chosen = _last(self._known, bits)
        return self._known[chosen], self._counts[chosen]

    def _merge(self) -> None:
        new = numpy.concatenate([self._known, *self._new])
        weights = numpy.concatenate([self._counts, numpy.ones(len(new) - len(self._known), numpy.int64)])
        known, first, place = numpy.unique(new, return_index=True, return_inverse=True)
        counts = numpy.bincount(place.reshape(-1), weights=weights, minlength=len(known)).astype(numpy.int64)
        order = numpy.argsort(first, kind="stable")
        self._known, self._counts = known[order], counts[order]
        self._new, self._waiting = [], 0
        while len(self._known) > self._most:
            self._bits += 1
            chosen = _last(self._known, self._bits)
            self._known, self._counts = self._known[chosen], self._counts[chosen]


class Pass:
    """One evaluation: what its batches held. ``trained``: batches of training before it, measured or not; 0: all were measured."""

    def __init__(self, trained: int = 0) -> None:
        self._batches: List[Any] = []
        self._trained = trained
        self.rows = self.calls = self.missed = 0

    def add(self, hashes: Any) -> None:
        self.calls += 1
        if self.rows < 8 * MOST:
            self.rows += len(hashes)
            self._batches.append(hashes)

    def compared(self, train: Kept) -> Optional[Dict[str, float]]:
        """What is told of it (docs/ledger.md); None: too little was seen."""
        if not self._batches:
            return None
        hashes = numpy.concatenate(self._batches)
        batch = numpy.repeat(numpy.arange(len(self._batches)), [len(one) for one in self._batches])
        bits = train.bits
        chosen = _last(hashes, bits)
        hashes, batch = hashes[chosen], batch[chosen]
        known, counts = train.all(bits)
        if len(known) < LEAST or not len(hashes):
            return None
        order = numpy.argsort(known, kind="stable")
        place = numpy.minimum(numpy.searchsorted(known[order], hashes), len(known) - 1)
        came = order[place]
        seen = known[came] == hashes
        measured = min(1.0, train.calls / max(self._trained, 1))
        whole = len(numpy.unique(came[seen])) >= _least_of_all(len(known), self.calls / (self.calls + self.missed), measured)
        others = _not_of_training(batch, seen, measured)
        training = int(len(hashes) - others.sum())
        hashes, came, seen = hashes[others], came[others], seen[others]
        found, again = numpy.unique(hashes, return_counts=True)
        early = min(len(found), len(known))
        return {"compared": float(len(hashes)), "seen": float(seen.sum()), "train_compared": float(counts.sum()),
                "train_repeats": float(counts[counts > 1].sum()), "train_distinct": float(len(known)), "early": float(early),
                "early_seen": float((seen & (came < early)).sum()), "repeats": float(again[again > 1].sum()),
                "training_rows": float(training), "same": float(whole and not training)}


def _least_of_all(known: int, looked_at: float, measured: float) -> float:
    """How many of the ``known`` samples an evaluation of the whole training shows at least, where a share of it was ``looked_at``. Where only a
    share of the training was ``measured``, chance decides how many of the known ones are there: three standard deviations."""
    expected = known * looked_at
    chance = math.sqrt(expected * (1 - looked_at) * (1 - measured))
    return expected - max((1 - ALL) * expected, 3 * chance)


def _not_of_training(batch: Any, seen: Any, measured: float) -> Any:
    """Which samples to judge. Where some batches are of training and the others are not, two sets were evaluated: the training
    itself, and what was held out. Of batches of training at least the ``measured`` share is known: where that is not all, several batches
    that follow each other are taken as one, until chance does not matter, and the blocks beside those of training are not judged, as they may hold some of both."""
    all_known = measured >= ALL
    block = batch if all_known else _blocks(batch, int(64 * (1 - measured) / measured) + 1)
    count = numpy.bincount(block)
    share = numpy.bincount(block, weights=seen) / numpy.maximum(count, 1)
    full = (share >= (ALL if all_known else measured / 2)) & (count > 0)
    none = (share < (0.5 if all_known else measured / 4)) & (count > 0)
    if not full.any() or not none.any():
        return numpy.ones(len(batch), bool)
    if not all_known:
        full = numpy.convolve(full, (1, 1, 1), "same") > 0
    return ~full[block]


def _blocks(batch: Any, least: int) -> Any:
    """The block of each sample: batches that follow each other, of ``least`` samples or more together."""
    count = numpy.bincount(batch)
    block = numpy.zeros(len(count), numpy.int64)
    now = rows = 0
    for place, here in enumerate(count):
        if rows >= least and count[place:].sum() >= least:
            now, rows = now + 1, 0
        block[place] = now
        rows += here
    return block[batch]


def _last(hashes: Any, bits: int) -> Any:
    return (hashes & numpy.uint64((1 << bits) - 1)) == 0
