"""What jobs that are scripts share. The head of each file names its jobs; what the names of their faults mean stands below, in WORDS.

Who wrote them had read no rule and had seen no verdict. They are scripts as people write them today, with functions for losses, and the hook as
its pages show it: no capture is asked for, no loss is named. Each run's settings come from its seed. Whoever looks at what is said of their
single runs makes them tuning jobs, and writes others.

Their evaluations (`passes`) are of what people want from the model, less is better: shares of errors, 1 − AUC, squared errors; not the script's
loss, which a fault may change."""
import math
import random

import numpy
import torch

WORDS = {
    # labels and data
    "labels_shuffled": "the training labels were shuffled, their inputs were not",
    "labels_misaligned": "labels and inputs are a row apart",
    "class_mislabelled": "one class (of trees: nine tenths of it) has the label of another one in training",
    "labels_off_by_one": "classes are counted from one in training, from zero in the evaluation",
    "labels_inverted": "yes is no, in training",
    "column_misread": "one of several labels is read from its neighbour's column",
    "classes_sorted": "sorted by class, and shuffle=True was forgotten",
    "columns_moved": "the columns of the held-out file are one place further",
    "rows_sorted": "a table that is sorted by its target, of which validation_split takes the last fifth",
    "inputs_constant": "a bug in the loader: every input is the same",
    "pixels_raw": "0 to 255, never scaled",
    "numbers_unscaled": "columns in their units, never scaled",
    "targets_raw": "the targets were not scaled",
    "targets_cut": "targets went through unsigned numbers: what is below zero is zero",
    "nan_filled": "a third of all cells was lost in a join and filled with -999",
    "few_rows": "a limit for debugging is left: 32 rows of the training set",
    "target_leaks": "the target stands among the columns",
    "held_in_training": "the held-out rows are in the training set as well",
    "held_unscaled": "the held-out inputs are scaled in another way than those of the training",
    "held_shuffled": "the held-out labels do not belong to their inputs",
    "held_recoded": "categories have other numbers in the held-out set",
    "held_other_classes": "in the held-out set the classes have another order",
    # the loss
    "softmax_twice": "softmax before a loss that has one",
    "sigmoid_twice": "sigmoid before a loss that has one",
    "softmax_for_sigmoid": "softmax over labels that do not exclude each other",
    "logits_missing": "logits into a loss that wants probabilities, or the other way round",
    "sign_wrong": "the loss has the wrong sign",
    "output_clipped": "a ReLU behind the last layer: nothing below zero can be said",
    "broadcast": "(N, 1) and (N,) make a table of N by N",
    "weight_inverted": "pos_weight is the share of negatives to positives upside down",
    "masks_empty": "a comparison with the wrong number: no mask has a positive",
    "masks_255": "masks of 0 and 255 where 0 and 1 were meant",
    "temperature_large": "similarities are divided by 100, where 0.1 to 0.2 was meant",
    "negatives_missing": "the contrastive loss pulls, nothing pushes",
    "pairs_broken": "the two views of a pair are of two images",
    "self_among_negatives": "each sample's likeness to itself stays in the denominator",
    "kl_hundredfold": "the divergence has a hundred times its weight",
    "kl_over_mean": "a mean over points for the picture, a sum over numbers for the divergence",
    "spread_as_variance": "the logarithm of the variance is used as if it was the spread",
    "noise_redrawn": "the target is noise that was drawn again",
    "time_missing": "the network is told step 0 for every step of the noise",
    "betas_large": "a hundredth was meant: all noise after few steps",
    # masks and sequences
    "future_seen": "the causal mask is missing",
    "everything_masked": "each place sees itself alone",
    "unshifted": "the target is the present letter, not the next one",
    "padding_counted": "ignore_index is missing, padding is learned",
    "mask_inverted": "words are masked, padding is attended to",
    "answer_given": "the decoder gets the answer unshifted",
    "nothing_masked": "words to be guessed stand in the input",
    "all_masked": "nine words of ten are masked",
    "labels_elsewhere": "labels stand at the places that are not masked",
    # the update
    "rate_hundredfold": "a learning rate of a hundred times what was meant",
    "rate_thousandth": "a learning rate of a thousandth",
    "zero_grad_missing": "zero_grad() was forgotten",
    "backbone_frozen": "requires_grad is False for all but the last layer",
    "optimizer_of_old_model": "the optimizer holds the parameters of a model that was replaced",
    "optimizer_without_adapters": "the optimizer has the head's parameters alone",
    "pretrained_missing": "the pretrained weights were not loaded into what is frozen",
    "adapters_both_zero": "both factors of the adapters start at zero",
    "adapters_scaled": "alpha / r is a thousand",
    "schedule_ends_early": "the schedule was made for a fifth of the steps",
    "schedule_per_batch": "a schedule of epochs steps at each batch",
    "plateau_of_max": "ReduceLROnPlateau waits for a loss that rises",
    "weights_bfloat16": "model.bfloat16(): small updates are rounded away",
    "scaler_skips_all": "an infinite gradient in each step: the scaler leaves all updates out",
    "decay_large": "a weight decay of 10",
    "evaluated_in_training": "model.eval() was forgotten",
    "train_forgotten": "model.train() was forgotten after the first evaluation",
    "ema_stands": "the averaged copy that is evaluated is never updated",
    "dropout_high": "a dropout of 0.95",
    # adversaries, rewards
    "judge_frozen": "the discriminator's optimizer has the generator's parameters",
    "judge_fast": "the discriminator's rate is 50 times what was meant",
    "fake_detached": "the generator's loss is taken of detached images",
    "fake_called_fake": "the generator learns to be found out",
    "noise_constant": "the generator gets the same noise every time",
    "target_stands": "the target network is never updated",
    "replay_newest": "the replay buffer gives the newest moves only",
    "reward_zero": "the reward is always zero",
    "reward_inverted": "the reward has the wrong sign",
    "ends_ignored": "values go on behind the end of an episode",
    "updates_dropped": "the new parameters are computed and thrown away",
    "explores_always": "epsilon never falls",
    "observation_stale": "the network is always shown the first observation",
    "advantage_unsigned": "the advantage's sign is lost",
    "entropy_large": "a hundredfold bonus for entropy",
    # trees
    "eta_tiny": "a rate of a ten-thousandth",
    "never_splits": "min_child_weight is more than there are rows",
    "depth_huge": "depth 16, no regularisation, a rate of 1",
}


