// publish_metric by OTLP over HTTP.
//
// Sends       POST /v1/metrics, JSON, gzip.
// Retries     429, 502, 503, 504 and lost connections, with the state of that moment.
// Idempotent  a data point has the time of its push; the newest wins.
// Needs       an OpenTelemetry collector, or a far side that takes OTLP.
// Source      OpenTelemetry protocol 1.x (OTLP/HTTP); its data model for metrics.

#include <algorithm>
#include <span>

#include "actions/metrics/gzip.h"
#include "actions/metrics/metric_http.h"
#include "actions/metrics/metric_transport.h"
#include "core/json.h"

namespace tocsin::actions {
namespace {

using core::AttemptOutcome;
using core::OutcomeClass;
using core::Value;
using core::ValueList;
using core::ValueMap;

constexpr std::size_t kSeriesPerRequest = 500;
constexpr std::int64_t kCumulative = 2;       // AGGREGATION_TEMPORALITY_CUMULATIVE
constexpr std::int64_t kNoRecordedValue = 1;  // DATA_POINT_FLAGS_NO_RECORDED_VALUE_MASK
constexpr std::size_t kMaxOtlpAnswer = 64 * 1024;

Value otlp_attribute(const std::string& name, const std::string& value) {
  return ValueMap{{"key", name}, {"value", ValueMap{{"stringValue", value}}}};
}

/// A series, and whether it has ended.
struct OtlpPoint {
  const IssueSeries* series = nullptr;
  bool ended = false;
};

Value data_point(const OtlpPoint& point, const IssueFamily& family, core::WallTime now) {
  ValueList attributes;
  for (const auto& [name, value] : point.series->labels) {
    attributes.push_back(otlp_attribute(name, value));
  }
  ValueMap out{{"attributes", std::move(attributes)},
               {"timeUnixNano", std::to_string(core::nanoseconds(now))}};
  if (point.ended) {
    out.emplace_back("flags", kNoRecordedValue);
  } else {
    out.emplace_back("asDouble", family.value(*point.series));
  }
  return out;
}

Value metric_of(std::span<const OtlpPoint> points, const IssueFamily& family, core::WallTime now) {
  ValueList data_points;
  for (const OtlpPoint& point : points) {
    if (belongs(*point.series, family)) data_points.push_back(data_point(point, family, now));
  }
  ValueMap data{{"dataPoints", std::move(data_points)}};
  const bool counter = std::string_view(family.type) == "counter";
  if (counter) {
    data.emplace_back("aggregationTemporality", kCumulative);
    data.emplace_back("isMonotonic", true);
  }
  const bool time = std::string_view(family.name).ends_with("_seconds");
  return ValueMap{{"name", family.name},
                  {"description", family.help},
                  {"unit", time ? "s" : "1"},
                  {counter ? "sum" : "gauge", std::move(data)}};
}

/// ExportMetricsServiceRequest.
std::string otlp_request(std::span<const OtlpPoint> points, core::WallTime now,
                         const std::string& cluster) {
  ValueList metrics;
  const auto add = [&](const IssueFamily& family) {
    const bool any = std::any_of(points.begin(), points.end(), [&](const OtlpPoint& point) {
      return belongs(*point.series, family);
    });
    if (any) metrics.push_back(metric_of(points, family, now));
  };
  for (const IssueFamily& family : kIssueFamilies) add(family);
  for (const IssueFamily& family : kScalarFamilies) add(family);
  Value resource =
      ValueMap{{"attributes", ValueList{otlp_attribute("service.name", "tocsin"),
                                        otlp_attribute("service.namespace", cluster)}}};
  Value scope = ValueMap{{"scope", ValueMap{{"name", "tocsin"}}}, {"metrics", std::move(metrics)}};
  Value all =
      ValueMap{{"resource", std::move(resource)}, {"scopeMetrics", ValueList{std::move(scope)}}};
  return core::to_json(ValueMap{{"resourceMetrics", ValueList{std::move(all)}}});
}

/// What was not taken of a request that was, in words; empty: nothing. A partial success is never
/// retried.
std::string rejected_words(const HttpResponse& response) {
  const auto parsed = core::parse_json(response.body, kMaxOtlpAnswer);
  const Value* partial = parsed ? core::find(*parsed, "partialSuccess") : nullptr;
  if (partial == nullptr) return {};
  const Value* rejected = core::find(*partial, "rejectedDataPoints");
  std::string count;
  if (const auto* text = core::as<std::string>(rejected)) count = *text;
  if (const auto* number = core::as<std::int64_t>(rejected)) count = std::to_string(*number);
  const std::string words = core::text_at(*partial, "errorMessage");
  if ((count.empty() || count == "0") && words.empty()) return {};
  return (count.empty() ? "0" : count) + " data points rejected" +
         (words.empty() ? "" : ": " + words);
}

class OtlpSink final : public MetricSink {
 public:
  OtlpSink(const HttpSettings& http, const Environment& environment, const CommonConfig& common)
      : cluster_(environment.cluster), http_(http, environment, common) {}

