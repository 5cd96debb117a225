"""Traces of PyTorch's profiler: small ones whose answers are known by construction, and a real one of this machine's PyTorch."""
import gzip
import json
import random
import re

import pytest

from tests.support.program import ROOT
from tocsin.analysis import NoProfilerData, NoTrace, Traces, traces
from tocsin.analysis import trace_parse
from tocsin.analysis.trace_rank import common, union


def kernel(name, start, end, stream=7, correlation=0, cat="kernel", **args):
    return {"ph": "X", "cat": cat, "name": name, "pid": 0, "tid": stream, "ts": start, "dur": end - start,
            "args": {"stream": stream, "correlation": correlation, "device": 0, **args}}


def call(name, start, end, thread=1, correlation=None, cat=None):
    out = {"ph": "X", "cat": cat or ("cpu_op" if correlation is None else "cuda_runtime"), "name": name, "pid": 100, "tid": thread, "ts": start, "dur": end - start}
    return out if correlation is None else {**out, "args": {"correlation": correlation}}


def step(number, start, end, thread=1):
    return call(f"ProfilerStep#{number}", start, end, thread, cat="user_annotation")


def written(folder, *events, rank=0, name="trace.json"):
    path = folder / name
    path.write_text(json.dumps({"schemaVersion": 1, "distributedInfo": {"rank": rank}, "traceEvents": list(events), "traceName": "t"}))
    return str(path)


# 0 … 100: computing 0-30 and 50-60, an exchange 20-70, a copy 65-80, and at last 90-100.
BUSY = (kernel("gemm", 0, 30), kernel("ncclDevKernel_AllReduce", 20, 70, stream=9), kernel("relu", 50, 60),
        kernel("Memcpy HtoD", 65, 80, stream=11, cat="gpu_memcpy", bytes=30_000), kernel("gemm", 90, 100))


def test_the_time_of_a_gpu_is_split(tmp_path):
    (row,) = traces(written(tmp_path, *BUSY)).temporal()
    # Computing 50, the exchange outside of it 30-50 and 60-70, the copy outside of both 70-80, idle 80-90.
    assert row == {"rank": 0, "time": 100, "compute": 50, "communication": 30, "memory": 10, "idle": 10,
                   "compute_share": 50, "communication_share": 30, "memory_share": 10, "idle_share": 10}


def test_overlap_of_an_exchange_with_computing(tmp_path):
    (row,) = traces(written(tmp_path, *BUSY)).overlap()
    assert row == {"rank": 0, "communication": 50, "overlapped": 20, "share": 40}
    (row,) = traces(written(tmp_path, kernel("gemm", 0, 1))).overlap()
    assert row["communication"] == 0 and row["share"] is None


def test_overlaps_of_intervals_against_counting():
    chance = random.Random(3)
    for _ in range(200):
        one, other = ([(at, at + chance.randrange(1, 9)) for at in (chance.randrange(60) for _ in range(chance.randrange(9)))] for _ in range(2))
        inside = [{at for start, end in spans for at in range(start, end)} for spans in (one, other)]
        assert common(union(one), union(other)) == len(inside[0] & inside[1])


def test_gaps_of_a_stream_say_what_they_waited_for(tmp_path):
    events = (kernel("a", 0, 10, correlation=1), call("cudaLaunchKernel", -5, -3, correlation=1),
              kernel("b", 20, 30, correlation=2), call("cudaLaunchKernel", 15, 18, correlation=2),  # launched after a had ended
              kernel("c", 30.02, 40, correlation=3), call("cudaLaunchKernel", 16, 17, correlation=3),  # at once
              kernel("d", 50, 60, correlation=4), call("cudaLaunchKernel", 19, 20, correlation=4),  # launched long before: something else
              kernel("e", 65, 70, correlation=99))
    (row,) = traces(written(tmp_path, *events)).idle()
    assert {name: pytest.approx(row[name]) for name in ("host_wait", "kernel_wait", "other", "unknown", "idle")} == \
        {"host_wait": 10, "kernel_wait": 0.02, "other": 10, "unknown": 5, "idle": 25.02}
    assert row["host_wait_share"] == pytest.approx(100 * 10 / 25.02)


