"""Amazon CloudWatch, action PutMetricData.

Contract: docs.aws.amazon.com, Amazon CloudWatch API Reference (2010-08-01): PutMetricData, MetricDatum, Dimension, Common Errors; the form of
the query API; Signature Version 4 for the service `monitoring`.
"""
import datetime
import gzip
import re
import urllib.parse

from tests.fakes.aws_signature import signature_problem
from tests.fakes.far_side import FarSide, Refused

UNITS = {"Seconds", "Microseconds", "Milliseconds", "Bytes", "Percent", "Count", "None"}
ASCII = re.compile(r"[ -~]*[!-~][ -~]*")
NAMESPACE = re.compile(r"[^:][0-9A-Za-z.\-_/#: ]{0,254}")


class CloudWatch(FarSide):
    """`messages` are the newest data: {(name, ((dimension, value), …)): value}."""

    region, access_key_id, session_token = "eu-central-1", "AKIDEXAMPLE", "canary/token"

    def __init__(self):
        super().__init__()
        self.messages = {}

    @staticmethod
    def _bad(code, why, status=400):
        return Refused(status, f"<ErrorResponse><Error><Type>Sender</Type><Code>{code}</Code><Message>{why}</Message></Error></ErrorResponse>", why)

    def answer(self, method, path, query, headers, body):
        problem = signature_problem(method, path, headers, body, service="monitoring", region=self.region, access_key_id=self.access_key_id,
                                    secret_access_key=self.secret, session_token=self.session_token)
        if problem:
            raise self._bad(problem.partition(":")[0], problem, 403)
        if headers.get("content-encoding") == "gzip":
            body = gzip.decompress(body)
        if len(body) > 1_048_576:
            raise Refused(413, "", "over 1 MB")
        form = dict(urllib.parse.parse_qsl(body.decode(), keep_blank_values=True, strict_parsing=True))
        if (form.pop("Action", ""), form.pop("Version", "")) != ("PutMetricData", "2010-08-01"):
            raise self._bad("InvalidAction", "Action and Version")
        namespace = form.pop("Namespace", "")
        if not NAMESPACE.fullmatch(namespace) or namespace.startswith("AWS/"):
            raise self._bad("InvalidParameterValue", f"Namespace {namespace!r}")
        data = members(form, "MetricData", self._bad)
        if not 1 <= len(data) <= 1000:
            raise self._bad("InvalidParameterValue", f"{len(data)} metrics")
        self.messages.update(self._datum(datum) for datum in data)
        return 200, "<PutMetricDataResponse><ResponseMetadata><RequestId>1</RequestId></ResponseMetadata></PutMetricDataResponse>"

    def _datum(self, datum):
        dimensions = members(datum, "Dimensions", self._bad)
        unknown = set(datum) - {"MetricName", "Timestamp", "Unit", "Value"}
        if unknown:
            raise self._bad("MalformedInput", f"unknown {unknown}")
        if not 1 <= len(datum.get("MetricName", "")) <= 255 or datum.get("Unit", "None") not in UNITS:
            raise self._bad("InvalidParameterValue", "MetricName or Unit")
        value = float(datum["Value"])
        if not abs(value) <= 2.0 ** 360:
            raise self._bad("InvalidParameterValue", f"Value {value}")
        at = datetime.datetime.fromisoformat(datum["Timestamp"].replace("Z", "+00:00"))
        now = datetime.datetime.now(datetime.timezone.utc)
        if not now - datetime.timedelta(days=14) <= at <= now + datetime.timedelta(hours=2):
            raise self._bad("InvalidParameterValue", f"Timestamp {at}")
        if len(dimensions) > 30:
            raise self._bad("InvalidParameterValue", "over 30 dimensions")
        for one in dimensions:
            name, text = one.get("Name", ""), one.get("Value", "")
            if set(one) != {"Name", "Value"} or not ASCII.fullmatch(name) or not ASCII.fullmatch(text) or name.startswith(":"):
                raise self._bad("InvalidParameterValue", f"dimension {one}")
            if len(name) > 255 or len(text) > 1024:
                raise self._bad("InvalidParameterValue", f"dimension {name} is too long")
        return (datum["MetricName"], tuple(sorted((one["Name"], one["Value"]) for one in dimensions))), value

    def shown(self):
        return [f"{name}{dict(own)}: {value}" for (name, own), value in self.messages.items()]


def members(form, name, bad):
    """Takes `<name>.member.<n>.…` out of the form: a list of forms, which must be numbered from 1 without a gap."""
    found = {}
    for key in [key for key in form if key.startswith(name + ".member.")]:
        number, _, rest = key[len(name) + 8:].partition(".")
        found.setdefault(int(number), {})[rest] = form.pop(key)
    if sorted(found) != list(range(1, len(found) + 1)):
        raise bad("MalformedInput", f"{name} is not numbered from 1")
    return [found[number] for number in sorted(found)]
