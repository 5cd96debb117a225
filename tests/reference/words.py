"""Names as words: which data set a name speaks of, which metric, and whether that is to fall or to grow
(built-in rules 0.5, collections and reductions 2.1)."""
import re

TRAIN = {"train", "training"}
OTHERS = {"val", "valid", "validation", "eval", "evaluation", "test"}
GROWS = {"auc", "aucpr", "map", "ndcg", "pre", "acc", "accuracy", "f1", "precision", "recall"}
AVERAGED = {"average", "balanced", "macro", "mean", "micro", "weighted"}
WHOLE_SAMPLES = {"error", "merror"}


def words(name):
    """Split at / _ - . : and spaces, in lower case."""
    return [word for word in re.split(r"[/_\-.: ]+", name.lower()) if word]


def data_set(name):
    """The words that say which data set is meant, with a number behind them: ("validation", "0"). Empty: none is named.
    The first such word of the name counts."""
    all_words = words(name)
    for i, word in enumerate(all_words):
        if word in TRAIN or word in OTHERS:
            following = all_words[i + 1:i + 2]
            return (word, following[0]) if following and following[0].isdigit() else (word,)
    return ()


def is_train(name):
    """A training set's, or of no stated set."""
    named = data_set(name)
    return not named or named[0] in TRAIN


def metric(name):
    """The words that are left when those of the data set are taken away: what is measured."""
    all_words, named = words(name), data_set(name)
    for i in range(len(all_words)):
        if named and tuple(all_words[i:i + len(named)]) == named:
            return tuple(all_words[:i] + all_words[i + len(named):])
    return tuple(all_words)


def _plain_metric(name):
    """`ndcg` of `validation-ndcg@3-`, `precision` of `average_precision`: the one word that is measured, without `@k`, a trailing `-` and
    how it is averaged; else empty."""
    measured = [word for word in metric(name.partition("@")[0]) if word not in AVERAGED]
    return measured[0] if len(measured) == 1 and metric(name.partition("@")[0])[-1] == measured[0] else ""


def grows(name, stated=None):
    """Whether the series should grow: as stated (`min`, `max`), else by its metric."""
    return stated == "max" if stated else _plain_metric(name) in GROWS


def counts_samples(name):
    """Metrics that count whole samples: `error`, `merror`."""
    return _plain_metric(name) in WHOLE_SAMPLES and not AVERAGED & set(metric(name.partition("@")[0]))