def test_a_launch_that_began_in_time_is_not_waited_for(tmp_path):
    """It ends after the kernel before it; and a kernel beside a longer one ends no gap early."""
    events = (kernel("a", 0, 10, correlation=1), call("cudaLaunchKernel", -5, -3, correlation=1), kernel("inside", 2, 5, correlation=2),
              call("cudaLaunchKernel", -2, -1, correlation=2), kernel("b", 20, 30, correlation=3), call("cudaLaunchKernel", 9, 12, correlation=3))
    (row,) = traces(written(tmp_path, *events)).idle()
    assert (row["idle"], row["other"], row["host_wait"]) == (10, 10, 0)


def test_kernels_of_ranks_and_the_one_that_differs(tmp_path):
    files = [written(tmp_path, kernel("gemm", 0, took), kernel("gemm", 100, 100 + took), kernel("relu", 300, 301), rank=rank, name=f"{rank}.json")
             for rank, took in enumerate((10, 11, 30))]
    rows = list(traces(files).kernels())
    assert [(row["name"], row["rank"], row["count"], row["mean"], row["min"], row["max"], row["outlier"]) for row in rows[:3]] == \
        [("gemm", 0, 2, 10, 10, 10, 0), ("gemm", 1, 2, 11, 11, 11, 0), ("gemm", 2, 2, 30, 30, 30, 1)]
    assert rows[0]["share"] == pytest.approx(100 * 20 / 21) and len(rows) == 6 and len(traces(files).kernels(top=1)) == 3
    assert len(traces(str(tmp_path)).kernels().filter(rank=2)) == 2  # of a folder, and by column


def test_launches_that_cost_more_than_their_work(tmp_path):
    events = (call("cudaLaunchKernel", 0, 10, correlation=1), kernel("tiny", 15, 18, correlation=1),
              call("cudaLaunchKernel", 20, 90, correlation=2), kernel("big", 300, 400, correlation=2),
              call("cudaLaunchKernel", 100, 105, correlation=3), kernel("even", 500, 505, correlation=3))
    tiny, big, even = traces(written(tmp_path, *events)).launches()
    assert even["short"] == 0
    assert (tiny["call"], tiny["work"], tiny["delay"], tiny["short"], tiny["slow_call"], tiny["delayed"]) == (10, 3, 5, 1, 0, 0)
    assert (big["call"], big["work"], big["delay"], big["short"], big["slow_call"], big["delayed"]) == (70, 100, 210, 0, 1, 1)


def test_the_queue_of_a_stream(tmp_path):
    events = [one for place in range(3) for one in (call("cudaLaunchKernel", place, place + 0.5, correlation=place + 1),
                                                    kernel("k", 10 + 5 * place, 15 + 5 * place, correlation=place + 1))]
    assert [(row["time"], row["depth"]) for row in traces(written(tmp_path, *events)).queue()] == [(0, 1), (1, 2), (2, 3), (15, 2), (20, 1), (25, 0)]


def test_copies_and_their_bandwidth(tmp_path):
    (row,) = traces(written(tmp_path, *BUSY)).copies()
    assert (row["name"], row["count"], row["bytes"], row["time"], row["bandwidth"]) == ("Memcpy HtoD", 1, 30_000, 15, 2.0)


def test_operators_and_what_is_their_own(tmp_path):
    rows = {row["name"]: row for row in traces(written(tmp_path, call("linear", 0, 10), call("addmm", 2, 9), call("copy", 3, 4), call("linear", 20, 25),
                                                       call("linear", 21, 22, thread=2), call("next", 25, 26))).operators()}
    assert rows["next"]["own"] == 1  # begins where the other ends
    assert (rows["linear"]["count"], rows["linear"]["time"], rows["linear"]["own"]) == (3, 16, 9)
    assert rows["addmm"]["own"] == 6 and rows["copy"]["own"] == 1


