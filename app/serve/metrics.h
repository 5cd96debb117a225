// core::Telemetry over prometheus-cpp: what /metrics shows.
#pragma once

#include <memory>
#include <string>

#include "core/telemetry.h"

namespace tocsin::app {

class PrometheusTelemetry final : public core::Telemetry {
 public:
  PrometheusTelemetry();
  ~PrometheusTelemetry() override;
  core::Counter& counter(std::string_view name, std::string_view help,
                         core::MetricLabels labels) override;
  core::Gauge& gauge(std::string_view name, std::string_view help,
                     core::MetricLabels labels) override;
  core::Histogram& histogram(std::string_view name, std::string_view help,
                             core::MetricLabels labels) override;

  /// Prometheus text exposition format 0.0.4.
  [[nodiscard]] std::string render() const;

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace tocsin::app
