"""Signature Version 4, as a service checks it.

Contract: docs.aws.amazon.com, IAM User Guide, "Create a signed AWS API request": canonical request, string to sign, signing key; host and every
x-amz-* header must be signed; the date may be five minutes off.
"""
import datetime
import hashlib
import hmac
import re
import urllib.parse

AUTHORIZATION = re.compile(r"AWS4-HMAC-SHA256 Credential=([^/]+)/(\d{8})/([a-z0-9-]+)/([a-z0-9-]+)/aws4_request, ?"
                           r"SignedHeaders=([a-z0-9;-]+), ?Signature=([0-9a-f]{64})")


def _keyed(key, text):
    return hmac.new(key, text.encode(), hashlib.sha256).digest()


def signature_problem(method, target, headers, body, *, service, region, access_key_id, secret_access_key, session_token=None, now=None):
    """What the service would refuse it for; None: it is signed as it must be. `headers`: names in lower case; `body`: bytes."""
    match = AUTHORIZATION.fullmatch(headers.get("authorization", ""))
    if not match:
        return "IncompleteSignature: no AWS4-HMAC-SHA256 authorization"
    key_id, day, in_region, in_service, names, signature = match.groups()
    if key_id != access_key_id:
        return "InvalidClientTokenId: unknown access key"
    if (in_region, in_service) != (region, service):
        return f"SignatureDoesNotMatch: credential is scoped to {in_region}/{in_service}, expected {region}/{service}"
    signed = names.split(";")
    if signed != sorted(signed) or "host" not in signed:
        return "SignatureDoesNotMatch: signed headers are not sorted, or host is not among them"
    unsigned = [name for name in headers if name.startswith("x-amz-") and name not in signed]
    if unsigned:
        return f"SignatureDoesNotMatch: {unsigned} not signed"
    if headers.get("x-amz-security-token") != session_token:
        return "InvalidClientTokenId: security token"
    stamp = headers.get("x-amz-date", "")
    if not re.fullmatch(r"\d{8}T\d{6}Z", stamp) or not stamp.startswith(day):
        return "IncompleteSignature: x-amz-date"
    at = datetime.datetime.strptime(stamp, "%Y%m%dT%H%M%SZ").replace(tzinfo=datetime.timezone.utc)
    if abs((at - (now or datetime.datetime.now(datetime.timezone.utc))).total_seconds()) > 300:
        return "SignatureDoesNotMatch: the date is more than five minutes off"
    path, _, query = target.partition("?")
    pairs = sorted((urllib.parse.quote(urllib.parse.unquote(name), safe="-_.~"), urllib.parse.quote(urllib.parse.unquote(value), safe="-_.~"))
                   for name, _, value in (part.partition("=") for part in query.split("&") if part))
    canonical = "\n".join([method, urllib.parse.quote(urllib.parse.unquote(path), safe="/-_.~"), "&".join(f"{name}={value}" for name, value in pairs),
                           *(f"{name}:{' '.join(headers.get(name, '').split())}" for name in signed), "", names, hashlib.sha256(body).hexdigest()])
    text = "\n".join(["AWS4-HMAC-SHA256", stamp, f"{day}/{region}/{service}/aws4_request", hashlib.sha256(canonical.encode()).hexdigest()])
    key = ("AWS4" + secret_access_key).encode()
    for part in (day, region, service, "aws4_request"):
        key = _keyed(key, part)
    if not hmac.compare_digest(_keyed(key, text).hex(), signature):
        return "SignatureDoesNotMatch: the request signature we calculated does not match"
    return None
