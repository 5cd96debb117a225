"""The API's own resources as a browser and a program use them: over TLS, with sessions, a stream, and answers that are what OpenAPI says."""
import http.client
import json
import re
import socket
import ssl
import subprocess
import threading
import time
import urllib.error
import urllib.parse
import urllib.request

import jsonschema
import pytest

from tests.support.hook_support import wait_for
from tests.support.program import run_cli
from tests.support.telemetry import JournalWriter, scalar

TOKENS = {"shift": "0123456789-of-the-shift", "grafana": "0123456789-of-grafana"}
CONFIG = """
transport: {{journal: {folder}/data}}
rules: [exploding_tensor]
route: {{receiver: people, group_wait: 0s, group_interval: 5s, group_by: [job]}}
receivers:
  people: {{publish_metric: {{}}}}
http:
  listen: '127.0.0.1:0'
  tls: {{cert_file: {folder}/server.crt, key_file: {folder}/server.key{client_ca}}}
  auth:
    tokens:
      - {{name: shift, role: operator, token_file: {folder}/shift}}
      - {{name: grafana, role: viewer, token_file: {folder}/grafana}}
"""


def certificate(folder, name):
    subprocess.run(["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes", "-days", "2", "-subj", f"/CN={name}",
                    "-addext", "subjectAltName=IP:127.0.0.1", "-keyout", folder / f"{name}.key", "-out", folder / f"{name}.crt"], check=True, capture_output=True)


@pytest.fixture
def config(tmp_path):
    for name, token in TOKENS.items():
        (tmp_path / name).write_text(token + "\n")
        (tmp_path / name).chmod(0o600)
    certificate(tmp_path, "server")

    def write(client_ca=""):
        path = tmp_path / "t.yaml"
        path.write_text(CONFIG.format(folder=tmp_path, client_ca=f", client_ca_file: {client_ca}" if client_ca else ""))
        return path
    return write


class Browser:
    """Asks over TLS, keeps its cookies as a browser does, and sends what a page sends."""

    def __init__(self, program, folder, own=None):
        self.host, self.port = program.wait_for("started")["http"].rsplit(":", 1)
        self.tls = ssl.create_default_context(cafile=folder / "server.crt")
        if own:
            self.tls.load_cert_chain(folder / f"{own}.crt", folder / f"{own}.key")
        self.cookies, self.csrf = {}, None

    def connect(self):
        return http.client.HTTPSConnection(self.host, int(self.port), context=self.tls, timeout=30)

    def ask(self, method, path, body=None, headers=None):
        """(status, JSON or text, headers)"""
        given = {"Content-Type": "application/json", "Origin": f"https://{self.host}:{self.port}", **(headers or {})}
        if self.cookies:
            given["Cookie"] = "; ".join(f"{name}={value}" for name, value in self.cookies.items())
        if self.csrf and method != "GET":
            given["X-Tocsin-CSRF"] = self.csrf
        connection = self.connect()
        connection.request(method, path, None if body is None else json.dumps(body), given)
        answer = connection.getresponse()
        text = answer.read().decode()
        for cookie in answer.headers.get_all("Set-Cookie", []):
            name, value = cookie.split(";")[0].split("=", 1)
            self.cookies = {name: value} if value else {}
        connection.close()
        return answer.status, json.loads(text) if text and "json" in answer.headers.get("Content-Type", "") else text, answer.headers


class Stream:
    """Server-sent events, read on a thread."""

    def __init__(self, browser, path="/api/v1/stream", headers=None):
        self.connection = browser.connect()
        self.connection.request("GET", path, headers=headers or {})
        self.socket = self.connection.sock
        self.answer = self.connection.getresponse()
        assert self.answer.status == 200, self.answer.read()
        self.events, self.ended = [], threading.Event()
        threading.Thread(target=self._read, daemon=True).start()

    def _read(self):
        event = {}
        try:
            for line in self.answer:
                line = line.decode().rstrip("\n")
                if line:
                    name, _, value = line.partition(": ")
                    event[name] = value
                elif "event" in event:
                    self.events.append((event["event"], json.loads(event["data"]), event["id"]))
                    event = {}
        except (OSError, http.client.HTTPException, ValueError):
            pass
        self.ended.set()

    def leave(self):
        self.socket.shutdown(socket.SHUT_RDWR)

    def of(self, kind):
        return [data for name, data, _ in self.events if name == kind]


