"""POST /api/v1/query: many questions about runs in one request, each with its own answer."""
import http.client
import json

import pytest

from tests.e2e.test_curves import CONFIG, asked, run_with, train


@pytest.fixture(scope="module")
def trained(module_server, tmp_path_factory):
    folder = tmp_path_factory.mktemp("query")
    one = module_server(CONFIG.format(journal=folder / "journal"))
    one.wait_for("ready")
    assert train(folder, folder / "journal", 800).wait(60) == 0
    uid = run_with(one, 800)
    assert uid
    return one, uid, folder / "journal"


def post(server, body, path="/api/v1/query", **headers):
    host, port = server.wait_for("started")["http"].rsplit(":", 1)
    connection = http.client.HTTPConnection(host, int(port), timeout=30)
    given = {"Content-Type": "application/json", **{name.replace("_", "-"): value for name, value in headers.items()}}
    connection.request("POST", path, body if isinstance(body, (str, bytes)) else json.dumps(body), given)
    answer = connection.getresponse()
    out = answer.status, json.loads(answer.read()), answer.headers
    connection.close()
    return out


def answers(server, *queries):
    status, body, _ = post(server, {"queries": list(queries)})
    assert status == 200 and list(body) == ["answers"], body
    return [(one["status"], one["body"]) for one in body["answers"]]


def without_time(answer):
    return {name: value for name, value in answer.items() if name != "as_of"}


def test_each_answer_is_that_of_its_route_in_the_order_of_the_queries(trained):
    one, uid, _ = trained
    wanted = [("series", {"name": "loss|lr", "points": 50}), ("names", {"kind": "scalar", "limit": 2}), ("series", {"name": "loss", "from": 290, "to": 310}),
              ("phases", {}), ("steps", {"last": 5}), ("heatmap", {}), ("system/heatmap", {}), ("spans", {}), ("health", {}), ("rules", {}), ("run", {})]
    given = answers(one, *({"kind": kind, "run": uid, "parameters": parameters} for kind, parameters in wanted))
    assert len(given) == len(wanted)
    for (kind, parameters), (status, body) in zip(wanted, given):
        assert status == 200, (kind, body)
        path = f"/api/v1/runs/{uid}" + ("" if kind == "run" else f"/{kind}")
        assert without_time(body) == without_time(asked(one, path, **parameters)), kind
    assert given[0][1]["series"] and len(given[1][1]["items"]) == 2 and given[2][1]["from"] == 290
    flat = answers(one, {"kind": "series", "run": uid[:8], "name": "loss|lr", "points": 50, "mode": None})
    assert without_time(flat[0][1]) == without_time(given[0][1]), "parameters beside kind and run"


def test_one_bad_query_spoils_no_other(trained):
    one, uid, _ = trained
    good = {"kind": "series", "run": uid, "name": "loss", "points": 10}
    bad = [({**good, "kind": "serie"}, 400, "kind", "series"), ({**good, "pionts": 3}, 400, "pionts", "points"), ({**good, "points": 0}, 400, "points", "10000"),
           ({**good, "run": "ffffffff"}, 404, None, "no run"), ({"kind": "series"}, 400, "run", "uid"), ("series", 400, None, "an object"),
           ({**good, "name": {"a": 1}}, 400, None, "expected a text"), ({**good, "name": 1.5}, 400, None, "expected a text"),
           ({**good, "format": "csv"}, 400, "format", "JSON"), ({"kind": "heatmap", "run": uid, "format": "bin"}, 400, "format", "JSON"),
           ({**good, "name": "loss("}, 400, "name", "regular expression"), ({"kind": "stop", "run": uid}, 400, "kind", "stop"),
           ({"kind": "report.html", "run": uid}, 400, "kind", "report"), ({**good, "parameters": 4}, 400, None, "an object")]
    given = answers(one, good, *(query for query, *_ in bad), good)
    assert given[0][0] == given[-1][0] == 200 and without_time(given[0][1]) == without_time(given[-1][1])
    for (query, status, field, word), (found, body) in zip(bad, given[1:-1]):
        assert found == status == body["status"] and body.get("field") == field and word in body["detail"], (query, body)


