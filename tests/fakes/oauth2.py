"""An OAuth2 authorization server, and a resource that takes its tokens.

Contract: RFC 6749 §2.3.1 (client password), §4.4 (client credentials), §5 (answers and errors); RFC 6750 §2.1, §3 (bearer tokens).
"""
import base64
import itertools
import urllib.parse

from tests.fakes.far_side import FarSide, Refused


class OAuth2(FarSide):
    """`messages`: bodies that the resource took. `revoke()`: no token given so far is taken any longer."""

    client_id, scope = "tocsin one", "alerts.write"

    def __init__(self):
        super().__init__()
        self.tokens, self._numbers = set(), itertools.count(1)

    @property
    def url(self):
        return self.root + "/hook"

    @property
    def token_url(self):
        return self.root + "/token"

    def revoke(self):
        self.tokens.clear()

    def answer(self, method, path, query, headers, body):
        if path == "/token":
            return 200, self._token(method, query, headers, body)
        if headers.get("authorization", "").removeprefix("Bearer ") not in self.tokens:
            raise Refused(401, {"error": "invalid_token"}, "no token of ours")
        self.messages.append(body.decode())
        return 200, {}

    @staticmethod
    def _error(status, name, why):
        return Refused(status, {"error": name, "error_description": why}, why)

    def _token(self, method, query, headers, body):
        if method != "POST" or query or headers.get("content-type") != "application/x-www-form-urlencoded":
            raise self._error(400, "invalid_request", "POST, a form, no query")
        pairs = urllib.parse.parse_qsl(body.decode("ascii"), strict_parsing=True)
        form = dict(pairs)
        if len(form) != len(pairs):
            raise self._error(400, "invalid_request", "a parameter comes twice")
        if form.get("grant_type") != "client_credentials":
            raise self._error(400, "unsupported_grant_type", "grant_type")
        in_header, in_body = "authorization" in headers, "client_secret" in form
        if in_header and in_body:
            raise self._error(400, "invalid_request", "credentials come twice")
        client = (form.get("client_id"), form.get("client_secret"))
        if in_header:
            kind, _, text = headers["authorization"].partition(" ")
            user, _, password = base64.b64decode(text, validate=True).decode("ascii").partition(":")
            client = (urllib.parse.unquote(user), urllib.parse.unquote(password)) if kind == "Basic" else None
        if client != (self.client_id, self.secret):
            raise self._error(401, "invalid_client", "unknown client")
        if form.get("scope") != self.scope:
            raise self._error(400, "invalid_scope", "scope")
        token = f"canary-token-{next(self._numbers)}"
        self.tokens.add(token)
        return {"access_token": token, "token_type": "Bearer", "expires_in": 3600, "scope": self.scope}

    def text_of(self, message):
        return message
