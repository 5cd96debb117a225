"""A receiver of OTLP over HTTP, for traces.

Contract: opentelemetry.io, OTLP specification 1.x ("OTLP/HTTP", "JSON Protobuf Encoding": identifiers in hexadecimal, 64 bits as texts) and the
trace data model: ExportTraceServiceRequest as JSON, gzip allowed, 200 with {} or {"partialSuccess": …}; 400 for what cannot be read.
"""
import gzip

from tests.fakes.far_side import Checks, FarSide, Refused

KINDS = (0, 1, 2, 3, 4, 5)
STATUS_CODES = (0, 1, 2)


class OtlpTraces(FarSide):
    """`messages` are the spans, as they came."""

    @staticmethod
    def _bad(why):
        return Refused(400, {"code": 3, "message": why}, why)

    def answer(self, method, path, query, headers, body):
        if (method, path) != ("POST", "/v1/traces"):
            raise Refused(404, {"code": 5, "message": "not found"}, f"{method} {path}")
        if headers.get("content-encoding") == "gzip":
            body = gzip.decompress(body)
        check = Checks(self._bad)
        request = check.json_object(headers, body)
        check.keys("request", request, ("resourceSpans",))
        check.items("resourceSpans", request["resourceSpans"], 1000)
        for resource in request["resourceSpans"]:
            check.keys("resourceSpans", resource, ("resource", "scopeSpans"), ("schemaUrl",))
            check.keys("resource", resource["resource"], (), ("attributes", "droppedAttributesCount"))
            service = attributes(check, resource["resource"].get("attributes", []))
            check.items("scopeSpans", resource["scopeSpans"], 1000)
            for scope in resource["scopeSpans"]:
                check.keys("scopeSpans", scope, ("spans",), ("scope", "schemaUrl"))
                check.items("spans", scope["spans"], 10_000)
                self.messages.extend(self._span(check, span, service) for span in scope["spans"])
        return 200, {}

    @staticmethod
    def _span(check, span, service):
        check.keys("span", span, ("traceId", "spanId", "name", "startTimeUnixNano", "endTimeUnixNano"),
                   ("traceState", "parentSpanId", "flags", "kind", "attributes", "droppedAttributesCount", "events", "droppedEventsCount",
                    "links", "droppedLinksCount", "status"))
        identifier(check, "traceId", span["traceId"], 32)
        identifier(check, "spanId", span["spanId"], 16)
        if span.get("parentSpanId"):
            identifier(check, "parentSpanId", span["parentSpanId"], 16)
        check.text("name", span["name"], 1000)
        check.one_of("kind", span.get("kind", 0), KINDS)
        for key in ("startTimeUnixNano", "endTimeUnixNano"):
            if not isinstance(span[key], str) or not span[key].isdigit():
                raise check.refuse(f"{key}: 64 bits are a text in JSON")
        if int(span["endTimeUnixNano"]) < int(span["startTimeUnixNano"]):
            raise check.refuse("span: it ends before it starts")
        for link in span.get("links", []):
            check.keys("link", link, ("traceId", "spanId"), ("traceState", "attributes", "droppedAttributesCount", "flags"))
            identifier(check, "link.traceId", link["traceId"], 32)
            identifier(check, "link.spanId", link["spanId"], 16)
        status = span.get("status", {})
        check.keys("status", status, (), ("code", "message"))
        check.one_of("status.code", status.get("code", 0), STATUS_CODES)
        return {**span, "attributes": attributes(check, span.get("attributes", [])), "service": service}

    def text_of(self, message):
        return f"{message['name']} {message['attributes']} {message.get('status')}"


def identifier(check, where, value, digits):
    if not isinstance(value, str) or len(value) != digits or set(value) - set("0123456789abcdef") or not set(value) - {"0"}:
        raise check.refuse(f"{where}: expected {digits} hexadecimal digits, not all zero")


def attributes(check, found):
    out = {}
    check.items("attributes", found, 128)
    for one in found:
        check.keys("attribute", one, ("key", "value"))
        check.text("attribute.key", one["key"], 1000)
        (kind, value), = one["value"].items()
        check.one_of("attribute.value", kind, ("stringValue", "intValue", "boolValue", "doubleValue"))
        if kind == "intValue" and not isinstance(value, str):
            raise check.refuse("intValue: 64 bits are a text in JSON")
        if one["key"] in out:
            raise check.refuse("attributes: a key comes twice")
        out[one["key"]] = int(value) if kind == "intValue" else value
    return out
