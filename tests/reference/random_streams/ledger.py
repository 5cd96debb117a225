"""Random streams for the rules that read the ledger."""
import math

from tests.reference.random_streams import common


def leak(chance):
    """A loss call, data sets of a booster and gains, each with a trait of its own that may be a leak."""
    parameters = common.shared(chance, ("train", "eval", "global"))
    for name, choices in (("fit", (0.9, 0.999)), ("strong_fit", (0.5, 0.98)), ("overlap", (0.0, 0.1, 0.5))):
        if chance.random() < 0.2:
            parameters[name] = chance.choice(choices)
    copies, by_chance, solved = chance.choice((0.5, 0.985, 0.995, 1.0)), chance.choice((0.1, 0.45, 0.6)), chance.choice((0.4, 0.7, 0.985, 0.999))
    planned, classes = chance.choice((0, 50, 400, 2000)), chance.choice((0, 2, 5))
    fit, seen, repeats = chance.choice((0.5, 0.975, 0.999)), chance.choice((0, 1, 5, 30, 200)), chance.choice((0, 0, 3, 100, 990))
    heavy, batches, epochs = chance.choice((0.3, 0.6, 0.97)), chance.random() < 0.5, chance.choice((0, 0.5, 1, 3, 40))

    def call(mode):
        places, samples = chance.randint(10, 200), chance.randint(20, 300)
        out = {"samples": samples, "loss": samples * (1 - solved) * chance.uniform(0.9, 1.1), "trivial": samples}
        if chance.random() < 0.7:
            out.update(input_places=places, same_as_input=places * copies, same_by_chance=places * by_chance)
        if chance.random() < 0.9:
            out["labels"] = places
        if chance.random() < 0.1:
            out.pop("trivial")
        return {f"ledger/cross_entropy/{name}": math.nan if chance.random() < 0.01 else value for name, value in out.items()}

    def data():
        out = {"train/read": chance.choice((100, 200, 5000)), "train/classes": classes}
        for column in ("a", "b", "c/d")[:chance.randint(0, 3)]:
            out[f"train/column_fit/{column}"] = chance.choice((fit, 0.1, 0.98, 0.997))
            out[f"train/shifted_fit/{column}"] = chance.choice((0.0, 0.6, 0.95, 0.999))
            if chance.random() < 0.8:
                out[f"train/column_equal/{column}"] = chance.choice((0.0, 0.5, 0.985, 0.995)) if chance.random() < 0.3 else 0
        if batches:
            out["train/batches"] = 40
        out.update({"validation/rows": 1000, "validation/seen": seen, "validation/train_compared": 1000,
                    "validation/train_repeats": repeats, "validation/same": float(chance.random() < 0.1)})
        if chance.random() < 0.9:
            out["validation/compared"] = chance.choice((0, 300, 1000)) if seen <= 30 else 1000
        if batches and chance.random() < 0.8:
            out.update({"validation/early": chance.choice((0, 200, 1000)), "validation/train_distinct": chance.choice((1000, 20000)),
                        "validation/early_seen": chance.choice((0, 2, 12, 30, 150)), "validation/repeats": chance.choice((0, 0, 5, 100, 995)),
                        "validation/look": chance.choice((1, 2, 5))})
        return {f"ledger/data/{name}": value for name, value in out.items()}

    def fill(worker, mode, step):
        values = {}
        if mode == "train" and step == 0 and planned:
            values["ledger/plan/updates"] = planned
            if epochs:
                values["ledger/plan/epochs"] = epochs
        if chance.random() < 0.8:
            values.update(call(mode))
        if mode != "eval" and chance.random() < (0.8 if step == 0 else 0.15):
            values.update(data())
        if mode != "eval" and chance.random() < 0.7:
            share = heavy if chance.random() < 0.9 else 0.4
            rest = (1 - share) * chance.choice((0.0, 0.1, 1.0))
            values.update({"feature_importance/total_gain/a": share, "feature_importance/total_gain/b": rest,
                           "feature_importance/total_gain/c": 0.001})
        if values:
            worker.scalars(*((name, float(value), "ledger" if name.startswith("ledger") else "importance") for name, value in values.items()))

    schedule = chance.choice((common.train_only, common.train_and_eval, common.train_and_eval, common.global_only))(chance, chance.randint(3, 25))
    return [{"use": "leak", "preset": chance.choice(("tocsin", "original")), "with": parameters}], common.play(chance, schedule, fill)


