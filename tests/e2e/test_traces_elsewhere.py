"""Traces in a directory and in a store: sent as those of the topic are, out of the places that are configured and of no other."""
import json
import os

import pytest

from tests.e2e.test_curves import asked
from tests.e2e.test_page_traces import CHUNK, U8, UID, answer, chunks_of, fetched, head
from tests.support import journal
from tests.support.hook_support import wait_for
from tests.support.program import Server
from tests.support.s3 import Store
from tocsin import wire

CONFIG = """
transport: {{journal: {journal}}}
rules: [exploding_tensor]
http: {{listen: '127.0.0.1:0'}}
collect: {{collectors: []}}
insights: {{traces: {{from: ['{root}', 's3://runs/raw'], endpoint: '{endpoint}'}}}}
"""
BYTES = 5 * CHUNK + 12_345
OUTSIDE = "it is in none of the places of insights.traces.from"


def trace_of(step):
    return bytes((step * 7 + place * place) % 251 for place in range(4096)) * (BYTES // 4096) + b"z" * (BYTES % 4096)


def object_of(step):
    """(bytes, offset, length): the frames of a trace behind those of another tensor."""
    before = b"".join(frame for _, _, frame in chunks_of(b"w" * 9_000, 0, step, "layer/weight"))
    mine = b"".join(frame for _, _, frame in chunks_of(trace_of(step), 0, step))
    return before + mine + before, len(before), len(mine)


def told(step, uri):
    """What the hook writes to the topics of a trace that it has put at `uri`."""
    _, offset, length = object_of(step)
    return [("tensors", wire.route_key(UID), wire.encode_tensor_chunk(head(0, step, 1), "profiler/trace", U8, [BYTES], b"", total_bytes=BYTES,
                                                                      about=(0, "profiler/trace", "worker_0"), dataref=(offset, length, uri))), answer(0, step, BYTES, f"cmd_{step}")]


def places_of(folder, store):
    """{step: (uri, what is said of it; None: it is sent)}. Makes the files and objects, also those that must not be read."""
    root, other = folder / "raw", folder / "other"
    for where in (root / "run" / "1", other, folder / "raw-other"):
        where.mkdir(parents=True)
    for step, where in ((10, root / "run" / "1" / "a.tcsn"), (20, other / "b.tcsn"), (21, other / "c.tcsn"), (22, folder / "raw-other" / "d.tcsn"), (24, root / "swapped.tcsn")):
        where.write_bytes(object_of(step)[0])
    os.symlink(other / "b.tcsn", root / "link.tcsn")
    os.symlink(other, root / "linked")
    os.symlink(root / "run", root / "inside")
    os.mkfifo(root / "pipe.tcsn")
    (root / "passwd").write_bytes(b"root:x:0:0:root:/root:/bin/bash\n" * 90_000)
    for step, key in ((30, "runs/raw/r/1/a.tcsn"), (31, "runs/b.tcsn"), (32, "runs/rawer/c.tcsn"), (33, "private/raw/d.tcsn")):
        store.objects[key] = object_of(step)[0]
    found = {10: f"file://{root}/run/1/a.tcsn", 30: "s3://runs/raw/r/1/a.tcsn"}
    outside = {20: f"file://{root}/link.tcsn", 21: f"file://{root}/linked/c.tcsn", 22: f"file://{folder}/raw-other/d.tcsn", 25: f"file://{root}/../other/b.tcsn", 26: "file:///etc/passwd",
               27: "file://", 28: f"file://{root}", 31: "s3://runs/raw/../b.tcsn", 32: "s3://runs/rawer/c.tcsn", 33: "s3://private/raw/d.tcsn", 34: "s3://runs/raw/%2e%2e/b.tcsn",
               35: "s3://runs/raw/a?x=1", 36: "https://example.com/a", 37: f"file://{folder}/nowhere/a.tcsn", 38: f"file://{root}/../nowhere"}
    said = {23: (f"file://{root}/pipe.tcsn", "is no plain file"), 24: (f"file://{root}/swapped.tcsn", "does not hold this trace any more"),
            29: (f"file://{root}/gone.tcsn", "No such file"), 39: (f"file://{root}/passwd", "does not hold this trace any more"), 40: ("s3://runs/raw/r/1/gone.tcsn", "404")}
    (root / "swapped.tcsn").write_bytes(object_of(99)[0])  # another launch has taken the name
    return {**{step: (uri, None) for step, uri in found.items()}, **{step: (uri, OUTSIDE) for step, uri in outside.items()}, **said}


@pytest.fixture(scope="module")
def elsewhere(tmp_path_factory):
    folder = tmp_path_factory.mktemp("elsewhere")
    with Store() as store, pytest.MonkeyPatch.context() as patch:
        for name, value in store.environment().items():
            patch.setenv(name, value)
        patch.delenv("AWS_ENDPOINT_URL")  # the configuration says where
        places = places_of(folder, store)
        (folder / "tocsin.yaml").write_text(CONFIG.format(journal=folder / "journal", root=folder / "raw", endpoint=store.endpoint))
        one = Server(folder / "tocsin.yaml", role="up")
        try:
            one.wait_for("ready")
            journal.append(folder / "journal", ("telemetry", wire.route_key(UID), wire.encode_lifecycle(
                head(0, 0, 1), {"event": "start", "job": "traced", "launch": "l", "node": "n0", "worker": "worker_0"})))
            journal.append(folder / "journal", *(record for step, (uri, _) in places.items() for record in told(step, uri)))
            assert wait_for(lambda: len(json.loads(one.get(f"/api/v1/runs/{UID}/traces")[1]).get("items", [])) == len(places), 60)
            yield one, places, store
        finally:
            one.kill()


@pytest.mark.parametrize("step", [10, 30])
def test_a_trace_beside_the_topic_comes_whole_and_in_parts(elsewhere, step):
    one, _, store = elsewhere
    trace, whole = f"1-0-{step}", trace_of(step)
    place = asked(one, f"/api/v1/runs/{UID}/traces/{trace}/place")
    assert (place["here"], place["uri"], place["why"], place["bytes"]) == (True, None, None, BYTES)
    status, headers, body = fetched(one, trace)
    assert status == 200 and int(headers["Content-Length"]) == BYTES and body == whole
    tag = headers["ETag"]
    for wanted, begin, end in (("bytes=0-0", 0, 1), (f"bytes={CHUNK - 5}-{CHUNK + 4}", CHUNK - 5, CHUNK + 5), ("bytes=-12", BYTES - 12, BYTES), (f"bytes={3 * CHUNK}-", 3 * CHUNK, BYTES)):
        status, headers, body = fetched(one, trace, Range=wanted, If_Range=tag)
        assert status == 206 and headers["Content-Range"] == f"bytes {begin}-{end - 1}/{BYTES}" and body == whole[begin:end], wanted
    assert fetched(one, trace, "HEAD")[2] == b"" and fetched(one, trace, Range=f"bytes={BYTES}-")[0] == 416
    assert set(store.refused) <= {"NoSuchKey"}, "every request was signed as S3 wants it"


def test_nothing_outside_of_the_places_is_read(elsewhere):
    one, places, store = elsewhere
    before = len(store.requests)
    for step, (uri, why) in places.items():
        if why != OUTSIDE:
            continue
        place = asked(one, f"/api/v1/runs/{UID}/traces/1-0-{step}/place")
        assert (place["here"], place["uri"], place["why"]) == (False, uri, OUTSIDE), uri
        status, _, body = fetched(one, f"1-0-{step}")
        detail = json.loads(body)["detail"]
        assert status == 409 and uri in detail and "python3 -m tocsin.trace" in detail, (uri, body)
    assert len(store.requests) == before, "the store was not even asked"


def test_what_is_not_this_trace_is_not_sent(elsewhere):
    one, places, _ = elsewhere
    for step, (uri, why) in places.items():
        if why in (None, OUTSIDE):
            continue
        place = asked(one, f"/api/v1/runs/{UID}/traces/1-0-{step}/place")
        assert place["here"] is False and why in place["why"], (uri, place)
        assert fetched(one, f"1-0-{step}")[0] == 409, uri


def test_a_place_that_is_no_place_is_refused(tmp_path):
    for wrong in ("raw", "/data/../etc", "s3://", "https://example.com"):
        (tmp_path / "tocsin.yaml").write_text(f"transport: {{journal: {tmp_path / 'journal'}}}\ninsights: {{traces: {{from: ['{wrong}']}}}}\n")
        one = Server(tmp_path / "tocsin.yaml", role="up")
        assert one.process.wait(60) == 3, wrong
        assert wait_for(lambda: "directories that begin with /" in one.last_events(), 20), wrong
