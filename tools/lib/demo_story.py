"""What has happened so far in one demo scenario, put together from tocsin's log and the script's progress."""

import json
import re
import time

ACTIONS = ("stop_training", "email", "mqtt", "webhook", "publish_metric")
SEVERITIES = ("info", "warning", "error", "critical")
GOOD_STATES = {"delivered", "delivered_via_digest", "sent_unconfirmed"}
STOP_PHASES = {
    "requested": "asked to stop", "received": "request has reached the training process",
    "accepted": "training loop has seen it", "checkpointing": "saving a checkpoint",
    "checkpoint_done": "checkpoint saved", "checkpoint_failed": "checkpoint FAILED",
    "stopping": "loop acknowledged, is ending", "stopped": "training process has ended",
    "refused": "refused",
}
TIME = re.compile(r"(\d+-\d+-\d+)[T ](\d+:\d+:\d+)(\.\d+)?(Z|[+-]\d\d:?\d\d)?$")


def nanoseconds(text):
    """Nanoseconds since 1970 of an RFC 3339 time; None for anything else. Keeps every digit."""
    import calendar

    match = TIME.match(text) if isinstance(text, str) else None
    if not match:
        return None
    seconds = calendar.timegm(time.strptime(f"{match[1]} {match[2]}", "%Y-%m-%d %H:%M:%S"))
    zone = (match[4] or "Z").replace(":", "")
    if zone != "Z":
        seconds -= int(zone[0] + "1") * (int(zone[1:3]) * 3600 + int(zone[3:5]) * 60)
    return seconds * 10**9 + int((match[3] or ".0")[1:10].ljust(9, "0"))