def test_what_is_no_list_of_queries_is_refused(trained):
    one, uid, _ = trained
    query = {"kind": "phases", "run": uid}
    for body in ({}, [], {"queries": []}, {"queries": [query] * 33}, {"queries": query}, {"queries": [query], "more": 1}, "{", b"\xff", "null"):
        status, told, _ = post(one, body)
        assert status == 400 and told["detail"], body
    assert len(answers(one, *[query] * 32)) == 32
    assert post(one, "x" * 300_000)[0] == 400
    status, told, headers = post(one, {"queries": [query]}, Accept_Encoding="identity")
    assert status == 200 and headers["Cache-Control"] == "no-store"


def test_it_only_reads_so_a_session_needs_no_csrf_token_but_a_foreign_page_is_refused(trained):
    one, uid, journal = trained
    query = {"queries": [{"kind": "phases", "run": uid}]}
    _, session, headers = post(one, {"token": (journal / "page-token").read_text().strip()}, "/api/v1/session")
    cookie = headers["Set-Cookie"].split(";")[0]
    assert session["csrf"]
    assert post(one, query, Cookie=cookie)[0] == 200
    assert post(one, {"matchers": "job=x", "duration": "1h", "comment": "c"}, "/api/v1/silences", Cookie=cookie)[0] == 403, "a change does need it"
    assert post(one, query, Origin="http://evil.example")[0] == 403
    assert post(one, query, Content_Type="text/plain")[0] == 415
    assert post(one, query, Host="evil.example")[0] == 421


def test_reading_that_needs_a_token_needs_it_here(server, tmp_path):
    (tmp_path / "token").write_text("a-token-of-enough-letters\n")
    auth = f"auth: {{read: token, tokens: [{{name: me, role: viewer, token_file: {tmp_path / 'token'}}}]}}"
    one = server(CONFIG.format(journal=tmp_path / "journal").replace("http: {listen: '127.0.0.1:0'}", f"http: {{listen: '127.0.0.1:0', {auth}}}"))
    one.wait_for("ready")
    query = {"queries": [{"kind": "phases", "run": "ffffffff"}]}
    assert post(one, query)[0] == 401
    status, body, _ = post(one, query, Authorization="Bearer a-token-of-enough-letters")
    assert status == 200 and body["answers"][0]["status"] in (404, 503)


def test_when_a_run_has_new_values_the_charts_ask_at_once(server, tmp_path, browser):
    one = server(CONFIG.format(journal=tmp_path / "journal"))
    one.wait_for("ready")
    job = train(tmp_path, tmp_path / "journal", 600, 0.02)
    try:
        uid = run_with(one, 5)
        page = browser.new_page()
        asked_for = []
        page.on("request", lambda request: asked_for.append((request.method, request.url.split("/api/v1")[-1], request.post_data)) if "/api/v1" in request.url else None)
        page.goto(f"http://{one.wait_for('started')['http']}/runs/{uid}")
        page.wait_for_selector(".chart[data-name=loss][data-mode=train] figcaption")

        def last():
            told = page.inner_text(".chart[data-name=loss][data-mode=train] figcaption")
            return int(told.split("last ")[1].split("at step ")[1].split(".")[0])
        before = last()
        asked_for.clear()
        page.wait_for_timeout(3000)
        assert last() > before + 50, "the charts go on"
        together = [json.loads(body)["queries"] for method, path, body in asked_for if path == "/query"]
        assert together and all({query["kind"] for query in queries} >= {"names", "series"} for queries in together)
        assert not [path for _, path, _ in asked_for if path.startswith(f"/runs/{uid}/series")]
    finally:
        job.kill()
        job.wait(10)
