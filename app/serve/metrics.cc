#include "app/serve/metrics.h"

#include <prometheus/counter.h>
#include <prometheus/gauge.h>
#include <prometheus/histogram.h>
#include <prometheus/registry.h>
#include <prometheus/text_serializer.h>

#include <map>

#include "core/mutex.h"

namespace tocsin::app {
namespace {

// 1 ms … 10 min: from a local hop to a delivery that had to wait.
const prometheus::Histogram::BucketBoundaries kSeconds{
    0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 300, 600};

struct CounterAdapter final : core::Counter {
  explicit CounterAdapter(prometheus::Counter& counter) : to(counter) {}
  void add(double amount) override { to.Increment(amount); }
  prometheus::Counter& to;
};
struct GaugeAdapter final : core::Gauge {
  explicit GaugeAdapter(prometheus::Gauge& gauge) : to(gauge) {}
  void set(double value) override { to.Set(value); }
  prometheus::Gauge& to;
};
struct HistogramAdapter final : core::Histogram {
  explicit HistogramAdapter(prometheus::Histogram& histogram) : to(histogram) {}
  void observe(double value) override { to.Observe(value); }
  prometheus::Histogram& to;
};

prometheus::Labels as_map(core::MetricLabels labels) {
  prometheus::Labels out;
  for (const auto& [name, value] : labels) out.emplace(name, value);
  return out;
}

std::string identity(std::string_view name, const prometheus::Labels& labels) {
  std::string out(name);
  for (const auto& [label, value] : labels) out += '\x1f' + label + '=' + value;
  return out;
}

}  // namespace

struct PrometheusTelemetry::Impl {
  mutable core::Mutex mutex;
  prometheus::Registry registry;
  template <typename Metric>
  using Families = std::map<std::string, prometheus::Family<Metric>*>;
  template <typename Adapter>
  using Adapters = std::map<std::string, std::unique_ptr<Adapter>>;
  Families<prometheus::Counter> counter_families GUARDED_BY(mutex);
  Families<prometheus::Gauge> gauge_families GUARDED_BY(mutex);
  Families<prometheus::Histogram> histogram_families GUARDED_BY(mutex);
  Adapters<CounterAdapter> counters GUARDED_BY(mutex);
  Adapters<GaugeAdapter> gauges GUARDED_BY(mutex);
  Adapters<HistogramAdapter> histograms GUARDED_BY(mutex);
};

PrometheusTelemetry::PrometheusTelemetry() : impl_(std::make_unique<Impl>()) {}
PrometheusTelemetry::~PrometheusTelemetry() = default;

core::Counter& PrometheusTelemetry::counter(std::string_view name, std::string_view help,
                                            core::MetricLabels labels) {
  const core::MutexLock lock(impl_->mutex);
  const auto map = as_map(labels);
  auto& adapter = impl_->counters[identity(name, map)];
  if (!adapter) {
    auto& family = impl_->counter_families[std::string(name)];
    if (family == nullptr) {
      family = &prometheus::BuildCounter()
                    .Name(std::string(name))
                    .Help(std::string(help))
                    .Register(impl_->registry);
    }
    adapter = std::make_unique<CounterAdapter>(family->Add(map));
  }
  return *adapter;
}

core::Gauge& PrometheusTelemetry::gauge(std::string_view name, std::string_view help,
                                        core::MetricLabels labels) {
  const core::MutexLock lock(impl_->mutex);
  const auto map = as_map(labels);
  auto& adapter = impl_->gauges[identity(name, map)];
  if (!adapter) {
    auto& family = impl_->gauge_families[std::string(name)];
    if (family == nullptr) {
      family = &prometheus::BuildGauge()
                    .Name(std::string(name))
                    .Help(std::string(help))
                    .Register(impl_->registry);
    }
    adapter = std::make_unique<GaugeAdapter>(family->Add(map));
  }
  return *adapter;
}

core::Histogram& PrometheusTelemetry::histogram(std::string_view name, std::string_view help,
                                                core::MetricLabels labels) {
  const core::MutexLock lock(impl_->mutex);
  const auto map = as_map(labels);
  auto& adapter = impl_->histograms[identity(name, map)];
  if (!adapter) {
    auto& family = impl_->histogram_families[std::string(name)];
    if (family == nullptr) {
      family = &prometheus::BuildHistogram()
                    .Name(std::string(name))
                    .Help(std::string(help))
                    .Register(impl_->registry);
    }
    adapter = std::make_unique<HistogramAdapter>(family->Add(map, kSeconds));
  }
  return *adapter;
}

std::string PrometheusTelemetry::render() const {
  const core::MutexLock lock(impl_->mutex);
  return prometheus::TextSerializer().Serialize(impl_->registry.Collect());
}

}  // namespace tocsin::app
