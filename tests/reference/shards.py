"""A run as a producer sends it that spreads its tensors over several shards (docs/wire.md)."""
from tocsin import wire


def shard_of(name, shards):
    return wire.xxh64(name) % shards


def _rows_of(record, shard, shards):
    """The summary with the rows of one shard alone; None: there are none."""
    kept = [i for i, row in enumerate(record["rows"]) if shard_of(row[0], shards) == shard]
    if not kept:
        return None
    place = {row: i for i, row in enumerate(kept)}
    sparse, vectors = [], []
    for name, parameters, rows, values in record.get("sparse", ()):
        pairs = [(place[row], value) for row, value in zip(rows, values) if row in place]
        if pairs:
            sparse.append([name, parameters, [row for row, _ in pairs], [value for _, value in pairs]])
    for name, row, parameters, values in record.get("vectors", ()):
        if row in place:
            vectors.append([name, place[row], parameters, values])
    out = {**record, "rows": [record["rows"][i] for i in kept]}
    for key, kept_of_it in (("sparse", sparse), ("vectors", vectors)):
        if key in record:
            out[key] = kept_of_it
    return out


def _worker(record):
    return record.get("run"), record.get("worker"), record["rank"], record.get("incarnation", 1)


def spread(records, shards):
    """The same records over so many shards: tensors by their names; dictionaries and ends of steps to every shard that the
    worker uses; the rest to the first. Each shard counts its frames by itself; what was lost is lost in each.
    `nth`: the record that it is of."""
    used, newest, sequence, sent, out = {}, {}, {}, {}, []
    for record in records:
        if record["kind"] == "summary":
            used.setdefault(_worker(record), {0}).update(shard_of(row[0], shards) for row in record["rows"])
    for nth, record in enumerate(records):
        if "seq" not in record:
            out.append({**record, "nth": nth})
            continue
        who = _worker(record)
        again = sent.get((who, record["seq"]))  # delivered twice: as it was
        lost = record["seq"] - newest.get(who, record["seq"] - 1) - 1
        newest[who] = max(record["seq"], newest.get(who, 0))
        if lost > 0:
            for shard in used.get(who, {0}):
                sequence[who, shard] = sequence.get((who, shard), 0) + lost
        to = sorted(used.get(who, {0})) if record["kind"] in ("summary", "dictionary", "step_end") else [0]
        for shard in to:
            part = _rows_of(record, shard, shards) if record["kind"] == "summary" else record
            if part is None:
                continue
            if again is None:
                sequence[who, shard] = sequence.get((who, shard), 0) + 1
                sent.setdefault((who, record["seq"]), {})[shard] = sequence[who, shard]
            number = sent[who, record["seq"]][shard]
            out.append({**part, "shard": shard, "shards": shards, "seq": number, "nth": nth})
    return out
