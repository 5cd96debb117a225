"""A receiver of OTLP over HTTP, for metrics.

Contract: opentelemetry.io, OTLP specification 1.x ("OTLP/HTTP", "JSON Protobuf Encoding", "Partial Success") and the data model of metrics:
ExportMetricsServiceRequest as JSON, gzip allowed, 200 with {} or {"partialSuccess": …}; 400 for what cannot be read.
"""
import gzip

from tests.fakes.far_side import Checks, FarSide, Refused

NO_RECORDED_VALUE = 1
CUMULATIVE = 2


class Otlp(FarSide):
    """`messages` are the newest points: {(name, ((label, value), …)): value}; None: the series has ended."""

    def __init__(self):
        super().__init__()
        self.messages = {}
        self.rejects = 0  # data points of each request that are not taken

    @staticmethod
    def _bad(why):
        return Refused(400, {"code": 3, "message": why}, why)

    def answer(self, method, path, query, headers, body):
        if (method, path) != ("POST", "/v1/metrics"):
            raise Refused(404, {"code": 5, "message": "not found"}, f"{method} {path}")
        if headers.get("content-encoding") == "gzip":
            body = gzip.decompress(body)
        check = Checks(self._bad)
        request = check.json_object(headers, body)
        check.keys("request", request, ("resourceMetrics",))
        points = {}
        for resource in check_list(check, "resourceMetrics", request["resourceMetrics"]):
            check.keys("resourceMetrics", resource, ("resource", "scopeMetrics"), ("schemaUrl",))
            check.keys("resource", resource["resource"], (), ("attributes", "droppedAttributesCount"))
            labels(check, resource["resource"].get("attributes", []))
            for scope in check_list(check, "scopeMetrics", resource["scopeMetrics"]):
                check.keys("scopeMetrics", scope, ("metrics",), ("scope", "schemaUrl"))
                for metric in check_list(check, "metrics", scope["metrics"]):
                    points.update(self._metric(check, metric))
        self.messages.update(points)
        if self.rejects:
            return 200, {"partialSuccess": {"rejectedDataPoints": str(self.rejects), "errorMessage": "some are too old"}}
        return 200, {}

    @staticmethod
    def _metric(check, metric):
        check.keys("metric", metric, ("name",), ("description", "unit", "gauge", "sum"))
        check.text("name", metric["name"], 255)
        kinds = [kind for kind in ("gauge", "sum") if kind in metric]
        if len(kinds) != 1:
            raise check.refuse("metric: expected one kind of data")
        data = metric[kinds[0]]
        if kinds[0] == "sum":
            check.keys("sum", data, ("dataPoints", "aggregationTemporality", "isMonotonic"))
            check.one_of("aggregationTemporality", data["aggregationTemporality"], (1, CUMULATIVE))
            check.one_of("isMonotonic", data["isMonotonic"], (True, False))
        else:
            check.keys("gauge", data, ("dataPoints",))
        found = {}
        for point in check_list(check, "dataPoints", data["dataPoints"]):
            check.keys("point", point, ("timeUnixNano",), ("attributes", "startTimeUnixNano", "asDouble", "asInt", "flags"))
            if not isinstance(point["timeUnixNano"], str) or not point["timeUnixNano"].isdigit():
                raise check.refuse("timeUnixNano: 64 bits are a text in JSON")
            ended = point.get("flags", 0) & NO_RECORDED_VALUE
            if bool(ended) == ("asDouble" in point or "asInt" in point):
                raise check.refuse("point: expected one value, or the flag that there is none")
            found[metric["name"], labels(check, point.get("attributes", []))] = None if ended else point.get("asDouble", point.get("asInt"))
        return found

    def shown(self):
        return [f"{name}{dict(own)}: {value}" for (name, own), value in self.messages.items()]


def check_list(check, where, value):
    check.items(where, value, 100_000)
    return value


def labels(check, attributes):
    out = []
    for one in attributes:
        check.keys("attribute", one, ("key", "value"))
        check.keys("attribute.value", one["value"], ("stringValue",))
        check.text("attribute.key", one["key"], 1000)
        out.append((one["key"], one["value"]["stringValue"]))
    if len({key for key, _ in out}) != len(out):
        raise check.refuse("attributes: a key comes twice")
    return tuple(sorted(out))
