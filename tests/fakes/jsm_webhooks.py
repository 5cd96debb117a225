"""Jira Service Management operations with people in it: a webhook integration tells of what they do to alerts.

Contract: support.atlassian.com, "Alert action data" (source, alert with alias and username, action, integrationId, integrationName;
times in two units), webhook integration (custom headers).
"""
import http.client
import json
import time
import urllib.parse

from tests.fakes.jsm import Jsm


class JsmWebhooks(Jsm):
    webhook_token = "0123456789-of-the-desk"

    def action_data(self, action, alert, username="bob@example.org", **more):
        """What is sent when that person does this to the alert; it is so from now on."""
        if action in ("Acknowledge", "UnAcknowledge"):
            alert["acknowledged"] = action == "Acknowledge"
        now = time.time()
        return {"source": {"name": "", "type": "web"},
                "alert": {"updatedAt": int(now * 1e9), "tags": [], "message": alert.get("message", ""), "username": username,
                          "alertId": "052652ac-5d1c-464a-812a-7dd18bbfba8c", "source": "tocsin", "alias": alert["alias"], "tinyId": "23",
                          "createdAt": int(now * 1e3), "userId": "daed1180-0ce8-438b-8f8e-57e1a5920a2d", "entity": "", "priority": "P2", **more},
                "action": action, "integrationId": "37c8f316-17c6-49d7-899b-9c7e540c048d", "integrationName": "Tocsin",
                "integrationType": "Webhook"}

    def post(self, hook, data, token=None):
        """(status, text) of a delivery."""
        parts = urllib.parse.urlsplit(hook)
        connection = http.client.HTTPConnection(parts.hostname, parts.port, timeout=30)
        connection.request("POST", parts.path, json.dumps(data).encode(),
                           {"Content-Type": "application/json", "User-Agent": "JSM-Webhook", "Authorization": f"Bearer {token or self.webhook_token}"})
        answer = connection.getresponse()
        text = answer.read().decode()
        connection.close()
        return answer.status, text
