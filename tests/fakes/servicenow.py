"""A ServiceNow instance: Event Management's web service, and the Table API of `incident`.

Contract: servicenow.com/docs, "Pushing events to the instance using web service API" (fields, severities, additional_info as text,
time_of_event), "Table API" (sysparm_query, sysparm_fields, sysparm_limit; 201, 200, 401, 403, 404).
"""
import base64
import json
import re

from tests.fakes.far_side import Checks, FarSide, Refused

EVENT = ("source", "event_class", "node", "resource", "metric_name", "type", "message_key", "severity", "description", "additional_info",
         "time_of_event", "resolution_state")
INCIDENT = {"short_description": 160, "description": 4000, "correlation_id": 100, "correlation_display": 100, "impact": 1, "urgency": 1, "work_notes": 4000,
            "state": 2, "close_code": 40, "close_notes": 4000, "assignment_group": 100}


class ServiceNow(FarSide):
    """`messages` are incidents, or alerts made of events: {message_key, severity, events}."""

    user = "tocsin"

    @property
    def password(self):
        return self.secret + "-snow"

    @staticmethod
    def _error(status, why):
        return Refused(status, {"error": {"message": why, "detail": ""}, "status": "failure"}, why)

    def answer(self, method, path, query, headers, body):
        wanted = "Basic " + base64.b64encode(f"{self.user}:{self.password}".encode()).decode()
        if headers.get("authorization") != wanted:
            raise self._error(401, "User Not Authenticated")
        if headers.get("accept") != "application/json":
            raise self._error(406, "accept")
        check = Checks(lambda why: self._error(400, why))
        if (method, path) == ("POST", "/api/global/em/jsonv2"):
            return self._events(check, check.json_object(headers, body))
        table = re.fullmatch(r"/api/now/table/incident(?:/([0-9a-f]{32}))?", path)
        if not table:
            raise self._error(404, path)
        check.keys("query", query, ("sysparm_fields",), ("sysparm_query", "sysparm_limit"))
        fields = query["sysparm_fields"].split(",")

        def shown(record):
            return {field: record.get(field, "") for field in fields}
        if method == "GET" and not table[1]:
            return 200, {"result": [shown(one) for one in self._found(query["sysparm_query"])][:int(query["sysparm_limit"])]}
        record = check.json_object(headers, body)
        check.keys("incident", record, (), INCIDENT)
        for field, value in record.items():
            check.text(field, value, INCIDENT[field])
        if method == "POST" and not table[1]:
            check.keys("incident", record, ("short_description", "correlation_id"), INCIDENT)
            made = {"state": "1", "active": "true", "work_notes_all": [], **record, "sys_id": f"{len(self.messages):032x}",
                    "number": f"INC{10_000 + len(self.messages):07}"}
            self.messages.append(made)
            return 201, {"result": shown(made)}
        known = next((one for one in self.messages if one["sys_id"] == table[1]), None)
        if method != "PATCH" or known is None:
            raise self._error(404, "No Record found")
        if known["active"] == "false":
            raise self._error(403, "Operation Failed: ACL Exception Update Failed due to security constraints")
        if record.get("state") == "6" and not (record.get("close_code") and record.get("close_notes")):
            raise self._error(403, "Data Policy Exception: close_code and close_notes are mandatory")
        if "work_notes" in record:
            known["work_notes_all"].append(record["work_notes"])
        known.update(record)
        return 200, {"result": shown(known)}

    def _found(self, query):
        out = self.messages
        for term in query.split("^"):
            name, operator, value = re.fullmatch(r"(\w+)(!?=)(.*)", term).groups()
            out = [one for one in out if (one.get(name) == value) == (operator == "=")]
        return out

    def _events(self, check, body):
        check.keys("body", body, ("records",))
        check.items("records", body["records"], 1000)
        for event in body["records"]:
            check.keys("event", event, ("source", "severity", "message_key"), EVENT)
            check.text("source", event["source"], 100)
            check.one_of("severity", event["severity"], ("0", "1", "2", "3", "4", "5"))
            check.one_of("resolution_state", event.get("resolution_state", "New"), ("New", "Closing"))
            check.text("description", event.get("description", "-"), 4000)
            if not re.fullmatch(r"\d{4}-\d\d-\d\d \d\d:\d\d:\d\d", event.get("time_of_event", "")):
                raise check.refuse("time_of_event")
            if not isinstance(json.loads(event.get("additional_info", "{}")), dict):
                raise check.refuse("additional_info")
            alert = next((one for one in self.messages if one["message_key"] == event["message_key"] and one["severity"] != "0"), None)
            if alert is None:
                alert = {"message_key": event["message_key"], "events": []}
                self.messages.append(alert)
            alert["severity"] = event["severity"]
            alert["events"].append(event)
        return 200, {"result": {"Default Bulk Endpoint": f"{len(body['records'])} events were inserted"}}

    def text_of(self, message):
        if "events" in message:
            return f"severity {message['severity']}\n" + "\n\n".join(event["description"] for event in message["events"])
        return "\n".join([f"{message['number']} state {message['state']} ({message['impact']}/{message['urgency']}): {message['short_description']}",
                          message["description"], *(f"-- work note --\n{note}" for note in message["work_notes_all"]),
                          f"-- {message.get('close_code', '')} --\n{message.get('close_notes', '')}"])
