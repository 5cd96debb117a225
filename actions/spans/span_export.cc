#include "actions/spans/span_export.h"

#include <algorithm>
#include <utility>

#include "actions/integration/http_caller.h"
#include "actions/metrics/gzip.h"
#include "actions/metrics/metric_http.h"
#include "core/json.h"
#include "core/text.h"

namespace tocsin::actions {

struct TracingConfig {
  HttpSettings http;
  CommonConfig common;
};

namespace {

using core::Value;
using core::ValueList;
using core::ValueMap;

constexpr std::size_t kMaxSpanText = 2048;
constexpr std::size_t kMaxTracesAnswer = 64 * 1024;
constexpr std::int64_t kStatusError = 2;  // STATUS_CODE_ERROR

Value any_value(const SpanValue& value) {
  if (const auto* number = std::get_if<std::int64_t>(&value)) {
    return ValueMap{{"intValue", std::to_string(*number)}};
  }
  if (const auto* truth = std::get_if<bool>(&value)) return ValueMap{{"boolValue", *truth}};
  return ValueMap{
      {"stringValue", std::string(core::cut_utf8(std::get<std::string>(value), kMaxSpanText))}};
}

Value span_attribute(const std::string& name, const SpanValue& value) {
  return ValueMap{{"key", name}, {"value", any_value(value)}};
}

std::string unix_nanos(core::WallTime at) { return std::to_string(core::nanoseconds(at)); }

Value span_json(const Span& span) {
  ValueList attributes;
  for (const auto& [name, value] : span.attributes) {
    attributes.push_back(span_attribute(name, value));
  }
  ValueMap out{{"traceId", span.trace}, {"spanId", span.id}};
  if (!span.parent.empty()) out.emplace_back("parentSpanId", span.parent);
  if (!span.state.empty()) out.emplace_back("traceState", span.state);
  out.emplace_back("name", span.name);
  out.emplace_back("kind", static_cast<std::int64_t>(span.kind));
  out.emplace_back("startTimeUnixNano", unix_nanos(span.start));
  out.emplace_back("endTimeUnixNano", unix_nanos(std::max(span.start, span.end)));
  out.emplace_back("attributes", std::move(attributes));
  if (!span.links.empty()) {
    ValueList links;
    for (const SpanLink& link : span.links) {
      links.push_back(ValueMap{{"traceId", link.trace}, {"spanId", link.span}});
    }
    out.emplace_back("links", std::move(links));
  }
  ValueMap status;
  if (!span.error.empty()) {
    status = {{"code", kStatusError},
              {"message", std::string(core::cut_utf8(span.error, kMaxSpanText))}};
  }
  out.emplace_back("status", std::move(status));
  return out;
}

/// What was not taken of a request that was, in words; empty: nothing. It is never sent again.
std::string rejected_spans(const HttpResponse& response) {
  const auto parsed = core::parse_json(response.body, kMaxTracesAnswer);
  const Value* partial = parsed ? core::find(*parsed, "partialSuccess") : nullptr;
  if (partial == nullptr) return {};
  const Value* rejected = core::find(*partial, "rejectedSpans");
  std::string count;
  if (const auto* text = core::as<std::string>(rejected)) count = *text;
  if (const auto* number = core::as<std::int64_t>(rejected)) count = std::to_string(*number);
  const std::string words = core::text_at(*partial, "errorMessage");
  if ((count.empty() || count == "0") && words.empty()) return {};
  return (count.empty() ? "0" : count) + " spans rejected" + (words.empty() ? "" : ": " + words);
}

Environment environment_of(core::Clock& clock, HttpClient* http) {
  Environment out;
  out.clock = &clock;
  out.http = http;
  return out;
}

class OtlpSpans final : public SpanExporter {
 public:
  OtlpSpans(std::shared_ptr<const TracingConfig> config, std::string cluster, core::Clock& clock,
            HttpClient* http)
      : config_(std::move(config)),
        cluster_(std::move(cluster)),
        http_(config_->http, environment_of(clock, http), config_->common) {}

  SpanAnswer send(std::span<const Span> spans) override {
    MetricRequest request;
    request.default_path = "/v1/traces";
    request.content_type = "application/json";
    request.body_in_words = traces_request(spans, cluster_);
    auto compressed = gzip(request.body_in_words);
    if (!compressed) return {SpansTaken::later, compressed.error().message};
    request.headers = {{"content-encoding", "gzip"}};
    request.body = std::move(*compressed);
    const MetricAnswer answer =
        http_.send(std::move(request),
                   std::chrono::duration_cast<std::chrono::milliseconds>(config_->common.timeout));
    if (answer.outcome.outcome == core::OutcomeClass::delivered) {
      return {SpansTaken::all, rejected_spans(answer.response)};
    }
    return {may_be_sent_again(answer) ? SpansTaken::later : SpansTaken::refused,
            answer.outcome.detail.empty() ? answer.outcome.code : answer.outcome.detail};
  }

 private:
  /// The specification's list. What the configuration lacks (a token's file) may come.
  static bool may_be_sent_again(const MetricAnswer& answer) {
    const int status = answer.response.status;
    if (status == 0) return true;
    return status == 429 || status == 502 || status == 503 || status == 504 || status == 401 ||
           status == 403;
  }

  std::shared_ptr<const TracingConfig> config_;
  std::string cluster_;
  MetricHttp http_;
};

}  // namespace

std::shared_ptr<const TracingConfig> no_tracing() { return std::make_shared<TracingConfig>(); }

std::shared_ptr<const TracingConfig> read_tracing(config::Reader& in) {
  auto out = std::make_shared<TracingConfig>();
  out->common.timeout = std::chrono::seconds(5);
  // A collector stands beside us more often than not.
  out->http.allow_private = {"127.0.0.0/8",    "::1/128",       "10.0.0.0/8", "172.16.0.0/12",
                             "192.168.0.0/16", "100.64.0.0/10", "fc00::/7"};
  in.secret("url", out->http.url,
            "of an OpenTelemetry collector, or of what takes OTLP over HTTP; /v1/traces if it has "
            "no path",
            true);
  in.optional("timeout", out->common.timeout, config::positive(), "for one request");
  in.optional("connect_timeout", out->common.connect_timeout, config::positive(),
              "for the connection");
  out->http.declare(in);
  return out;
}

bool asked_for(const TracingConfig& config) { return config.http.url.set(); }

std::unique_ptr<SpanExporter> make_span_exporter(std::shared_ptr<const TracingConfig> config,
                                                 const std::string& cluster, core::Clock& clock,
                                                 HttpClient* http) {
  return std::make_unique<OtlpSpans>(std::move(config), cluster, clock, http);
}

std::string traces_request(std::span<const Span> spans, const std::string& cluster) {
  ValueList list;
  list.reserve(spans.size());
  for (const Span& one : spans) list.push_back(span_json(one));
  ValueList resource{span_attribute("service.name", std::string("tocsin")),
                     span_attribute("service.namespace", cluster)};
  Value scope = ValueMap{{"scope", ValueMap{{"name", "tocsin"}}}, {"spans", std::move(list)}};
  Value all = ValueMap{{"resource", ValueMap{{"attributes", std::move(resource)}}},
                       {"scopeSpans", ValueList{std::move(scope)}}};
  return core::to_json(ValueMap{{"resourceSpans", ValueList{std::move(all)}}});
}

}  // namespace tocsin::actions
