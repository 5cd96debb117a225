#!/usr/bin/python3
"""A TLS server on loopback for tests of clients: it asks for a client certificate, speaks HTTP/1.1 or HTTP/2, keeps connections,
answers 204, and tells of each request which certificate, server name and connection it came with.

As a program:  tls_receiver.py --cert FILE --key FILE [--ca FILE] [--max-version 1.2]   prints PORT=N, then a line of JSON per request
"""
import argparse
import contextlib
import json
import pathlib
import socket
import ssl
import struct
import sys
import threading

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2]))

from tests.support.receiver import ends_with_parent  # noqa: E402

HTTP2_PREFACE = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"
DATA, HEADERS, SETTINGS = 0, 1, 4
END_STREAM, ACK, END_HEADERS = 1, 1, 4
STATUS_204 = b"\x89"  # HPACK's static table, entry 9


class Connection:
    def __init__(self, tls, number, names):
        self.tls, self.number, self.names = tls, number, names
        self.buffer = b""

    def take(self, count):
        while len(self.buffer) < count:
            self.buffer += self.more()
        out, self.buffer = self.buffer[:count], self.buffer[count:]
        return out

    def take_line(self):
        while b"\r\n" not in self.buffer:
            self.buffer += self.more()
        line, _, self.buffer = self.buffer.partition(b"\r\n")
        return line.decode("latin-1")

    def more(self):
        more = self.tls.recv(65536)
        if not more:
            raise EOFError
        return more

    def tell(self, **what):
        certificate = self.tls.getpeercert() or {}
        subject = {key: value for entry in certificate.get("subject", ()) for key, value in entry}
        print(json.dumps({"connection": self.number, "alpn": self.tls.selected_alpn_protocol() or "", "version": self.tls.version(),
                          "server_name": self.names.get(self.tls) or "", "client": subject.get("commonName", ""), **what}), flush=True)

    def serve(self):
        if self.tls.selected_alpn_protocol() == "h2":
            self.serve_http2()
        else:
            self.serve_http1()

    def serve_http1(self):
        while True:
            request = self.take_line()
            headers = {}
            while line := self.take_line():
                name, _, value = line.partition(":")
                headers[name.lower()] = value.strip()
            self.take(int(headers.get("content-length") or 0))
            self.tell(request=request, host=headers.get("host", ""), authorization=headers.get("authorization", ""))
            self.tls.sendall(b"HTTP/1.1 204 No Content\r\n\r\n")

    def frame(self, kind, flags, stream, payload=b""):
        self.tls.sendall(struct.pack(">I", len(payload))[1:] + bytes([kind, flags]) + struct.pack(">I", stream) + payload)

    def serve_http2(self):
        if self.take(len(HTTP2_PREFACE)) != HTTP2_PREFACE:
            return
        self.frame(SETTINGS, 0, 0)
        while True:
            head = self.take(9)
            length, kind, flags = int.from_bytes(head[:3], "big"), head[3], head[4]
            stream = int.from_bytes(head[5:], "big")
            self.take(length)
            if kind == SETTINGS and not flags & ACK:
                self.frame(SETTINGS, ACK, 0)
            if kind in (DATA, HEADERS) and flags & END_STREAM:
                self.tell(request="HTTP/2")
                self.frame(HEADERS, END_STREAM | END_HEADERS, stream, STATUS_204)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--cert", required=True)
    parser.add_argument("--key", required=True)
    parser.add_argument("--ca")
    parser.add_argument("--max-version")
    options = parser.parse_args()
    ends_with_parent()
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(options.cert, options.key)
    context.set_alpn_protocols(["h2", "http/1.1"])
    if options.ca:
        context.load_verify_locations(options.ca)
        context.verify_mode = ssl.CERT_REQUIRED
    if options.max_version == "1.2":
        context.maximum_version = ssl.TLSVersion.TLSv1_2
    names = {}
    context.sni_callback = lambda tls, name, _: names.__setitem__(tls, name)
    listener = socket.create_server(("127.0.0.1", 0))
    print(f"PORT={listener.getsockname()[1]}", flush=True)
    number = 0

    def serve(plain, number):
        with contextlib.suppress(OSError, EOFError), context.wrap_socket(plain, server_side=True) as tls:
            Connection(tls, number, names).serve()

    while True:
        plain, _ = listener.accept()
        number += 1
        threading.Thread(target=serve, args=(plain, number), daemon=True).start()


if __name__ == "__main__":
    main()
