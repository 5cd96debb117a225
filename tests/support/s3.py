"""A store that speaks S3's PUT and GET, and believes no request whose signature botocore would not have made."""
import hashlib
import http.server
import re
import ssl
import subprocess
import threading
from urllib.parse import parse_qs, urlsplit
from xml.sax.saxutils import escape

from botocore.auth import S3SigV4Auth
from botocore.awsrequest import AWSRequest
from botocore.credentials import Credentials

AUTHORIZATION = re.compile(r"AWS4-HMAC-SHA256 Credential=([^/]+)/(\d{8})/([^/]+)/s3/aws4_request, ?"
                           r"SignedHeaders=([^,]+), ?Signature=([0-9a-f]{64})")


class Refused(Exception):
    def __init__(self, status, code):
        super().__init__(code)
        self.status, self.code = status, code


class Store:
    """``objects``: {"bucket/key": bytes}. ``faults``: statuses that the next requests get. ``tls``: a folder for a
    certificate of its own, whose path is then ``certificate``."""

    def __init__(self, key="AKIDEXAMPLE", secret="wJalr/XUtn+FEMI", token="", bucket="runs", tls=None):
        self.objects, self.faults, self.refused, self.requests = {}, [], [], []
        self.page = 1000  # keys of one answer
        self.bucket, self._key, self._secret, self._token = bucket, key, secret, token
        self._server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), self._handler())
        self.certificate = None
        scheme = "http"
        if tls is not None:
            self.certificate, scheme = self._wrap(tls), "https"
        self.endpoint = f"{scheme}://localhost:{self._server.server_address[1]}"
        self._thread = threading.Thread(target=self._server.serve_forever, daemon=True)

    def environment(self, **more):
        out = {"AWS_ACCESS_KEY_ID": self._key, "AWS_SECRET_ACCESS_KEY": self._secret, "AWS_ENDPOINT_URL": self.endpoint}
        if self._token:
            out["AWS_SESSION_TOKEN"] = self._token
        if self.certificate:
            out["AWS_CA_BUNDLE"] = self.certificate
        return {**out, **more}

    def __enter__(self):
        self._thread.start()
        return self

    def __exit__(self, *_):
        self._server.shutdown()
        self._server.server_close()

    def _wrap(self, folder):
        key, certificate = f"{folder}/key.pem", f"{folder}/certificate.pem"
        subprocess.run(["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-keyout", key, "-out", certificate,
                        "-days", "2", "-subj", "/CN=localhost", "-addext", "subjectAltName=DNS:localhost"],
                       check=True, capture_output=True)
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(certificate, key)
        self._server.socket = context.wrap_socket(self._server.socket, server_side=True)
        return certificate

    def check(self, method, url, headers, body):
        """Refused, unless the request is signed as botocore signs it."""
        found = AUTHORIZATION.fullmatch(headers.get("authorization", ""))
        if not found:
            raise Refused(403, "AccessDenied")
        key, day, region, signed, signature = found.groups()
        if key != self._key or headers.get("x-amz-security-token", "") != self._token:
            raise Refused(403, "InvalidAccessKeyId")
        signed = signed.split(";")
        must = {"host"} | {name for name in headers if name.startswith("x-amz-")}
        if not must <= set(signed):
            raise Refused(403, "UnsignedHeaders")
        if headers["x-amz-content-sha256"] != hashlib.sha256(body).hexdigest():
            raise Refused(400, "XAmzContentSHA256Mismatch")
        request = AWSRequest(method=method, url=url, headers={name: headers[name] for name in signed})
        request.context["timestamp"] = headers["x-amz-date"]
        assert headers["x-amz-date"].startswith(day)
        auth = S3SigV4Auth(Credentials(self._key, self._secret), "s3", region)
        if auth.signature(auth.string_to_sign(request, auth.canonical_request(request)), request) != signature:
            raise Refused(403, "SignatureDoesNotMatch")

    def listed(self, asked):
        """ListObjectsV2: `page` keys at a time."""
        assert asked["list-type"] == ["2"]
        prefix, after = (asked.get(name, [""])[0] for name in ("prefix", "continuation-token"))
        keys = sorted(key[len(self.bucket) + 1:] for key in self.objects)
        keys = [key for key in keys if key.startswith(prefix) and key > after]
        rows = "".join(f"<Contents><Key>{escape(key)}</Key><LastModified>2026-11-28T10:00:{self.age(key):02d}.000Z</LastModified>"
                       f"<Size>{len(self.objects[f'{self.bucket}/{key}'])}</Size></Contents>" for key in keys[:self.page])
        more = f"<NextContinuationToken>{escape(keys[self.page - 1])}</NextContinuationToken>" if len(keys) > self.page else ""
        return f'<?xml version="1.0"?><ListBucketResult xmlns="http://s3.amazonaws.com/doc/2006-03-01/">{rows}{more}</ListBucketResult>'.encode()

    def age(self, key):
        """The later an object was put, the newer."""
        return list(self.objects).index(f"{self.bucket}/{key}") % 60

    def _handler(store):  # noqa: N805 - the handler has a self of its own
        class Handler(http.server.BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def _answer(self, status, body=b"", **headers):
                self.send_response(status)
                for name, value in headers.items():
                    self.send_header(name.replace("_", "-"), value)
                self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)

            def _serve(self, act):
                body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
                store.requests.append((self.command, self.path))
                try:
                    if store.faults:
                        raise Refused(store.faults.pop(0), "Fault")
                    headers = {key.lower(): value for key, value in self.headers.items()}
                    store.check(self.command, store.endpoint + self.path, headers, body)
                    name = urlsplit(self.path).path.lstrip("/")
                    if name.split("/")[0] != store.bucket:
                        raise Refused(404, "NoSuchBucket")
                    act(name, body)
                except Refused as refused:
                    store.refused.append(refused.code)
                    self._answer(refused.status, f"<Error><Code>{refused.code}</Code></Error>".encode())

            def do_PUT(self):  # noqa: N802
                def act(name, body):
                    store.objects[name] = body
                    self._answer(200)
                self._serve(act)

            def do_GET(self):  # noqa: N802
                def act(name, _):
                    if urlsplit(self.path).query:
                        return self._answer(200, store.listed(parse_qs(urlsplit(self.path).query)))
                    if name not in store.objects:
                        raise Refused(404, "NoSuchKey")
                    whole = store.objects[name]
                    first, last = map(int, re.fullmatch(r"bytes=(\d+)-(\d+)", self.headers["Range"]).groups())
                    if first >= len(whole):
                        raise Refused(416, "InvalidRange")
                    part = whole[first:last + 1]
                    self._answer(206, part, Content_Range=f"bytes {first}-{first + len(part) - 1}/{len(whole)}")
                self._serve(act)

            def log_message(self, *_):
                pass

        return Handler
