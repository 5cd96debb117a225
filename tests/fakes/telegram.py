"""Telegram's Bot API, as far as a bot that posts needs it.

Contract: core.telegram.org/bots/api: "Making requests" (answers, retry_after), sendMessage and editMessageText (1-4096 characters after
entities parsing), "HTML style" (tags, and that every other < > & is an entity).
"""
import html
import html.parser
import re

from tests.fakes.far_side import Checks, FarSide, Refused

TAGS = {"b", "strong", "i", "em", "u", "s", "a", "code", "pre"}


class _Html(html.parser.HTMLParser):
    def __init__(self):
        super().__init__(convert_charrefs=True)
        self.text, self.open, self.problem = "", [], None

    def handle_starttag(self, tag, attrs):
        if tag not in TAGS or [name for name, _ in attrs if (tag, name) != ("a", "href")]:
            self.problem = f'Unsupported start tag "{tag}"'
        self.open.append(tag)

    def handle_endtag(self, tag):
        if not self.open or self.open.pop() != tag:
            self.problem = f'Unmatched end tag "{tag}"'

    def handle_data(self, data):
        self.text += data


class Telegram(FarSide):
    chat_id = "-1001234567890"

    @property
    def token(self):
        return "123456:" + self.secret.replace("/", "")

    @staticmethod
    def _bad(why, status=400, **more):
        name = {400: "Bad Request", 401: "Unauthorized", 404: "Not Found"}[status]
        return Refused(status, {"ok": False, "error_code": status, "description": f"{name}: {why}", **more}, why)

    def answer(self, method, path, query, headers, body):
        called = re.fullmatch(r"/bot([^/]+)/(\w+)", path)
        if not called or called[1] != self.token:
            raise self._bad("token", 401)
        if called[2] not in ("sendMessage", "editMessageText") or method not in ("POST", "GET"):
            raise self._bad("method not found", 404)
        check = Checks(self._bad)
        message = check.json_object(headers, body)
        edits = called[2] == "editMessageText"
        check.keys("message", message, ("chat_id", "text", *(["message_id"] if edits else [])),
                   ("parse_mode", "link_preview_options", "reply_markup", "message_thread_id", "disable_notification", "reply_parameters"))
        if str(message["chat_id"]) != self.chat_id:
            raise self._bad("chat not found")
        check.one_of("parse_mode", message.get("parse_mode"), ("HTML",))
        check.keys("link_preview_options", message.get("link_preview_options", {}), (), ("is_disabled", "url"))
        read = self._parsed(message["text"])
        if not read.strip():
            raise self._bad("message text is empty")
        if len(read) > 4096:
            raise self._bad("message is too long")
        known = next((one for one in self.messages if one["message_id"] == message.get("message_id")), None)
        if edits and known is None:
            raise self._bad("message to edit not found")
        if edits and known["text"] == message["text"]:
            raise self._bad("message is not modified: specified new message content and reply markup are exactly the same")
        if edits:
            known.update(text=message["text"], edited=True)
        else:
            known = {"message_id": 500 + len(self.messages), "text": message["text"]}
            self.messages.append(known)
        return 200, {"ok": True, "result": {"message_id": known["message_id"], "date": 0, "chat": {"id": int(self.chat_id), "type": "supergroup"}}}

    def _parsed(self, text):
        parser = _Html()
        if re.search(r"&(?!(lt|gt|amp|quot|#\d+|#x[0-9a-f]+);)", text):
            raise self._bad("can't parse entities: unescaped &")
        parser.feed(text)
        parser.close()
        if parser.problem or parser.open:
            raise self._bad(f"can't parse entities: {parser.problem or 'unclosed tag'}")
        return parser.text

    def text_of(self, message):
        return self._parsed(re.sub(r'<a href="([^"]+)">([^<]+)</a>', r"\2 [\1]", message["text"]))
