// Port: what we measure about ourselves. Names: tocsin_<part>_<noun>_<unit>[_total], base units.
#pragma once

#include <initializer_list>
#include <string>
#include <string_view>
#include <utility>

namespace tocsin::core {

/// Monotonic counter; thread-safe.
class Counter {
 public:
  virtual ~Counter() = default;
  virtual void add(double amount = 1) = 0;
};

/// Value that goes up and down; thread-safe.
class Gauge {
 public:
  virtual ~Gauge() = default;
  virtual void set(double value) = 0;
};

/// Distribution in seconds; thread-safe.
class Histogram {
 public:
  virtual ~Histogram() = default;
  virtual void observe(double value) = 0;
};

using MetricLabels = std::initializer_list<std::pair<std::string_view, std::string_view>>;

/// Hands out instruments that live as long as itself; the same name and labels give the same one.
/// Labels are bounded: enum values and configured names, never a run, a tensor or an error text.
class Telemetry {
 public:
  virtual ~Telemetry() = default;
  virtual Counter& counter(std::string_view name, std::string_view help,
                           MetricLabels labels = {}) = 0;
  virtual Gauge& gauge(std::string_view name, std::string_view help, MetricLabels labels = {}) = 0;
  virtual Histogram& histogram(std::string_view name, std::string_view help,
                               MetricLabels labels = {}) = 0;
};

/// Measures nothing; the default where nobody listens.
class NullTelemetry final : public Telemetry {
 public:
  Counter& counter(std::string_view, std::string_view, MetricLabels) override { return counter_; }
  Gauge& gauge(std::string_view, std::string_view, MetricLabels) override { return gauge_; }
  Histogram& histogram(std::string_view, std::string_view, MetricLabels) override {
    return histogram_;
  }

 private:
  struct NullCounter final : Counter {
    void add(double) override {}
  } counter_;
  struct NullGauge final : Gauge {
    void set(double) override {}
  } gauge_;
  struct NullHistogram final : Histogram {
    void observe(double) override {}
  } histogram_;
};

}  // namespace tocsin::core
