"""Mattermost's incoming webhooks.

Contract: developers.mattermost.com, "Incoming webhooks" (parameters, answers, Slack's form of mentions), "Message attachments" (fields,
size); other mentions are looked for in the text without its markup.
"""
import re

from tests.fakes.far_side import Checks, FarSide, Refused

MENTION = re.compile(r"@(channel|all|here)\b")
SLACK_MENTION = re.compile(r"<[!@][^>]*>")  # translated before markup is read


class Mattermost(FarSide):
    PATH = "/hooks/"

    @property
    def url(self):
        return self.root + self.PATH + self.secret.replace("/", "")

    def answer(self, method, path, query, headers, body):
        if path != self.PATH + self.secret.replace("/", ""):
            raise Refused(404, self._error(404, "web.incoming_webhook.invalid.app_error", "Invalid webhook."), path)
        if method != "POST":
            raise Refused(404, self._error(404, "api.context.404.app_error", "Not found."), method)
        check = Checks(lambda why: Refused(400, self._error(400, "web.incoming_webhook.parse.app_error", "Unable to parse incoming data."), why))
        message = check.json_object(headers, body)
        check.keys("message", message, (), ("text", "channel", "username", "icon_url", "icon_emoji", "attachments", "type", "props", "priority"))
        if not message.get("text") and not message.get("attachments"):
            raise Refused(400, self._error(400, "web.incoming_webhook.text.app_error", "No text specified."), "no text")
        check.text("text", message.get("text", ""), 16_383, 0)
        texts = [message.get("text", "")]
        for attachment in message.get("attachments", []):
            check.keys("attachment", attachment, ("fallback",), ("color", "pretext", "text", "author_name", "author_link", "author_icon", "title",
                                                                "title_link", "fields", "image_url", "thumb_url", "footer", "footer_icon"))
            if not re.fullmatch(r"#[0-9a-f]{6}", attachment.get("color", "#000000")):
                raise check.refuse("color")
            check.text("attachment.text", attachment.get("text", ""), 16_383, 0)
            for field in attachment.get("fields", []):
                check.keys("field", field, ("title", "value"), ("short",))
                texts.append(field["value"])
            texts += [attachment.get("text", ""), attachment["fallback"]]
        for text in texts:
            if MENTION.search(self._without_markup(text)) or SLACK_MENTION.search(text):
                raise check.refuse(f"mentions everybody: {text!r}")
        self.messages.append(message)
        return 200, "ok"

    @staticmethod
    def _error(status, name, text):
        return {"id": name, "message": text, "detailed_error": "", "request_id": "x", "status_code": status}

    @staticmethod
    def _without_markup(text):
        return re.sub(r"\\(.)", r"\1", text.replace("**", ""))

    def text_of(self, message):
        attachment = message["attachments"][0]
        return "\n".join([self._without_markup(message["text"]), self._without_markup(attachment["text"]),
                          *(f"  {field['title']}: {self._without_markup(field['value'])}" for field in attachment["fields"]),
                          self._without_markup(attachment.get("footer", ""))])