def test_a_page_over_tls_begins_a_session_follows_the_stream_and_silences(server, config, tmp_path):
    program = server(config())
    program.wait_for("ready", timeout=90)
    page = Browser(program, tmp_path)
    assert page.ask("GET", "/api/v1/status")[1]["tls"] is True
    assert page.ask("POST", "/api/v1/session", {"token": "0123456789-of-nobody"})[0] == 401
    status, session, headers = page.ask("POST", "/api/v1/session", {"token": TOKENS["shift"]})
    assert status == 200 and "; Secure" in headers["Set-Cookie"] and "HttpOnly" in headers["Set-Cookie"], headers
    silence = {"matchers": '{job="sick"}', "duration": "2h", "comment": "known"}
    assert page.ask("POST", "/api/v1/silences", silence)[0] == 403, "without its word"
    page.csrf = session["csrf"]
    assert page.ask("GET", "/api/v1/status")[1]["who"] == {"name": "shift", "role": "operator", "by": "session"}

    page.ask("GET", "/api/v1/issues")
    stream = Stream(page, "/api/v1/stream?types=issue,silence,delivery")
    assert wait_for(lambda: stream.of("hello"), 10)
    JournalWriter(tmp_path / "data").append(*[scalar("sick", "loss", "NaN" if step == 3 else 1.0, step, job="sick") for step in range(5)])
    assert wait_for(lambda: stream.of("issue"), 60)
    issue = stream.of("issue")[0]
    assert issue["rule"] == "exploding_tensor" and issue["status"] == "firing" and issue["job"] == "sick", issue
    assert wait_for(lambda: stream.of("delivery"), 30), "somebody was told"
    status, made, _ = page.ask("POST", "/api/v1/silences", silence)
    assert status == 202 and made["matching_count"] == 1, made
    assert wait_for(lambda: stream.of("silence"), 10)
    [listed] = page.ask("GET", "/api/v1/issues?rule=exploding_tensor")[1]["items"]
    assert listed["silenced_by"] == [made["silence"]["id"]] and listed["episode"] == 1, listed
    one = page.ask("GET", f"/api/v1/issues/{listed['key']}/1")[1]
    assert one["deliveries"] and one["issue"]["summary"] == listed["summary"], one

    # Who comes back goes on where it was.
    _, _, newest = stream.events[-1]
    stream.leave()
    status, text, headers = page.ask("DELETE", f"/api/v1/silences/{made['silence']['id']}")
    assert status == 204 and not text and "Content-Length" not in headers
    again = Stream(page, headers={"Last-Event-ID": newest})
    assert wait_for(lambda: again.of("silence"), 10) and again.of("silence")[0]["state"] == "expired" and not again.of("reset")

    # The command line's changes are there too, and no secret is.
    code, out, err = run_cli("silence", "add", "job=later", "--for", "1h", "--comment", "the night", "--config.file", tmp_path / "t.yaml")
    assert code == 0, out + err
    def changes():
        return page.ask("GET", "/api/v1/audit")[1]["items"]
    assert wait_for(lambda: changes()[0]["by"] == "command", 20), changes()
    assert [(one["what"], one["by"]) for one in changes()] == [("silence.set", "command"), ("silence.ended", "session"), ("silence.set", "session")]
    shown = json.dumps(changes()) + json.dumps(program.events) + json.dumps(page.ask("GET", "/api/v1/status")[1])
    for secret in [*TOKENS.values(), *page.cookies.values()]:
        assert secret not in shown

    # The end of the process ends the stream, and is not held up by it.
    began = time.monotonic()
    assert program.stop() == 0
    assert again.ended.wait(5) and time.monotonic() - began < 15


