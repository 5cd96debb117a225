"""7.2 CreateXgboostReport: never hits. Sums up the rounds: curves of the metrics, importance, trees, labels, predictions and their
confusion. At most 200 points of a curve, which the streams stay below."""
import math

from tests.reference import history as steps
from tests.reference import words
from tests.reference.judging import INSUFFICIENT, OK, Evaluation

DEFAULTS = {}
TOCSIN = {}
ROLES = {"loss", "metric", "label", "prediction", "importance", "tree", "hyperparameter"}
QUANTILES = {"p05": "p05", "p25": "p25", "median": "p50", "p75": "p75", "p95": "p95"}


def selected(row):
    return (row.known.role in ROLES or "feature_importance/" in row.name or "trees/depth" in row.name
            or row.name.startswith(("roc/", "residual/")))


def rounds(history):
    """[(mode, step, {name: [row of each rank]})] of completed steps that hold anything."""
    out = []
    for point in history.points():
        values = {name: [row for _, row in by_rank if selected(row)] for name, by_rank in sorted(point.values.items())}
        values = {name: rows for name, rows in values.items() if rows}
        if values:
            out.append((point.mode, point.step, values))
    return out


def taken(rows):
    """Whether a step with these says anything."""
    scalars = [row for of in rows.values() for row in of if row.scalar]
    tensors = [row for of in rows.values() for row in of if not row.scalar and row.known.role in ("label", "prediction")]
    useful = [row for row in scalars if "feature_importance/" not in row.name
              or "/" in row.name.split("feature_importance/", 1)[1].strip("/")]
    return bool(useful or tensors)


def evaluate(p, history):
    return [Evaluation((), OK if taken(rows) else INSUFFICIENT, step) for _, step, rows in rounds(history)]


def grows(name, rows):
    direction = rows[0].known.direction
    if direction:
        return direction == "max"
    return words.grows(name)


def curve(points, up):
    finite = [(round_, value) for round_, value in points if math.isfinite(value)]
    out = {"direction": "max" if up else "min", "count": len(points), "last_round": points[-1][0], "last": points[-1][1]}
    if finite:
        best = (max if up else min)(finite, key=lambda point: point[1])
        out.update(best_round=best[0], best=best[1])
    out["points"] = {"rounds": [point[0] for point in points], "values": [point[1] for point in points]}
    return out


def spread(step, rows):
    """The columns of all workers together."""
    count = mean = m2 = 0
    for row in rows:
        c = row.columns
        if not c["count"]:
            continue
        delta = c["sum"] / c["count"] - mean
        m2 += c["m2"] + delta * delta * count * c["count"] / (count + c["count"])
        mean += delta * c["count"] / (count + c["count"])
        count += c["count"]
    low, high = min(row.columns["min"] for row in rows), max(row.columns["max"] for row in rows)
    return {"round": step, "count": count, "mean": mean, "std": math.sqrt(m2 / count), "min": low, "max": high}


def added(rows, statistic):
    """Vectors of a step, added up; None: none was sent."""
    found = [row.vectors[statistic, ()] for row in rows if (statistic, ()) in row.vectors]
    if not found:
        return None
    size = max(len(one) for one in found)
    return [sum(one[i] for one in found if i < len(one)) for i in range(size)]


def ratio(part, whole):
    return part / whole if whole else 0


def scores(cells):
    """Of {(label, prediction): count}."""
    classes = {one for cell in cells for one in cell}
    total, right = sum(cells.values()), sum(n for (y, z), n in cells.items() if y == z)
    out = {"samples": total, "accuracy": ratio(right, total)}
    true = {one: sum(n for (y, _), n in cells.items() if y == one) for one in classes}
    said = {one: sum(n for (_, z), n in cells.items() if z == one) for one in classes}
    of = {"precision": lambda one: ratio(cells.get((one, one), 0), said[one]), "recall": lambda one: ratio(cells.get((one, one), 0), true[one]),
          "f1": lambda one: ratio(2 * cells.get((one, one), 0), true[one] + said[one])}
    for name, score in of.items():
        out[name] = {"micro": ratio(right, total), "macro": sum(map(score, classes)) / len(classes),
                     "weighted": ratio(sum(score(one) * true[one] for one in classes), total)}
    return out