class Story:
    """Feed it lines; it answers with what a person should be told: a list of (kind, text).

    Several threads write tocsin's log, so an effect may be logged before its cause: a delivery waits here for the
    issue and the decision behind it, the loop's answer to a stop for the delivery of the stop.
    """

    def __init__(self, name):
        self.name, self.run = name, None
        self.issues, self.stop, self.decided, self.deliveries = [], {}, {}, {}
        self.step, self.steps, self.loss, self.began, self.last = 0, None, None, None, None
        self.checkpoint, self.stopped_at, self.accuracy = None, None, None
        self.told_units, self.closes, self.opened = {}, set(), set()
        self.waiting = []  # (handler, record) of effects whose cause is still to come

    # --- the training script's progress

    def training(self, line):
        try:
            record = json.loads(line)
        except ValueError:
            return [("training", line.rstrip())] if line.strip() else []
        event = record.get("event")
        if event == "start":
            self.run, self.steps, self.began = record.get("run"), record.get("steps"), time.monotonic()
            return [("start", f"{record.get('parameters', 0):,} parameters, {record.get('samples', 0):,} images, "
                              f"PyTorch {record.get('torch', '?')}, {self.steps} steps planned")]
        if event == "step":
            self.step, self.loss, self.last = record["step"], record["loss"], time.monotonic()
        elif event == "eval":
            self.accuracy = record.get("accuracy")
        elif event in ("stopped", "finished"):
            self.stopped_at = record.get("step") if event == "stopped" else None
            self.checkpoint = record.get("checkpoint")
        return []

    def rate(self):
        if not self.last or self.last <= self.began:
            return 0.0
        return self.step / (self.last - self.began)

    # --- tocsin's log

    def tocsin(self, line):
        try:
            record = json.loads(line)
        except ValueError:
            return []
        if not isinstance(record, dict) or record.get("run") not in (None, "", self.run):
            return []  # of another run
        handler = getattr(self, "_" + str(record.get("msg")), None)
        if handler:
            return handler(record) + self._caught_up()
        if record.get("level") in ("error", "warn", "warning"):
            fields = " ".join(f"{k}={v}" for k, v in record.items() if k not in ("ts", "level", "msg"))
            return [("log", f"{record.get('level')}: {record.get('msg')} {fields}")]
        return []

    def _caught_up(self):
        """What waited and need not any more, in the order of its causes."""
        told, left = [], []
        for handler, record in self.waiting:
            if self._has_cause(record):
                told += handler(record)
            else:
                left.append((handler, record))
        changed, self.waiting = len(left) < len(self.waiting), left
        return told + (self._caught_up() if changed and left else [])

    def _has_cause(self, record):
        if record.get("msg") == "stop_progress":
            return "stop_training" in self.deliveries
        return bool(self.issues) and record.get("notification_id") in self.opened

    def rest(self):
        """What waited for a cause that never came; call it at the end."""
        waiting, self.waiting = self.waiting, []
        return [item for handler, record in waiting if record.get("msg") == "stop_progress" for item in handler(record)]

    def _issue_fired(self, record):
        self.issues.append(record)
        rule = record.get("rule", "?")
        units = self.told_units.setdefault((rule, record.get("kind")), [])
        units.append(unit_of(record))
        if len(units) > 1:
            return []  # one bad step makes every tensor fire; the table counts them
        return [("issue", f"step {record.get('step', '?')}  {rule} ({record.get('severity', '?')})  "
                          f"{sentence(record)}")]

    def _notification_decided(self, record):
        if record.get("kind") == "close":
            self.closes.add(record.get("notification_id"))
        else:
            self.opened.add(record.get("notification_id"))
            self.decided.setdefault(record.get("type"), record)
        return []

    def _delivery_finished(self, record):
        if record.get("notification_id") in self.closes:
            return []  # the end of the alarm
        if not self._has_cause(record):
            self.waiting.append((self._delivery_finished, record))
            return []
        kind = record.get("type")
        known = self.deliveries.get(kind)
        if known and good(known):
            return []  # more of the same: the first one is the story
        self.deliveries[kind] = record
        latency = record.get("latency_ms")
        detail = f"  {float(latency):.1f} ms" if isinstance(latency, (int, float)) else ""
        attempt = f", attempt {record['attempt']}" if (record.get("attempt") or 1) > 1 else ""
        code = f" ({record['code']})" if record.get("code") else ""
        return [("good" if good(record) else "bad", f"{kind:<15} {record.get('state', '?')}{code}{attempt}{detail}")]

    def _stop_progress(self, record):
        phase = record.get("phase")
        if phase in self.stop:
            return []
        self.stop[phase] = record
        if not self._has_cause(record):
            self.waiting.append((self._stop_phase, record))
            return []
        return self._stop_phase(record)

    def _stop_phase(self, record):
        phase = record.get("phase")
        step = f" at step {record['step']}" if record.get("step") else ""
        return [("stop", f"{'stop_training':<15} {STOP_PHASES.get(phase, phase)}{step}")]

    # --- what it comes to

    def fired(self):
        """{rule: [issues]} in the order of first firing."""
        found = {}
        for issue in self.issues:
            found.setdefault(issue.get("rule", "?"), []).append(issue)
        return found

    def worst_first(self):
        """The rules that fired, by their severity."""
        def worst(rule):
            return max(SEVERITIES.index(issue.get("severity")) if issue.get("severity") in SEVERITIES else -1
                       for issue in self.fired()[rule])
        return sorted(self.fired(), key=worst, reverse=True)

    def stop_acknowledged(self):
        return "stopping" in self.stop or "stopped" in self.stop

    def stages(self):
        """[(what, milliseconds since the stage before, milliseconds since the start)] of the stop."""
        issue = self._issue_behind_the_stop()
        decided = self.decided.get("stop_training", {})
        delivered = self.deliveries.get("stop_training", {})
        points = [
            ("tensor measured in the training process", issue.get("measured_at")),
            ("frame published", issue.get("published_at")),
            ("rule evaluated, issue fired", issue.get("evaluated_at")),
            ("routed: stop decided", delivered.get("decided_at") or decided.get("ts")),
            ("stop command sent", delivered.get("sent_at")),
        ] + [(text, self.stop.get(phase, {}).get("at")) for text, phase in (
            ("command received by the hook", "received"), ("seen by the training loop", "accepted"),
            ("checkpoint saved", "checkpoint_done"), ("stop acknowledged by the loop", "stopping"))]
        known = [[nanoseconds(at), text] for text, at in points if nanoseconds(at)]
        for before, point in zip(known, known[1:]):
            point[0] = max(point[0], before[0])  # clocks of several processes: no effect before its cause
        return [(text, (at - known[max(0, i - 1)][0]) / 1e6, (at - known[0][0]) / 1e6)
                for i, (at, text) in enumerate(known)]

    def _issue_behind_the_stop(self):
        rule = next((r.get("rule") for r in self.stop.values() if r.get("rule")), None)
        decided = self.decided.get("stop_training", {})
        rule = rule or decided.get("rule") or next(iter(re.findall(r'rule="(\w+)"', decided.get("group_key", ""))), None)
        candidates = [issue for issue in self.issues if rule in (None, issue.get("rule"))]
        timed = [issue for issue in candidates if nanoseconds(issue.get("evaluated_at"))]
        return min(timed, key=lambda issue: nanoseconds(issue["evaluated_at"]), default={})


def good(delivery):
    return delivery.get("state") in GOOD_STATES


def unit_of(issue):
    return issue.get("tensor") or issue.get("metric") or issue.get("worker") or ""


def sentence(issue):
    return (issue.get("summary") or f"{unit_of(issue)} {issue.get('kind') or ''}").strip()
