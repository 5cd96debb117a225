"""Slack's Web API for a bot that posts: chat.postMessage and chat.update.

Contract: docs.slack.dev, methods chat.postMessage and chat.update (arguments, `ok`, errors), and what tests/fakes/slack.py says of blocks.
"""
from tests.fakes.far_side import Checks, Refused
from tests.fakes.slack import Slack


class SlackBot(Slack):
    """`messages` are those of the channel, not the replies: those stand in the `replies` of their root."""

    CHANNEL = "C0TRAINING"

    @property
    def url(self):
        return self.root + "/api"

    @property
    def token(self):
        return "xoxb-" + self.secret.replace("/", "-")

    @staticmethod
    def _error(error, why):
        return Refused(200, {"ok": False, "error": error}, why)

    def answer(self, method, path, query, headers, body):
        if method != "POST" or path not in ("/api/chat.postMessage", "/api/chat.update"):
            raise self._error("unknown_method", path)
        if headers.get("authorization") != f"Bearer {self.token}":
            raise self._error("invalid_auth", "token")
        if headers.get("content-type") != "application/json; charset=utf-8":
            raise self._error("invalid_post_type", "content-type")
        check = Checks(lambda why: self._error("invalid_arguments", why))
        message = check.json_object(headers, body)
        changes = path.endswith("update")
        check.keys("message", message, ("channel", "ts") if changes else ("channel",),
                   ("text", "blocks", "attachments", "parse", "link_names", "metadata", "reply_broadcast")
                   + (() if changes else ("thread_ts", "unfurl_links", "unfurl_media", "mrkdwn", "username", "icon_emoji", "icon_url")))
        if message["channel"] not in ((self.CHANNEL,) if changes else (self.CHANNEL, "#training")):
            raise self._error("channel_not_found", message["channel"])
        if not message.get("text"):
            raise self._error("no_text", "no text")
        check.text("text", message["text"], 40_000)
        self._mentions_nobody(message["text"])
        self._blocks(message.get("blocks", []))
        return 200, self._apply(message, changes)

    def _apply(self, message, changes):
        root = next((one for one in self.messages if one["ts"] == message.get("ts" if changes else "thread_ts")), None)
        if changes:
            if root is None:
                raise self._error("message_not_found", message["ts"])
            root.update(message, edited=True)
            return {"ok": True, "channel": self.CHANNEL, "ts": root["ts"], "text": message["text"]}
        posted = {**message, "ts": f"1700000000.{len(self.requests):06}", "replies": []}
        if "thread_ts" not in message:
            self.messages.append(posted)
        elif root is None:
            raise self._error("thread_not_found", message["thread_ts"])
        else:
            root["replies"].append(posted)
        return {"ok": True, "channel": self.CHANNEL, "ts": posted["ts"], "message": message}
