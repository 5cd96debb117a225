// publish_metric by the Prometheus Pushgateway.
//
// Sends       PUT of one group per job, in the text format; DELETE when nothing of the job is kept.
// Retries     by the table in http_outcome.cc.
// Idempotent  a PUT replaces the group.
// Needs       a Pushgateway.
// Source      Pushgateway README (API, grouping keys); Prometheus text exposition 0.0.4.

#include <algorithm>
#include <map>

#include "actions/message/series_text.h"
#include "actions/metrics/metric_http.h"
#include "actions/metrics/metric_transport.h"
#include "actions/transport/redact.h"

namespace tocsin::actions {
namespace {

using core::AttemptOutcome;
using core::OutcomeClass;

/// "name/value", or "name@base64/…" for a value that would be more than one part of a path.
std::string group_part(const std::string& name, const std::string& value) {
  const bool plain = !value.empty() && std::all_of(value.begin(), value.end(), [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '-' ||
           c == '_';
  });
  if (plain) return "/" + name + "/" + value;
  std::string encoded = base64(value);  // RFC 4648 §5, the alphabet for URLs
  std::replace(encoded.begin(), encoded.end(), '+', '-');
  std::replace(encoded.begin(), encoded.end(), '/', '_');
  return "/" + name + "@base64/" + (encoded.empty() ? "=" : encoded);
}

class PushgatewaySink final : public MetricSink {
 public:
  PushgatewaySink(const HttpSettings& http, const Environment& environment,
                  const CommonConfig& common)
      : cluster_(environment.cluster), http_(http, environment, common) {}

  [[nodiscard]] bool takes_whole() const override { return true; }

  AttemptOutcome push(const MetricPush& push, std::chrono::milliseconds budget) override {
    const std::map<std::string, std::string> groups = groups_of(push.series);
    const PushTime time(http_, budget);
    AttemptOutcome out;
    out.code = "unchanged";
    for (const auto& [path, body] : groups) {
      const auto known = known_.find(path);
      if (known != known_.end() && known->second == body && !push.periodic) continue;
      out = send("PUT", path, body, time);
      if (out.outcome != OutcomeClass::delivered) return out;
      known_[path] = body;
    }
    for (auto known = known_.begin(); known != known_.end();) {
      if (groups.contains(known->first)) {
        ++known;
        continue;
      }
      out = send("DELETE", known->first, "", time);
      if (out.outcome != OutcomeClass::delivered) return out;
      known = known_.erase(known);
    }
    return out;
  }

 private:
  /// Path of a group and its body. The labels of the path are put on each series by the gateway.
  [[nodiscard]] std::map<std::string, std::string> groups_of(
      const std::vector<IssueSeries>& all) const {
    std::map<std::string, std::vector<IssueSeries>> by_job;
    for (const IssueSeries& series : all) by_job[series.label("job")].push_back(series);
    std::map<std::string, std::string> out;
    for (const auto& [job, series] : by_job) {
      // A group must have a job.
      const std::string path = "/metrics" + group_part("job", job.empty() ? "tocsin" : job) +
                               group_part("cluster", cluster_);
      out[path] += series_text(series);
    }
    return out;
  }

  AttemptOutcome send(const std::string& method, const std::string& path, const std::string& body,
                      const PushTime& time) const {
    if (time.left().count() <= 0) return out_of_push_time(1);
    MetricRequest request;
    request.method = method;
    request.path = path;
    request.content_type = "text/plain; version=0.0.4; charset=utf-8";
    request.body = body;
    return http_.send(std::move(request), time.left()).outcome;
  }

  const std::string cluster_;
  const MetricHttp http_;
  std::map<std::string, std::string> known_;  // groups that the gateway has, as they were put
};

struct PushgatewayTransport final : MetricTransport {
  void declare(config::Reader& /*in*/) override {}
  [[nodiscard]] std::unique_ptr<MetricSink> sink(const HttpSettings& http,
                                                 const Environment& environment,
                                                 const CommonConfig& common) const override {
    return std::make_unique<PushgatewaySink>(http, environment, common);
  }
};

}  // namespace

MetricTransportDescriptor pushgateway_transport() {
  return {"pushgateway", "the Prometheus Pushgateway", true, true, {}, [] {
            return std::unique_ptr<MetricTransport>(std::make_unique<PushgatewayTransport>());
          }};
}

}  // namespace tocsin::actions