def parity(chance):
    """Data sets of a booster, alike or not, that are told of once or again and again."""
    parameters = common.shared(chance, ("train", "global"))
    if chance.random() < 0.3:
        parameters["margin"] = chance.choice((0.0, 0.01, 0.1, 0.5))
    far, classes, rows = chance.choice((0.02, 0.1, 0.25, 0.9)), chance.choice((0, 0, 2, 10)), chance.choice((50, 400, 2000))

    def data():
        out = {"stops": float(chance.random() < 0.3)} if chance.random() < 0.3 else {}
        if chance.random() < 0.1:
            out["same"] = 1.0
        if chance.random() < 0.8:
            out.update(target_distance=far * chance.uniform(0.5, 1.5), target_drift=chance.choice((0.01, 0.05, 0.2)), target_classes=classes,
                       target_train=rows, target_read=chance.choice((0, 30, rows)))
        if chance.random() < 0.8:
            out.update(columns=chance.choice((1, 30, 500)), column_train=rows, column_read=chance.choice((0, 30, rows)))
            column = chance.choice(("a", "b/c"))
            out[f"column_distance/{column}"] = far * chance.uniform(0.5, 1.5)
            if chance.random() < 0.9:
                out[f"column_drift/{column}"] = chance.choice((0.01, 0.05, 0.2))
        return {name: math.nan if chance.random() < 0.01 else value for name, value in out.items()}

    def fill(worker, mode, step):
        values = {f"ledger/data/{name}/{field}": value for name in ("train", "held", "late") if chance.random() < 0.5 for field, value in data().items()}
        if values:
            worker.scalars(*((name, float(value), "ledger") for name, value in values.items()))

    schedule = chance.choice((common.train_only, common.train_and_eval, common.global_only))(chance, chance.randint(2, 12))
    return [{"use": "parity", "preset": chance.choice(("tocsin", "original")), "with": parameters}], common.play(chance, schedule, fill)


