"""U39: traces that ranks have sent are files with a size. Neither the server nor the page holds one whole."""
import gzip
import hashlib
import json
import os
import random
import re
import subprocess
import sys
import textwrap
import time
import urllib.error
import urllib.request

import numpy
import jsonschema
import pytest

from tests.e2e.test_capture_by_hand import CONFIG as LIVE, SCRIPT
from tests.e2e.test_curves import asked
from tests.e2e.test_http_v1 import as_json_schema
from tests.support import axe, journal, narrow
from tests.support.hook_support import wait_for
from tests.support.issues import at
from tests.support.program import BUILD, ROOT, Server, run_cli
from tocsin import wire

CONFIG = """
transport: {{journal: {journal}}}
rules: [exploding_tensor]
http: {{listen: '127.0.0.1:0'}}
"""
UID = wire.run_uid("traces", "run")
CHUNK, BYTES = 512 * 1024, 96 * 1024 * 1024 + 12_345  # of rank 0; that of rank 1 lies elsewhere
U8 = wire.DTYPES["u8"]
URI = "file:///data/raw/r/1/worker_1/train-133-5-1.tcsn"


def trace_of(rank):
    return numpy.random.default_rng(rank).bytes(BYTES if rank == 0 else 1000)


def head(rank, step, sequence):
    return wire.header(UID, worker=f"worker_{rank}", rank=rank, world_size=2, incarnation=5, step=step, global_step=step, time=time.time_ns(), sequence=sequence)


def event(topic, key, kind, data):
    heads = {"ce_specversion": "1.0", "ce_type": kind, "ce_source": "/test", "ce_id": str(time.time_ns()), "ce_time": at(time.time()), "content-type": "application/json"}
    return (topic, key, json.dumps(data), [(name, value.encode()) for name, value in heads.items()])


def answer(rank, step, size, command="cmd_trace"):
    return event("acks", str(UID), "dev.tocsin.ack.v1", {
        "command_id": command, "revision": 1, "action": "profile", "phase": "ended", "run": {"uid": str(UID), "attempt": 1}, "rank": rank, "worker": f"worker_{rank}",
        "incarnation": 5, "node": f"n{rank}", "step": step, "time": at(time.time()),
        "reason": f"profiler/trace at step {step} of worker_{rank}, {size} bytes: python3 -m tocsin.trace {UID} {step} --worker worker_{rank}"})


def chunks_of(data, rank, step, name="profiler/trace"):
    parts = [data[begin:begin + CHUNK] for begin in range(0, len(data), CHUNK)]
    for which, part in enumerate(parts):
        yield ("tensors", wire.route_key(UID), wire.encode_tensor_chunk(
            head(rank, step, which + 1), name, U8, [len(data)], part, chunk=which, chunks=len(parts), byte_offset=which * CHUNK, total_bytes=len(data),
            about=(0, name, f"worker_{rank}") if which == 0 else None))


