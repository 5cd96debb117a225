#!/usr/bin/python3
"""An HTTP server on loopback that checks Standard Webhooks signatures, keeps each request, and can be
told to answer 500, 429 with Retry-After, to hang or to refuse.

As a library:  with WebhookReceiver(secret="whsec_...") as hook: ... hook.wait(1)[0]["verified"]
As a program:  webhook_receiver.py --secret whsec_... [--port N]   prints PORT=N, then one JSON line
               per request (receiver.py)
"""

import base64
import hashlib
import hmac
import http.server
import json
import pathlib
import sys
import threading
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2]))

from tests.support import receiver  # noqa: E402

TOLERANCE = 300  # seconds between the signed time stamp and now, as the Standard Webhooks text has it


def new_secret(raw=None):
    import secrets

    return "whsec_" + base64.b64encode(raw or secrets.token_bytes(32)).decode()


def sign(secret, message_id, timestamp, body):
    """The value of one `webhook-signature` entry: `v1,` + base64(HMAC-SHA256(id.timestamp.body))."""
    key = base64.b64decode(secret.removeprefix("whsec_"))
    signed = f"{message_id}.{timestamp}.".encode() + body
    return "v1," + base64.b64encode(hmac.new(key, signed, hashlib.sha256).digest()).decode()


def verify(secret, headers, body, now=None):
    """None when the request is genuine, else what is wrong with it."""
    message_id, timestamp = headers.get("webhook-id"), headers.get("webhook-timestamp")
    signatures = headers.get("webhook-signature")
    if not (message_id and timestamp and signatures):
        return "webhook-id, webhook-timestamp or webhook-signature is missing"
    if not timestamp.isdigit() or abs((time.time() if now is None else now) - int(timestamp)) > TOLERANCE:
        return "webhook-timestamp is not within five minutes of now"
    expected = sign(secret, message_id, timestamp, body)
    if not any(hmac.compare_digest(expected, given) for given in signatures.split()):
        return "no signature fits the body"
    return None


class _Server(http.server.ThreadingHTTPServer):
    daemon_threads = True
    allow_reuse_address = True
    receiver = None


class _Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    timeout = 60

    def do_POST(self):  # noqa: N802  (http.server's name)
        body = self.rfile.read(int(self.headers.get("content-length") or 0))
        self.server.receiver.serve(self, {k.lower(): v for k, v in self.headers.items()}, body)

    do_GET = do_PUT = do_POST  # noqa: N815

    def log_message(self, *_):
        pass


class WebhookReceiver(receiver.Receiver):
    """Without a secret nothing is verified (`verified` is None)."""

    _server = None

    def __init__(self, port=0, on_record=None, secret=None):
        super().__init__(port, on_record)
        self.secret = secret

    @property
    def url(self):
        return f"http://127.0.0.1:{self.port}/hook"

    def accept(self):
        if self._server:
            return
        self._server = _Server(("127.0.0.1", self.port), _Handler)
        self._server.receiver = self
        self.port = self._server.server_address[1]
        threading.Thread(target=self._server.serve_forever, args=(0.05,), daemon=True).start()

    def refuse(self):
        if self._server:
            self._server.shutdown()
            self._server.server_close()
            self._server = None

    def serve(self, request, headers, body):
        answer = self.script.next()
        wrong = verify(self.secret, headers, body) if self.secret else None
        hangs = answer == receiver.HANG
        code, detail = (200, {}) if answer in (receiver.OK, receiver.HANG) else answer
        if wrong and code < 400:
            code = 401
        self.record(accepted=not hangs and code < 400, answer=receiver.HANG if hangs else code,
                    method=request.command, path=request.path, headers=headers,
                    body=body.decode(errors="replace"), json=_parsed(body),
                    verified=None if not self.secret else wrong is None, problem=wrong)
        if hangs:
            self.released.wait()
            request.close_connection = True
            return
        request.send_response(code)
        if "retry_after" in detail:
            request.send_header("Retry-After", str(detail["retry_after"]))
        request.send_header("Content-Length", "0")
        request.end_headers()

    def answer(self, code, times=1, retry_after=None):
        detail = {} if retry_after is None else {"retry_after": retry_after}
        super().answer(code, times, **detail)


def _parsed(body):
    try:
        return json.loads(body)
    except ValueError:
        return None


if __name__ == "__main__":
    receiver.run_as_program(
        lambda arguments, show: WebhookReceiver(arguments.port, show, arguments.secret), __doc__,
        [(("--secret",), {"help": "whsec_<base64>; without it nothing is verified",
                          "default": None})])