def test_what_a_change_made_slower(tmp_path):
    before = traces(written(tmp_path, call("conv", 0, 10), call("relu", 10, 12), call("same", 12, 13), name="a.json"))
    after = traces(written(tmp_path, call("conv", 0, 30), call("gelu", 30, 33), call("same", 40, 41), name="b.json"))
    assert [(row["name"], row["state"], row["difference"]) for row in before.diff(after)] == \
        [("conv", "slower", 20), ("gelu", "new", 3), ("relu", "gone", -2), ("same", "same", 0)]
    with pytest.raises(ValueError, match="operators or kernels"):
        before.diff(after, of="steps")


def path_of(tmp_path, *events, **wanted):
    frame = traces(written(tmp_path, *events)).critical_path(**wanted)
    return [(row["kind"], row["name"], row["start"], row["time"]) for row in frame]


def test_a_step_that_its_kernels_bound(tmp_path):
    """The CPU launches two kernels at once, and waits for them."""
    found = path_of(tmp_path, step(3, 0, 100), call("aten::mm", 0, 10), call("cudaLaunchKernel", 2, 4, correlation=1), kernel("gemm", 6, 50, correlation=1),
                    call("aten::relu", 10, 20), call("cudaLaunchKernel", 12, 14, correlation=2), kernel("relu", 52, 90, correlation=2),
                    call("cudaDeviceSynchronize", 20, 95, correlation=3))
    assert found == [("cpu", "aten::mm", 0, 2), ("cpu", "cudaLaunchKernel", 2, 2), ("launch delay", "cudaLaunchKernel", 4, 2), ("kernel", "gemm", 6, 44),
                     ("wait", "the stream", 50, 2), ("kernel", "relu", 52, 38), ("synchronization", "cudaDeviceSynchronize", 90, 5),
                     ("cpu", "outside of operators", 95, 5)]


def test_a_step_that_its_cpu_bounds(tmp_path):
    """The second kernel waits for a long operator; the first one, short, is not on the path."""
    found = path_of(tmp_path, step(0, 0, 100), call("aten::mm", 0, 10), call("cudaLaunchKernel", 2, 4, correlation=1), kernel("gemm", 6, 9, correlation=1),
                    call("aten::sort", 10, 80), call("cudaLaunchKernel", 70, 72, correlation=2), kernel("sort", 75, 90, correlation=2),
                    call("cudaStreamSynchronize", 80, 92, correlation=3), call("aten::item", 92, 100))
    assert found == [("cpu", "aten::mm", 0, 2), ("cpu", "cudaLaunchKernel", 2, 2), ("cpu", "aten::mm", 4, 6), ("cpu", "aten::sort", 10, 60),
                     ("cpu", "cudaLaunchKernel", 70, 2), ("launch delay", "cudaLaunchKernel", 72, 3), ("kernel", "sort", 75, 15),
                     ("synchronization", "cudaStreamSynchronize", 90, 2), ("cpu", "aten::item", 92, 8)]


def test_a_step_that_another_stream_bounds(tmp_path):
    found = path_of(tmp_path, step(0, 0, 100), call("aten::add", 0, 10), call("cudaLaunchKernel", 1, 2, correlation=1),
                    kernel("ncclDevKernel_AllReduce", 3, 60, stream=9, correlation=1), call("cudaLaunchKernel", 4, 5, correlation=2),
                    kernel("adam", 61, 98, correlation=2), call("cudaDeviceSynchronize", 10, 100, correlation=3))
    assert [one[:2] for one in found] == [("cpu", "aten::add"), ("cpu", "cudaLaunchKernel"), ("launch delay", "cudaLaunchKernel"),
                                          ("communication", "ncclDevKernel_AllReduce"), ("wait", "another stream"), ("kernel", "adam"),
                                          ("synchronization", "cudaDeviceSynchronize")]


