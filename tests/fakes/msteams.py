"""Webhooks of Microsoft Teams workflows ("Post to a channel when a webhook request is received").

Contract: learn.microsoft.com, "Create incoming webhooks with Workflows" (202, the shape of the message, 28 KB), Adaptive Cards schema
1.4 (elements and their properties). Text runs show no markup.
"""
from tests.fakes.far_side import Checks, FarSide, Refused

CARD = "application/vnd.microsoft.card.adaptive"


class MsTeams(FarSide):
    PATH = "/workflows/"

    @property
    def url(self):
        return f"{self.root}{self.PATH}x/triggers/manual/paths/invoke?sig={self.secret.replace('/', '')}"

    def answer(self, method, path, query, headers, body):
        if not path.startswith(self.PATH) or query.get("sig") != self.secret.replace("/", ""):
            raise Refused(401, {"error": {"code": "DirectApiAuthorizationRequired", "message": "unauthorized"}}, path)
        if method != "POST":
            raise Refused(405, {"error": {"code": "MethodNotAllowed"}}, method)
        check = Checks(lambda why: Refused(400, {"error": {"code": "TriggerInputSchemaMismatch", "message": why}}, why))
        message = check.json_object(headers, body)
        if len(body.decode().encode("utf-16-le")) > 28 * 1024:
            raise Refused(413, {"error": {"code": "RequestEntityTooLarge"}}, "over 28 KB in UTF-16")
        check.keys("message", message, ("type", "attachments"))
        check.one_of("type", message["type"], ("message",))
        check.items("attachments", message["attachments"], 1)
        (attachment,) = message["attachments"]
        check.keys("attachment", attachment, ("contentType", "content"), ("contentUrl",))
        check.one_of("contentType", attachment["contentType"], (CARD,))
        card = attachment["content"]
        check.keys("card", card, ("type", "version", "body"), ("$schema", "msteams", "actions", "fallbackText"))
        check.one_of("card.version", card["version"], ("1.0", "1.2", "1.3", "1.4", "1.5"))
        for element in card["body"]:
            self._element(check, element)
        check.items("actions", card.get("actions", []), 6, 0)
        for action in card.get("actions", []):
            check.keys("action", action, ("type", "title", "url"))
            check.one_of("action.type", action["type"], ("Action.OpenUrl",))
            check.web_page("action.url", action["url"])
        self.messages.append(card)
        return 202, ""

    def _element(self, check, element):
        check.one_of("element", element.get("type"), ("Container", "RichTextBlock"))
        if element["type"] == "Container":
            check.keys("Container", element, ("type", "items"), ("style", "bleed"))
            check.one_of("style", element.get("style", "default"), ("default", "emphasis", "good", "attention", "warning", "accent"))
            for item in element["items"]:
                self._element(check, item)
            return
        check.keys("RichTextBlock", element, ("type", "inlines"), ("horizontalAlignment", "spacing", "separator"))
        check.items("inlines", element["inlines"], 100)
        for run in element["inlines"]:
            check.keys("TextRun", run, ("type", "text"), ("weight", "size", "color", "fontType", "isSubtle", "italic", "highlight"))
            check.one_of("TextRun.type", run["type"], ("TextRun",))
            check.text("TextRun.text", run["text"], 20_000)
            check.one_of("weight", run.get("weight", "Default"), ("Default", "Lighter", "Bolder"))
            check.one_of("size", run.get("size", "Default"), ("Default", "Small", "Medium", "Large", "ExtraLarge"))
            check.one_of("fontType", run.get("fontType", "Default"), ("Default", "Monospace"))

    def text_of(self, card):
        def read(element):
            if element["type"] == "Container":
                return "\n".join(map(read, element["items"]))
            return "".join(run["text"] for run in element["inlines"])
        return "\n".join([*map(read, card["body"]), *(f"[{action['title']}] {action['url']}" for action in card.get("actions", []))])
