"""PagerDuty with people in it: a webhook subscription (v3) tells of what they do to incidents.

Contract: developer.pagerduty.com, Webhooks v3 overview (envelope `event`: id, event_type, resource_type, occurred_at, agent or null,
client or null, data; retries repeat the id), "Verifying signatures" (X-PagerDuty-Signature: `v1=` HMAC-SHA256 of the body, several
between commas while secrets change).
"""
import datetime
import hashlib
import hmac
import http.client
import json
import urllib.parse

from tests.fakes.pagerduty import PagerDuty

STATUS = {"incident.acknowledged": "acknowledged", "incident.unacknowledged": "triggered", "incident.resolved": "resolved"}


class PagerDutyWebhooks(PagerDuty):
    signing_secret = "0123456789-signing-secret"

    def __init__(self):
        super().__init__()
        self._sent = 0

    @staticmethod
    def reference(kind, name, identity):
        return {"html_url": f"https://acme.pagerduty.com/{kind}s/{identity}", "id": identity, "self": f"https://api.pagerduty.com/{kind}s/{identity}",
                "summary": name, "type": f"{kind}_reference"}

    def envelope(self, event_type, incident, agent="Ada Lovelace"):
        """What PagerDuty sends when `agent` (None: nobody, such as a rule) does this to the incident; it is so from now on."""
        self._sent += 1
        incident["status"] = STATUS.get(event_type, incident["status"])
        ada = self.reference("user", agent or "Ada Lovelace", "PADA01")
        now = datetime.datetime.now(datetime.timezone.utc).isoformat(timespec="milliseconds").replace("+00:00", "Z")
        data = {"id": "Q1TOCSIN", "type": "incident", "self": "https://api.pagerduty.com/incidents/Q1TOCSIN",
                "html_url": "https://acme.pagerduty.com/incidents/Q1TOCSIN", "number": 17, "status": incident["status"],
                "incident_key": incident["dedup_key"], "created_at": now, "title": incident.get("summary", ""),
                "service": self.reference("service", "ML training", "PSVC01"), "assignees": [ada],
                "escalation_policy": self.reference("escalation_policy", "Default", "PESC01"), "teams": [], "priority": None, "urgency": "high",
                "conference_bridge": None, "resolve_reason": None, "incident_type": {"name": "incident_default"}}
        return {"event": {"id": f"01TOCSIN{self._sent:012}", "event_type": event_type, "resource_type": "incident", "occurred_at": now,
                          "agent": ada if agent else None, "client": None if agent else {"name": "Monitoring Service"}, "data": data}}

    @staticmethod
    def ping():
        return {"event": {"id": "01PING", "event_type": "pagey.ping", "resource_type": "pagey",
                          "occurred_at": datetime.datetime.now(datetime.timezone.utc).isoformat().replace("+00:00", "Z"), "agent": None, "client": None,
                          "data": {"message": "Hello from your friend Pagey!", "type": "ping"}}}

    def post(self, hook, envelope, secret=None, also=""):
        """(status, text) of a delivery. `also`: a further signature before ours."""
        body = json.dumps(envelope).encode()
        signature = "v1=" + hmac.new((secret or self.signing_secret).encode(), body, hashlib.sha256).hexdigest()
        parts = urllib.parse.urlsplit(hook)
        connection = http.client.HTTPConnection(parts.hostname, parts.port, timeout=30)
        connection.request("POST", parts.path, body, {"Content-Type": "application/json", "Accept": "application/json", "User-Agent": "PagerDuty-Webhook/V3.0",
                                                      "X-Webhook-Id": "01WEBHOOK", "X-PagerDuty-Signature": also + signature})
        answer = connection.getresponse()
        text = answer.read().decode()
        connection.close()
        return answer.status, text
