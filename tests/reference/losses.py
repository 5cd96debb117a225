"""Whether a worker's training loss falls: the newest five lie surely below every five in a row that were known when a step had come."""
import math

LEVEL = 5


def before(history, row):
    """[(step, loss)] of the first loss that the row's worker told of in training, read before it."""
    found = []
    for one in history.rows:
        if one is row:
            break
        if one.scalar and one.role == "loss" and one.rank == row.rank and one.mode in ("train", "global"):
            found.append(one)
    return [(one.step, one.columns["sum"]) for one in found if one.name == found[0].name]


def known(course):
    """What is known of it: nothing while the newest is no finite number; else the finite ones since the last LEVEL in a row that were none."""
    kept, lost = [], 0
    for step, loss in course:
        lost = 0 if math.isfinite(loss) else lost + 1
        if lost == 0:
            kept.append((step, loss))
        elif lost == LEVEL:
            kept = []
    return [] if lost else kept


def fallen_since(course, step):
    """By two standard errors and a hundredth; of the levels since which others came, the first stands for the beginning."""
    course = known(course)
    if len(course) < 2 * LEVEL:
        return False
    losses = [loss for _, loss in course]
    wobble = sum(abs(c - 2 * b + a) for a, b, c in zip(losses, losses[1:], losses[2:]))
    error = wobble / (len(losses) - 2) / 1.954 * math.sqrt(2 / LEVEL)
    levels = [(course[end - 1][0], sum(losses[end - LEVEL:end]) / LEVEL) for end in range(LEVEL, len(course) + 1, LEVEL)]
    kept = max(len(levels) - 8, 0)
    least = min(mean for i, (last, mean) in enumerate(levels) if last <= step or i == 0 or i < kept)
    fall = least - sum(losses[-LEVEL:]) / LEVEL
    return fall > 2 * error and fall > 0.01 * abs(least)