def collapse(chance):
    """A call whose outputs or answers become the same, or were from the start; an evaluation beside it."""
    parameters = common.shared(chance, ("train", "eval"), steps=False)
    for name, values in (("alpha", (0.05, 0.01)), ("skill", (0.0, 0.1)), ("share", (0.6,)), ("spread", (1e-4,))):
        if chance.random() < 0.3:
            parameters[name] = chance.choice(values)
    turn, pairs, classes = chance.choice((0, 5, 40)), chance.choice((1, 40, 400)), chance.random() < 0.7
    start, later = chance.choice((0.9, 0.5)), chance.choice((0.5, 0.5, 0.5, 0.9))
    fate = chance.choice(("flat", "flat", "one", "one", "one", "fine"))
    growth, strays, planned = chance.choice((0, 0, 1e-9, 1e-5)), chance.choice((0, 0, 0, 0.01)), chance.choice((0, 0, 60, 1000))
    noise, rates, adversarial, gaps = chance.choice((0, 0, 0.005)), chance.choice((0, 0, 1)), chance.choice((0, 0, 0, 0.1)), chance.choice((0, 0.05))

    length = chance.choice((chance.randint(3, 60), chance.randint(90, 200)))
    if chance.random() < 0.2:  # what takes many pairs
        fate, turn, start, later, pairs, noise, classes, adversarial, length = "one", chance.choice((0, 40)), start, 0.5, 400, 0, True, 0, chance.randint(100, 200)

    def fill(worker, mode, step):
        values = []
        if mode == "train" and rates:
            values.append(("learning_rate", 0.01 * min(step + 1, 20), "metric"))
        if mode == "train" and planned and step == 0:
            values.append(("ledger/plan/updates", planned, "ledger"))
        late, samples = step >= turn, chance.choice((8, 32))
        share = later if late else start
        skill = 0.4 if share > 0.6 else 0.0
        won = sum(chance.random() < share for _ in range(pairs))
        own = {"samples": samples, "calls": 1, "pairs": pairs, "wins": won, "crossed": samples, "output_spread": samples, "target_spread": 2.0 * samples,
               "loss": samples * 2 * (1 - skill + chance.gauss(0, noise)), "trivial": samples * 2.0}
        if classes:
            alone = fate == "one" and late
            own.update(answers=samples - (strays * samples if alone else 0.3 * samples), labels=0.75 * samples)
        if fate == "flat" and late:
            own.update(pairs=0, wins=0, output_spread=samples * growth * step)
        if chance.random() < adversarial:
            own.update(calls=2, one_target=1)
        if chance.random() < gaps:
            own.pop(chance.choice(sorted(own)))
        worker.scalars(*values, *((f"ledger/l/{field}", float(value), "ledger") for field, value in own.items()))

    def embed(worker, mode, step):
        """A contrastive job."""
        rows, now = chance.choice((8, 100)), late_cosine if step >= turn else 0.4
        own = {"rows": rows, "alike": rows * (now - chance.choice((0, 0.001))), "farthest": rows * (0.95 if chance.random() > strays / 10 else 0.2),
               "directions": rows * (late_directions if step >= turn else 9.0)}
        if chance.random() < gaps:
            own.pop(chance.choice(sorted(own)))
        values = [(f"ledger/embedding/z/{field}", value, "ledger") for field, value in own.items()]
        if chance.random() < loss_share:
            values += [(f"ledger/l/{field}", value, "ledger") for field, value in (("samples", 16), ("labels", labels), ("calls", 1), ("loss", 16 / (step + 1)))]
        if generated and chance.random() < 0.95:
            share = generated if step >= turn else 0.9
            words = (("made", max(0.9, 8 * share * math.exp(chance.gauss(0, 0.2)))), ("data", 8 * math.exp(chance.gauss(0, 0.2))))
            values += [(f"ledger/samples/g/{field}", value, "ledger") for field, value in words if chance.random() > gaps / 5]
        if planned and step == 0:
            values.append(("ledger/plan/updates", planned, "ledger"))
        worker.scalars(*((name, float(value), role) for name, value, role in values))

    generated = chance.choice((None, 0.2, 0.45, 1.0))

    late_cosine, late_directions, labels, loss_share = chance.choice((0.99, 0.99, 0.97, 0.1)), chance.choice((1.2, 6.0)), chance.choice((1, 1, 8)), chance.choice((0, 0.9, 1, 1))
    if chance.random() < 0.3:
        return [{"use": "collapse", "preset": "tocsin", "with": parameters}], common.play(chance, common.train_only(chance, chance.randint(20, 150)), embed)

    # Which pass an evaluation of several workers belongs to, of which some lost their last training steps, is left open.
    evaluates = chance.random() < 0.4
    schedule = (common.train_and_eval if evaluates else common.train_only)(chance, length)
    return [{"use": "collapse", "preset": "tocsin", "with": parameters}], common.play(
        chance, schedule, fill, worlds=(1,) if evaluates else (1, 1, 2, 3))


