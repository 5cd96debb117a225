// The state of issues, and the newest scalars of runs, as series, for all ways in which publish_metric
// shows them. Internal to actions.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "core/time.h"

namespace tocsin::actions {

/// One series of each family. Of two with the same labels there is one.
struct IssueSeries {
  /// Sorted by name. Names as Prometheus takes them; values are UTF-8 without control characters, and
  /// bounded.
  std::vector<std::pair<std::string, std::string>> labels;
  bool active = false;
  core::WallTime transition{};
  std::uint64_t episodes = 0;
  /// A scalar of a run, and no issue: its newest value.
  std::optional<double> scalar = std::nullopt;

  /// Empty: it has none of that name.
  [[nodiscard]] std::string label(const std::string& name) const {
    for (const auto& [key, value] : labels) {
      if (key == name) return value;
    }
    return {};
  }
};

/// The families, and what they say.
struct IssueFamily {
  const char* name;
  const char* type;  // gauge or counter
  const char* help;
  double (*value)(const IssueSeries&);
};
inline constexpr IssueFamily kIssueFamilies[] = {
    {"tocsin_issue_active", "gauge", "1 while an issue is firing, 0 after its resolve",
     [](const IssueSeries& series) { return series.active ? 1.0 : 0.0; }},
    {"tocsin_issue_last_transition_timestamp_seconds", "gauge", "when it last began or ended",
     [](const IssueSeries& series) {
       return static_cast<double>(core::nanoseconds(series.transition)) / 1e9;
     }},
    {"tocsin_issue_episodes_total", "counter", "how often it has begun",
     [](const IssueSeries& series) { return static_cast<double>(series.episodes); }},
};
inline constexpr IssueFamily kScalarFamilies[] = {
    {"tocsin_training_scalar", "gauge", "newest value of a scalar that a run has logged",
     [](const IssueSeries& series) { return series.scalar.value_or(0); }},
};

/// The families that have this series.
inline std::span<const IssueFamily> families_of(const IssueSeries& series) {
  if (series.scalar) return kScalarFamilies;
  return kIssueFamilies;
}
/// Is the series in this family?
inline bool belongs(const IssueSeries& series, const IssueFamily& family) {
  for (const IssueFamily& one : families_of(series)) {
    if (&one == &family) return true;
  }
  return false;
}
/// Calls visit(family) for those of issues, and for that of scalars if one of `series` is a scalar.
template <typename Range, typename Visit>
void for_each_family(const Range& series, Visit&& visit) {
  for (const IssueFamily& family : kIssueFamilies) visit(family);
  for (const auto& one : series) {
    if (!one.scalar) continue;
    for (const IssueFamily& family : kScalarFamilies) visit(family);
    return;
  }
}

}  // namespace tocsin::actions
