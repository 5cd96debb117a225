"""The dashboard of the router for Grafana, declared once: the file and the table of docs/dashboard.md follow from here."""
import json
import pathlib
import re

ROOT = pathlib.Path(__file__).resolve().parents[1]
DASHBOARD = ROOT / "deploy" / "grafana" / "tocsin-router.json"
PAGE = ROOT / "docs" / "dashboard.md"
TABLE = re.compile(r"(<!-- dashboard:begin -->\n)(.*?)(<!-- dashboard:end -->)", re.DOTALL)
SCOPE = '{instance=~"$instance"}'
BY = '{instance=~"$instance",integration=~"$integration"}'

# title of the row, its panels: title, unit, kind, what one looks for, (query, legend)…
ROWS = [
    ("Is anybody told?", [
        ("Routers that lead", "none", "stat", "Exactly one. None: nobody is told of anything.",
         [(f"sum(tocsin_router_lease_held{SCOPE})", "leaders")]),
        ("Issues that fire", "none", "stat", "What people have to look at now.",
         [('sum(tocsin_router_issues{instance=~"$instance",state="firing"})', "firing")]),
        ("Oldest undelivered message", "s", "stat", "Minutes: a far side does not answer.",
         [(f"max(tocsin_router_notification_oldest_pending_seconds{BY})", "age")]),
        ("Given up in an hour", "none", "stat", "Above 0: look at `tocsin dlq list`.",
         [(f"sum(increase(tocsin_router_dead_letters_total{BY}[1h]))", "given up")]),
    ]),
    ("Issues", [
        ("Issues by state", "none", "timeseries", "How many fire, and how many of them are held back.",
         [(f"sum by (state) (tocsin_router_issues{SCOPE})", "{{state}}")]),
        ("Events read", "ops", "timeseries", "Who raises issues, and what could not be read.",
         [(f"sum by (source_type) (rate(tocsin_router_events_received_total{SCOPE}[5m]))", "{{source_type}}"),
          (f"sum by (reason) (rate(tocsin_router_events_rejected_total{SCOPE}[5m]))", "rejected: {{reason}}")]),
        ("Held back, by reason", "ops", "timeseries", "Silences, inhibition, times, acknowledgements.",
         [(f"sum by (reason) (rate(tocsin_router_suppressed_total{SCOPE}[5m]))", "{{reason}}")]),
        ("Resolves that are owed", "none", "timeseries", "Grows: a silence or a mute interval lasts too long.",
         [(f"sum by (integration) (tocsin_router_owed_resolves{BY})", "{{integration}}")]),
    ]),
    ("Decisions", [
        ("Messages decided, by reason", "ops", "timeseries", "Many repeats: nobody acknowledges.",
         [('sum by (reason) (rate(tocsin_router_decisions_total{instance=~"$instance",integration=~"$integration",'
           'reason!="none"}[5m]))', "{{reason}}")]),
        ("Groups by route", "none", "timeseries", "Thousands on one route: its `group_by` is too fine.",
         [(f"topk(10, sum by (route) (tocsin_router_groups{SCOPE}))", "{{route}}")]),
        ("Flushes behind their tick, p99", "s", "timeseries", "Seconds: the router has too little processor time.",
         [(f"histogram_quantile(0.99, sum by (le) (rate(tocsin_router_flush_late_seconds_bucket{SCOPE}[5m])))", "p99")]),
        ("Input and outbox behind", "s", "timeseries", "How far routing and delivery are behind what was written.",
         [(f"max(tocsin_router_event_lag_seconds{SCOPE})", "events"), (f"max(tocsin_router_outbox_lag_seconds{SCOPE})", "outbox")]),
    ]),
    ("Delivery", [
        ("Messages by how they ended", "ops", "timeseries", "Anything but `delivered` and `superseded` needs a look.",
         [(f"sum by (integration, outcome) (rate(tocsin_router_notifications_total{BY}[5m]))", "{{integration}}: {{outcome}}")]),
        ("Attempts that failed", "ops", "timeseries", "The code says what the far side answered.",
         [('sum by (integration, class, code) (rate(tocsin_router_delivery_attempts_total{instance=~"$instance",'
           'integration=~"$integration",class!="delivered"}[5m]))', "{{integration}}: {{class}} {{code}}")]),
        ("From the event to the answer, p99", "s", "timeseries", "Includes `group_wait`.",
         [(f"histogram_quantile(0.99, sum by (le, integration) (rate(tocsin_router_event_to_delivery_seconds_bucket{BY}[5m])))",
           "{{integration}}")]),
        ("One attempt, p99", "s", "timeseries", "The far side's own time.",
         [(f"histogram_quantile(0.99, sum by (le, integration) (rate(tocsin_router_delivery_duration_seconds_bucket{BY}[5m])))",
           "{{integration}}")]),
        ("Breakers", "none", "timeseries", "0 closed, 1 half-open, 2 open.",
         [(f"max by (integration) (tocsin_router_breaker_state{BY})", "{{integration}}")]),
        ("Messages that wait", "none", "timeseries", "Waiting for a retry, a limit or a breaker.",
         [(f"sum by (integration) (tocsin_router_notifications_pending{BY})", "{{integration}}")]),
    ]),
    ("The process", [
        ("Transactions", "ops", "timeseries", "Aborted ones are repeated: the broker is in trouble.",
         [(f"sum by (stage) (rate(tocsin_router_transactions_total{SCOPE}[5m]))", "{{stage}}"),
          (f"sum by (stage) (rate(tocsin_router_transaction_aborts_total{SCOPE}[5m]))", "{{stage}}: aborted")]),
        ("Configuration in effect", "none", "timeseries", "Two lines: not every process has read the newest one.",
         [(f"sum by (hash) (tocsin_router_config_hash_info{SCOPE})", "{{hash}}")]),
    ]),
    ("The page", [
        ("Stores that are written", "none", "timeseries", "0: the store stopped; the log and the page say why.",
         [(f"min by (store) (tocsin_insights_up{SCOPE})", "{{store}}")]),
        ("Stores behind", "s", "timeseries", "Seconds: the page shows what was, not what is.",
         [(f"max by (topic) (tocsin_insights_lag_seconds{SCOPE})", "{{topic}}")]),
        ("Size of the stores", "bytes", "timeseries", "Bounded by `insights.max_bytes` and `insights.max_curve_bytes`.",
         [(f"sum by (store, part) (tocsin_insights_store_bytes{SCOPE})", "{{store}} {{part}}")]),
        ("Pages that are open", "none", "timeseries", "Streams of new events, of pages and of programs.",
         [(f"sum by (instance) (tocsin_insights_streams{SCOPE})", "{{instance}}")]),
    ]),
]


