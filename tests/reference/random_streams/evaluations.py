"""Random streams for the rules that compare training with evaluation: jobs with passes, and boosters with several sets."""
from tests.reference.random_streams import common
from tests.reference.random_streams.series import odd, walk

SETS = ("validation", "valid", "eval", "test", "validation_0", "eval_1")
METRICS = ("logloss", "rmse", "auc", "error", "map@5", "mlogloss")


def quiet(preset, parameters):
    """Without the allowance for noise of the default preset, which is the implementation's own."""
    return {**parameters, "noise_factor": 0} if preset == "tocsin" else parameters


@common.of("overfit")
def overfit_modes(chance):
    """Jobs with training and evaluation passes; names that pair up, or a single loss, or none that pairs."""
    train_names, eval_names = chance.choice(((["loss"], ["loss"]), (["loss"], ["val_loss"]), (["a_loss", "b_loss"],) * 2,
                                             (["retrieval_loss"], ["retrieval_loss"]), (["x_loss", "y_loss"], ["z_loss"]),
                                             (["train/loss"], ["eval/loss"])))
    preset = chance.choice(("tocsin", "original"))
    if preset == "tocsin" and eval_names == ["z_loss"]:
        eval_names = train_names
    parameters = common.shared(chance, (), steps=False)
    if chance.random() < 0.5:
        parameters["patience"] = chance.randint(1, 4)
    if chance.random() < 0.3:
        parameters["start_step"] = chance.randint(0, 12)
    rules = [{"use": "overfit", "preset": preset, "with": quiet(preset, parameters)}]
    often = chance.choice((0, 0, 0.1, 0.4))
    some = chance.random() < 0.5  # passes that do not evaluate every loss
    gap = chance.choice((1.0, 1.2))
    brings = chance.choice((1, 1, 1, 1, 0.7))  # an evaluation step may bring nothing, and so a pass
    walks = {}

    def fill(worker, mode, step):
        if mode == "train" and chance.random() < 0.9:
            worker.scalars(*((name, odd(chance, next(walks.setdefault((worker.rank, name), walk(chance, 1.0))), often))
                             for name in train_names))
        elif mode == "eval" and chance.random() < brings:
            worker.scalars(*((name, odd(chance, gap * next(walks.setdefault((worker.rank, name, "eval"), walk(chance, 1.0))),
                                        often)) for i, name in enumerate(eval_names)
                             if not (some and i == 1 and worker.passes.get("eval", 0) % 3 == 1)
                             and (brings == 1 or i == 0 or chance.random() < brings)))

    schedule = [("train", 1)] + common.train_and_eval(chance, chance.randint(5, 40))
    return rules, common.play(chance, schedule, fill, passes=True)


@common.of("overfit")
def overfit_boosting(chance):
    """XGBoost and scripts without modes: one step holds the values of several sets."""
    parameters = common.shared(chance, (), steps=False)
    if chance.random() < 0.5:
        parameters["patience"] = chance.randint(1, 4)
    if chance.random() < 0.3:
        parameters["start_step"] = chance.randint(0, 12)
    preset = chance.choice(("tocsin", "original"))
    rules = [{"use": "overfit", "preset": preset, "with": quiet(preset, parameters)}]
    metrics = chance.sample(METRICS, chance.choice((1, 1, 2)))
    others = chance.sample(SETS, chance.choice((1, 1, 2)))
    if chance.random() < 0.2:
        metrics, others, spelled = ["loss"], ["val"], {"train": "loss", "val": "val_loss"}
    else:
        spelled = None
    every = chance.choice((1, 1, 3))
    often = chance.choice((0, 0, 0.05))
    walks = {}

    def fill(worker, mode, step):
        sent = []
        for metric in metrics:
            for data in ["train", *others]:
                if data != "train" and step % every:
                    continue
                name = spelled[data] if spelled else f"{data}-{metric}"
                number = next(walks.setdefault((worker.rank, name), walk(chance, 0.5)))
                sent.append((name, odd(chance, number, often), "metric" if is_max(metric) else "loss"))
        if chance.random() < 0.5:
            for one in sent:
                worker.scalars(one)
        else:
            worker.scalars(*sent)

    schedule = chance.choice((common.global_only, common.train_only))  # XGBoost's callback sets a mode
    return rules, common.play(chance, schedule(chance, chance.randint(3, 40)), fill)


def is_max(metric):
    return metric.partition("@")[0] in ("auc", "map")


def overtraining(chance):
    """Jobs with passes, and boosting."""
    rules, records = (overfit_modes if chance.random() < 0.5 else overfit_boosting)(chance)
    parameters = {"patience_train": chance.randint(1, 5), "patience_validation": chance.randint(1, 6),
                  **{key: value for key, value in rules[0]["with"].items() if key in ("min_hits", "clear_after")}}
    if chance.random() < 0.4:
        parameters["require"] = "any"
    if chance.random() < 0.5:
        parameters["delta"] = chance.choice((0, 0.1))
    return [{"use": "overtraining", "preset": "original", "with": parameters}], records
