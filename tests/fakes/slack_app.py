"""A Slack app with interactivity: people press buttons of its bot's messages, Slack posts that to the app's request URL, and the app answers
to the `response_url`.

Contract: docs.slack.dev, "Verifying requests from Slack" (v0 signature), "Handling user interaction" (3 s, payload of `block_actions`,
`response_url`: five answers within 30 minutes, `response_type`, `replace_original`, `delete_original`).
"""
import copy
import hashlib
import hmac
import http.client
import json
import time
import urllib.parse

from tests.fakes.far_side import Checks, Refused
from tests.fakes.slack_bot import SlackBot

SIGNING_SECRET = "8f742231b10e8888abcd99yyyzzz85a5"
WORKSPACE = "T0TOCSIN"
ADA = {"id": "U0ADA", "username": "ada", "name": "ada", "team_id": WORKSPACE}
BOB = {"id": "U0BOB", "username": "bob", "name": "bob", "team_id": WORKSPACE}
GUEST = {"id": "U0GUEST", "username": "mallory", "name": "mallory", "team_id": "T0OTHER"}


class SlackApp(SlackBot):
    """`whispers`: ephemeral answers, as (user id, text). `press()` is a person."""

    def __init__(self):
        super().__init__()
        self.whispers = []
        self._response_urls = {}  # path -> {"user", "message", "uses"}

    # ---- what the app asks

    def answer(self, method, path, query, headers, body):
        if path.startswith("/actions/"):
            return self._answer_to_a_click(method, path, headers, body)
        return super().answer(method, path, query, headers, body)

    def _answer_to_a_click(self, method, path, headers, body):
        known = self._response_urls.get(path)
        if method != "POST" or known is None:
            raise Refused(404, "no such response_url", path)
        known["uses"] += 1
        if known["uses"] > 5:
            raise Refused(404, {"ok": False, "error": "used_url"}, "a response_url takes five answers")
        check = Checks(lambda why: Refused(400, {"ok": False, "error": "invalid_payload"}, why))
        answer = check.json_object(headers, body)
        check.keys("answer", answer, (), ("text", "blocks", "attachments", "response_type", "replace_original", "delete_original", "thread_ts"))
        if not answer.get("text") and not answer.get("blocks"):
            raise Refused(400, {"ok": False, "error": "no_text"}, "neither text nor blocks")
        check.one_of("response_type", answer.get("response_type", "ephemeral"), ("ephemeral", "in_channel"))
        if "text" in answer:
            check.text("text", answer["text"], 40_000)
            self._mentions_nobody(answer["text"])
        self._blocks(answer.get("blocks", []))
        if answer.get("replace_original"):
            if "response_type" in answer:
                raise check.refuse("an original keeps its visibility: no response_type beside replace_original")
            known["message"].update(text=answer.get("text", ""), blocks=answer.get("blocks", []), edited=True)
        else:
            self.whispers.append((known["user"], answer["text"]))
        return 200, {"ok": True}

    # ---- what people do

    @staticmethod
    def buttons(message):
        """{text: button}"""
        return {button["text"]["text"]: button for block in message["blocks"] if block["type"] == "actions" for button in block["elements"]}

    def press(self, message, text, hook, user=ADA, button=None):
        """(status, seconds) of the request to `hook`, as request() gives it."""
        button = button or self.buttons(message)[text]
        path = f"/actions/{WORKSPACE}/{len(self._response_urls)}/{hashlib.sha256(repr(time.time()).encode()).hexdigest()[:24]}"
        self._response_urls[path] = {"user": user["id"], "message": message, "uses": 0}
        return self.request(hook, self._payload(message, button, user, self.root + path))

    @staticmethod
    def request(hook, payload, secret=SIGNING_SECRET, at=None, change=""):
        """Posts a payload as Slack does; (status, seconds). `change` is put behind the body after it was signed."""
        body = urllib.parse.urlencode({"payload": json.dumps(payload)})
        stamp = str(int(time.time() if at is None else at))
        signature = "v0=" + hmac.new(secret.encode(), f"v0:{stamp}:{body}".encode(), hashlib.sha256).hexdigest()
        parts = urllib.parse.urlsplit(hook)
        connection = http.client.HTTPConnection(parts.hostname, parts.port, timeout=3)  # then a person sees an error
        began = time.monotonic()
        connection.request("POST", parts.path, body + change, {"Content-Type": "application/x-www-form-urlencoded", "X-Slack-Signature": signature,
                                                               "X-Slack-Request-Timestamp": stamp, "User-Agent": "Slackbot 1.0"})
        answer = connection.getresponse()
        answer.read()
        connection.close()
        return answer.status, time.monotonic() - began

    def _payload(self, message, button, user, response_url):
        shown = self._as_slack_shows(message)
        block = next(block for block in shown["blocks"] if block["type"] == "actions")
        return {"type": "block_actions", "user": user, "api_app_id": "A0TOCSIN", "token": "deprecated",
                "container": {"type": "message", "message_ts": message["ts"], "channel_id": self.CHANNEL, "is_ephemeral": False},
                "trigger_id": "1.2.3", "team": {"id": WORKSPACE, "domain": "tocsin"}, "enterprise": None, "is_enterprise_install": False,
                "channel": {"id": self.CHANNEL, "name": "training"}, "message": shown, "state": {"values": {}}, "response_url": response_url,
                "actions": [{**button, "block_id": block["block_id"], "type": "button", "action_ts": str(time.time())}]}

    def _as_slack_shows(self, message):
        """With what Slack fills in by itself."""
        blocks = copy.deepcopy(message["blocks"])
        for number, block in enumerate(blocks):
            block.setdefault("block_id", f"b{number}")
            self._fill_in(block)
        return {"type": "message", "bot_id": "B0TOCSIN", "user": "U0BOT", "app_id": "A0TOCSIN", "team": WORKSPACE, "ts": message["ts"],
                "text": message["text"], "blocks": blocks}

    def _fill_in(self, value):
        if isinstance(value, dict):
            if value.get("type") == "mrkdwn":
                value.setdefault("verbatim", False)
            if value.get("type") == "plain_text":
                value.setdefault("emoji", True)
            for one in value.values():
                self._fill_in(one)
        elif isinstance(value, list):
            for one in value:
                self._fill_in(one)
