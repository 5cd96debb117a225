"""What the jobs of the set `twelfth` share beside support.py and glyphs.py. Names of faults mean there what their WORDS say; the new ones stand below.

Who wrote them had read no rule and had seen no verdict of any set. They are scripts as people write them today, with the hook as its pages show it and
the default capture. Whoever looks at what is said of their single runs makes them tuning jobs, and writes others."""
import numpy
import torch

from .glyphs import WORDS as WORDS_BEFORE, labelled, warmed
from .support import WORDS as WORDS_FIRST, ended, entered, errors, from_start, rate, unlike

__all__ = ["ALL_WORDS", "WORDS", "ended", "energy_distance", "entered", "errors", "from_start", "labelled", "phrases", "rate", "shapes", "unlike", "warmed"]

WORDS = {
    # labels and data
    "masks_moved": "each picture has the mask of its neighbour",
    "flipped_apart": "pictures are flipped at random, their masks are not",
    "events_inverted": "the flag of censoring is the wrong way round",
    "preferences_swapped": "chosen and rejected change places",
    "preferences_random": "what was chosen is drawn by lot",
    "prompts_moved": "answers stand behind the prompt of their neighbour",
    "prompt_scored": "the likelihood is that of the prompt, not of the answer",
    "batch_repeated": "next(iter(loader)) without shuffling: every batch is the first one",
    "batch_of_one_topic": "rows are sorted by their topic: the others of a batch are no negatives",
    "horizon_moved": "the values to be told are those of another window",
    "edges_directed": "edges that are asked for have one end from the neighbour in the list",
    "negatives_are_edges": "what is drawn as a negative is an edge as well",
    "sequences_reversed": "the newest item stands first, where the model reads the last one",
    # the loss
    "dice_inverted": "the overlap is minimised, where one less it was meant",
    "kl_sign_wrong": "the divergence is subtracted",
    "kl_never": "the warm-up of the divergence counts epochs, and never gets far",
    "smoothing_large": "label smoothing of 0.95, where 0.05 was meant",
    "encoder_detached": "the encoder's states are detached",
    "levels_moved": "y >= k where y > k was meant: the first level is always yes",
    "times_unsorted": "the sums over who is at risk are made without sorting by time",
    "quantiles_swapped": "the share of the quantile and its rest change places",
    "loss_sum": "a sum over the batch, with the rate for a mean",
    "negatives_positive": "the sign within the logarithm of the sigmoid is wrong",
    # the model, the update
    "latents_unscaled": "latents are not divided by their spread",
    "weights_zero": "all weights start at zero",
    "keys_constant": "the same key for every step: the batch is always the same",
    # rewards
    "advantage_stale": "advantages of the first round are used for ever",
    "ratio_inverted": "old over new where new over old was meant",
    "rewards_late": "each reward is that of the step before",
    # trees
    "weight_upside_down": "scale_pos_weight is the share of positives to negatives",
    "never_enough_gain": "gamma (min_split_gain) is more than any split gains",
    "base_unfit": "base_score is far from every target, the rate small",
}
ALL_WORDS = {**WORDS_FIRST, **WORDS_BEFORE, **WORDS}


def shapes(seed, count, kinds=range(6), most=1):
    """(pictures of 16 by 16 points of 0 to 255, kind of the first shape, its mask or that of all, its centre and radius)."""
    drawn = numpy.random.default_rng(seed)
    rows, columns = numpy.mgrid[0:16, 0:16]
    kind = drawn.choice(list(kinds), count)
    images, masks, boxes = numpy.zeros((count, 16, 16)), numpy.zeros((count, 16, 16), bool), None
    for at in range(most):
        centre, radius = drawn.uniform(4.5, 10.5, (count, 2)), drawn.uniform(3, 4.6, count)
        which = kind if at == 0 else drawn.choice(list(kinds), count)
        down, right = ((grid[None] - centre[:, axis, None, None]) / radius[:, None, None] for axis, grid in ((0, rows), (1, columns)))
        far, wide = numpy.hypot(down, right), numpy.maximum(abs(down), abs(right))
        forms = [far < 1, (far < 1) & (far > 0.6), wide < 0.85, (numpy.minimum(abs(down), abs(right)) < 0.3) & (wide < 1),
                 (abs(down) < 0.35) & (abs(right) < 1), abs(down) + abs(right) < 1, (abs(right) < (down + 1) / 2) & (down < 0.9),
                 (abs(right) < (1 - down) / 2) & (down > -0.9), (wide < 0.9) & (wide > 0.5), (abs(abs(down) - abs(right)) < 0.35) & (wide < 1)]
        there = numpy.choose(which[:, None, None], forms) & ((drawn.random(count) < 0.6) | (at == 0))[:, None, None]
        images = numpy.where(there, drawn.uniform(0.6, 1.2, (count, 1, 1)), images)
        masks |= there
        boxes = numpy.column_stack([centre, radius]) if boxes is None else boxes
    images = 70 + 100 * images + 25 * drawn.standard_normal(images.shape)
    return (torch.tensor(images.clip(0, 255), dtype=torch.float32)[:, None], torch.tensor(kind), torch.tensor(masks, dtype=torch.float32)[:, None],
            torch.tensor(boxes, dtype=torch.float32))


def phrases(seed, count, kinds=16, length=14, tongue=0):
    """Rows of words 1 to kinds − 1: each hangs on the word before and on the one three before. Tongues share half of their rules."""
    rules, drawn = numpy.random.default_rng(11), numpy.random.default_rng(seed)
    tables = [rules.dirichlet(numpy.full(kinds - 1, 0.12), (2, kinds)) for _ in range(2)]
    table = tables[0].copy()
    if tongue:
        table[:, ::2] = tables[1][:, ::2]
    out = drawn.integers(1, kinds, (count, length))
    for at in range(3, length):
        chances = (0.75 * table[0][out[:, at - 1]] + 0.25 * table[1][out[:, at - 3]]).cumsum(1)
        out[:, at] = 1 + (drawn.random((count, 1)) > chances).sum(1).clip(0, kinds - 2)
    return torch.tensor(out)


def energy_distance(one, other):
    """How unlike two heaps of points are; 0 where they are drawn from the same."""
    return float(2 * torch.cdist(one, other).mean() - torch.cdist(one, one).mean() - torch.cdist(other, other).mean())
