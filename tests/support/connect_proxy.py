#!/usr/bin/python3
"""A small HTTP proxy on loopback: CONNECT and absolute URLs. Prints a line of JSON per request.

As a library:  with ConnectProxy(user="u:pw") as proxy: ... proxy.asked
As a program:  connect_proxy.py [--user USER:PASSWORD] [--answer STATUS]   prints PORT=N and runs until a signal
"""
import argparse
import base64
import contextlib
import json
import pathlib
import signal
import socket
import sys
import threading
import urllib.parse

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2]))

from tests.support.receiver import ends_with_parent  # noqa: E402


def read_head(connection):
    data = b""
    while b"\r\n\r\n" not in data:
        more = connection.recv(65536)
        if not more:
            break
        data += more
    head, _, rest = data.partition(b"\r\n\r\n")
    return head.decode("latin-1").split("\r\n"), rest


def pump(source, sink):
    with contextlib.suppress(OSError):
        while data := source.recv(65536):
            sink.sendall(data)
    with contextlib.suppress(OSError):
        sink.shutdown(socket.SHUT_WR)


class ConnectProxy:
    def __init__(self, user="", answer=0, told=None):
        self.asked, self._answer, self._told = [], answer, told
        self._wanted = "Basic " + base64.b64encode(user.encode()).decode() if user else ""
        self._server = socket.create_server(("127.0.0.1", 0))
        self.port = self._server.getsockname()[1]
        self.url = f"http://127.0.0.1:{self.port}"

    def __enter__(self):
        threading.Thread(target=self._accept, daemon=True).start()
        return self

    def __exit__(self, *_):
        self._server.close()

    def _accept(self):
        with contextlib.suppress(OSError):
            while True:
                connection, _ = self._server.accept()
                threading.Thread(target=self._serve, args=(connection,), daemon=True).start()

    def _serve(self, client):
        with client, contextlib.suppress(OSError, ValueError):
            lines, rest = read_head(client)
            method, target, _ = lines[0].split(" ", 2)
            heads = {name.lower(): value.strip() for name, _, value in (line.partition(":") for line in lines[1:])}
            allowed = not self._wanted or heads.get("proxy-authorization") == self._wanted
            self.asked.append({"method": method, "target": target, "authorized": allowed})
            if self._told:
                self._told(self.asked[-1])
            if self._answer or not allowed:
                status = self._answer or 407
                client.sendall(f"HTTP/1.1 {status} No\r\nProxy-Authenticate: Basic realm=\"p\"\r\nContent-Length: 0\r\n"
                               "Connection: close\r\n\r\n".encode())
                return
            if method == "CONNECT":
                port = target.rpartition(":")[2]
                first = b""
            else:
                parts = urllib.parse.urlsplit(target)
                port = parts.port or 80
                kept = [line for line in lines[1:] if not line.lower().startswith(("proxy-", "connection:"))]
                first = "\r\n".join([f"{method} {parts.path or '/'} HTTP/1.1", *kept, "Connection: close", "", ""]).encode("latin-1")
            # Every name is this machine: what it resolves to is the proxy's business.
            with socket.create_connection(("127.0.0.1", int(port)), 5) as server:
                if method == "CONNECT":
                    client.sendall(b"HTTP/1.1 200 Connected\r\n\r\n")
                server.sendall(first + rest)
                back = threading.Thread(target=pump, args=(server, client), daemon=True)
                back.start()
                pump(client, server)
                back.join(30)


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--user", default="")
    parser.add_argument("--answer", type=int, default=0)
    given = parser.parse_args()
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(0))
    with ConnectProxy(given.user, given.answer, lambda one: print(json.dumps(one), flush=True)) as proxy:
        print(f"PORT={proxy.port}", flush=True)
        if ends_with_parent():
            sys.stdin.read()
        else:
            signal.pause()


if __name__ == "__main__":
    main()