def tells(p, history):
    pairs, errors, objective = {}, {}, None
    series, up, importance, depth, hyper, matrix, counts, accuracy, spreads, last = {}, {}, {}, [], {}, {}, None, {}, {}, -1
    for _, step, rows in rounds(history):
        if taken(rows):
            last = max(last, step)
        tensors = []
        for name, of in rows.items():
            if not of[0].scalar:
                tensors += [row for row in of if row.known.role in ("label", "prediction")]
                continue
            value = steps.value([(row.rank, row) for row in of])
            if "feature_importance/" in name:
                kind, slash, feature = name.split("feature_importance/", 1)[1].partition("/")
                if slash and kind:
                    if importance.get(kind, (None,))[0] != step:
                        importance[kind] = (step, {})
                    importance[kind][1][feature] = of[-1].columns["sum"]
            elif name.startswith("residual/abs/"):
                errors.setdefault(name.rsplit("/", 1)[1], []).append((step, of[0].columns["sum"]))
            elif name.startswith(("roc/", "residual/")):
                kind, _, rest = name.partition("/")
                if pairs.get(kind, (None,))[0] != step:
                    pairs[kind] = (step, {})
                pairs[kind][1][rest] = of[0].columns["sum"]
            elif name.startswith("hyperparameters/objective/"):
                objective = name.split("/", 2)[2]
            elif of[0].role == "hyperparameter":
                hyper[name] = of[-1].columns["sum"]
            elif name.endswith("trees/depth"):
                depth.append((step, value))
            else:
                series.setdefault(name, []).append((step, value))
                up.setdefault(name, grows(name, of))
        for key, role in (("labels", "label"), ("predictions", "prediction")):
            if any(row.known.role == role for row in tensors):
                spreads[key] = spread(step, [row for row in tensors if row.known.role == role])
        classes, right = added(tensors, "class_counts"), added(tensors, "class_correct")
        if classes is not None:
            counts = (step, classes)
            for one, whole in enumerate(classes):
                if right is not None and whole:
                    accuracy.setdefault(str(one), []).append((step, right[one] / whole))
        triples = [row.vectors["confusion", ()] for row in tensors if ("confusion", ()) in row.vectors]
        if triples:
            matrix = (step, {})
            for flat in triples:
                for y, z, n in zip(flat[::3], flat[1::3], flat[2::3]):
                    matrix[1][int(y), int(z)] = matrix[1].get((int(y), int(z)), 0) + n
    out = {"rounds": last + 1}
    if series:
        out["metrics"] = {name: curve(points, up[name]) for name, points in sorted(series.items())}
    if depth:
        out["trees"] = {"depth": curve(depth, True)}
    if hyper:
        out["hyperparameters"] = dict(sorted(hyper.items()))
    if importance:
        out["feature_importance"] = {
            kind: {"round": step, "features": len(of), "shares": {name: ratio(value, sum(of.values())) for name, value in
                                                                   sorted(of.items(), key=lambda one: (-one[1], one[0]))}}
            for kind, (step, of) in sorted(importance.items())}
    out.update({key: one for key, one in spreads.items() if one["count"]})
    if counts:
        out["label_classes"] = {"round": counts[0], "counts": counts[1]}
    if accuracy:
        out["class_accuracy"] = {one: curve(points, True) for one, points in accuracy.items()}
    if matrix:
        size = 1 + max(max(cell) for cell in matrix[1])
        out["confusion"] = {"round": matrix[0], "matrix": [[matrix[1].get((y, z), 0) for z in range(size)] for y in range(size)]}
        out["scores"] = scores(matrix[1])
    if objective:
        out["objective"] = objective
    out["task"] = task = task_of(objective, matrix, counts, spreads)
    if task == "binary" and "roc" in pairs:
        step, found = pairs["roc"]
        out["roc"] = {"round": step, "true_positive_rate_at": {name[4:]: value for name, value in found.items() if name != "area"}}
        out["roc"].update({name: value for name, value in found.items() if name == "area"})
    if task == "regression" and "residual" in pairs:
        step, found = pairs["residual"]
        out["residuals"] = {"round": step, **found}
        if errors:
            out["error_by_label"] = {interval(int(number), found): curve(points, False) for number, points in sorted(errors.items())}
    return out


def task_of(objective, matrix, counts, spreads):
    """The objective decides; else the number of classes, if the labels were any."""
    for prefix, task in {"binary": "binary", "multi": "multi-class", "reg": "regression", "count": "regression",
                         "survival": "regression", "rank": "ranking"}.items():
        if objective and objective.split(":")[0] == prefix and ":" in objective:
            return task
    classes = max([0] + [1 + max(cell) for cell in (matrix[1] if matrix else {})] + ([len(counts[1])] if counts else []))
    if classes:
        return "binary" if classes <= 2 else "multi-class"
    return "regression" if spreads.get("labels", {}).get("count") else "unknown"


def interval(number, found):
    """Ten equal ones from the smallest label to the largest."""
    if not {"label_min", "label_max"} <= set(found):
        return f"interval {number + 1}"
    low, high = found["label_min"], found["label_max"]
    return f"{low + number * (high - low) / 10:.6g} to {low + (number + 1) * (high - low) / 10:.6g}"