def test_long_polls_miss_nothing_between_two_of_them(server, config, tmp_path):
    one = server(re.sub(r"\n  tls:.*", "", config().read_text()))
    one.wait_for("ready")
    address = one.wait_for("started")["http"]

    def poll(seconds, cursor=None, as_parameter=None):
        headers = {"Last-Event-ID": cursor} if cursor else {}
        asked = urllib.parse.urlencode({"poll": seconds, "types": "issue,silence", **({"cursor": as_parameter} if as_parameter else {})})
        began = time.monotonic()
        with urllib.request.urlopen(urllib.request.Request(f"http://{address}/api/v1/stream?{asked}", headers=headers), timeout=70) as answer:
            assert answer.headers["Content-Type"] == "application/json" and answer.headers["Cache-Control"] == "no-store"
            return json.load(answer), time.monotonic() - began
    first, took = poll(30)
    assert took < 5 and first["events"] == [] and first["reset"] is None
    quiet, took = poll(1, first["cursor"])
    assert 0.9 < took < 10 and quiet["events"] == []
    JournalWriter(tmp_path / "data").append(*[scalar("sick", "loss", "NaN" if step == 3 else 1.0, step, job="ill") for step in range(5)])
    heard, took = poll(50, quiet["cursor"])
    assert took < 40 and [event["event"] for event in heard["events"]] == ["issue"] and heard["events"][0]["data"]["rule"] == "exploding_tensor"
    # What happened while nobody asked is there, once; the parameter is for those who cannot send the header.
    again, took = poll(30, as_parameter=quiet["cursor"])
    assert took < 5 and again["events"][0] == heard["events"][0]
    lost, took = poll(30, "0badf00d-7")
    assert took < 5 and lost["reset"] == "what came since is not kept" and lost["events"] == []
    with pytest.raises(urllib.error.HTTPError) as error:
        poll(56)
    refused = json.load(error.value)
    assert error.value.code == 400 and refused["field"] == "poll" and "from 0 to 55" in refused["detail"], refused


def test_many_streams_hold_up_no_other_request(server, config, tmp_path):
    program = server(config())
    program.wait_for("ready", timeout=90)
    page = Browser(program, tmp_path)
    streams = [Stream(page) for _ in range(16)]
    connection = page.connect()
    connection.request("GET", "/api/v1/stream")
    refused = connection.getresponse()
    assert refused.status == 429 and int(refused.headers["Retry-After"]) > 0
    for _ in range(20):
        assert page.ask("GET", "/api/v1/issues")[0] == 200
    assert all(not stream.ended.is_set() for stream in streams)
    for stream in streams:
        stream.leave()
    assert wait_for(lambda: Stream(page).of("hello") is not None, 10)


def test_a_client_without_a_certificate_is_not_served_where_one_is_demanded(server, config, tmp_path):
    certificate(tmp_path, "ada")
    program = server(config(tmp_path / "ada.crt"))
    program.wait_for("ready", timeout=90)
    assert Browser(program, tmp_path, own="ada").ask("GET", "/api/v1/status")[0] == 200
    with pytest.raises((ssl.SSLError, OSError, http.client.HTTPException)):
        Browser(program, tmp_path).ask("GET", "/api/v1/status")


def test_a_certificate_that_is_none_is_named_at_the_start(config, tmp_path):
    path = config()
    (tmp_path / "server.key").write_text("none\n")
    code, out, err = run_cli("up", "--config.file", path, timeout=60)
    assert code != 0 and "server.key" in out + err and "no private key in PEM" in out + err, out + err


def as_json_schema(node):
    """OpenAPI 3.0's dialect as JSON Schema: null is a type there."""
    if isinstance(node, list):
        return [as_json_schema(one) for one in node]
    if not isinstance(node, dict):
        return node
    out = {key: as_json_schema(value) for key, value in node.items() if key != "nullable"}
    return {"anyOf": [out, {"type": "null"}]} if node.get("nullable") is True else out


