#include "rules/evaluate/snapshot.h"

#include <algorithm>
#include <array>
#include <cmath>

#include "rules/contract/selection.h"

namespace tocsin::rules {
namespace {

constexpr std::int64_t kWidth = 20'000'000;  // ns
constexpr double kNanosecondsPerSecond = 1e9;

/// "system.cpu.utilization{cpu.logical_number=3,cpu.mode=user}" in its two halves.
struct SeriesName {
  std::string_view metric;
  std::string_view attributes;
};

SeriesName split(std::string_view series) {
  const std::size_t brace = series.find('{');
  if (brace == std::string_view::npos || !series.ends_with('}')) {
    return {series.substr(0, brace), {}};
  }
  return {series.substr(0, brace), series.substr(brace + 1, series.size() - brace - 2)};
}

std::string_view attribute(std::string_view attributes, std::string_view key) {
  std::size_t from = 0;
  while (from < attributes.size()) {
    std::size_t to = attributes.find(',', from);
    if (to == std::string_view::npos) to = attributes.size();
    const std::string_view pair = attributes.substr(from, to - from);
    if (pair.size() > key.size() && pair.starts_with(key) && pair[key.size()] == '=') {
      return pair.substr(key.size() + 1);
    }
    from = to + 1;
  }
  return {};
}

/// A GPU is named by its id where that is all the series says of it.
std::string_view device_of(std::string_view attributes) {
  constexpr std::string_view kId = "hw.id=";
  const bool plain = attributes.starts_with(kId) && attributes.find(',') == std::string_view::npos;
  return plain ? attributes.substr(kId.size()) : attributes;
}

double percent(double ratio) { return std::min(std::round(ratio * 1e8) / 1e6, 100.0); }

enum class What : std::uint8_t { other, gpu, gpu_memory, core, memory, network, process_memory };

What what_of(const SeriesName& name) {
  if (name.metric == "system.cpu.utilization") return What::core;
  if (name.metric == "hw.gpu.utilization") return What::gpu;
  if (name.metric == "hw.gpu.memory.utilization") return What::gpu_memory;
  if (name.metric == "system.network.io") return What::network;
  if (name.metric == "process.memory.usage") return What::process_memory;
  if (name.metric == "system.memory.utilization" &&
      attribute(name.attributes, "system.memory.state") == "used") {
    return What::memory;
  }
  return What::other;
}

}  // namespace

std::string_view to_string(Metric metric) noexcept {
  static constexpr std::array<std::string_view, kMetricCount + 1> kNames{
      "gpu", "gpu_memory", "cpu", "io_wait", "cpu_memory", "network", "process_memory", "other"};
  return kNames[static_cast<std::size_t>(metric)];
}

std::span<const Reading> NodeSnapshot::of(Metric metric) const noexcept {
  const auto [first, last] =
      std::equal_range(readings.begin(), readings.end(), Reading{metric, {}, 0},
                       [](const Reading& a, const Reading& b) { return a.metric < b.metric; });
  return readings.subspan(static_cast<std::size_t>(first - readings.begin()),
                          static_cast<std::size_t>(last - first));
}

bool SnapshotBuilder::knows(std::string_view series) noexcept {
  return what_of(split(series)) != What::other;
}

bool SnapshotBuilder::closes(std::int64_t time) const noexcept {
  return started_ != kNone && distance(time, started_) > kWidth;
}

void SnapshotBuilder::check_clock(std::int64_t time, std::int64_t most) {
  if (started_ == kNone || distance(started_, time) <= most) return;
  // What is open belongs to a time that does not come again.
  started_ = kNone;
  values_.clear();
  cores_.clear();
}

SnapshotBuilder::Sample SnapshotBuilder::add(std::string_view series, std::int64_t time,
                                             double value) {
  const SeriesName name = split(series);
  const What what = what_of(name);
  if (what == What::other) return Sample::ignored;
  if (started_ != kNone && time < started_) return Sample::late;
  if (!(value >= 0)) return Sample::discarded;  // also NaN
  if (started_ == kNone) started_ = time;
  const auto put = [&](Metric metric, std::string_view device, double reading) {
    values_[{static_cast<std::uint8_t>(metric), std::string(device)}] = reading;
  };
  switch (what) {
    case What::gpu:
      put(Metric::gpu, device_of(name.attributes), percent(value));
      break;
    case What::gpu_memory:
      put(Metric::gpu_memory, device_of(name.attributes), percent(value));
      break;
    case What::memory:
      put(Metric::memory, {}, percent(value));
      break;
    case What::process_memory:
      put(Metric::process_memory, attribute(name.attributes, "process.pid"), value);
      break;
    case What::core:
      add_core(name.attributes, value);
      break;
    case What::network:
      add_counter(series, time, value);
      break;
    case What::other:
      break;
  }
  return Sample::taken;
}

void SnapshotBuilder::add_core(std::string_view attributes, double value) {
  Core& core = cores_[std::string(attribute(attributes, "cpu.logical_number"))];
  const std::string_view mode = attribute(attributes, "cpu.mode");
  // Waiting for I/O is idle time of the processor, as in psutil.
  if (mode == "iowait") {
    core.waiting += value;
    core.has_wait = true;
  } else if (mode == "idle") {
    core.idle += value;
    core.has_idle = true;
  } else {
    core.busy += value;
    core.has_busy = true;
  }
}

void SnapshotBuilder::add_counter(std::string_view series, std::int64_t time, double value) {
  constexpr std::size_t kMost = 4096;
  const auto known = counters_.find(std::string(series));
  if (known == counters_.end()) {
    if (counters_.size() < kMost) counters_[std::string(series)] = {time, value};
    return;
  }
  const double seconds =
      static_cast<double>(distance(time, known->second.time)) / kNanosecondsPerSecond;
  const double grown = value - known->second.value;
  known->second = {time, value};
  if (!(seconds > 0) || grown < 0) return;  // the counter began anew
  values_[{static_cast<std::uint8_t>(Metric::network), {}}] += grown / seconds;
}

NodeSnapshot SnapshotBuilder::take() {
  for (const auto& [number, core] : cores_) {
    // 1 − idle − iowait where idle is sent, because a collector may leave out small modes.
    const double busy = core.has_idle ? 1 - core.idle - core.waiting : core.busy;
    if (core.has_idle || core.has_busy || core.has_wait) {
      values_[{static_cast<std::uint8_t>(Metric::cpu), number}] = std::max(percent(busy), 0.0);
    }
    if (core.has_wait) {
      values_[{static_cast<std::uint8_t>(Metric::io_wait), number}] = percent(core.waiting);
    }
  }
  taken_.assign(values_.begin(), values_.end());
  readings_.clear();
  for (const auto& [key, value] : taken_) {
    readings_.push_back({static_cast<Metric>(key.first), key.second, value});
  }
  NodeSnapshot out;
  out.time = started_;
  out.readings = readings_;
  started_ = kNone;
  values_.clear();
  cores_.clear();
  return out;
}

}  // namespace tocsin::rules