def begun(folder):
    """A server whose run has sent four traces."""
    (folder / "tocsin.yaml").write_text(CONFIG.format(journal=folder / "journal"))
    one = Server(folder / "tocsin.yaml", role="up")
    one.wait_for("ready")
    told = [wire.encode_lifecycle(head(rank, 0, 1), {"event": "start", "job": "traced", "launch": "l", "node": f"n{rank}", "worker": f"worker_{rank}"}) for rank in (0, 1)]
    journal.append(folder / "journal", *(("telemetry", wire.route_key(UID), frame) for frame in told))
    journal.append(folder / "journal", event("commands", f"{UID}/profile", "dev.tocsin.command.v1", {
        "command_id": "cmd_trace", "action": "profile", "run": {"uid": str(UID), "attempt": 1}, "revision": 1, "issued_at": at(time.time()), "requested_by": "ada",
        "args": {"kind": "trace", "from_step": 129, "steps": 2}}))
    journal.append(folder / "journal", *chunks_of(b"\0" * 3000, 0, 131, "layer/weight"))  # another tensor of that step
    mine = list(chunks_of(trace_of(0), 0, 131))
    mine = mine[:20] + mine[18:20] + mine[20:]  # two were sent twice
    for begin in range(0, len(mine), 16):
        journal.append(folder / "journal", *mine[begin:begin + 16])
    journal.append(folder / "journal", ("tensors", wire.route_key(UID), wire.encode_tensor_chunk(
        head(1, 133, 1), "profiler/trace", U8, [1000], b"", total_bytes=1000, about=(0, "profiler/trace", "worker_1"), dataref=(0, 1200, URI))))
    lost = list(chunks_of(trace_of(1) * 2000, 1, 200))  # its second chunk is missing
    journal.append(folder / "journal", lost[0], *lost[2:])
    journal.append(folder / "journal", answer(0, 131, BYTES), answer(1, 133, 1000), answer(1, 200, 2_000_000, "cmd_other"), answer(0, 300, 77, "cmd_other"))

    def listed():
        status, text = one.get(f"/api/v1/runs/{UID}/traces")
        return status == 200 and len(json.loads(text)["items"]) == 4
    assert wait_for(listed, 30), one.get(f"/api/v1/runs/{UID}/traces")
    return one


@pytest.fixture(scope="module")
def traced(tmp_path_factory):
    one = begun(tmp_path_factory.mktemp("traces"))
    yield one
    one.kill()


def fetched(one, trace, method="GET", **headers):
    """(status, headers, body)"""
    request = urllib.request.Request(f"http://{one.wait_for('started')['http']}/api/v1/runs/{UID}/traces/{trace}", headers={name.replace("_", "-"): value for name, value in headers.items()}, method=method)
    try:
        with urllib.request.urlopen(request, timeout=60) as found:
            return found.status, found.headers, found.read()
    except urllib.error.HTTPError as error:
        return error.code, error.headers, error.read()


def test_answers_are_what_openapi_says(traced):
    described = asked(traced, "/api/v1/openapi.json")
    schemas = {"components": {"schemas": as_json_schema(described["components"]["schemas"])}}
    for path, filled in (("/traces", "/traces"), ("/traces/{id}/place", "/traces/1-0-131/place"), ("/traces/{id}/place", "/traces/1-1-133/place")):
        reply = described["paths"]["/api/v1/runs/{run}" + path]["get"]["responses"]["200"]["content"]["application/json"]
        jsonschema.validate(asked(traced, f"/api/v1/runs/{UID}{filled}"), {**schemas, **reply["schema"]})
    assert set(described["paths"]["/api/v1/runs/{run}/traces/{id}"]["get"]["responses"]) >= {"200", "206"}


def test_the_list_says_whose_which_steps_and_how_large(traced):
    items = {one["id"]: one for one in asked(traced, f"/api/v1/runs/{UID}/traces")["items"]}
    assert set(items) == {"1-0-131", "1-1-133", "1-1-200", "1-0-300"}
    first = items["1-0-131"]
    assert {key: first[key] for key in ("worker", "rank", "node", "step", "first_step", "steps", "bytes", "by")} == {
        "worker": "worker_0", "rank": 0, "node": "n0", "step": 131, "first_step": 129, "steps": 2, "bytes": BYTES, "by": "ada"}
    assert items["1-1-200"]["first_step"] is None


def highest_memory(one):
    return int(re.search(r"VmHWM:\s+(\d+) kB", open(f"/proc/{one.process.pid}/status", encoding="ascii").read())[1]) * 1024


def test_u39_a_large_trace_comes_whole_with_its_size_and_is_never_held(traced):
    before = highest_memory(traced)
    status, headers, body = fetched(traced, "1-0-131")
    assert status == 200 and int(headers["Content-Length"]) == BYTES == len(body)
    assert headers["Content-Type"] == "application/gzip" and headers["Content-Disposition"] == 'attachment; filename="trace-worker_0-131.json.gz"'
    assert hashlib.sha256(body).digest() == hashlib.sha256(trace_of(0)).digest()
    assert highest_memory(traced) - before < BYTES // 2, "chunk after chunk, not the whole"
    status, headers, body = fetched(traced, "1-0-131", "HEAD")
    assert status == 200 and int(headers["Content-Length"]) == BYTES and body == b""


