"""Every metric of the router is in a real `/metrics`, with its labels, and changes when what it counts happens."""
import json
import pathlib
import re
import sys

from tests.support import journal
from tests.support.on_call import in_state, issue, issue_event, router
from tests.support.program import run_cli
from tests.support.receiver import wait_for
from tests.support.webhook_receiver import WebhookReceiver

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "tools"))

import docs_alerts  # noqa: E402
import docs_dashboard  # noqa: E402

# The table of the specification: name, type, labels. Stops: STOPS, below.
TABLE = [
    ("events_received_total", "counter", {"source_type"}),
    ("events_rejected_total", "counter", {"reason", "stage"}),
    ("events_duplicate_total", "counter", set()),
    ("events_stale_total", "counter", set()),
    ("event_lag_seconds", "gauge", set()),
    ("issues", "gauge", {"state"}),
    ("issue_transitions_total", "counter", {"to", "resolution"}),
    ("groups", "gauge", {"route"}),
    ("group_flushes_total", "counter", {"route"}),
    ("groups_overflow_total", "counter", {"route"}),
    ("flush_late_seconds", "histogram", {"route"}),
    ("decisions_total", "counter", {"integration", "reason"}),
    ("suppressed_total", "counter", {"reason"}),
    ("owed_resolves", "gauge", {"integration"}),
    ("silences", "gauge", {"state"}),
    ("silences_matching_nothing", "gauge", set()),
    ("notifications_total", "counter", {"integration", "type", "outcome"}),
    ("notifications_pending", "gauge", {"integration"}),
    ("notification_oldest_pending_seconds", "gauge", {"integration"}),
    ("delivery_attempts_total", "counter", {"integration", "class", "code"}),
    ("delivery_duration_seconds", "histogram", {"integration"}),
    ("decision_to_delivery_seconds", "histogram", {"integration"}),
    ("event_to_delivery_seconds", "histogram", {"integration"}),
    ("rate_limited_seconds_total", "counter", {"integration"}),
    ("retry_after_seconds", "histogram", {"integration"}),
    ("breaker_state", "gauge", {"integration"}),
    ("breaker_transitions_total", "counter", {"integration"}),
    ("dead_letters", "gauge", {"integration", "reason"}),
    ("dead_letters_total", "counter", {"integration", "reason"}),
    ("replays_total", "counter", {"integration"}),
    ("duplicates_possible_total", "counter", {"integration"}),
    ("acks_total", "counter", {"origin"}),
    ("lease_held", "gauge", set()),
    ("lease_changes_total", "counter", set()),
    ("template_errors_total", "counter", {"integration"}),
    ("template_seconds", "histogram", {"integration"}),
    ("config_hash_info", "gauge", {"hash"}),
    ("state_restore_seconds", "histogram", {"stage"}),
    ("changelog_lag_seconds", "gauge", {"stage"}),
    ("global_table_lag_seconds", "gauge", {"stage"}),
    ("transactions_total", "counter", {"stage"}),
    ("transaction_aborts_total", "counter", {"stage"}),
    ("outbox_lag_seconds", "gauge", {"stage", "partition"}),
    ("ssrf_blocked_total", "counter", {"integration"}),
    ("secret_reloads_total", "counter", set()),
    ("api_requests_total", "counter", {"method", "route", "code"}),
]
LINE = re.compile(r'^(\w+)(?:\{(.*)\})? (\S+)$')


def figures(program):
    """{name without prefix: [(labels, value)]}, and the types by name."""
    values, types = {}, {}
    for line in program.get("/metrics")[1].splitlines():
        if line.startswith("# TYPE "):
            _, _, name, kind = line.split(" ")
            types[name.removeprefix("tocsin_router_")] = kind
        elif found := LINE.match(line):
            labels = dict(re.findall(r'(\w+)="((?:[^"\\]|\\.)*)"', found[2] or ""))
            values.setdefault(found[1].removeprefix("tocsin_router_"), []).append((labels, float(found[3])))
    return values, types


def total(values, name, **wanted):
    return sum(value for labels, value in values.get(name, []) if all(labels.get(key) == one for key, one in wanted.items()))


