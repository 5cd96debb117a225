"""The integration events API of Jira Service Management operations, which is also Opsgenie's Alert API.

Contract: developer.atlassian.com, JSM operations, "Integration events" (fields, GenieKey, identifierType); docs.opsgenie.com, Alert API
(limits, 202 with requestId, get request status, "Alert does not exist").
"""
import re

from tests.fakes.far_side import Checks, FarSide, Refused

LIMITS = {"alias": 512, "description": 15_000, "entity": 512, "source": 100, "user": 100, "note": 25_000}


class Jsm(FarSide):
    """`messages` are alerts: {alias, status, count, message, …, notes}. `slow`: how many questions for a result come too early."""

    PATH = "/jsm/ops/integration/v2/alerts"

    def __init__(self):
        super().__init__()
        self.slow, self._results = 0, {}

    @property
    def url(self):
        return self.root + self.PATH

    @property
    def api_key(self):
        return self.secret.replace("/", "-") + "-genie"

    @staticmethod
    def _bad(why):
        return Refused(422, {"message": "Request body is not processable. Please check the errors.", "errors": {"_": why}, "took": 0.0, "requestId": "r"}, why)

    def answer(self, method, path, query, headers, body):
        if headers.get("authorization") != f"GenieKey {self.api_key}":
            raise Refused(401, {"message": "Could not authenticate", "took": 0.0}, "key")
        below = path[len(self.PATH):] if path.startswith(self.PATH) else None
        asked = re.fullmatch(r"/requests/([\w-]+)", below or "")
        if method == "GET" and asked:
            return self._status(asked[1])
        check = Checks(self._bad)
        changed = re.fullmatch(r"/([^/]+)/(close|notes|acknowledge)", below or "")
        if method != "POST" or below is None or (below and not changed):
            raise Refused(404, {"message": "No HTTP resource was found"}, f"{method} {path}")
        event = check.json_object(headers, body)
        for field, most in LIMITS.items():
            if field in event:
                check.text(field, event[field], most)
        if not changed:
            self._create(check, event)
            return self._accepted("Created alert", True, self._apply(event))
        if query != {"identifierType": "alias"}:
            raise self._bad(f"identifierType: {query}")
        check.keys("event", event, ("note",) if changed[2] == "notes" else (), ("user", "source", "note"))
        alert = next((one for one in self.messages if one["alias"] == changed[1] and one["status"] == "open"), None)
        if alert is None:
            return self._accepted("Alert does not exist", False, "")
        alert["notes"].append(event.get("note", ""))
        alert["acknowledged"] = alert["acknowledged"] or changed[2] == "acknowledge"
        if changed[2] == "close":
            alert["status"] = "closed"
        return self._accepted({"close": "Closed alert", "notes": "Added note", "acknowledge": "Acknowledged alert"}[changed[2]], True, alert["id"])

    def _accepted(self, status, done, alert):
        request = f"req-{len(self._results)}"
        self._results[request] = {"success": done, "isSuccess": done, "status": status, "alertId": alert, "processedAt": "2026-01-02T03:04:05Z"}
        return 202, {"result": "Request will be processed", "took": 0.3, "requestId": request}

    def _status(self, request):
        if self.slow > 0:
            self.slow -= 1
            return 404, {"message": "Request not found. It might not be processed, yet.", "took": 0.0, "requestId": "q"}
        if request not in self._results:
            raise Refused(404, {"message": "Request not found. It might not be processed, yet."}, request)
        return 200, {"data": self._results[request], "took": 0.0, "requestId": "q"}

    @staticmethod
    def _create(check, event):
        check.keys("alert", event, ("message",), ("alias", "description", "responders", "visibleTo", "actions", "tags", "details", "entity", "source",
                                                  "priority", "user", "note"))
        check.text("message", event["message"], 130)
        check.one_of("priority", event.get("priority", "P3"), ("P1", "P2", "P3", "P4", "P5"))
        for field, types in (("responders", ("team", "user", "escalation", "schedule")), ("visibleTo", ("team", "user"))):
            check.items(field, event.get(field, []), 50, 0)
            for one in event.get(field, []):
                check.keys(field, one, ("type",), ("id", "name", "username"))
                check.one_of(f"{field}.type", one["type"], types)
        for field, most in (("tags", 20), ("actions", 10)):
            check.items(field, event.get(field, []), most, 0)
            for one in event.get(field, []):
                check.text(field, one, 50)
        details = event.get("details", {})
        if not all(isinstance(value, str) for value in details.values()):
            raise check.refuse("details: a value is no text")
        if sum(len(key) + len(value) for key, value in details.items()) > 8000:
            raise check.refuse("details: over 8000 characters")

    def _apply(self, event):
        known = next((one for one in self.messages if one["alias"] == event["alias"] and one["status"] == "open"), None)
        if known is None:
            known = {**event, "id": f"alert-{len(self.messages)}", "status": "open", "acknowledged": False, "count": 0, "notes": []}
            self.messages.append(known)
        known["count"] += 1
        return known["id"]

    def text_of(self, message):
        return "\n".join([f"{message['status']}: {message['message']}  ({message['priority']}, {message['entity']})", message["description"],
                          *(f"-- note --\n{note}" for note in message["notes"])])