def test_u39_a_download_goes_on_where_it_broke_off(traced):
    whole = trace_of(0)
    tag = fetched(traced, "1-0-131", "HEAD")[1]["ETag"]
    for asked_for, begin, end in [("bytes=0-0", 0, 1), (f"bytes={CHUNK - 5}-{CHUNK + 4}", CHUNK - 5, CHUNK + 5), (f"bytes={BYTES - 700_000}-", BYTES - 700_000, BYTES),
                                  ("bytes=-12", BYTES - 12, BYTES), (f"bytes={19 * CHUNK}-{21 * CHUNK}", 19 * CHUNK, 21 * CHUNK + 1)]:
        status, headers, body = fetched(traced, "1-0-131", Range=asked_for, If_Range=tag)
        assert status == 206 and headers["Content-Range"] == f"bytes {begin}-{end - 1}/{BYTES}" and body == whole[begin:end], asked_for
        assert int(headers["Content-Length"]) == end - begin
    status, headers, _ = fetched(traced, "1-0-131", Range=f"bytes={BYTES}-")
    assert status == 416 and headers["Content-Range"] == f"bytes */{BYTES}"
    status, headers, body = fetched(traced, "1-0-131", "HEAD", Range="bytes=0-9", If_Range='"another"')
    assert status == 200 and int(headers["Content-Length"]) == BYTES, "another file: from its beginning"


def test_a_server_ends_while_a_trace_is_sent(tmp_path):
    one = begun(tmp_path)
    with urllib.request.urlopen(f"http://{one.wait_for('started')['http']}/api/v1/runs/{UID}/traces/1-0-131", timeout=60) as slow:
        assert len(slow.read(1000)) == 1000
        assert one.stop() == 0


def test_what_is_elsewhere_gone_or_torn_is_said(traced):
    place = asked(traced, f"/api/v1/runs/{UID}/traces/1-1-133/place")
    assert place == {"id": "1-1-133", "here": False, "uri": URI, "why": "it is in none of the places of insights.traces.from", "node": "n1", "bytes": 1000, "command": f"python3 -m tocsin.trace {UID} 133 --worker worker_1"}
    assert asked(traced, f"/api/v1/runs/{UID}/traces/1-0-131/place")["here"] is True
    status, _, body = fetched(traced, "1-1-133")
    assert status == 409 and URI in json.loads(body)["detail"] and "written on n1" in json.loads(body)["detail"]
    status, _, body = fetched(traced, "1-0-300")
    assert status == 404 and "are not in journal" in json.loads(body)["detail"], body
    assert fetched(traced, "1-0-5")[0] == 404
    with pytest.raises(Exception, match="IncompleteRead|reset"):  # a chunk is missing: the client sees that it is not whole
        fetched(traced, "1-1-200")


