// How series of issues reach a system that takes them: one file per transport, one table of them.
// Internal to actions.
#pragma once

#include <chrono>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "actions/contract/descriptor.h"
#include "actions/integration/http_settings.h"
#include "actions/message/issue_series.h"

namespace tocsin::actions {

/// State of series at one moment.
struct MetricPush {
  std::vector<IssueSeries> series;
  std::vector<IssueSeries> ended;  // pushed before, and no longer kept: said once
  bool whole = false;              // `series` is all there is
  bool periodic = false;           // not for a notification: everything is said again
  core::WallTime now{};            // in whole milliseconds, later than that of any earlier push
};

/// One far side. Its owner calls from one thread at a time.
class MetricSink {
 public:
  virtual ~MetricSink() = default;
  /// Blocks at most `budget`. A push that failed is not repeated as it is: the next one has the state
  /// of its own moment.
  virtual core::AttemptOutcome push(const MetricPush& push, std::chrono::milliseconds budget) = 0;
  /// The far side takes only the whole picture.
  [[nodiscard]] virtual bool takes_whole() const { return false; }
};

/// The checked keys of a transport; immutable, outlives what is made from it.
class MetricTransport {
 public:
  virtual ~MetricTransport() = default;
  /// Declares the transport's own keys; those that MetricTransportDescriptor::keys names.
  virtual void declare(config::Reader& in) = 0;
  /// Of the chosen transport: problems of its keys and of the common ones over HTTP.
  virtual void check(config::Reader& /*in*/, const HttpSettings& /*http*/) const {}
  /// Where a transport goes that does not need a URL; empty: nowhere over HTTP.
  [[nodiscard]] virtual std::string default_url() const { return {}; }
  /// `http` outlives the sink.
  [[nodiscard]] virtual std::unique_ptr<MetricSink> sink(const HttpSettings& http,
                                                         const Environment& environment,
                                                         const CommonConfig& common) const = 0;
};

struct MetricTransportDescriptor {
  std::string_view name;     // value of the key `transport`
  std::string_view summary;  // "what it is", for the help of that key
  bool over_http = true;     // it takes the keys of every action over HTTP
  bool needs_url = true;
  std::vector<std::string_view> keys;  // its own
  std::unique_ptr<MetricTransport> (*make)();
};

/// What publish_metric can push to.
std::span<const MetricTransportDescriptor> metric_transports();

MetricTransportDescriptor remote_write_transport();
MetricTransportDescriptor pushgateway_transport();
MetricTransportDescriptor otlp_transport();
MetricTransportDescriptor statsd_transport();
MetricTransportDescriptor cloudwatch_transport();

}  // namespace tocsin::actions