def test_a_step_whose_backward_runs_in_another_thread(tmp_path):
    found = path_of(tmp_path, step(0, 0, 100), call("forward", 0, 30), call("MmBackward0", 32, 80, thread=2), call("optimizer", 85, 100))
    assert found == [("cpu", "forward", 0, 30), ("cpu", "outside of operators", 30, 2), ("cpu", "MmBackward0", 32, 48), ("cpu", "outside of operators", 80, 5),
                     ("cpu", "optimizer", 85, 15)]


def test_the_pieces_of_a_path_add_up_to_the_step(tmp_path):
    """Whatever the trace: pieces touch each other, and none is negative."""
    chance = random.Random(11)
    for round_ in range(60):
        events, at, free = [step(1, 0, 1000)], 0.0, {7: 0.0, 9: 0.0}
        for number in range(1, 60):
            at += chance.choice((0.0, chance.uniform(0, 8)))
            thread = chance.choice((1, 1, 1, 2))
            took = chance.uniform(1, 20)
            events.append(call("op", at, at + took, thread))
            stream = chance.choice((7, 9))
            begin = max(at + 1, free[stream]) + chance.choice((0.0, 5.0))
            free[stream] = begin + chance.choice((0.0, chance.uniform(0, 40)))
            events += [call("cudaLaunchKernel", at + 0.2, at + 0.7, thread, number), kernel("k", begin, free[stream], stream, number)]
            if chance.random() < 0.2:
                at = max(at + took, min(free.values()))
                events.append(call("cudaStreamSynchronize", at - 0.1, at + 1, thread, 1000 + number))
            at += took
        pieces = path_of(tmp_path, *events)
        assert sum(took for *_, took in pieces) == pytest.approx(1000), round_
        for (*_, start, took), (*_, after, _) in zip(pieces, pieces[1:]):
            assert took > 0 and start + took == pytest.approx(after, abs=1e-5)


def test_a_step_that_is_not_there_is_named(tmp_path):
    path = written(tmp_path, step(3, 0, 10), call("ProfilerStep#4", 2, 12, 7, cat="gpu_user_annotation"), call("x", 0, 1))
    with pytest.raises(ValueError, match="no step 7 in the trace of rank 0: it has 3$"):
        traces(path).critical_path(step=7)
    with pytest.raises(ValueError, match="no trace of rank 5: there are 0"):
        traces(path).critical_path(rank=5)
    with pytest.raises(NoProfilerData, match=r"profiler\.step\(\)"):
        traces(written(tmp_path, call("x", 0, 1))).critical_path()


def test_steps_by_the_marks_of_the_hook(tmp_path):
    marks = [call(f"tocsin step {number}", 10 * number, 10 * number, cat="user_annotation") for number in (4, 5, 6)]
    assert [(row["step"], row["start"], row["time"]) for row in traces(written(tmp_path, *marks, call("x", 45, 49))).steps()] == [(5, 40, 10), (6, 50, 10)]
    assert path_of(tmp_path, *marks, call("x", 45, 49), step=5)[1] == ("cpu", "x", 5, 4)


def test_sequences_that_come_again(tmp_path):
    names = ["a", "b", "c", "a", "b", "c", "d", "a", "b"]
    events = [kernel(name, 10 * place, 10 * place + 2, correlation=place + 1) for place, name in enumerate(names)]
    events += [call("cudaLaunchKernel", 10 * place - 5, 10 * place - 4, correlation=place + 1) for place in range(len(names))]
    file = written(tmp_path, *events)
    found = [(row["sequence"], row["count"], row["time"]) for row in traces(file).sequences(longest=3)]
    assert found == [("a → b → c", 2, 12), ("a → b", 3, 12), ("b → c", 2, 8)] and len(traces(file).sequences(top=1)) == 1
    file = written(tmp_path, *events, call("block", 20, 58), call("block", 60, 78))  # launched inside: a b c d, and a b
    assert [(row["sequence"], row["count"]) for row in traces(file).sequences("block")] == [("a → b", 2)]


