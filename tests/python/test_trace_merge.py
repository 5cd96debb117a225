"""Traces of several ranks as one: whose processes are whose, and on which clock."""
import gzip
import json

import pytest

from tocsin import trace
from tocsin.traces.merge import merge

STEPS = (40, 41, 42, 43)


def one(rank, host, late=0.0, base=0, late_in=None, steps=STEPS, about=True):
    """A trace of a rank, whose clock is `late` microseconds behind; a step's work begins 900 before its end."""
    events = [{"ph": "M", "name": "process_name", "pid": 77, "tid": 0, "args": {"name": "python"}},
              {"ph": "M", "name": "process_sort_index", "pid": 77, "tid": 0, "args": {"sort_index": 77}},
              {"ph": "X", "name": "kernel", "pid": 0, "tid": 7, "ts": 1.0 - base / 1000, "dur": 3.0}]
    for step in steps:
        end = 5_000.0 * step - late - base / 1000 + (late_in or {}).get(step, 0.0)
        events += [{"ph": "X", "name": f"tocsin step {step}", "pid": 77, "tid": 77, "ts": end, "dur": 1.0},
                   {"ph": "X", "name": "aten::mm", "pid": 77, "tid": 77, "ts": end - 900, "dur": 800.0},
                   {"ph": "s", "name": "fwdbwd", "id": step, "pid": 77, "tid": 77, "ts": end - 900}]
    whole = {"traceEvents": events, "deviceProperties": []}
    if base:
        whole["baseTimeNanoseconds"] = base
    if about:
        whole["tocsin"] = {"run": "r", "worker": f"worker_{rank}", "rank": rank, "host": host}
    else:
        whole["distributedInfo"] = {"rank": rank}
    return gzip.compress(json.dumps(whole).encode())


def marks(merged):
    """{rank: {step: time}}."""
    out = {}
    for event in json.loads(gzip.decompress(merged.data))["traceEvents"]:
        if event["name"].startswith("tocsin step "):
            out.setdefault(event["pid"] // 1000, {})[int(event["name"].split()[2])] = event["ts"]
    return out


def test_each_rank_has_processes_and_flows_of_its_own():
    merged = merge([one(1, "a"), one(0, "a")])
    assert merged.ranks == [0, 1]
    events = json.loads(gzip.decompress(merged.data))["traceEvents"]
    names = {event["pid"]: event["args"]["name"] for event in events if event["name"] == "process_name"}
    assert sorted(names.values()) == ["rank 0 (worker_0)", "rank 0 (worker_0): python", "rank 1 (worker_1)", "rank 1 (worker_1): python"]
    assert {event["pid"] for event in events} == set(names)
    assert len({event["id"] for event in events if event["ph"] == "s"}) == 2 * len(STEPS)


@pytest.mark.parametrize("base", [0, 1_600_000_000_000_000_000])
def test_clocks_of_machines_are_aligned_by_the_ends_of_steps(base):
    merged = merge([one(0, "a"), one(1, "b", late=250_000.0, base=base, late_in={42: 700.0})])
    found = marks(merged)
    assert [found[1][step] - found[0][step] for step in STEPS] == pytest.approx([0, 0, 700, 0], abs=1)
    assert merged.moved[1] == pytest.approx(250_000, abs=1) and merged.apart[1] == pytest.approx(700, abs=1)


def test_ranks_of_one_machine_keep_their_clock():
    merged = merge([one(0, "a"), one(1, "a", late=-300.0, base=1_600_000_000_000_000_000)])
    found = marks(merged)
    assert merged.moved == {} and merged.apart[1] == pytest.approx(300, abs=1)
    assert [found[1][step] - found[0][step] for step in STEPS] == pytest.approx([300] * 4, abs=1)


def test_only_steps_that_both_have_count():
    merged = merge([one(0, "a", steps=(40, 41, 42)), one(1, "b", late=-9_000.0, steps=(42, 43))])
    assert merged.moved[1] == pytest.approx(-9_000, abs=1)
    with pytest.raises(ValueError, match="no step in common"):
        merge([one(0, "a", steps=(40,)), one(1, "b", steps=(42,))])


def test_traces_that_are_not_of_ours_are_told_by_their_rank():
    assert merge([one(3, "", about=False), one(2, "", late=10.0, about=False)]).ranks == [2, 3]


def test_what_cannot_be_merged_is_said(tmp_path, capsys):
    file, other = tmp_path / "a.json.gz", tmp_path / "b.json"
    file.write_bytes(one(0, "a"))
    other.write_bytes(b"no trace")
    assert trace.main(["merge", str(file), str(other), "--to", str(tmp_path / "out")]) == 1
    assert trace.main(["merge", str(file), str(file), "--to", str(tmp_path / "out")]) == 1
    assert trace.main(["merge", str(file), str(tmp_path / "none"), "--to", str(tmp_path / "out")]) == 1
    said = capsys.readouterr().err
    assert "not a Chrome trace" in said and "two traces are of one rank: [0, 0]" in said and "No such file" in said
    assert not (tmp_path / "out").exists()


def test_files_are_merged_and_what_was_moved_is_said(tmp_path, capsys):
    for rank, late in ((0, 0.0), (1, 2_000.0)):
        (tmp_path / f"{rank}.json.gz").write_bytes(one(rank, f"host{rank}", late))
    assert trace.main(["merge", str(tmp_path / "1.json.gz"), str(tmp_path / "0.json.gz"), "--to", str(tmp_path / "all.json.gz")]) == 0
    assert "rank 1: clock moved by +2.000 ms" in capsys.readouterr().err
    assert len(json.loads(gzip.decompress((tmp_path / "all.json.gz").read_bytes()))["traceEvents"]) == 2 * 15 + 2
