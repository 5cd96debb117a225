#include "insights/series/hardware_query.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <string_view>
#include <tuple>
#include <utility>

#include "insights/series/system_fold.h"
#include "insights/series/system_query.h"

namespace tocsin::insights {
namespace {

constexpr std::int64_t kMostBucketsOfASeries = 512;  // that are looked at before rows are
constexpr std::int64_t kCalm = 10'000;               // milliseconds without it: it is over
constexpr std::int64_t kMicrosOfOneMilli = 1000;
constexpr std::size_t kMostGpuSeries = 4096;
constexpr const char* kGpuSeries =
    "hw\\.errors\\{error\\.type=(xid|uncorrected),.*|tocsin\\.gpu\\.(xid|throttled)\\{.*|"
    "hw\\.status\\{.*hw\\.state=failed.*|hw\\.gpu\\.utilization\\{hw\\.id=.*";

// The rises of one series within a time: when, and by how much.
struct Rise {
  std::int64_t at = 0, until = 0;
  double by = 0;
};

// Single samples above 0 in [lo, hi); where they are gone, the buckets that hold some.
std::vector<Rise> rises_of(SeriesReader& reader, const FamilyLine& family, std::int64_t lo,
                           std::int64_t hi) {
  std::vector<Rise> out;
  lo = std::max(lo, family.x_first);
  hi = std::min(hi, family.x_last + 1);
  if (lo >= hi) return out;
  std::int64_t level = 0;
  while (((hi - lo) >> level) > kMostBucketsOfASeries) ++level;
  const std::int64_t width = std::int64_t{1} << level;
  for (const auto& [number, bucket] : reader.buckets(family, kValueColumn, lo, hi, level)) {
    if (bucket.n == 0 || !(bucket.max > 0)) continue;
    const std::int64_t begin = std::max(lo, number * width);
    const std::int64_t end = std::min(hi, (number + 1) * width);
    const std::size_t before = out.size();
    if (!family.rows_gone(begin)) {
      reader.rows(family, begin, end, [&](const SeriesRows& rows) {
        for (std::size_t row = 0; row < rows.size(); ++row) {
          const double value = rows.columns[kValueColumn][row];
          if (rows.x[row] >= begin && rows.x[row] < end && value > 0)
            out.push_back({rows.x[row], rows.x[row], value});
        }
      });
    }
    if (out.size() == before) out.push_back({begin, end - 1, bucket.sum});
  }
  return out;
}

// What is true in samples that lie close together is one.
std::vector<Rise> stretches_in(const std::vector<Rise>& samples) {
  std::vector<Rise> out;
  for (const Rise& one : samples) {
    if (!out.empty() && one.at - out.back().until <= kCalm) {
      out.back().until = one.until;
      out.back().by += one.by;
    } else {
      out.push_back(one);
    }
  }
  return out;
}

// The steps of training of one client of a worker, by when they ended.
class StepClocks {
 public:
  StepClocks(SeriesReader& reader, const std::string& run) : reader_(reader) {
    std::map<std::pair<std::string, std::int64_t>, std::string> nodes;
    for (const WorkerLine& one : reader.workers(run)) nodes[{one.name, one.incarnation}] = one.node;
    reader.all_families(run, FamilyKind::clock, [&](std::int64_t, FamilyLine&& family) {
      if (family.rows == 0 || family.mode != core::Mode::train) return;
      const auto first = reader_.first(family, kTimeColumn);
      const auto last = reader_.last(family, kTimeColumn);
      if (!first || !last) return;
      const auto node = nodes.find({family.worker, family.incarnation});
      clocks_.push_back(
          {std::move(family), node == nodes.end() ? "" : node->second, *first, *last});
    });
    std::stable_sort(clocks_.begin(), clocks_.end(), [](const Clock& a, const Clock& b) {
      return std::pair(a.first, a.family.rank) < std::pair(b.first, b.family.rank);
    });
  }

  // Behind the last step of a launch: the last one. Before the first: the first one.
  std::optional<std::int64_t> step_at(std::int64_t millis, const std::string& node) {
    if (clocks_.empty()) return std::nullopt;
    const double micros = static_cast<double>(millis) * kMicrosOfOneMilli;
    // Of those that had begun: one that still ran, of the newest attempt, on that node.
    const auto worth = [&](const Clock& one) {
      const bool begun = one.first <= micros;
      return std::tuple(begun, begun && one.last >= micros, begun ? one.family.attempt : 0,
                        one.node == node);
    };
    const auto found =
        std::max_element(clocks_.begin(), clocks_.end(),
                         [&](const Clock& a, const Clock& b) { return worth(a) < worth(b); });
    if (micros >= found->last) return found->family.x_last;
    return std::min(reader_.x_at(found->family, kTimeColumn, micros), found->family.x_last);
  }

