"""Objects of an S3-compatible store: listed, and read in ranges. Requests are signed (AWS Signature Version 4); credentials, endpoint and
region are looked for where the hook looks (docs/raw-tensors.md)."""

import configparser
import datetime
import hashlib
import hmac
import os
import re
import ssl
import time
import urllib.error
import urllib.parse
import urllib.request
from typing import Any, Dict, Iterator, NamedTuple, Optional, Tuple
from xml.etree import ElementTree

_TRIES, _PAUSE = 4, 0.25  # while a store has no time; seconds
_TIMEOUT = 30.0  # seconds
_NOTHING = hashlib.sha256(b"").hexdigest()


class StoreError(RuntimeError):
    """The store refuses, or does not answer; ``status`` is HTTP's, 0 without one."""

    def __init__(self, status: int, text: str) -> None:
        self.status = status
        super().__init__(text)


class Object(NamedTuple):
    key: str
    bytes: int
    modified: str  # RFC 3339


class Bucket:
    """One bucket. ``region``, ``endpoint``: None: as the environment says. Raises ValueError where it has no credentials."""

    def __init__(self, name: str, region: Optional[str] = None, endpoint: Optional[str] = None) -> None:
        if not re.fullmatch(r"[A-Za-z0-9][A-Za-z0-9._-]*", name):
            raise ValueError(f"s3://{name}: expected s3://bucket/prefix")
        self.name = name
        self._region = region or os.environ.get("AWS_REGION") or os.environ.get("AWS_DEFAULT_REGION") or "us-east-1"
        endpoint = endpoint or os.environ.get("AWS_ENDPOINT_URL_S3") or os.environ.get("AWS_ENDPOINT_URL")
        if endpoint:
            self._base = endpoint.rstrip("/") + "/" + name
        elif "." in name:  # it would not match the certificate as part of a host's
            self._base = f"https://s3.{self._region}.amazonaws.com/{name}"
        else:
            self._base = f"https://{name}.s3.{self._region}.amazonaws.com"
        if urllib.parse.urlsplit(self._base).scheme not in ("http", "https"):
            raise ValueError(f"{endpoint}: expected for instance https://s3.example.com")

    def objects(self, prefix: str) -> Iterator[Object]:
        """Those whose keys begin so, in the order of their keys."""
        token = None
        while True:
            query = {"list-type": "2", "prefix": prefix, **({"continuation-token": token} if token else {})}
            tree = ElementTree.fromstring(self._get("/", query))
            space = tree.tag[:tree.tag.index("}") + 1] if tree.tag.startswith("{") else ""
            for one in tree.iter(space + "Contents"):
                yield Object(one.findtext(space + "Key", ""), int(one.findtext(space + "Size", "0")), one.findtext(space + "LastModified", ""))
            token = tree.findtext(space + "NextContinuationToken")
            if not token:
                return

    def read(self, key: str, first: int, count: int) -> bytes:
        """So many bytes of an object, fewer at its end."""
        return self._get("/" + key, {}, {"range": f"bytes={first}-{first + count - 1}"})

    def _get(self, path: str, query: Dict[str, str], headers: Optional[Dict[str, str]] = None) -> bytes:
        for left in reversed(range(_TRIES)):
            try:
                with urllib.request.urlopen(self._signed(path, query, headers or {}), timeout=_TIMEOUT, context=_context()) as answer:  # noqa: S310
                    return bytes(answer.read())
            except urllib.error.HTTPError as error:
                code = re.search(rb"<Code>([ -~]{1,80}?)</Code>", error.read())
                if error.code not in (408, 429) and error.code < 500 or not left:
                    said = f" ({code.group(1).decode()})" if code else ""
                    raise StoreError(error.code, f"s3://{self.name}{path}: HTTP status {error.code}{said}") from None
            except OSError as error:
                if not left:
                    raise StoreError(0, f"{self._base} does not answer: {getattr(error, 'reason', error)}") from None
            time.sleep(_PAUSE)
        raise AssertionError

    def _signed(self, path: str, query: Dict[str, str], headers: Dict[str, str]) -> urllib.request.Request:
        key, secret, session = _credentials()
        parts = urllib.parse.urlsplit(self._base)
        whole = urllib.parse.quote(parts.path + path, safe="/-_.~")
        asked = "&".join(f"{urllib.parse.quote(name, safe='-_.~')}={urllib.parse.quote(value, safe='-_.~')}" for name, value in sorted(query.items()))
        moment = datetime.datetime.now(datetime.timezone.utc).strftime("%Y%m%dT%H%M%SZ")
        scope = f"{moment[:8]}/{self._region}/s3/aws4_request"
        sent = {"host": parts.netloc, "x-amz-content-sha256": _NOTHING, "x-amz-date": moment, **headers}
        if session:
            sent["x-amz-security-token"] = session
        names = ";".join(sorted(sent))
        canonical = "\n".join(["GET", whole, asked, *(f"{name}:{sent[name]}" for name in sorted(sent)), "", names, _NOTHING])
        to_sign = "\n".join(["AWS4-HMAC-SHA256", moment, scope, hashlib.sha256(canonical.encode()).hexdigest()])
        signer = ("AWS4" + secret).encode()
        for part in scope.split("/"):
            signer = hmac.new(signer, part.encode(), hashlib.sha256).digest()
        signature = hmac.new(signer, to_sign.encode(), hashlib.sha256).hexdigest()
        sent["authorization"] = f"AWS4-HMAC-SHA256 Credential={key}/{scope}, SignedHeaders={names}, Signature={signature}"
        return urllib.request.Request(f"{parts.scheme}://{parts.netloc}{whole}" + ("?" + asked if asked else ""), headers=sent)


def _context() -> Any:
    return ssl.create_default_context(cafile=os.environ.get("AWS_CA_BUNDLE") or None)


def _credentials() -> Tuple[str, str, str]:
    """Key, secret and session token, looked up at each request: new ones are used."""
    key, secret = os.environ.get("AWS_ACCESS_KEY_ID", ""), os.environ.get("AWS_SECRET_ACCESS_KEY", "")
    if key and secret:
        return key, secret, os.environ.get("AWS_SESSION_TOKEN", "")
    path = os.environ.get("AWS_SHARED_CREDENTIALS_FILE") or os.path.join(os.path.expanduser("~"), ".aws", "credentials")
    profile = os.environ.get("AWS_PROFILE") or "default"
    file = configparser.RawConfigParser(strict=False)
    try:
        file.read(path, encoding="utf-8")
    except (configparser.Error, UnicodeDecodeError) as error:
        raise ValueError(f"{path} is no file of credentials: {error}") from None
    names = {section.strip(): section for section in file.sections()}
    found = dict(file[names[profile]]) if profile in names else {}
    if found.get("aws_access_key_id") and found.get("aws_secret_access_key"):
        return found["aws_access_key_id"], found["aws_secret_access_key"], found.get("aws_session_token", "")
    raise ValueError(f"no credentials: neither AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY nor the profile {profile} of {path}")
