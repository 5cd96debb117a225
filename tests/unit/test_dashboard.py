"""The dashboard of the router: what is shipped is what is declared, Grafana can lay it out, and Prometheus takes each query."""
import json
import pathlib
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tools"))

import docs_dashboard  # noqa: E402


def shipped():
    return json.loads(docs_dashboard.DASHBOARD.read_text())


def test_what_is_shipped_is_what_is_declared():
    assert list(docs_dashboard.stale(write=False)) == []


def test_promtool_takes_every_query(tmp_path):
    asked = [target["expr"] for panel in shipped()["panels"] for target in panel.get("targets", [])]
    assert asked == docs_dashboard.queries() and len(asked) > 15
    # As Prometheus gets them: Grafana has put the variables in.
    rules = [{"record": f"panel:{i}", "expr": one.replace("$instance", ".*").replace("$integration", ".*")} for i, one in enumerate(asked)]
    path = tmp_path / "queries.yaml"
    path.write_text(json.dumps({"groups": [{"name": "dashboard", "rules": rules}]}))
    done = subprocess.run(["promtool", "check", "rules", path], capture_output=True, text=True, check=False, timeout=60)
    assert done.returncode == 0 and f"{len(asked)} rules found" in done.stdout, done.stdout + done.stderr


def test_panels_have_names_of_their_own_and_lie_beside_each_other():
    panels = shipped()["panels"]
    assert len({panel["id"] for panel in panels}) == len(panels)
    taken = set()
    for panel in panels:
        place = panel["gridPos"]
        cells = {(x, y) for x in range(place["x"], place["x"] + place["w"]) for y in range(place["y"], place["y"] + place["h"])}
        assert place["x"] + place["w"] <= 24 and not cells & taken, panel["title"]
        taken |= cells
        assert panel["type"] == "row" or panel["description"], panel["title"]


def test_every_variable_of_a_query_is_declared():
    declared = {one["name"] for one in shipped()["templating"]["list"]}
    used = {word for query in docs_dashboard.queries() for word in ("instance", "integration") if f"${word}" in query}
    assert used <= declared and "source" in declared