def test_answers_are_what_openapi_says(server, config, tmp_path):
    program = server(config())
    program.wait_for("ready", timeout=90)
    page = Browser(program, tmp_path)
    described = page.ask("GET", "/api/v1/openapi.json")[1]
    assert described["openapi"].startswith("3.0.")
    named = {name for name in re.findall(r'"#/components/schemas/(\w+)"', json.dumps(described))}
    assert named == set(described["components"]["schemas"]), "each schema is there, and used"
    try:
        import openapi_spec_validator
        openapi_spec_validator.validate(described)
    except ImportError:
        pass  # no package of Debian has it
    for path, methods in described["paths"].items():
        for method, route in methods.items():
            assert set(re.findall(r"\{(\w+)\}", path)) == {one["name"] for one in route["parameters"] if one["in"] == "path"}, path
            assert all(one["description"] for one in route["parameters"]) and route["summary"], (path, method)

    bearer = {"Authorization": f"Bearer {TOKENS['shift']}"}
    page.ask("POST", "/api/v1/silences", {"matchers": "job=sick", "duration": "2h", "comment": "known"}, bearer)
    page.ask("POST", "/api/v2/alerts", [{"labels": {"alertname": "GpuFellOff", "job": "sick"}}], bearer)
    JournalWriter(tmp_path / "data").append(*[scalar("sick", "loss", "NaN" if step == 3 else 1.0, step, job="ill") for step in range(5)])

    # Views and stores follow the topics each at its own pace: what one route tells another may not know yet.
    def told(path):
        answer = {}

        def look():
            answer["last"] = page.ask("GET", path, headers=bearer)
            return answer["last"] if answer["last"][0] == 200 else None
        return wait_for(look, 60) or answer["last"]

    def first(path):
        items = wait_for(lambda: (told(path)[1] or {}).get("items"), 60)
        assert items, path
        return items[0]
    assert first("/api/v1/deliveries")
    key = first("/api/v1/issues?rule=exploding_tensor")["key"]
    run = first("/api/v1/runs")["uid"]
    silence = first("/api/v1/silences")["id"]
    group = first(f"/api/v1/groups?issue={key}")["hash"]
    task = page.ask("POST", f"/api/v1/runs/{run}/replay", {"rule": "exploding_tensor", "parameter": "min_hits", "values": [1, 2]}, bearer)[1]["task"]
    assert wait_for(lambda: page.ask("GET", f"/api/v1/tasks/{task}", headers=bearer)[1]["state"] == "done", 30)
    node = first("/api/v1/nodes")["name"]
    schemas = {"components": {"schemas": as_json_schema(described["components"]["schemas"])}}
    checked = 0
    for path, methods in described["paths"].items():
        if "get" not in methods or path == "/api/v1/stream" or "/traces/{id}" in path:  # no run of this test has a trace: test_page_traces.py
            continue
        filled = path.replace("/tasks/{id}", f"/tasks/{task}").replace("{rule}", "exploding_tensor")
        filled = filled.replace("{key}", key).replace("{episode}", "newest").replace("{id}", silence).replace("{hash}", group).replace("{run}", run).replace("{node}", node).replace("{job}", "ill")
        if path == "/api/v1/compare":
            filled += f"?runs={run}&name=loss"
        if path == "/api/v1/sparklines":
            filled += f"?runs={run}"
        status, answer, headers = told(filled)
        reply = methods["get"]["responses"][str(status)]
        content = reply["content"].get(headers["Content-Type"])
        assert status == 200 and content, (path, headers["Content-Type"], answer)
        jsonschema.validate(answer, {**schemas, **content["schema"]})
        checked += 1
        status, answer, headers = page.ask("GET", filled + ("&" if "?" in filled else "?") + "nonsense=1", headers=bearer)
        assert status == 400 and answer["field"] == "nonsense" and headers["Content-Type"] == "application/problem+json", (path, answer)
        jsonschema.validate(answer, {**schemas, "$ref": "#/components/schemas/Problem"})
    assert checked >= 12
