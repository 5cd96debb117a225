"""Grafana IRM's integration of the type Formatted Webhook.

Contract: grafana.com/docs, "Configure OnCall incoming webhooks" (fields, grouping by alert_uid, state), "Rate limits for Grafana IRM" (429).
"""
from tests.fakes.far_side import Checks, FarSide, Refused


class GrafanaIrm(FarSide):
    """`messages` are alert groups: {alert_uid, status, alerts}."""

    PATH = "/integrations/v1/formatted_webhook/"

    @property
    def url(self):
        return self.root + self.PATH + self.secret.replace("/", "") + "/"

    def answer(self, method, path, query, headers, body):
        if path != self.PATH + self.secret.replace("/", "") + "/":
            raise Refused(403, "Integration key was not found. Permission denied.", path)
        if method != "POST":
            raise Refused(405, "method not allowed", method)
        check = Checks(lambda why: Refused(400, why, why))
        alert = check.json_object(headers, body)
        # Further fields are data for templates; ours are severity and job.
        check.keys("alert", alert, ("alert_uid", "title", "state"), ("message", "link_to_upstream_details", "image_url", "severity", "job"))
        check.one_of("state", alert["state"], ("alerting", "ok"))
        for field in ("alert_uid", "title", "message"):
            check.text(field, alert.get(field, "-"), 20_000)
        if "link_to_upstream_details" in alert:
            check.web_page("link_to_upstream_details", alert["link_to_upstream_details"])
        group = next((one for one in self.messages if one["alert_uid"] == alert["alert_uid"] and one["status"] != "resolved"), None)
        if group is None and alert["state"] == "alerting":
            group = {"alert_uid": alert["alert_uid"], "status": "firing", "alerts": []}
            self.messages.append(group)
        if group is not None:
            group["alerts"].append(alert)
            if alert["state"] == "ok":
                group["status"] = "resolved"
        return 200, "Ok."

    def text_of(self, message):
        return f"{message['status']}\n" + "\n\n".join(f"{alert['title']}\n{alert['message']}\n{alert.get('link_to_upstream_details', '')}"
                                                      for alert in message["alerts"])