  AttemptOutcome push(const MetricPush& push, std::chrono::milliseconds budget) override {
    std::vector<OtlpPoint> points;
    for (const IssueSeries& series : push.series) points.push_back({&series, false});
    for (const IssueSeries& series : push.ended) points.push_back({&series, true});
    const PushTime time(http_, budget);
    std::span<const OtlpPoint> left(points);
    std::string rejected;
    AttemptOutcome out;
    while (!left.empty()) {
      if (time.left().count() <= 0) return out_of_push_time(left.size() / kSeriesPerRequest + 1);
      const auto some = left.first(std::min(left.size(), kSeriesPerRequest));
      left = left.subspan(some.size());
      out = send(otlp_request(some, push.now, cluster_), time.left());
      if (out.outcome != OutcomeClass::delivered) return out;
      if (rejected.empty()) rejected = out.detail;
    }
    out.detail = rejected;
    return out;
  }

 private:
  AttemptOutcome send(const std::string& json, std::chrono::milliseconds budget) const {
    auto compressed = gzip(json);
    if (!compressed) {
      AttemptOutcome out;
      out.outcome = OutcomeClass::transient;
      out.code = to_string(compressed.error().code);
      out.detail = compressed.error().message;
      return out;
    }
    MetricRequest request;
    request.default_path = "/v1/metrics";
    request.content_type = "application/json";
    request.headers = {{"content-encoding", "gzip"}};
    request.body = std::move(*compressed);
    request.body_in_words = json;
    const MetricAnswer answer = http_.send(std::move(request), budget);
    AttemptOutcome out = answer.outcome;
    const int status = answer.response.status;
    if (out.outcome == OutcomeClass::delivered) {
      out.detail = rejected_words(answer.response);
    } else if (out.outcome == OutcomeClass::transient && status != 0 && status != 502 &&
               status != 503 && status != 504) {
      out.outcome = OutcomeClass::bad_payload;  // the specification: not to be retried
    }
    return out;
  }

  const std::string cluster_;
  const MetricHttp http_;
};

struct OtlpTransport final : MetricTransport {
  void declare(config::Reader& /*in*/) override {}
  [[nodiscard]] std::unique_ptr<MetricSink> sink(const HttpSettings& http,
                                                 const Environment& environment,
                                                 const CommonConfig& common) const override {
    return std::make_unique<OtlpSink>(http, environment, common);
  }
};

}  // namespace

MetricTransportDescriptor otlp_transport() {
  return {
      "otlp", "OpenTelemetry's protocol over HTTP",
      true,   true,
      {},     [] {
            return std::unique_ptr<MetricTransport>(std::make_unique<OtlpTransport>()); }};
}

}  // namespace tocsin::actions
