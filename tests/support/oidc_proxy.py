"""A proxy that wants a login first, as those in front of OpenID Connect do: who is unknown is sent to /login, and after it back to
the path and query that were asked for. A fragment never reaches it."""
import http.client
import http.server
import threading
import urllib.parse


class OidcProxy:
    """`with OidcProxy("127.0.0.1:9760", secret="…", user="anna", groups="ml-oncall") as base:` gives its address."""

    def __init__(self, upstream, secret, user, groups, holds_back=False):
        """`holds_back`: an answer is passed on when it is there whole, so one without an end never is."""
        proxy = self
        self.upstream, self.logins = upstream, []

        class Handler(http.server.BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def log_message(self, *_):
                pass

            def redirect(self, to, cookie=None):
                self.send_response(302)
                self.send_header("Location", to)
                if cookie:
                    self.send_header("Set-Cookie", cookie)
                self.send_header("Content-Length", "0")
                self.end_headers()

            def handle_one(self):
                address = urllib.parse.urlsplit(self.path)
                if address.path == "/login":
                    wanted = urllib.parse.parse_qs(address.query)["next"][0]
                    proxy.logins.append(wanted)
                    return self.redirect(wanted, "known=yes; Path=/; HttpOnly")
                if "known=yes" not in self.headers.get("Cookie", ""):
                    return self.redirect("/login?next=" + urllib.parse.quote(self.path, safe=""))
                return self.forward()

            def forward(self):
                upstream = http.client.HTTPConnection(proxy.upstream, timeout=60)
                body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
                headers = {name: value for name, value in self.headers.items() if name.lower() not in ("connection", "cookie", "x-forwarded-user")}
                headers |= {"X-Tocsin-Proxy-Secret": secret, "X-Forwarded-User": user, "X-Forwarded-Groups": groups, "Connection": "close"}
                upstream.request(self.command, self.path, body, headers)
                answer = upstream.getresponse()
                whole = answer.read() if holds_back else None
                self.send_response(answer.status)
                for name, value in answer.getheaders():
                    if name.lower() not in ("connection", "transfer-encoding"):
                        self.send_header(name, value)
                self.send_header("Connection", "close")
                self.end_headers()
                self.close_connection = True
                if whole is not None:
                    self.wfile.write(whole)
                while whole is None and (piece := answer.read1(65536)):
                    self.wfile.write(piece)
                    self.wfile.flush()
                upstream.close()

            do_GET = do_POST = do_DELETE = handle_one

        class Quiet(http.server.ThreadingHTTPServer):
            daemon_threads = True

            def handle_error(self, *_):
                pass  # a browser that left its stream

        self.server = Quiet(("127.0.0.1", 0), Handler)

    def __enter__(self):
        threading.Thread(target=self.server.serve_forever, daemon=True).start()
        return f"http://127.0.0.1:{self.server.server_address[1]}"

    def __exit__(self, *_):
        self.server.shutdown()
        self.server.server_close()