def reward(chance):
    """An agent that learns by reward, or does not: returns, signals, a target network and a memory."""
    parameters = common.shared(chance, ("train", "global"))
    for name, choices in (("margin", (0.1, 1.0)), ("transitions", (5, 40, 400)), ("updates", (40, 100)), ("patience", (10, 1000)), ("alpha", (0.01, 0.1))):
        if chance.random() < 0.4:
            parameters[name] = chance.choice(choices)
    gain, level = chance.choice((-3.0, -0.3, 0.0, 0.5, 4.0)), chance.choice((0.0, 20.0))
    logged = chance.choice((("episode_return",), ("rollout/ep_rew_mean", "eval/mean_reward"), ("return", "reward"), ()))
    constant, constant_return = chance.random() < 0.4, chance.random() < 0.2
    entropy, explained, epsilon = chance.choice((None, 0.0, 0.01, 0.5)), chance.choice((None, -0.8, -0.1, 0.3)), chance.choice((None, 1.0, 0.6, 0.1))
    counted, terminated, marked = chance.random() < 0.5, chance.random() < 0.7, chance.choice((0.0, 0.1, 1.0))
    copied, moving, equal = chance.choice((None, 0.0, 0.1, 1.0)), chance.random() < 0.8, chance.choice((0.0, 0.3, 1.0))
    fresh, planned, length = chance.choice((None, 0.01, 0.3)), chance.choice((0, 0, 50, 400)), chance.choice((30, 90, 280))
    once = chance.randint(1, 40)  # episodes of a word
    longer = chance.choice((None, 1.0, 3.0, 9.0))  # times the first answers

    def value(step):
        return level if constant_return else level + gain * min(1.0, step / length * 4) + chance.gauss(0, 1)

    def count(step):
        returns = [value(step) for _ in range(once)]
        steps = once * chance.choice((1, 5))
        out = {"transitions": steps, "episodes": once, "returns": sum(returns), "squares": sum(one * one for one in returns),
               "ends": once * terminated, "seen/reward": steps, "changes/reward": 0 if constant else steps // 2, "seen/done": steps,
               "ones/done": round(marked * steps), "seen/observation": steps, "changes/observation": steps // 3 if constant_return else 0}
        if step == 0 and chance.random() < 0.3:
            out.update(planned=chance.choice((100, 10000)), environments=chance.choice((1, 64)))
        return {"ledger/reward/" + name: one for name, one in out.items()}

    def fill(worker, mode, step):
        values = {name: value(step) for name in logged if chance.random() < 0.95}
        if counted and chance.random() < 0.8:
            values.update(count(step))
        if entropy is not None:
            values["entropy"] = 1.1 - entropy * step / length
        if explained is not None:
            values["explained_variance"] = explained + chance.gauss(0, 0.1)
        if longer is not None:
            values["completions/mean_length"] = 50 * (1 + (longer - 1) * min(1.0, step / length * 4)) * (1 + chance.gauss(0, 0.05))
            values["reward"] = value(step)
        if epsilon is not None:
            values["epsilon"] = max(0.05, epsilon - (step / length if epsilon < 1 else 0))
        if constant and chance.random() < 0.5:
            values["priority"] = 1.0
        if copied is not None and chance.random() < 0.5:
            looks = chance.choice((4, 16, 64))
            fields = {"updates": 3 * looks, "looks": looks, "moves": looks * moving, "changes": round(copied * looks),
                      "equal": round(equal * looks)}
            values.update({"ledger/target/q_target/" + name: one for name, one in fields.items()})
        if fresh is not None and chance.random() < 0.8:
            values.update({"ledger/reward/made": chance.choice((0, 20, 100)), "ledger/reward/drawn": 100, "ledger/reward/fresh": round(100 * fresh)})
        if planned and step == 0:
            values["ledger/plan/updates"] = planned
        if values:
            worker.scalars(*((name, math.nan if chance.random() < 0.003 else float(one), "ledger" if name.startswith("ledger") else "metric")
                             for name, one in values.items()))

    # What an agent does in its eval state counts as well, but on which side of the next training step is left open.
    schedule = chance.choice((common.train_only, common.train_only, common.global_only))(chance, length)
    return [{"use": "reward", "preset": chance.choice(("tocsin", "original")), "with": parameters}], common.play(chance, schedule, fill, worlds=(1, 1, 2))


def left_out_class(chance):
    """Sums per class of one or two calls, some of whose classes are random, silent, rare or missing in training."""
    parameters = common.shared(chance, ("train", "eval"))
    for name, choices in (("lead", (0.1, 0.5, 0.8)), ("usual", (0.65, 0.9)), ("samples", (20, 100)), ("alpha", (1e-6, 0.05))):
        if chance.random() < 0.2:
            parameters[name] = chance.choice(choices)
    number, many = chance.choice((2, 3, 5, 12)), chance.random() < 0.1
    traits = [chance.choice(("usual", "usual", "usual", "random", "silent", "rare", "missing", "hard", "late")) for _ in range(number)]
    w, right, size = chance.choice((0.7, 0.85, 0.95)), chance.choice((0.4, 0.7, 0.9)), chance.choice((40, 200, 1000, 4000))
    begins = chance.randint(0, 6)

    def sums(mode, step):
        rows, samples, trained, count = {}, 0, 0, 0
        for at, trait in enumerate(traits):
            if mode == "train" and trait == "missing":
                continue
            trait = "random" if trait == "late" and step < begins else trait
            labels = round(size * chance.uniform(0.8, 1.2) * (chance.choice((0.02, 0.2)) if trait == "rare" and mode == "train" else 1))
            pairs = round(labels * chance.uniform(0.5, 0.95))
            share = {"random": 0.5, "silent": 0.5, "hard": 0.65, "rare": 0.6}.get(trait, w)
            good = {"random": 0.1, "silent": 0.0, "rare": 0.1, "hard": 0.3}.get(trait, right)
            values = {"labels": labels, "answers": 0 if trait == "silent" else labels, "right": round(good * labels), "pairs": pairs,
                      "wins": min(pairs, max(0, round(pairs * share + chance.uniform(-2, 2) * math.sqrt(pairs) / 4))),
                      "loss": labels * math.log(number) * (1.2 if trait in ("silent", "random") else 0.4)}
            if mode == "eval":
                values["trained"] = 0 if trait == "missing" else round(size * (0.02 if trait == "rare" else 1) * (step + 1))
                trained += values["trained"]
            samples, count = samples + labels, count + 1
            rows.update({f"{field}/{at}": value for field, value in values.items() if value})
        rows.update(samples=samples, count=count + (100 if many else 0))
        if mode == "eval" and chance.random() < 0.9:
            rows["trained"] = trained
        return rows

    calls = chance.choice((("cross_entropy",), ("cross_entropy",), ("cross_entropy", "nll_loss")))

    def fill(worker, mode, step):
        values = {}
        for call in calls:
            if chance.random() < 0.8:
                values.update({f"ledger/{call}/class_{name}": math.nan if chance.random() < 0.005 else value for name, value in sums(mode, step).items()})
        if values:
            worker.scalars(*((name, float(value), "ledger") for name, value in values.items()))

    schedule = chance.choice((common.train_only, common.train_and_eval, common.train_and_eval))(chance, chance.randint(3, 25))
    return [{"use": "left_out_class", "preset": chance.choice(("tocsin", "original")), "with": parameters}], common.play(chance, schedule, fill)


@common.of("parity", "parity of jobs by batches")
def parity_worlds(chance):
    """Jobs that train by batches, whose evaluation is another world in one way or none: passes in one step and step by step."""
    parameters = common.shared(chance, ("train", "eval"), steps=False)
    for name, choices in (("errors", (2, 4)), ("moved", (0.0, 0.3)), ("loss", (0.05, 1)), ("shifted", (True,))):
        if chance.random() < 0.15:
            parameters[name] = chance.choice(choices)
    shift, scale, worse = chance.choice((0, 0, 0.2, 1, 4)), chance.choice((1, 1, 0.5, 0.85, 3)), chance.choice((0, 0, 3, -0.9))
    parts = chance.choice((("",), ("/0", "/1", "/2")))
    whole, rows, smaller = chance.random() < 0.5, chance.choice((1, 8, 64)), chance.choice((1, 1, 4))
    drift, classes = chance.choice((0, 0, 2)), chance.choice((0, 2, 3))

    def batch(evaluates, step):
        here = max(1, rows // smaller) if evaluates else rows
        out = {"world/input/0/batches": 1, "world/input/0/rows": here, "l/calls": 1, "l/samples": here}
        for part in parts:
            deviation = scale if evaluates and part in ("", "/1") else 1
            mean = (shift if evaluates and part in ("", "/1") else drift * step / 60) + chance.gauss(0, deviation / math.sqrt(here))
            square = mean ** 2 + deviation ** 2 * chance.uniform(0.8, 1.2)
            out.update({f"world/input/0{part}/mean": mean, f"world/input/0{part}/square": square})
            if evaluates:
                for name, value in (("mean", mean), ("square", square)):
                    out.update({f"world/input/0{part}/{name}_squared": value ** 2,
                                f"world/input/0{part}/{name}_lagged": value ** 2 * chance.random()})
        if evaluates:
            out["world/input/0/weights"] = 1
        if classes:
            shares = [chance.random() + (evaluates and k == 0) * shift for k in range(classes)]
            out.update({"world/class/l/batches": 1, "world/class/l/rows": here})
            out.update({f"world/class/l/{k}/mean": share / sum(shares) for k, share in enumerate(shares)})
        loss = max(0.05, 1.5 - step / 60 + chance.gauss(0, 0.1)) + (worse if evaluates else 0)
        out.update({"l/loss": here * max(loss, 0.01), "l/trivial": here * 2})
        if chance.random() < 0.03:
            out.pop("l/trivial")
        return {name: math.nan if chance.random() < 0.002 else value for name, value in out.items()}

    def fill(worker, mode, step):
        values = {}
        if mode == "train" and step == 0:
            values["world/passes"] = chance.choice((1, 1, 1, 2))
            if chance.random() < 0.3:
                values["world/averages"] = 1
        if mode == "train" and chance.random() < 0.02:
            values.update({"data/evaluation/train_compared": 100, "data/evaluation/train_repeats": chance.choice((0, 95))})
        send(worker, values)
        for _ in range(chance.choice((2, 9, 30)) if mode == "eval" and whole else chance.choice((1, 1, 1, 2))):
            send(worker, batch(mode == "eval", step))

    def send(worker, values):
        if values:
            worker.scalars(*((f"ledger/{name}", float(value), "ledger") for name, value in values.items()))

    block, schedule = chance.choice((20, 40, 70)), []
    for _ in range(chance.randint(1, 4)):
        schedule += [("train", 1)] * block + [("eval", 1)] * (1 if whole else chance.randint(1, 12))
    schedule += [("train", 1)] * chance.choice((0, 1, 40))
    return [{"use": "parity", "preset": "tocsin", "with": parameters}], common.play(chance, schedule, fill)


def movement(chance):
    """Updates of one or two optimizers that go up, down or nowhere, gradients that turn round or stay, and a loss."""
    parameters = common.shared(chance, ("train", "global"), steps=False)
    for name, values in (("alpha", (0.05, 0.01)), ("uphill", (0.1,)), ("against", (0.0, 0.1)), ("along", (0.5,))):
        if chance.random() < 0.4:
            parameters[name] = chance.choice(values)
    mean, turned, optimizers = chance.choice((-0.6, 0.0, 0.1, 0.7)), chance.choice((-0.95, -0.2, 0.3, 0.99)), chance.choice((1, 1, 2))
    skill, rate, zero = chance.choice((0.0, 0.0, 0.7)), chance.choice((None, 0.1, 0.1)), chance.choice((0, 0, 1, 3))
    adversarial = chance.random() < 0.1
    pay, slow = chance.choice((None, -1.0, -0.01, 0.0)), chance.choice(((), ("a.b",), ("a.b", "c.d")))

    def fill(worker, mode, step):
        values = []
        if chance.random() < 0.1:
            values += [("compared", chance.choice((0.0, 6.0))), ("directed", 1.5), ("directed_updates", 16.0)]
            values += [("slow/" + name, chance.choice((1e-5, 1e-5, 1e-5, 2e-3))) for name in slow if chance.random() < 0.9]
        for _ in range(optimizers):
            if chance.random() < 0.9:
                gradient, update = chance.choice((1.0, 4.0, 0.0)) if chance.random() < 0.1 else 2.0, chance.choice((1.0, 9.0))
                cosine = min(max(mean + chance.gauss(0, 0.2), -1), 1)
                values += [("stands_for", chance.choice((0.0, 1.0, 7.0))), ("along", cosine * math.sqrt(gradient * update)),
                           ("gradient", gradient), ("update", update)]
                if chance.random() < 0.9:
                    values.append(("turned", min(max(turned + chance.gauss(0, 0.05), -1), 1)))
                    if pay is not None and chance.random() < 0.95:
                        values.append(("pays", pay * (1 + chance.gauss(0, 0.3))))
        if chance.random() < 0.1:
            values += [("trainable", 5.0), ("zero", float(zero)), ("without", 1.0), ("trainable_elements", 50.0), ("zero_elements", 10.0 * zero)]
            values += [("never/a.b", 10.0)] if zero else []
        values = [("ledger/movement/" + field, math.nan if chance.random() < 0.005 else value, "ledger") for field, value in values]
        if rate is not None and chance.random() < 0.3:
            values.append(("learning_rate", -rate if chance.random() < 0.05 else rate, "metric"))
        if chance.random() < 0.95:
            values += [("ledger/l/samples", 8.0, "ledger"), ("ledger/l/loss", 16 * (1 - skill + chance.gauss(0, 0.01)), "ledger"),
                       ("ledger/l/trivial", 16.0, "ledger"), ("ledger/l/crossed", 8.0, "ledger")]
            if adversarial:
                values += [("ledger/l/calls", 2.0, "ledger"), ("ledger/l/one_target", 1.0, "ledger")]
        worker.scalars(*values)

    return [{"use": "movement", "preset": chance.choice(("tocsin", "original")), "with": parameters}], common.play(
        chance, common.train_only(chance, chance.choice((20, 70, 150, 260))), fill)