def rate(value, fault):
    """The learning rate."""
    return value * {"rate_hundredfold": 100.0, "rate_thousandth": 1e-3}.get(fault, 1.0)


def warmed_cosine(optimizer, steps, warm, fault=None):
    """From nothing to the rate, and along a cosine to nothing."""
    end = steps // 5 if fault == "schedule_ends_early" else steps

    def share(at):
        return at / warm if at < warm else 0.5 * (1 + math.cos(math.pi * min(1.0, (at - warm) / max(end - warm, 1))))
    return torch.optim.lr_scheduler.LambdaLR(optimizer, share)


def labelled(y, fault, classes=None):
    """The training labels with what the fault makes of them."""
    if fault == "labels_shuffled":
        return y[torch.randperm(len(y), generator=torch.Generator().manual_seed(len(y)))]
    if fault == "labels_misaligned":
        return torch.roll(y, 1, 0)
    if fault == "class_mislabelled":
        return torch.where(y == 1, torch.zeros_like(y), y)
    if fault == "labels_off_by_one":
        return (y + 1) % classes
    return y


def errors(output, y):
    """The share of wrong answers."""
    return float((output.argmax(-1) != y).float().mean())


def unlike(scores, y):
    """1 − area under the curve."""
    order = scores.flatten().argsort()
    ranks = torch.empty(len(order), dtype=torch.float64)
    ranks[order] = torch.arange(1, len(order) + 1, dtype=torch.float64)
    yes = y.flatten() > 0.5
    count = int(yes.sum())
    return 1 - float((ranks[yes].sum() - count * (count + 1) / 2) / max(count * (len(order) - count), 1))


def ended(hook, steps, passes):
    """Closes; what a job gives back."""
    uid = hook.run
    hook.close(timeout=20)
    return uid, steps, passes


def entered(jobs):
    """(TUNING, FAULTS, fault_names, run) of a module from {job: (function, {fault: share of the run before it})}."""
    def fault_names(name):
        """The faults that a job has."""
        return list(jobs[name][1])

    def run(fault, seed, out, job, name):
        """Trains and records; returns (uid, steps, step of the best evaluation, the evaluations: less is better)."""
        torch.manual_seed(seed)
        numpy.random.seed(seed)
        random.seed(seed)
        uid, steps, passes = jobs[job][0](fault, seed, random.Random(f"{job}/{seed}"), {"out": out, "run": name, "job": job})
        return uid, steps, min(((value, step) for step, value in passes if value == value), default=(0.0, 0))[1], passes
    return dict.fromkeys(jobs, False), {name: share for _, own in jobs.values() for name, share in own.items()}, fault_names, run


def from_start(*names, **later):
    """{fault: share of the run before it}: none for names, a number for the others."""
    return {**dict.fromkeys(names, 0.0), **later}
