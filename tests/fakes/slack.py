"""Slack's incoming webhooks.

Contract: docs.slack.dev, "Sending messages using incoming webhooks" (answers and errors), "Block Kit" (section, context, text objects
and their limits), "Formatting message text" (escapes and mentions).
"""
import html
import re

from tests.fakes.far_side import Checks, FarSide, Refused

MENTION = re.compile(r"<[!@#][^>]*>")
MARK = re.compile(r"<(https?://[^|>]+)\|([^>]+)>|<([^>]*)>")


class Slack(FarSide):
    PATH = "/services/T000/B000/"

    @property
    def url(self):
        return self.root + self.PATH + self.secret.replace("/", "")

    def answer(self, method, path, query, headers, body):
        if path != self.PATH + self.secret.replace("/", ""):
            raise Refused(404, "no_service", f"{path}: no such webhook")
        if method != "POST":
            raise Refused(405, "method_not_allowed", method)
        check = Checks(lambda why: Refused(400, "invalid_payload", why))
        message = check.json_object(headers, body)
        check.keys("message", message, (), ("text", "blocks", "attachments", "unfurl_links", "unfurl_media", "thread_ts", "mrkdwn"))
        if not message.get("text") and not message.get("blocks"):
            raise Refused(400, "no_text", "neither text nor blocks")
        if "text" in message:
            check.text("text", message["text"], 40_000)
            self._mentions_nobody(message["text"])
        self._blocks(message.get("blocks", []))
        self.messages.append(message)
        return 200, "ok"

    def _blocks(self, blocks):
        check = Checks(lambda why: Refused(400, "invalid_blocks", why))
        check.items("blocks", blocks, 50, 0)
        for block in blocks:
            check.one_of("type", block.get("type"), ("section", "context", "divider", "header", "actions"))
            if "block_id" in block:
                check.text("block_id", block["block_id"], 255)
            if block["type"] == "section":
                check.keys("section", block, ("type",), ("text", "fields", "block_id"))
                if "text" not in block and "fields" not in block:
                    raise check.refuse("section: neither text nor fields")
                if "text" in block:
                    self._text(check, "section.text", block["text"], 3000)
                if "fields" in block:
                    check.items("section.fields", block["fields"], 10)
                for field in block.get("fields", []):
                    self._text(check, "section.fields", field, 2000)
            elif block["type"] == "context":
                check.keys("context", block, ("type", "elements"), ("block_id",))
                check.items("context.elements", block["elements"], 10)
                for element in block["elements"]:
                    self._text(check, "context.elements", element, 3000)
            elif block["type"] == "actions":
                self._buttons(check, block)
            elif block["type"] == "header":
                check.keys("header", block, ("type", "text"), ("block_id",))
                check.one_of("header.text.type", block["text"].get("type"), ("plain_text",))
                self._text(check, "header.text", block["text"], 150)

    def _buttons(self, check, block):
        """Block `actions` with elements `button`, and their confirmation dialogs."""
        check.keys("actions", block, ("type", "elements"), ("block_id",))
        check.items("actions.elements", block["elements"], 25)
        ids = [button.get("action_id") for button in block["elements"]]
        if len(set(ids)) != len(ids):
            raise check.refuse(f"actions: an action_id comes twice: {ids}")
        for button in block["elements"]:
            check.keys("button", button, ("type", "text", "action_id"), ("value", "style", "confirm", "url", "accessibility_label"))
            check.one_of("button.type", button["type"], ("button",))
            self._plain(check, "button.text", button["text"], 75)
            check.text("button.action_id", button["action_id"], 255)
            if "value" in button:
                check.text("button.value", button["value"], 2000)
            if "style" in button:
                check.one_of("button.style", button["style"], ("primary", "danger"))
            if "confirm" in button:
                confirm = button["confirm"]
                check.keys("confirm", confirm, ("title", "text", "confirm", "deny"), ("style",))
                self._plain(check, "confirm.title", confirm["title"], 100)
                self._plain(check, "confirm.text", confirm["text"], 300)
                self._plain(check, "confirm.confirm", confirm["confirm"], 30)
                self._plain(check, "confirm.deny", confirm["deny"], 30)
                if "style" in confirm:
                    check.one_of("confirm.style", confirm["style"], ("primary", "danger"))

    def _plain(self, check, where, text, most):
        self._text(check, where, text, most)
        check.one_of(f"{where}.type", text["type"], ("plain_text",))

    def _text(self, check, where, text, most):
        check.keys(where, text, ("type", "text"), ("emoji",) if text.get("type") == "plain_text" else ("verbatim",))
        check.one_of(f"{where}.type", text["type"], ("mrkdwn", "plain_text"))
        check.text(where, text["text"], most)
        self._mentions_nobody(text["text"])

    @staticmethod
    def _mentions_nobody(text):
        if MENTION.search(text):
            raise Refused(400, "mention", f"mentions somebody: {text!r}")

    def text_of(self, message):
        def read(text):
            return html.unescape(MARK.sub(lambda match: f"{match[2]} [{match[1]}]" if match[1] else match[3], text))
        lines = []
        for block in message["blocks"]:
            if "text" in block:
                lines.append(read(block["text"]["text"]))
            lines += ["  " + read(field["text"]).replace("\n", "  ") for field in block.get("fields", [])]
            if block["type"] == "actions":
                lines.append(" ".join(f"({button['text']['text']})" for button in block["elements"]))
            elif "elements" in block:
                lines.append(" | ".join(read(element["text"]) for element in block["elements"]))
        return "\n".join(lines)
