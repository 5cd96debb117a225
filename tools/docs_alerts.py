"""Alert rules about Tocsin itself, declared once: the file for Prometheus and the table of docs/alerts.md follow from here."""
import pathlib
import re

ROOT = pathlib.Path(__file__).resolve().parents[1]
RULES = ROOT / "deploy" / "prometheus" / "tocsin-alerts.yaml"
PAGE = ROOT / "docs" / "alerts.md"
TABLE = re.compile(r"(<!-- alerts:begin -->\n)(.*?)(<!-- alerts:end -->)", re.DOTALL)

# name, expression, for, severity, summary, what to do, in words for the table
ALERTS = [
    ("TocsinNobodyRoutes", "absent(tocsin_router_lease_held == 1)", "5m", "critical",
     "No process routes and delivers.",
     "Look at the processes: `tocsin status`, and the log of each. Until one leads, nobody is told of any issue.",
     "no process holds the lease"),
    ("TocsinNotificationUndelivered", "max by (integration) (tocsin_router_notification_oldest_pending_seconds) > 300", "0m", "error",
     "{{ $labels.integration }} has not delivered a notification for {{ $value | humanizeDuration }}.",
     "`tocsin endpoint list` shows why; `tocsin history --state pending` shows what waits.",
     "a notification is undelivered for more than 5 minutes"),
    ("TocsinNotificationDead", "sum by (integration) (increase(tocsin_router_dead_letters_total[15m])) > 0", "0m", "error",
     "{{ $labels.integration }} gave up {{ $value | humanize }} notifications in 15 minutes.",
     "`tocsin dlq list` shows them; `tocsin dlq replay` sends them again.",
     "a notification was given up in the last 15 minutes"),
    ("TocsinDeadLettersWait", "max by (integration) (sum by (instance, integration) (tocsin_router_dead_letters)) > 0", "1h", "warning",
     "{{ $value | humanize }} dead letters of {{ $labels.integration }} wait for somebody.",
     "`tocsin dlq list` shows them: replay or discard each.",
     "dead letters were neither replayed nor discarded for an hour"),
    ("TocsinBreakerOpen", "max by (integration) (tocsin_router_breaker_state) == 2", "2m", "error",
     "The breaker of {{ $labels.integration }} is open.",
     "Its far side fails. `tocsin endpoint probe` asks it now.",
     "a breaker is open for 2 minutes"),
    ("TocsinFlushLate", "histogram_quantile(0.99, sum by (le) (rate(tocsin_router_flush_late_seconds_bucket[10m]))) > 10", "10m", "warning",
     "Groups are flushed {{ $value | humanizeDuration }} late.",
     "The router has too much to do or too little processor time.",
     "1 % of flushes is more than 10 s late"),
    ("TocsinOwedResolvesGrow", "sum(deriv(tocsin_router_owed_resolves[1h])) * 3600 > 10 and sum(tocsin_router_owed_resolves) > 100", "30m", "warning",
     "{{ $value | humanize }} more resolves per hour wait for the end of a suppression.",
     "A silence or a mute interval lasts too long: `tocsin silence list`.",
     "owed resolves grow by more than 10 per hour, beyond 100"),
    ("TocsinConfigReloadFailed", "min by (instance) (tocsin_config_last_reload_successful) == 0", "1m", "warning",
     "{{ $labels.instance }} runs with an old configuration.",
     "`tocsin check` shows the errors of the file.",
     "the last reload of a configuration failed"),
    ("TocsinStopFailed", 'sum(increase(tocsin_router_stop_commands_total{outcome=~"failed|expired"}[15m])) > 0', "0m", "error",
     "{{ $value | humanize }} stops of runs failed in 15 minutes.",
     "`tocsin status` shows the stops and what they wait for.",
     "a stop failed or expired in the last 15 minutes"),
    ("TocsinStateNotDurable", "max by (stage) (tocsin_router_changelog_lag_seconds) > 30", "1m", "error",
     "Changes of stage {{ $labels.stage }} have waited {{ $value | humanizeDuration }} to be durable.",
     "Commits fail or hang: the log says why (`commit_failed`). Look at the broker or the disk.",
     "a change of state is not durable after 30 s"),
    ("TocsinTableBehind", "max by (stage) (tocsin_router_global_table_lag_seconds) > 30", "1m", "error",
     "Stage {{ $labels.stage }} has not read its topics to their end for {{ $value | humanizeDuration }}.",
     "Stops, captures and dead letters are judged by what is read. Look at the broker and at the processor time.",
     "a topic that the router keeps whole was not read to its end for 30 s"),
    ("TocsinInsecureSettings", "sum by (setting) (tocsin_insecure_settings) > 0", "1h", "info",
     "A setting gives up a protection: {{ $labels.setting }}.",
     "`tocsin check` names its place. Mend it, or silence this alert if it is meant.",
     "a setting gives up a protection"),
    ("TocsinStateFaults", 'sum by (stage) (increase({__name__=~"tocsin_(router|rules|collectors)_state_faults_total"}[15m])) > 0', "0m", "warning",
     "Stage {{ $labels.stage }} met damaged or missing state.",
     "The log says which (`state_incomplete`).",
     "a stage met damaged state in the last 15 minutes"),
    ("TocsinStoreStopped", "min by (instance, store) (tocsin_insights_up) == 0", "5m", "warning",
     "{{ $labels.instance }} does not write its store of {{ $labels.store }}.",
     "The log says why (`insights_failed`, `curves_failed`): a full disk, missing rights, or a second process with the same path. "
     "Rules and messages go on; the page shows nothing new.",
     "a store that the page is drawn from is not written for 5 minutes"),
    ("TocsinStoreBehind", "max by (instance, topic) (tocsin_insights_lag_seconds > 300 and deriv(tocsin_insights_lag_seconds[10m]) >= 0)", "10m", "warning",
     "{{ $labels.instance }} shows topic {{ $labels.topic }} {{ $value | humanizeDuration }} late, and falls further behind.",
     "More is written than it reads. Look at its processor time and its disk (`tocsin_insights_commit_seconds`).",
     "a store is more than 5 minutes behind its topic and does not catch up"),
    ("TocsinStoreGaps", "sum by (instance, store) (increase(tocsin_insights_gaps_total[15m])) > 0", "0m", "warning",
     "Records were gone before {{ $labels.instance }} read them into its store of {{ $labels.store }}.",
     "The topic keeps less than the process was away or behind. The page lacks them for good: lengthen the retention of the topic.",
     "records were gone from a topic before a store had read them, in the last 15 minutes"),
]
HEAD = """# Alerts about Tocsin itself, for Prometheus (rule_files). Written by tools/docs from tools/docs_alerts.py.
groups:
  - name: tocsin
    rules:
"""


