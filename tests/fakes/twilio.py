"""Twilio's Messages resource.

Contract: twilio.com/docs, "Messages resource" (parameters, 201), "Error and warning dictionary" (20003, 21211, 21602, 21610, 21617, 20429).
"""
import base64
import re
import urllib.parse

from tests.fakes.far_side import FarSide, Refused

GSM = set("@£$¥èéùìòÇ\nØø\rÅåΔ_ΦΓΛΩΠΨΣΘΞÆæßÉ !\"#¤%&'()*+,-./0123456789:;<=>?¡ABCDEFGHIJKLMNOPQRSTUVWXYZÄÖÑÜ§¿abcdefghijklmnopqrstuvwxyzäöñüà")
TWICE = set("^{}\\[~]|€\f")


def segments(text):
    """Parts that a text is sent as."""
    if all(c in GSM or c in TWICE for c in text):
        units, one, many = sum(2 if c in TWICE else 1 for c in text), 160, 153
    else:
        units, one, many = len(text.encode("utf-16-le")) // 2, 70, 67
    return 1 if units <= one else -(-units // many)


class Twilio(FarSide):
    """`messages` are texts: {To, From, Body}. `opted_out`: numbers that get none."""

    sid = "AC" + "0123456789abcdef" * 2

    def __init__(self):
        super().__init__()
        self.opted_out = set()

    @property
    def token(self):
        return self.secret.replace("/", "-") + "-twilio"

    @staticmethod
    def _error(status, code, why):
        return Refused(status, {"code": code, "message": why, "more_info": f"https://www.twilio.com/docs/errors/{code}", "status": status}, why)

    def answer(self, method, path, query, headers, body):
        if headers.get("authorization") != "Basic " + base64.b64encode(f"{self.sid}:{self.token}".encode()).decode():
            raise self._error(401, 20003, "Authenticate")
        if (method, path) != ("POST", f"/2010-04-01/Accounts/{self.sid}/Messages.json"):
            raise self._error(404, 20404, f"The requested resource {path} was not found")
        if headers.get("content-type") != "application/x-www-form-urlencoded":
            raise self._error(400, 21602, "content-type")
        form = urllib.parse.parse_qs(body.decode("ascii"), strict_parsing=True, keep_blank_values=True, errors="strict")
        if not set(form) <= {"To", "From", "MessagingServiceSid", "Body"} or any(len(values) != 1 for values in form.values()):
            raise self._error(400, 20001, f"parameters {sorted(form)}")
        message = {name: values[0] for name, values in form.items()}
        if not re.fullmatch(r"\+[1-9]\d{6,14}", message.get("To", "")) or message["To"].endswith("0000"):
            raise self._error(400, 21211, f"Invalid 'To' Phone Number: {message.get('To')}")
        if ("From" in message) == ("MessagingServiceSid" in message):
            raise self._error(400, 21603, "A 'From' phone number is required.")
        if message["To"] in self.opted_out:
            raise self._error(400, 21610, "Attempt to send to unsubscribed recipient")
        if not 1 <= len(message.get("Body", "")) <= 1600:
            raise self._error(400, 21617, "The concatenated message body exceeds the 1600 character limit")
        if segments(message["Body"]) > 2:
            raise self._error(400, 30000, f"{segments(message['Body'])} segments")  # ours: a text is at most two
        self.messages.append(message)
        return 201, {"sid": f"SM{len(self.messages):032x}", "status": "queued", "to": message["To"], "error_code": None, "num_segments": "1"}

    def text_of(self, message):
        return f"to {message['To']}: {message['Body']}"
