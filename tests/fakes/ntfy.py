"""A server of ntfy, as far as publishing needs it.

Contract: docs.ntfy.sh/publish: "Publish as JSON", "Action buttons" (view, at most three), "Access tokens", "Limitations" (4096 bytes: a
longer message becomes an attachment); error codes of the server (40009 topic, 40017 JSON, 40007 priority, 40018 actions).
"""
import re

from tests.fakes.far_side import Checks, FarSide, Refused


class Ntfy(FarSide):
    token = None  # set: it must come as Authorization: Bearer

    @property
    def topic(self):
        return "alarms-" + self.secret.replace("/", "-")

    @staticmethod
    def _bad(code, error):
        return Refused(code // 100, {"code": code, "http": code // 100, "error": error}, error)

    def answer(self, method, path, query, headers, body):
        if path != "/" or method not in ("POST", "PUT"):
            raise self._bad(40401, "page not found")
        if self.token and headers.get("authorization") != f"Bearer {self.token}":
            raise self._bad(40101, "unauthorized")
        check = Checks(lambda why: self._bad(40017, f"request body must be message JSON: {why}"))
        message = check.json_object(headers, body)
        check.keys("message", message, ("topic",), ("message", "title", "tags", "priority", "actions", "click", "attach", "markdown", "icon",
                                                    "filename", "delay", "email", "call"))
        if not re.fullmatch(r"[-_A-Za-z0-9]{1,64}", message["topic"]) or message["topic"] != self.topic:
            raise self._bad(40009, "topic invalid")
        if message.get("priority", 3) not in range(1, 6):
            raise self._bad(40007, "invalid priority parameter")
        if len(message.get("message", "").encode()) > 4096:
            raise self._bad(41301, "message becomes an attachment")
        actions = Checks(lambda why: self._bad(40018, f"actions invalid: {why}"))
        actions.items("actions", message.get("actions", []), 3, 0)
        for action in message.get("actions", []):
            actions.keys("action", action, ("action", "label", "url"), ("clear",))
            actions.one_of("action", action["action"], ("view",))
            actions.web_page("url", action["url"])
        self.messages.append(message)
        return 200, {"id": f"m{len(self.messages)}", "time": 0, "event": "message", "topic": message["topic"], "message": message["message"]}

    def text_of(self, message):
        return "\n".join([f"{message['title']}  (priority {message.get('priority', 3)})", message["message"],
                          *(f"[{action['label']}] {action['url']}" for action in message.get("actions", []))])