def quoted(text):
    return "'" + text.replace("'", "''") + "'"


def rules_text():
    out = HEAD
    for name, expression, duration, severity, summary, advice, _ in ALERTS:
        out += (f"      - alert: {name}\n        expr: {quoted(expression)}\n        for: {duration}\n"
                f"        labels: {{severity: {severity}}}\n        annotations:\n"
                f"          summary: {quoted(summary)}\n          description: {quoted(advice)}\n")
    return out


def table_text():
    rows = "".join(f"| `{name}` | {severity} | {when} | {duration} |\n" for name, _, duration, severity, _, _, when in ALERTS)
    return "| Alert | Severity | Fires when | For |\n|---|---|---|---|\n" + rows


def metrics():
    """The names of all metrics that the rules ask for; a pattern of names stands as it is."""
    names = set()
    for _, expression, *_ in ALERTS:
        names |= set(re.findall(r"tocsin_[a-z_]+", re.sub(r"\{__name__=~\"[^\"]*\"\}", "", expression)))
    return {re.sub("_(bucket|sum|count)$", "", name) for name in names}


def stale(write):
    """What is not as it is declared here; `write`: it is from now on."""
    page = PAGE.read_text()
    new = TABLE.sub(lambda match: match[1] + "\n" + table_text() + "\n" + match[3], page)
    for path, text, there in ((RULES, rules_text(), RULES.read_text() if RULES.exists() else ""), (PAGE, new, page)):
        if text == there:
            continue
        if write:
            path.write_text(text)
        else:
            yield f"{path.relative_to(ROOT)} is not what tools/docs_alerts.py says: run tools/docs"
