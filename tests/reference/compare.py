"""Engine against reference: what differs for a case, and the smallest case that still differs."""
import json

from tests.reference import engine, judging, words
from tests.reference.history import History

# Rules that join modes or sets: how they spell their units is not laid down, so a unit is what is measured.
JOINS = {"overfit", "overtraining"}


def key(rule, episode):
    """What must agree of an episode."""
    unit = dict(episode.unit)
    told = getattr(judging.module(rule), "UNIT", engine.UNIT)
    unit = {name: value for name, value in unit.items() if name in told}
    if rule in JOINS:
        unit = {"metric": "/".join(words.metric(unit.get("metric", "")))}
    when = (episode.first, "end" if episode.resolved is None else episode.resolved)
    return (episode.kind, tuple(sorted(unit.items())), *(when if getattr(judging.module(rule), "TIMED", True) else ()))


def shown(rule, episodes):
    return sorted(map(str, (key(rule, one) for one in episodes)))


def told(item, history):
    """What a rule sums up at the end of the run; the reference may tell less than the engine."""
    rule = judging.module(item["use"])
    return rule.tells(judging.parameters(rule, item.get("with", {}), item.get("preset", "tocsin")), history)


def differences(the_engine, rules, records):
    """Texts, one per disagreement; empty: none."""
    history = History(records)
    answer = the_engine.judge(rules, records)
    if "refused" in answer:
        return [f"refused: {answer['refused']}"]
    out = []
    for item in rules:
        name = item.get("name", item["use"])
        expected, status = judging.judge(item, history)
        clock = getattr(judging.module(item["use"]), "CLOCK", False)
        left, right = shown(item["use"], expected), shown(item["use"], engine.episodes(answer, name, clock))
        for text in left:
            if text in right:
                right.remove(text)
            else:
                out.append(f"{name}: the reference has {text}, the engine has not")
        out += [f"{name}: the engine has {text}, the reference has not" for text in right]
        if engine.status(answer, name) != status:
            out.append(f"{name}: status {status} by the reference, {engine.status(answer, name)} by the engine")
        elif status in ("NoIssuesFound", "IssuesFound") and hasattr(judging.module(item["use"]), "tells"):
            left, right = told(item, history), engine.summary(answer, name)
            if not engine.holds(left, right):
                out.append(f"{name}: the reference tells {left!r}, the engine {right!r}")
        elif status == "NoIssuesFound" and hasattr(judging.module(item["use"]), "summary"):
            left, right = judging.module(item["use"]).summary(history), engine.summary(answer, name)
            if not engine.same(left, right):
                out.append(f"{name}: the reference tells {left!r}, the engine {right!r}")
    return out


# --- shrinking ---------------------------------------------------------------------------------


def renumbered(records):
    """The same with sequence numbers that follow each other again, as if the rest had never been sent."""
    sequences, out = {}, []
    for record in records:
        sender = (record.get("rank", 0), record.get("worker"))
        sequences[sender] = sequences.get(sender, 0) + 1
        out.append({**record, "seq": sequences[sender]})
    return out


def parts(records):
    """What can be left out together: all that a worker sends of one step, else single records. Names, starts and goodbyes
    stay: without them a case says something else."""
    groups = {}
    for at, record in enumerate(records):
        if record["kind"] in ("summary", "scalars", "step_end"):
            groups.setdefault((record["rank"], record["mode"], record["step"]), []).append(at)
        elif record["kind"] not in ("dictionary", "lifecycle"):
            groups[at] = [at]
    return list(groups.values())


def without_rows(records):
    """Ways to leave one row of a record out."""
    for at, record in enumerate(records):
        if record["kind"] in ("summary", "scalars", "system") and len(record["rows"]) > 1:
            for row in range(len(record["rows"])):
                less = {**record, "rows": record["rows"][:row] + record["rows"][row + 1:]}
                if "sparse" in record:
                    less["sparse"] = _without(record["sparse"], row)
                yield records[:at] + [less] + records[at + 1:]


def _without(sparse, row):
    out = []
    for name, parameters, rows, values in sparse:
        kept = [(one - (one > row), number) for one, number in zip(rows, values) if one != row]
        if kept:
            out.append([name, parameters, [one for one, _ in kept], [number for _, number in kept]])
    return out


def shrunk(the_engine, rules, records):
    """A small case of one rule that still differs: stretches of records are left out, from long to short, then single rows."""
    def differ(candidate):
        return differences(the_engine, rules, renumbered(candidate))

    rules = next(([item] for item in rules if differences(the_engine, [item], records)), rules)
    if not differ(records):
        return rules, records  # it takes a record that came twice
    size = len(records)
    while size >= 1:
        start = 0
        while start < len(parts(records)):
            gone = {at for part in parts(records)[start:start + size] for at in part}
            candidate = [record for at, record in enumerate(records) if at not in gone]
            if differ(candidate):
                records = candidate
            else:
                start += size
        size //= 2
    for _ in range(50):
        less = next((candidate for candidate in without_rows(records) if differ(candidate)), None)
        if less is None:
            break
        records = less
    return rules, renumbered(records)


def story(records):
    """Readable: one line per record that matters."""
    lines = []
    for record in records:
        head = f"worker_{record['rank']} {record.get('mode', '')} step {record.get('step')} (global {record.get('global')})"
        if record["kind"] == "scalars":
            lines.append(f"{head}: " + ", ".join(f"{row[0]} = {row[4]!r} ({row[1]})" for row in record["rows"]))
        elif record["kind"] == "summary":
            lines.append(f"{head}: " + ", ".join(
                f"{row[0]} ({row[1]} {row[2]}, flags {row[3]}, n {row[4]}, Σ|x| {row[8]!r}, Σx² {row[6]!r})"
                for row in record["rows"]) + (f" with {record['sparse']}" if record.get("sparse") else ""))
        elif record["kind"] == "system":
            lines.append(f"{record.get('worker')} at {record['time']}: {record['rows']}")
        elif record["kind"] != "dictionary":
            lines.append(f"{head}: {record['kind']} {record.get('body', {}).get('event', '')}")
    return "\n".join(lines if len(lines) <= 40 else [*lines[:40], f"… {len(lines) - 40} more"])


def report(the_engine, rules, records):
    """What to print of a failing stream."""
    rules, records = shrunk(the_engine, rules, records)
    return "\n".join([*differences(the_engine, rules, records), f"rules: {json.dumps(rules)}", story(records)])
