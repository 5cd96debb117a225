"""Asks the HTTP API of a Tocsin that routes (docs/http-api.md)."""

import json
import time
import urllib.error
import urllib.parse
import urllib.request
from typing import Any, Dict, Iterator, List, Optional

_LIMIT = 1000  # rows of a list that one answer brings


class ServerError(RuntimeError):
    """The server answered that it cannot; ``status`` is HTTP's."""

    def __init__(self, status: int, text: str) -> None:
        self.status = status
        super().__init__(text)


class Server:
    """``address``: of any page of it, for instance ``http://127.0.0.1:9760/runs/4e3046d4``. ``token``: where reading needs one."""

    def __init__(self, address: str, token: Optional[str] = None, timeout: float = 30.0) -> None:
        parts = urllib.parse.urlsplit(address)
        if parts.scheme not in ("http", "https") or not parts.netloc:
            raise ValueError(f"{address}: expected for instance http://127.0.0.1:9760")
        self.base = f"{parts.scheme}://{parts.netloc}"
        self.page = parts.path
        self._token, self._timeout = token, timeout

    def _open(self, path: str, query: Dict[str, Any], timeout: float, body: Optional[Dict[str, Any]] = None) -> Any:
        given = {name: value for name, value in query.items() if value is not None}
        request = urllib.request.Request(self.base + path + ("?" + urllib.parse.urlencode(given) if given else ""))
        if body is not None:
            request.data = json.dumps(body).encode()
            request.add_header("Content-Type", "application/json")
        if self._token:
            request.add_header("Authorization", f"Bearer {self._token}")
        try:
            return urllib.request.urlopen(request, timeout=timeout)  # noqa: S310 (http and https only, see above)
        except urllib.error.HTTPError as error:
            try:
                told = str(json.load(error).get("detail", error.reason))
            except (ValueError, AttributeError):
                told = str(error.reason)
            raise ServerError(error.code, f"{self.base}{path}: {told}") from None
        except urllib.error.URLError as error:
            raise ServerError(0, f"{self.base} does not answer: {error.reason}") from None

    def get(self, path: str, **query: Any) -> Any:
        """The answer. Where the store is still reading (503) it is asked again for as long as the time-out."""
        end = time.monotonic() + self._timeout
        while True:
            try:
                with self._open(path, query, self._timeout) as answer:
                    return json.load(answer)
            except ServerError as error:
                if error.status not in (429, 503) or time.monotonic() >= end:
                    raise
            time.sleep(0.2)

    def post(self, path: str, body: Dict[str, Any]) -> Any:
        """The answer to an object. It is sent once."""
        with self._open(path, {}, self._timeout, body) as answer:
            return json.load(answer)

    def bytes_of(self, path: str) -> bytes:
        """A file that the server sends."""
        with self._open(path, {}, self._timeout) as answer:
            return bytes(answer.read())

    def all(self, path: str, limit: Optional[int] = None, **query: Any) -> Iterator[Dict[str, Any]]:
        """Rows of a list, page by page."""
        cursor, given = None, 0
        while True:
            answer = self.get(path, limit=_LIMIT if limit is None else min(_LIMIT, limit - given), cursor=cursor, **query)
            for item in answer["items"]:
                yield item
                given += 1
                if limit is not None and given >= limit:
                    return
            cursor = answer.get("next")
            if not cursor:
                return

    def events(self, seconds: float, **query: Any) -> Iterator[str]:
        """Names of events of the stream, for so many seconds at most; its beginning is the first."""
        end = time.monotonic() + seconds
        try:
            with self._open("/api/v1/stream", query, max(0.1, seconds)) as stream:
                for line in stream:
                    if line.startswith(b"event:"):
                        yield line[6:].strip().decode()
                    if time.monotonic() >= end:
                        return
        except (TimeoutError, OSError):
            return


def run_of(server: Server, wanted: Optional[str], at: Optional[str] = None) -> str:
    """The uid of a run: of the page's address, of the beginning of one, else the newest; ``at``: that was known at this time (RFC 3339).
    ValueError: there is none."""
    parts: List[str] = [part for part in server.page.split("/") if part]
    if wanted is None and len(parts) >= 2 and parts[0] == "runs":
        wanted = parts[1]
    if wanted is not None:
        try:
            return str(server.get(f"/api/v1/runs/{urllib.parse.quote(wanted, safe='')}", at=at)["run"]["uid"])
        except ServerError as error:
            if error.status == 404:
                raise ValueError(str(error) if at else f"there is no run {wanted} at {server.base}") from None
            if error.status == 400:
                raise ValueError(str(error)) from None
            raise
    try:
        for item in server.all("/api/v1/runs", limit=1, at=at):
            return str(item["uid"])
    except ServerError as error:
        if at is None or error.status not in (400, 404):
            raise
        raise ValueError(str(error)) from None
    raise ValueError(f"there is no run at {server.base}")
