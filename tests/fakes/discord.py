"""Discord's webhooks of channels.

Contract: discord.com/developers, webhook resource (execute webhook, edit webhook message), message resource (embed limits, allowed
mentions), JSON error codes.
"""
import re

from tests.fakes.far_side import Checks, FarSide, Refused

LIVE = re.compile(r"(?<!\\)(<@|<#|<:|@everyone|@here)")


class Discord(FarSide):
    PATH = "/api/webhooks/1234/"

    @property
    def url(self):
        return self.root + self.PATH + self.secret.replace("/", "")

    def answer(self, method, path, query, headers, body):
        own = self.PATH + self.secret.replace("/", "")
        if not path.startswith(own):
            raise Refused(404, {"message": "Unknown Webhook", "code": 10015}, f"{path}: no such webhook")
        check = Checks(lambda why: Refused(400, {"message": "Invalid Form Body", "code": 50035, "errors": {"_": why}}, why))
        edited = re.fullmatch(r"/messages/(\d+)", path[len(own):])
        if method == "PATCH" and edited:
            known = next((message for message in self.messages if message["id"] == edited[1]), None)
            if known is None:
                raise Refused(404, {"message": "Unknown Message", "code": 10008}, path)
            check.keys("query", query, (), ("thread_id", "with_components"))
            known.update(self._message(check, headers, body), edited=True)
            return 200, known
        if method != "POST" or path != own:
            raise Refused(405, {"message": "405: Method Not Allowed", "code": 0}, f"{method} {path}")
        check.keys("query", query, (), ("wait", "thread_id", "with_components"))
        message = {"id": str(9_000 + len(self.messages)), "channel_id": "1", **self._message(check, headers, body)}
        self.messages.append(message)
        return (200, message) if query.get("wait") == "true" else (204, "")

    def _message(self, check, headers, raw):
        message = check.json_object(headers, raw)
        check.keys("message", message, (), ("content", "username", "avatar_url", "tts", "embeds", "allowed_mentions", "components", "flags"))
        if not message.get("content") and not message.get("embeds"):
            raise Refused(400, {"message": "Cannot send an empty message", "code": 50006}, "empty")
        check.text("content", message.get("content", ""), 2000, 0)
        check.keys("allowed_mentions", message.get("allowed_mentions"), ("parse",), ("roles", "users", "replied_user"))
        if message["allowed_mentions"]["parse"]:
            raise check.refuse("mentions are allowed")
        check.items("embeds", message.get("embeds", []), 10, 0)
        total = sum(self._embed(check, embed) for embed in message.get("embeds", []))
        if total > 6000:
            raise check.refuse(f"embeds have {total} characters of 6000")
        return message

    @staticmethod
    def _embed(check, embed):
        check.keys("embed", embed, (), ("title", "description", "url", "timestamp", "color", "footer", "author", "fields"))
        check.text("title", embed.get("title", ""), 256, 0)
        check.text("description", embed.get("description", ""), 4096, 0)
        if not isinstance(embed.get("color", 0), int) or not 0 <= embed.get("color", 0) <= 0xFFFFFF:
            raise check.refuse("color")
        texts = [embed.get("title", ""), embed.get("description", "")]
        check.items("fields", embed.get("fields", []), 25, 0)
        for field in embed.get("fields", []):
            check.keys("field", field, ("name", "value"), ("inline",))
            check.text("field.name", field["name"], 256)
            check.text("field.value", field["value"], 1024)
            texts += [field["name"], field["value"]]
        if "footer" in embed:
            check.keys("footer", embed["footer"], ("text",), ("icon_url",))
            check.text("footer.text", embed["footer"]["text"], 2048)
            texts.append(embed["footer"]["text"])
        for text in texts:
            if LIVE.search(text):
                raise check.refuse(f"markup of others: {text!r}")
        return sum(map(len, texts))

    def text_of(self, message):
        def read(text):
            return re.sub(r"\\(.)", r"\1", text.replace("**", ""))
        embed = message["embeds"][0]
        return "\n".join([read(message["content"]), *(f"  {field['name']}: {read(field['value'])}" for field in embed["fields"]),
                          read(embed["description"]), read(embed.get("footer", {}).get("text", ""))])
