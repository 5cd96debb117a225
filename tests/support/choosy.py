"""Far sides that answer by what they are asked: an HTTP receiver, an SMTP server that says what it is told to."""
import http.server
import json
import socket
import threading
import time


class ChoosyReceiver:
    """answer(body) -> status, or (status, headers); None: never. `seen`: (time, status, body)."""

    def __init__(self, answer):
        seen, released = [], threading.Event()
        self.seen, self.released, self.answer = seen, released, answer

        class Handler(http.server.BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_POST(handler):  # noqa: N802, N805
                body = handler.rfile.read(int(handler.headers["content-length"]))
                said = self.answer(body)
                status, headers = said if isinstance(said, tuple) else (said, {})
                seen.append((time.monotonic(), status, json.loads(body)))
                if status is None:
                    released.wait()
                    return
                if status == "reset":
                    handler.close_connection = True
                    handler.connection.shutdown(socket.SHUT_RDWR)
                    return
                handler.send_response(status)
                for name, value in {**headers, "Content-Length": "0"}.items():
                    handler.send_header(name, value)
                handler.end_headers()

            def log_message(handler, *_):  # noqa: N805
                pass

        self._server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self._server.daemon_threads = True
        threading.Thread(target=self._server.serve_forever, daemon=True).start()
        self.url = f"http://127.0.0.1:{self._server.server_address[1]}/"

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.released.set()
        self._server.shutdown()
        self._server.server_close()


class ChoosyMailServer:
    """say(line, session) -> what is answered to a line; None: the connection is closed; the end of a mail is
    line ".". `mails`: (time, recipients that were accepted, text)."""

    def __init__(self, say, greeting="220 hi", context=None):
        self.mails, self.sessions, self._say, self._greeting, self._context = [], [], say, greeting, context
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.port = self._listener.getsockname()[1]
        threading.Thread(target=self._accept, daemon=True).start()

    def _accept(self):
        while True:
            try:
                connection = self._listener.accept()[0]
            except OSError:
                return
            threading.Thread(target=self._serve, args=(connection,), daemon=True).start()

    def _serve(self, connection):
        lines = []
        self.sessions.append(lines)
        try:
            if self._context:
                connection = self._context.wrap_socket(connection, server_side=True)
            self._talk(connection, lines)
        except OSError:
            pass
        finally:
            connection.close()

    def _talk(self, connection, lines):
        stream = connection.makefile("rwb", buffering=0)
        stream.write(self._greeting.encode() + b"\r\n")
        accepted = []
        while line := stream.readline():
            text = line.decode().rstrip("\r\n")
            lines.append(text)
            answer = self._say(text, lines)
            if answer is None:
                return
            if text.upper().startswith("DATA") and answer.startswith("354"):
                stream.write(answer.encode() + b"\r\n")
                mail = b"".join(iter(stream.readline, b".\r\n"))
                answer = self._say(".", lines)
                if answer is None:
                    return
                if answer.startswith("250"):
                    self.mails.append((time.monotonic(), accepted, mail.decode()))
            if text.upper().startswith("RCPT") and answer.startswith("250"):
                accepted = [*accepted, text[text.index("<") + 1:text.index(">")]]
            stream.write(answer.encode() + b"\r\n")
            if text.upper().startswith("QUIT") or answer.startswith("421"):
                return

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self._listener.close()


def usual(line, _lines=None):
    """What a server says that takes everything."""
    word = line[:4].upper()
    return {"DATA": "354 go", "QUIT": "221 bye"}.get(word, "250 ok")