 private:
  struct Clock {
    FamilyLine family;
    std::string node;
    double first = 0, last = 0;  // microseconds
  };
  SeriesReader& reader_;
  std::vector<Clock> clocks_;
};

class HardwareWalk {
 public:
  HardwareWalk(SeriesReader& reader, const NodeSeries& node, std::int64_t to)
      : reader_(reader), node_(node), to_(to) {
    std::int64_t place = 0;
    for (const NamedFamilies& one : node.series) {
      const auto [metric, labels] = split_series(one.name.text);
      const std::string device(label_of(labels, "hw.id"));
      if (metric == "hw.gpu.utilization" && !device.empty()) gpus_.emplace(device, place++);
      if (metric == "tocsin.gpu.xid") numbers_.emplace(device, &one);
    }
  }

  void all(std::vector<HardwareEvent>& out) {
    for (const NamedFamilies& one : node_.series) {
      const auto [metric, labels] = split_series(one.name.text);
      HardwareEvent event;
      event.node = node_.node.name;
      event.device = std::string(label_of(labels, "hw.id"));
      const auto place = gpus_.find(event.device);
      if (place != gpus_.end()) event.gpu = place->second;
      if (metric == "hw.errors") {
        const bool xid = label_of(labels, "error.type") == "xid";
        event.kind = xid ? HardwareFault::xid : HardwareFault::memory;
        errors(one, event, out);
      } else if (metric == "tocsin.gpu.throttled" || metric == "hw.status") {
        event.kind = metric == "hw.status" ? HardwareFault::lost : HardwareFault::throttled;
        event.reason = std::string(label_of(labels, "reason"));
        states(one, event, out);
      }
    }
  }

 private:
  [[nodiscard]] std::vector<Rise> rises(const NamedFamilies& of) {
    std::vector<Rise> out;
    for (const FamilyLine& family : of.families) {
      const auto some =
          rises_of(reader_, family, node_.node.x_first, std::min(to_, node_.node.x_last + 1));
      out.insert(out.end(), some.begin(), some.end());
    }
    std::stable_sort(out.begin(), out.end(),
                     [](const Rise& a, const Rise& b) { return a.at < b.at; });
    return out;
  }

  void errors(const NamedFamilies& of, HardwareEvent event, std::vector<HardwareEvent>& out) {
    for (const Rise& one : rises(of)) {
      event.first = event.last = one.at;
      event.count = std::llround(one.by);
      event.number.reset();
      if (event.kind == HardwareFault::xid) event.number = number_at(event.device, one);
      out.push_back(event);
    }
  }

  void states(const NamedFamilies& of, HardwareEvent event, std::vector<HardwareEvent>& out) {
    for (const Rise& one : stretches_in(rises(of))) {
      event.first = one.at;
      event.last = one.until;
      event.count = std::llround(one.by);
      out.push_back(event);
    }
  }

  // Told in the sweep that heard it.
  std::optional<std::int64_t> number_at(const std::string& device, const Rise& rise) {
    const auto found = numbers_.find(device);
    if (found == numbers_.end()) return std::nullopt;
    std::optional<std::int64_t> out;
    for (const FamilyLine& family : found->second->families) {
      for (const auto& entry : reader_.buckets(family, kValueColumn, rise.at, rise.until + 1, 0)) {
        if (entry.second.n > 0) out = std::llround(entry.second.last);
      }
    }
    return out;
  }

  SeriesReader& reader_;
  const NodeSeries& node_;
  std::int64_t to_;
  std::map<std::string, std::int64_t> gpus_;
  std::map<std::string, const NamedFamilies*> numbers_;
};

}  // namespace

core::Result<HardwareAnswer> ask_hardware(SeriesReader& reader, const HardwareAsk& ask) {
  SystemAsk samples;
  samples.run = ask.run;
  samples.name = kGpuSeries;
  samples.most = kMostGpuSeries;
  const auto nodes = choose_samples(reader, samples);
  if (!nodes) return nodes.error();
  HardwareAnswer out;
  const std::int64_t to = ask.to ? *ask.to + 1 : std::numeric_limits<std::int64_t>::max();
  for (const NodeSeries& node : *nodes) HardwareWalk(reader, node, to).all(out.events);
  std::stable_sort(out.events.begin(), out.events.end(),
                   [](const auto& a, const auto& b) { return a.first < b.first; });
  if (out.events.size() > ask.most) {
    out.left_out = out.events.size() - ask.most;
    out.events.erase(out.events.begin(),
                     out.events.begin() + static_cast<std::ptrdiff_t>(out.left_out));
  }
  if (out.events.empty()) return out;
  StepClocks clocks(reader, ask.run);
  for (HardwareEvent& event : out.events) event.step = clocks.step_at(event.first, event.node);
  return out;
}

}  // namespace tocsin::insights
