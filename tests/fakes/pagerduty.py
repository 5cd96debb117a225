"""PagerDuty's Events API v2.

Contract: developer.pagerduty.com, Events API v2: "Send an alert event" (fields, which are required, limits, answers 202, 400, 429).
"""
import re

from tests.fakes.far_side import Checks, FarSide, Refused

TIME = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?(Z|[+-]\d\d:?\d\d)")


class PagerDuty(FarSide):
    """`messages` are incidents: {dedup_key, status, summary, events}."""

    @property
    def url(self):
        return self.root + "/v2/enqueue"

    @property
    def routing_key(self):
        return self.secret.replace("/", "").ljust(32, "0")

    @staticmethod
    def _bad(why):
        return Refused(400, {"status": "invalid event", "message": "Event object is invalid", "errors": [why]}, why)

    def answer(self, method, path, query, headers, body):
        if (method, path) != ("POST", "/v2/enqueue"):
            raise Refused(404, {"status": "not found"}, path)
        check = Checks(self._bad)
        if len(body) > 512 * 1024:
            raise Refused(413, {"status": "payload too large"}, "over 512 KB")
        event = check.json_object(headers, body)
        check.keys("event", event, ("routing_key", "event_action"), ("dedup_key", "payload", "images", "links", "client", "client_url"))
        if event["routing_key"] != self.routing_key:
            raise self._bad("Invalid routing key")
        check.one_of("event_action", event["event_action"], ("trigger", "acknowledge", "resolve"))
        if event["event_action"] != "trigger" or "dedup_key" in event:
            check.text("dedup_key", event.get("dedup_key"), 255)
        if event["event_action"] == "trigger":
            self._payload(check, event.get("payload"))
        for link in event.get("links", []):
            check.keys("link", link, ("href",), ("text",))
            check.web_page("link.href", link["href"])
        self._apply(event)
        return 202, {"status": "success", "message": "Event processed", "dedup_key": event["dedup_key"]}

    @staticmethod
    def _payload(check, payload):
        check.keys("payload", payload, ("summary", "source", "severity"), ("timestamp", "component", "group", "class", "custom_details"))
        check.text("payload.summary", payload["summary"], 1024)
        check.text("payload.source", payload["source"], 1024)
        check.one_of("payload.severity", payload["severity"], ("critical", "error", "warning", "info"))
        if not TIME.fullmatch(payload.get("timestamp", "2026-01-01T00:00:00Z")):
            raise check.refuse("payload.timestamp")
        if not isinstance(payload.get("custom_details", {}), dict):
            raise check.refuse("payload.custom_details")

    def _apply(self, event):
        known = next((one for one in self.messages if one["dedup_key"] == event["dedup_key"] and one["status"] != "resolved"), None)
        if event["event_action"] == "trigger" and known is None:
            known = {"dedup_key": event["dedup_key"], "status": "triggered", "events": []}
            self.messages.append(known)
        if known is not None:  # an acknowledge or a resolve of none is taken and ignored
            known["events"].append(event)
            known["status"] = {"trigger": known["status"], "acknowledge": "acknowledged", "resolve": "resolved"}[event["event_action"]]

    def text_of(self, message):
        first = message["events"][0]
        payload = first["payload"]
        return "\n".join([f"{message['status']}: {payload['summary']}  ({payload['severity']}, {payload['source']})",
                          *(f"  {name}: {value}" for name, value in payload.get("custom_details", {}).items()),
                          *(f"[{link['text']}] {link['href']}" for link in first.get("links", []))])
