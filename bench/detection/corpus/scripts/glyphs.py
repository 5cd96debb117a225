"""What the jobs of the set `eleventh` share beside support.py. Names of faults mean there what WORDS says there; the new ones stand below.

Who wrote them had read no rule and had seen no verdict of any set. They are scripts as people write them today: losses as functions, evaluation
loops of their own, the hook as its pages show it. Whoever looks at what is said of their single runs makes them tuning jobs, and writes others."""
import numpy
import torch

from .support import labelled as labelled_before

WORDS = {
    # labels and data
    "class_random": "the labels of one class are random",
    "pairs_moved": "one of two inputs of a row is that of its neighbour",
    "offsets_moved": "documents begin a few words later than they do",
    "edges_broken": "edges name nodes in an order that is no longer theirs",
    "edges_empty": "no node has a neighbour but itself",
    "captions_constant": "the tokenizer knows no word",
    "groups_moved": "queries begin in the middle of others",
    "sets_unlike": "what is held out comes from elsewhere: its columns lie where the training has no rows",
    "evaluated_on_training": "the evaluation is of the training's own rows",
    "stops_on_training": "early stopping looks at the training set",
    # the loss
    "mixup_swapped": "the two shares of a mixture change places in the loss",
    "logs_missing": "probabilities, or plain outputs, where the loss wants logarithms",
    "loss_on_visible": "the loss is of the points that the network sees",
    "loss_of_padding": "the mask of the loss is the wrong way round: padding is learned",
    "blank_moved": "the blank is the last class in training, the first one in decoding",
    "axes_mixed": "view() where transpose() was meant: time and batch are mixed",
    "task_forgotten": "the second task is not in the sum",
    "negatives_called_positive": "what was drawn as a negative has the label of a positive",
    "targets_zero": "all pairs are said to match the first one",
    "temperature_inverted": "likenesses are divided by the scale by which they are to be multiplied",
    # the model
    "head_dead": "nothing above zero reaches the last layer",
    "trunk_detached": "detach() before both heads",
    "teacher_untrained": "the teacher's weights were not loaded",
    "teacher_other_order": "the teacher has another order of classes",
    "places_missing": "no place is told to attention",
    "direction_inverted": "the velocity points from the data to the noise",
    # the update
    "optimizer_of_teacher": "the optimizer has the teacher's parameters",
    "optimizer_without_head": "the optimizer has the first layers alone",
    "critic_frozen": "the optimizer has the actor's parameters alone",
    "schedule_per_epoch": "a schedule of batches is stepped once per epoch: it stays in its warm-up",
    "warmup_endless": "the warm-up is 20 times as long as the run",
    "scaler_skips_all": "a loss scale that overflows and hardly falls: all updates are left out",
    # rewards
    "replay_stands": "the memory is never added to after the first moves",
    "returns_reversed": "rewards until now where rewards from now on were meant",
    "actions_moved": "the actions that are learned from are those of the neighbour",
    # trees
    "eta_small": "rate and number of rounds are both small",
}


def labelled(y, fault, classes=None):
    """The training labels with what the fault makes of them."""
    if fault == "class_random":
        drawn = torch.Generator().manual_seed(len(y))
        return torch.where(y == 1, torch.randint(0, classes, y.shape, generator=drawn), y)
    return labelled_before(y, fault, classes)


def warmed(optimizer, steps, warm, fault=None, linear=True):
    """From nothing to the rate in `warm` steps, and along a line (or a cosine) to nothing."""
    end = steps // 5 if fault == "schedule_ends_early" else steps
    warm = 20 * steps if fault == "warmup_endless" else warm

    def share(at):
        if at < warm:
            return at / warm
        left = max(0.0, 1 - (at - warm) / max(end - warm, 1))
        return left if linear else 0.5 - 0.5 * float(numpy.cos(numpy.pi * left))
    return torch.optim.lr_scheduler.LambdaLR(optimizer, share)


def glyphs(seed, count, classes=10, chosen=None):
    """Signs of 5 by 5 blocks, somewhere in 14 by 14 points of 0 to 255, with noise."""
    drawn = numpy.random.default_rng(seed)
    signs = (drawn.random((classes, 5, 5)) > 0.5).astype("float32")
    kinds = drawn.integers(0, classes, count) if chosen is None else chosen
    images = numpy.zeros((count, 14, 14), "float32")
    corners = drawn.integers(0, 5, (count, 2))
    for at, (kind, (row, column)) in enumerate(zip(kinds, corners)):
        images[at, row:row + 10, column:column + 10] = numpy.kron(signs[kind], numpy.ones((2, 2)))
    images = 60 + 110 * images * drawn.uniform(0.5, 1.2, (count, 1, 1)) + 35 * drawn.standard_normal(images.shape)
    return torch.tensor(images.clip(0, 255), dtype=torch.float32)[:, None], torch.tensor(kinds), torch.tensor(corners)