def test_the_table_is_in_a_real_answer_and_each_figure_moves(server, tmp_path):
    with WebhookReceiver() as hook:
        path = router(tmp_path, hook)
        config = json.loads(path.read_text())
        config["receivers"]["inside"] = {"webhook": {"id": "inside", "url": "http://localhost:9/"}}
        config["receivers"]["chat"] = {"mattermost": {"id": "chat", "url": hook.url, "allow_private": ["127.0.0.0/8"]}}
        config["router"] = {"limits": {"max_groups_per_route": 3}}
        config["route"]["routes"] = [{"matchers": ['rule=~"delivery_.*|router_.*"'], "receiver": "none"},
                                     {"matchers": ['alertname="owes"'], "receiver": "chat"}]
        config["route"]["routes"].append({"matchers": ['alertname="guarded"'], "receiver": "inside"})
        path.write_text(json.dumps(config))
        program = server(path)
        program.wait_for("ready", timeout=60)

        def until(what, name, least=1, **labels):
            wait_for(lambda: total(figures(program)[0], name, **labels) >= least, 30, what)

        # Told, and acknowledged.
        began = issue(path, "told")
        hook.wait(1)
        until("a delivery by type", "notifications_total", integration="hook", type="webhook", outcome="delivered")
        until("an attempt by code", "delivery_attempts_total", integration="hook", **{"class": "delivered"})
        until("events of others", "events_received_total", source_type="other")
        until("firing", "issues", state="firing")
        [identity] = {word for line in run_cli("issues", "list", "-c", path)[1].splitlines() if "told" in line for word in line.split()[:1]}
        code, _, err = run_cli("ack", identity, "--note", "mine", "--author", "ada", "-c", path)
        assert code == 0, err
        until("an acknowledgement", "issues", state="acked")
        until("what an acknowledgement holds", "suppressed_total", reason="ack")

        # The same event twice, an older one, and one that is none.
        heads, data = issue_event("told", began=began)
        records = [("issues", "", json.dumps(data), [(key, one.encode()) for key, one in heads.items()])]
        journal.append(config["transport"]["journal"], *records, *records)
        until("a duplicate", "events_duplicate_total")
        issue(path, "told", value=b"{")
        until("a refused record", "events_rejected_total", stage="route")

        # Given up, held off by the far side, refused by the guard.
        hook.answer(400, 2)
        issue(path, "refused")
        in_state(path, "dead")
        until("a dead letter", "dead_letters_total", integration="hook")
        until("one that nobody has acted on", "dead_letters", integration="hook")
        code, _, err = run_cli("dlq", "discard", "--integration", "hook", "--note", "seen", "-c", path)
        assert code == 0, err
        wait_for(lambda: total(figures(program)[0], "dead_letters") == 0, 30, "a discarded letter counts no more")
        hook.answer(429, 1, retry_after=1)
        issue(path, "slowly")
        until("a wait that was asked for", "retry_after_seconds_count", integration="hook")
        until("429", "delivery_attempts_total", integration="hook", code="429")
        before = total(figures(program)[0], "ssrf_blocked_total")
        assert before == 0
        issue(path, "guarded")
        until("the guard", "ssrf_blocked_total", integration="inside")

        # Silenced: suppressed, by reason and as a state.
        assert run_cli("silence", "add", "alertname=quiet", "--for", "1h", "--comment", "test", "--author", "ada", "-c", path)[0] == 0
        until("a silence", "silences", state="active")
        issue(path, "quiet")
        until("what a silence holds", "suppressed_total", reason="silence")
        until("a suppressed issue", "issues", state="suppressed")
        until("no room for a group of its own", "groups_overflow_total")

        # Owed: it ends while it is silenced, and the chat keeps no incident.
        issue(path, "owes")
        until("told in the chat", "notifications_total", integration="chat", type="mattermost", outcome="delivered")
        assert run_cli("silence", "add", "alertname=owes", "--for", "1h", "--comment", "test", "--author", "ada", "-c", path)[0] == 0
        until("both silences", "silences", least=2, state="active")
        issue(path, "owes", "resolved")
        until("a resolve that is owed", "owed_resolves", integration="chat")
        until("requests", "api_requests_total", least=2, route="/metrics", code="200")

        values, types = figures(program)
        missing = {}
        for name, kind, labels in TABLE:
            rows = values.get(name + ("_count" if kind == "histogram" else ""), [])
            if types.get(name) != kind or not rows or set().union(*(set(row[0]) for row in rows)) != labels:
                missing[name] = (types.get(name), rows[:2])
        assert missing == {}
        assert total(values, "lease_held") == 1 and total(values, "config_hash_info") == 1
        assert total(values, "groups") >= 3 and total(values, "event_lag_seconds") < 5
        assert total(values, "template_seconds_count", integration="hook") >= 3
        assert total(values, "transactions_total", stage="route") > 0
        # Every query of the dashboard and of the alert rules asks for what is there.
        there = {"tocsin_router_" + name for name in types} | set(types)
        outside = {"tocsin_router_stop_commands_total"}  # needs a stop: tests/unit/actions
        assert docs_dashboard.metrics() - there == set()
        assert docs_alerts.metrics() - there - outside == set()
        # One meaning each: what could not be read has a name of its own.
        assert all("integration" in labels for labels, _ in values["dead_letters_total"])
