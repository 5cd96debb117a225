// The latest steps of one worker in one mode, and what was active in the longest of them.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <utility>
#include <vector>

#include "rules/evaluate/phase.h"
#include "rules/evaluate/sample.h"

namespace tocsin::rules {

/// What the spans of a step take, by name.
struct SpanTimes {
  std::vector<std::pair<std::uint64_t, std::int64_t>> spans;  // name, ns

  static bool wants(const core::SpanRow& span) {
    const SpanNames& names = span_names();
    return span.track == names.phase || span.track == names.communication_track ||
           span.track == names.cpu_operators;
  }
  void note(const core::SpanRow& span) {
    constexpr std::size_t kMostSpans = 32;  // names kept of a step
    const auto known = std::find_if(spans.begin(), spans.end(),
                                    [&](const auto& one) { return one.first == span.name; });
    if (known != spans.end()) {
      known->second = add(known->second, core::Duration(span.duration));
    } else if (spans.size() < kMostSpans) {
      spans.emplace_back(span.name, span.duration);
    }
  }
  template <typename A>
  friend void io(A& a, SpanTimes& t) {
    io_all(a, t.spans);
  }
};

struct TakenTime {
  std::int64_t step = 0;
  double seconds = 0;
};

/// A long step, with what was active in it.
struct LongStep {
  TakenTime time;
  SpanTimes active;

  template <typename A>
  friend void io(A& a, LongStep& s) {
    io_all(a, s.time, s.active);
  }
};

/// Steps of one worker in one mode.
struct StepHistory {
  std::vector<TakenTime> ring;
  std::uint64_t next = 0;  // oldest, once the ring is full
  std::uint64_t seen = 0;
  std::uint64_t judged = 0;  // of `seen`, when they were judged last
  std::int64_t period_end = INT64_MIN;
  std::int64_t last_end = 0;
  std::int64_t last_global = 0;
  std::vector<LongStep> longest;

  template <typename A>
  friend void io(A& a, StepHistory& h) {
    io_all(a, h.ring, h.next, h.seen, h.judged, h.period_end, h.last_end, h.last_global, h.longest);
  }

  /// Oldest first.
  [[nodiscard]] TakenTime at(std::size_t i) const { return ring[(next + i) % ring.size()]; }
  [[nodiscard]] std::int64_t last_step() const { return at(ring.size() - 1).step; }
  [[nodiscard]] std::optional<double> of(std::int64_t step) const {
    std::size_t low = 0;
    for (std::size_t high = ring.size(); low < high;) {
      const std::size_t middle = (low + high) / 2;
      const bool before = at(middle).step < step;
      (before ? low : high) = before ? middle + 1 : middle;
    }
    if (low == ring.size() || at(low).step != step) return std::nullopt;
    return at(low).seconds;
  }

  /// `most`: steps that are kept.
  void push(const TakenTime& time, const SpanTimes& active, std::size_t most) {
    constexpr std::size_t kMostLongest = 16;  // steps whose spans are kept
    ++seen;
    if (ring.size() < most) {
      ring.push_back(time);
    } else {
      ring[next] = time;
      next = (next + 1) % ring.size();
    }
    const std::int64_t oldest = at(0).step;
    std::erase_if(longest, [&](const LongStep& one) { return one.time.step < oldest; });
    if (active.spans.empty()) return;
    const auto least = std::min_element(
        longest.begin(), longest.end(),
        [](const LongStep& a, const LongStep& b) { return a.time.seconds < b.time.seconds; });
    if (longest.size() < kMostLongest) {
      longest.push_back({time, active});
    } else if (time.seconds > least->time.seconds) {
      *least = {time, active};
    }
  }
};

}  // namespace tocsin::rules
