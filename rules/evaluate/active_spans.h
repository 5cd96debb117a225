// What was under way at certain moments: phases of steps and operators whose span holds the moment.
// Spans are sent when they are over, samples as they are taken: either may come first, so the newest of
// both are remembered for the other.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "rules/contract/archive.h"
#include "rules/evaluate/evaluator.h"
#include "rules/evaluate/phase.h"

namespace tocsin::rules {

/// Of one node. In bounded memory: what comes more than 256 spans or 64 moments late is not seen.
class ActiveSpans {
 public:
  static bool wants(const core::SpanRow& span) noexcept { return span.duration > 0; }

  void span(const core::SpanRow& row) {
    const Past past{{row.track, row.name}, row.start, add(row.start, core::Duration(row.duration))};
    for (const std::int64_t moment : moments_) count(past, moment);
    push(spans_, past, kMostSpans, spans_seen_);
  }
  void moment(std::int64_t time) {
    for (const Past& past : spans_) count(past, time);
    push(moments_, time, kMostMoments, moments_seen_);
  }

  /// Evidence: of all that was under way at the moments, each phase's and each operator's percentage,
  /// the largest five. Nothing where no spans came.
  void tell(const Scope& scope, Finding& finding) const {
    tell(scope, finding, "active_phases",
         [](std::uint64_t track, const Scope&) { return track == span_names().phase; });
    tell(scope, finding, "active_operators", [](std::uint64_t track, const Scope& names) {
      return track != span_names().phase && names.text(track).starts_with("op.");
    });
  }

  template <typename A>
  friend void io(A& a, ActiveSpans& s) {
    io_all(a, s.spans_, s.moments_, s.spans_seen_, s.moments_seen_, s.active_);
  }

 private:
  using Family = std::pair<std::uint64_t, std::uint64_t>;  // track, name
  struct Past {
    Family family;
    std::int64_t start = 0;
    std::int64_t end = 0;

    template <typename A>
    friend void io(A& a, Past& p) {
      io_all(a, p.family, p.start, p.end);
    }
  };
  static constexpr std::size_t kMostSpans = 256;
  static constexpr std::size_t kMostMoments = 64;
  static constexpr std::size_t kMostFamilies = 256;
  static constexpr std::size_t kMostTold = 5;

  void count(const Past& past, std::int64_t moment) {
    if (moment < past.start || moment >= past.end) return;
    const auto known = active_.find(past.family);
    if (known != active_.end()) {
      ++known->second;
    } else if (active_.size() < kMostFamilies) {
      active_.emplace(past.family, 1);
    }
  }
  template <typename T>
  static void push(std::vector<T>& ring, const T& one, std::size_t most, std::uint64_t& seen) {
    if (ring.size() < most) {
      ring.push_back(one);
    } else {
      ring[seen % most] = one;
    }
    ++seen;
  }

  template <typename IsOne>
  void tell(const Scope& scope, Finding& finding, const char* key, IsOne is_one) const {
    std::map<std::string, std::uint64_t> found;  // devices of one operator together
    std::uint64_t all = 0;
    for (const auto& [family, number] : active_) {
      if (!is_one(family.first, scope)) continue;
      found[scope.text(family.second)] += number;
      all += number;
    }
    if (all == 0) return;
    std::vector<std::pair<std::string, std::uint64_t>> order(found.begin(), found.end());
    std::stable_sort(order.begin(), order.end(),
                     [](const auto& a, const auto& b) { return a.second > b.second; });
    core::ValueMap told;
    for (std::size_t i = 0; i < std::min(order.size(), kMostTold); ++i) {
      told.emplace_back(order[i].first,
                        100.0 * static_cast<double>(order[i].second) / static_cast<double>(all));
    }
    finding.with(key, std::move(told));
  }

  std::vector<Past> spans_;
  std::vector<std::int64_t> moments_;
  std::uint64_t spans_seen_ = 0;
  std::uint64_t moments_seen_ = 0;
  std::map<Family, std::uint64_t> active_;  // moments at which it was under way
};

}  // namespace tocsin::rules