@pytest.mark.parametrize("width,theme", [(1440, "light"), (390, "dark")])
def test_the_page_of_the_run_offers_them(traced, browser, width, theme):
    context = browser.new_context(viewport={"width": width, "height": 900}, color_scheme=theme, accept_downloads=True)
    axe.bring(context)
    page = context.new_page()
    asked_for = []
    page.on("request", lambda request: asked_for.append(request.url))
    page.goto(f"http://{traced.wait_for('started')['http']}/runs/{UID}")
    page.wait_for_selector(".chart canvas, h1")
    for _ in range(3):  # it asks once it is near the window, and what is above it may grow
        page.evaluate("scrollTo(0, document.body.scrollHeight)")
        page.wait_for_timeout(200)
    page.wait_for_selector("#traces tbody tr")
    shown = page.inner_text("#traces tr[data-trace='1-0-131']")
    assert "129 to 130" in shown and "96 MiB" in shown and "worker_0, n0" in shown and "asked by ada" in shown, shown
    assert f"python3 -m tocsin.trace {UID} worker_0@131 worker_1@133 --to all.json.gz" in page.inner_text("#traces")
    page.click("#traces tr[data-trace='1-1-133'] a")
    page.wait_for_selector(f"#traces tr[data-trace='1-1-133'] p:has-text('It lies in {URI}, written on n1.')")
    page.click("#traces tr[data-trace='1-0-300'] a")
    page.wait_for_selector("#traces tr[data-trace='1-0-300'] p:has-text('kept for a time only')")
    assert not any(url.endswith("/traces/1-0-131") for url in asked_for), "no byte of it before somebody wants it"
    shots = ROOT / "build" / "screens"
    shots.mkdir(parents=True, exist_ok=True)
    page.locator("#traces").scroll_into_view_if_needed()
    page.screenshot(path=shots / f"traces-{width}-{theme}.png")
    assert axe.faults(page, "traces") == {} and (width > 390 or narrow.troubles(page) == [])
    with page.expect_download() as download:
        page.click("#traces tr[data-trace='1-0-131'] a")
    path = download.value.path()
    assert download.value.suggested_filename == "trace-worker_0-131.json.gz" and path.stat().st_size == BYTES
    context.close()


@pytest.mark.parametrize("over", ["journal", "kafka"])
def test_a_trace_of_pytorch_is_the_same_file_by_the_api_and_by_the_command(server, tmp_path, over, request):
    transport = f"{{kafka: {{bootstrap.servers: '{request.getfixturevalue('kafka')}'}}}}" if over == "kafka" else f"{{journal: {tmp_path / 'data'}}}"
    config, script, go = tmp_path / "tocsin.yaml", tmp_path / "train.py", tmp_path / "enough"
    config.write_text(LIVE.format(transport=transport, prefix=f"traced{random.randrange(10**9)}"))
    one = server(config)
    one.wait_for("ready", timeout=90)
    script.write_text(textwrap.dedent(SCRIPT))
    environment = {key: value for key, value in os.environ.items() if not key.startswith("TOCSIN_") or key == "TOCSIN_LIBRARY"}
    environment.setdefault("TOCSIN_LIBRARY", str(BUILD / "collectors/hook/libtocsin_client.so.0"))
    environment.update(TOCSIN_CONFIG=str(config), PYTHONPATH=str(ROOT / "python"), TOCSIN_QUIET="1")
    with subprocess.Popen([sys.executable, script, go], env=environment, stdout=subprocess.PIPE, text=True) as job:
        try:
            uid = job.stdout.readline().split()[1]
            one.wait_for("job_started", timeout=60)
            code, out, err = run_cli("capture", "live", "--trace", "2", "--wait", "100s", "-c", config, timeout=150)
            assert code == 0, out + err
            listed = f"/api/v1/runs/{uid}/traces"
            assert wait_for(lambda: one.get(listed)[0] == 200 and json.loads(one.get(listed)[1])["items"], 30)
            (trace,) = asked(one, listed)["items"]
            assert trace["steps"] == 2 and asked(one, f"{listed}/{trace['id']}/place")["here"] is True
            with urllib.request.urlopen(f"http://{one.wait_for('started')['http']}{listed}/{trace['id']}", timeout=60) as answer_of:
                body = answer_of.read()
            done = subprocess.run([sys.executable, "-m", "tocsin.trace", uid, str(trace["step"]), "--worker", trace["worker"], "--config", config, "--to", tmp_path / "trace.json.gz"],
                                  env=environment, capture_output=True, text=True, check=False)
            assert done.returncode == 0, done.stderr
            assert body == (tmp_path / "trace.json.gz").read_bytes() and len(body) == trace["bytes"]
            events = json.loads(gzip.decompress(body))["traceEvents"]
            assert f"tocsin step {trace['first_step']}" in {event.get("name") for event in events}
        finally:
            go.touch()