def test_sequences_within_an_operator(tmp_path):
    events = [one for place, name in enumerate("xyzxyz") for one in (call("cudaLaunchKernel", 10 * place + 1, 10 * place + 2, correlation=place + 1),
                                                                    kernel(name, 100 + place, 101 + place, correlation=place + 1))]
    file = written(tmp_path, *events, call("block", 0, 15), call("block", 30, 45))  # z is launched behind each block
    assert [(row["sequence"], row["count"]) for row in traces(file).sequences("block")] == [("x → y", 2)]


def test_equal_kernels_in_a_row_are_counted_without_overlap(tmp_path):
    file = written(tmp_path, *(kernel("a", 10 * place, 10 * place + 1) for place in range(5)))
    assert [(row["sequence"], row["count"]) for row in traces(file).sequences(longest=2)] == [("a → a", 2)]


def test_without_a_gpu_the_text_says_how(tmp_path):
    path = written(tmp_path, call("aten::mm", 0, 1))
    for method in ("temporal", "overlap", "idle", "kernels", "launches", "queue", "copies", "sequences"):
        with pytest.raises(NoProfilerData, match="no work of a GPU in the trace of rank 0: trace with ProfilerActivity.CUDA"):
            getattr(traces(path), method)()
    assert len(traces(path).operators()) == 1


@pytest.mark.parametrize("text", ["", "[", "{", '{"traceEvents": [{"ph": "X"', '{"traceEvents": 3}', "no", '{"a": 1 "b": 2}', '{"a": 1}', '[{} {}]'])
def test_what_is_no_trace_is_named(tmp_path, text):
    path = tmp_path / "x.json"
    path.write_text(text)
    with pytest.raises(NoTrace, match="x.json: not a Chrome trace"):
        traces(str(path)).operators()
    (tmp_path / "y.json.gz").write_bytes(gzip.compress(b'{"traceEvents": []}')[:-9])
    with pytest.raises(NoTrace, match="y.json.gz"):
        traces(str(tmp_path / "y.json.gz")).operators()


def test_odd_events_are_passed_over(tmp_path):
    path = tmp_path / "odd.json"
    path.write_text(json.dumps({"traceEvents": [1, None, {}, {"ph": "X"}, {"ph": "X", "cat": "kernel", "name": "k", "ts": 1, "dur": -5, "args": 7},
                                                call("op", 0, 1)]}))
    assert len(traces(str(path)).operators()) == 1 and [row["max"] for row in traces(str(path)).kernels()] == [0]


def test_two_of_one_rank_are_refused(tmp_path):
    files = [written(tmp_path, call("x", 0, 1), name=f"{place}.json") for place in range(2)]
    with pytest.raises(NoTrace, match="two traces are of rank 0"):
        traces(files).operators()
    with pytest.raises(FileNotFoundError, match="there is no such trace"):
        traces(str(tmp_path / "none.json"))
    with pytest.raises(NoTrace, match="neither a run nor a trace file"):
        (tmp_path / "empty").mkdir()
        traces(str(tmp_path / "empty"))


@pytest.mark.parametrize("piece", [1, 7, 64])
def test_events_across_the_pieces_of_a_file(tmp_path, piece, monkeypatch):
    """Numbers, escapes and keywords are cut anywhere."""
    monkeypatch.setattr(trace_parse, "_PIECE", piece)
    whole = {"before": [1.5e3, True, None], "traceEvents": [{"name": "ä\"}{][", "ts": 12345.678, "args": {"n": -1e-9, "f": False}}] * 5, "after": 123456}
    for text, of in ((json.dumps(whole), whole), (json.dumps(whole, indent=2, ensure_ascii=False), whole), (json.dumps(whole["traceEvents"]), None)):
        about = {}
        assert list(trace_parse.events(text.encode(), about)) == whole["traceEvents"]
        assert about == ({"before": of["before"], "after": of["after"]} if of else {})
        assert list(trace_parse.events(gzip.compress(text.encode()), {})) == whole["traceEvents"]