def panels():
    return [panel for _, row in ROWS for panel in row]


def queries():
    return [query for *_, asked in panels() for query, _ in asked]


def metrics():
    names = set(re.findall(r"tocsin_[a-z_]+", " ".join(queries())))
    return {re.sub("_(bucket|sum|count)$", "", name) for name in names}


def dashboard_text():
    source = {"type": "prometheus", "uid": "${source}"}
    out, number, top = [], 0, 0
    for row, inside in ROWS:
        number += 1
        out.append({"id": number, "type": "row", "title": row, "collapsed": False, "panels": [],
                    "gridPos": {"x": 0, "y": top, "w": 24, "h": 1}})
        top += 1
        small = all(kind == "stat" for _, _, kind, *_ in inside)
        width, height = (6, 4) if small else (12, 8)
        for place, (title, unit, kind, looks, asked) in enumerate(inside):
            number += 1
            column, line = place % (24 // width), place // (24 // width)
            out.append({"id": number, "type": kind, "title": title, "description": looks, "datasource": source,
                        "gridPos": {"x": column * width, "y": top + line * height, "w": width, "h": height},
                        "fieldConfig": {"defaults": {"unit": unit, "min": 0}, "overrides": []}, "options": {},
                        "targets": [{"refId": chr(ord("A") + i), "datasource": source, "expr": query, "legendFormat": legend}
                                    for i, (query, legend) in enumerate(asked)]})
        top += height * -(-len(inside) // (24 // width))

    def variable(name, label, query):
        return {"name": name, "label": label, "type": "query", "datasource": source, "query": query, "refresh": 2,
                "includeAll": True, "multi": True, "allValue": ".*", "current": {"text": "All", "value": "$__all"}}
    whole = {"title": "Tocsin: the router", "uid": "tocsin-router", "tags": ["tocsin"], "schemaVersion": 39, "editable": True,
             "refresh": "30s", "time": {"from": "now-6h", "to": "now"}, "panels": out, "templating": {"list": [
                 {"name": "source", "label": "Prometheus", "type": "datasource", "query": "prometheus"},
                 variable("instance", "Process", "label_values(tocsin_router_lease_held, instance)"),
                 variable("integration", "Integration", "label_values(tocsin_router_breaker_state, integration)")]}}
    return json.dumps(whole, indent=1) + "\n"


def table_text():
    rows = "".join(f"| {row if i == 0 else ''} | {title} | {looks} |\n"
                   for row, inside in ROWS for i, (title, _, _, looks, _) in enumerate(inside))
    return "| Row | Panel | Look for |\n|---|---|---|\n" + rows


def stale(write):
    """What is not as it is declared here; `write`: it is from now on."""
    page = PAGE.read_text()
    new = TABLE.sub(lambda match: match[1] + "\n" + table_text() + "\n" + match[3], page)
    for path, text, there in ((DASHBOARD, dashboard_text(), DASHBOARD.read_text() if DASHBOARD.exists() else ""), (PAGE, new, page)):
        if text == there:
            continue
        if write:
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text)
        else:
            yield f"{path.relative_to(ROOT)} is not what tools/docs_dashboard.py says: run tools/docs"
