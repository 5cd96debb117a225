"""The HTTP server behind every fake: it keeps requests, asks the vendor's class for the answer, and notes what broke the contract."""
import http.server
import json
import threading
import urllib.parse


class Refused(Exception):
    """The vendor's own error: status, body, and what broke the contract."""

    def __init__(self, status, body, why):
        super().__init__(why)
        self.status, self.body, self.why = status, body, why


class FarSide:
    """`with Slack() as slack: … slack.url … slack.messages`."""

    secret = "canary/secret"  # stands in the URL or the credential; no record and no log may have it

    def __init__(self, port=0):
        self._port = port
        self.requests, self.refused, self.messages, self.next_answers = [], [], [], []
        self._lock = threading.Lock()
        self._server = None

    # ---- what a vendor says

    def answer(self, method, path, query, headers, body):
        """(status, body); raises Refused."""
        raise NotImplementedError

    def text_of(self, message):
        """A message as a person reads it."""
        raise NotImplementedError

    # ---- what all have

    @property
    def root(self):
        return f"http://127.0.0.1:{self._server.server_address[1]}"

    @property
    def url(self):
        return self.root

    def shown(self):
        return [self.text_of(message) for message in self.messages]

    def __enter__(self):
        far_side = self

        class Handler(http.server.BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def serve(self):
                body = self.rfile.read(int(self.headers.get("content-length") or 0))
                status, headers, text = far_side.serve(self.command, self.path, {k.lower(): v for k, v in self.headers.items()}, body)
                self.send_response(status)
                for name, value in headers.items():
                    self.send_header(name, value)
                self.send_header("Content-Length", str(len(text)))
                self.end_headers()
                self.wfile.write(text)

            do_POST = do_PATCH = do_PUT = do_GET = do_DELETE = serve  # noqa: N815  (http.server's names)

            def log_message(self, *_):
                pass

        self._server = http.server.ThreadingHTTPServer(("127.0.0.1", self._port), Handler)
        self._server.daemon_threads = True
        threading.Thread(target=self._server.serve_forever, args=(0.05,), daemon=True).start()
        return self

    def __exit__(self, *_):
        self._server.shutdown()
        self._server.server_close()

    def serve(self, method, target, headers, raw):
        with self._lock:
            status, more, body = self._answered(method, target, headers, raw)
            text = body.encode() if isinstance(body, str) else json.dumps(body).encode()
            self.requests.append({"method": method, "path": target, "headers": headers, "body": raw.decode(errors="replace"), "status": status,
                                  "answer": text.decode()})
            return status, more, text

    def _answered(self, method, target, headers, raw):
        if self.next_answers:
            return self.next_answers.pop(0)
        parsed = urllib.parse.urlsplit(target)
        try:
            status, body = self.answer(method, parsed.path, dict(urllib.parse.parse_qsl(parsed.query)), headers, raw)
            return status, {}, body
        except Refused as refused:
            self.refused.append((target, refused.why))
            return refused.status, {}, refused.body


class Checks:
    """Checks of a JSON body. `refuse(why)` makes the vendor's error of one that fails."""

    def __init__(self, refuse):
        self.refuse = refuse

    def json_object(self, headers, raw):
        if not headers.get("content-type", "").startswith("application/json"):
            raise self.refuse("content-type is not application/json")
        try:
            body = json.loads(raw.decode("utf-8"))
        except ValueError as error:
            raise self.refuse(f"no JSON: {error}") from error
        if not isinstance(body, dict):
            raise self.refuse("no JSON object")
        return body

    def keys(self, where, value, required=(), optional=()):
        if not isinstance(value, dict):
            raise self.refuse(f"{where}: no object")
        for key in required:
            if key not in value:
                raise self.refuse(f"{where}: {key} is missing")
        for key in value:
            if key not in (*required, *optional):
                raise self.refuse(f"{where}: {key} is unknown")

    def text(self, where, value, most, least=1):
        if not isinstance(value, str) or not least <= len(value) <= most:
            raise self.refuse(f"{where}: expected {least} … {most} characters, found {len(value) if isinstance(value, str) else value!r}")

    def items(self, where, value, most, least=1):
        if not isinstance(value, list) or not least <= len(value) <= most:
            raise self.refuse(f"{where}: expected {least} … {most} items")

    def one_of(self, where, value, allowed):
        if value not in allowed:
            raise self.refuse(f"{where}: {value!r} is none of {sorted(map(str, allowed))}")

    def web_page(self, where, value):
        if not isinstance(value, str) or not value.startswith(("https://", "http://")) or any(c in value for c in " \"<>|()\n"):
            raise self.refuse(f"{where}: {value!r} is no URL")