def test_memory_does_not_grow_with_the_file(tmp_path):
    """60 000 events that no analysis keeps, of a file of 8 MB, leave what one piece needs."""
    import tracemalloc
    path = tmp_path / "big.json"
    with open(path, "w", encoding="utf-8") as file:
        file.write('{"traceEvents": [')
        line = json.dumps({"ph": "i", "name": "x" * 100, "ts": 1}) + ","
        for _ in range(60):
            file.write(line * 1000)
        file.write(json.dumps(call("op", 0, 1)) + "]}")
    tracemalloc.start()
    assert len(traces(str(path)).operators()) == 1
    assert tracemalloc.get_traced_memory()[1] < 6_000_000
    tracemalloc.stop()


def test_every_block_of_the_page_runs(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    for rank in (0, 1):
        whole = json.dumps({"distributedInfo": {"rank": rank}, "traceEvents": [*BUSY, step(3, 0, 100), call("aten::mm", 0, 60), call("aten::sum", 60, 100)]})
        (tmp_path / f"rank{rank}.json.gz").write_bytes(gzip.compress(whole.encode()))
    found, blocks = {}, re.findall(r"^```python\n(.*?)^```$", (ROOT / "docs" / "analysis-traces.md").read_text(), re.S | re.M)
    for block in blocks:
        exec(compile(block, "docs/analysis-traces.md", "exec"), found)  # noqa: S102
    assert len(blocks) == 2 and capsys.readouterr().out.splitlines() == ["0 50.0 30.0 10.0", "1 50.0 30.0 10.0", "cpu aten::mm 60 %", "cpu aten::sum 40 %"]


def test_every_method_of_the_page_is_there():
    text = (ROOT / "docs" / "analysis-traces.md").read_text()
    named = set(re.findall(r"^\| `(?:before\.)?(\w+)\(", text, re.M))
    assert named - {"traces"} == {name for name in vars(Traces) if not name.startswith("_")}


def test_a_real_trace(tmp_path):
    torch = pytest.importorskip("torch")
    from torch.profiler import ProfilerActivity, profile, record_function
    model, data = torch.nn.Sequential(torch.nn.Linear(64, 64), torch.nn.ReLU(), torch.nn.Linear(64, 1)), torch.randn(32, 64)
    with profile(activities=[ProfilerActivity.CPU]) as profiler:
        for number in range(3):
            with record_function(f"ProfilerStep#{number}"):
                model(data).sum().backward()
    profiler.export_chrome_trace(str(tmp_path / "real.json"))
    found = traces(str(tmp_path / "real.json"))
    events = json.loads((tmp_path / "real.json").read_text())
    events = events["traceEvents"] if isinstance(events, dict) else events  # older versions write the list alone
    truth = [event["dur"] for event in events if event["name"] == "aten::linear"]
    (row,) = found.operators().filter(name="aten::linear")
    assert row["count"] == len(truth) == 6 and row["time"] == pytest.approx(sum(truth)) and 0 <= row["own"] < row["time"]
    steps = list(found.steps())
    assert [one["step"] for one in steps] == [0, 1, 2]
    longest = max(steps, key=lambda one: one["time"])
    path = list(found.critical_path())
    assert path[0]["step"] == longest["step"] and sum(one["time"] for one in path) == pytest.approx(longest["time"])
    names = {one["name"] for one in path}
    assert "aten::addmm" in names and any("Backward" in name or name in ("aten::mm", "aten::t", "aten::sum") for name in names)


