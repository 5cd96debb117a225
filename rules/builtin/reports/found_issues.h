// What a rule of a run has found, as a report tells it: its issues by unit, in bounded memory.
#pragma once

#include <algorithm>
#include <cstdint>
#include <map>
#include <string>
#include <string_view>

#include "core/issue.h"
#include "core/json.h"
#include "rules/contract/archive.h"

namespace tocsin::rules {

class FoundIssues {
 public:
  static constexpr std::size_t kMostUnits = 10;     // further ones are only counted
  static constexpr std::size_t kMostValues = 4096;  // bytes of the rule's own numbers

  /// A report of an issue of the rule, in the order in which the engine makes them.
  void take(const core::Issue& issue) {
    const std::string unit = unit_of(issue);
    auto known = units_.find(unit);
    if (issue.status == core::IssueStatus::resolved) {
      if (known != units_.end()) known->second.close();
      return;
    }
    if (issue.evidence.occurrences <= 1) ++raised_;
    if (!issue.recommendation.empty()) recommendation_ = issue.recommendation;
    if (known == units_.end()) {
      if (units_.size() >= kMostUnits) return;
      known = units_.emplace(unit, Found{}).first;
      known->second.first = core::nanoseconds(issue.time);
    }
    known->second.report(issue);
  }
  /// Issues; one that came back counts again.
  [[nodiscard]] std::uint64_t raised() const noexcept { return raised_; }
  /// What the newest of them advises.
  [[nodiscard]] const std::string& recommendation() const noexcept { return recommendation_; }
  /// By unit and kind.
  [[nodiscard]] core::ValueMap details() const {
    core::ValueMap out;
    for (const auto& [unit, found] : units_) out.emplace_back(unit, found.told());
    return out;
  }

  template <typename A>
  friend void io(A& a, FoundIssues& f) {
    io_all(a, f.raised_, f.recommendation_, f.units_);
  }

 private:
  struct Found {
    std::string summary;
    std::string observed_name;
    double observed = 0;
    std::string threshold_name;
    double threshold = 0;
    std::string values;      // JSON
    std::int64_t first = 0;  // UTC ns
    std::int64_t last = 0;
    std::uint64_t before = 0;  // hits of issues that are over
    std::uint64_t now = 0;     // of the one that is open

    void close() {
      before += now;
      now = 0;
    }
    void report(const core::Issue& issue) {
      const core::Evidence& evidence = issue.evidence;
      last = core::nanoseconds(issue.time);
      now = evidence.occurrences;
      summary = issue.summary;
      observed_name = evidence.observed.name;
      observed = evidence.observed.value;
      threshold_name = evidence.threshold ? evidence.threshold->name : "";
      threshold = evidence.threshold ? evidence.threshold->value : 0;
      values = core::to_json(evidence.values);
      if (values.size() > kMostValues) values.clear();
    }
    [[nodiscard]] core::ValueMap told() const {
      core::ValueMap out{{"summary", summary},
                         {"first", core::to_rfc3339(core::wall_time(first))},
                         {"last", core::to_rfc3339(core::wall_time(last))},
                         {"occurrences", before + now}};
      out.emplace_back(observed_name, observed);
      if (!threshold_name.empty()) out.emplace_back(threshold_name, threshold);
      if (auto parsed = core::parse_json(values, kMostValues);
          parsed && core::as<core::ValueMap>(*parsed) != nullptr) {
        out.emplace_back("values", std::move(*parsed));
      }
      return out;
    }

    template <typename A>
    friend void io(A& a, Found& f) {
      io_all(a, f.summary, f.observed_name, f.observed, f.threshold_name, f.threshold, f.values,
             f.first, f.last, f.before, f.now);
    }
  };

  static std::string unit_of(const core::Issue& issue) {
    std::string unit;
    for (const std::string_view label : {"node", "device", "worker", "metric", "tensor", "mode"}) {
      const std::string value(issue.labels.get(label));
      if (!value.empty()) unit += (unit.empty() ? "" : ",") + std::string(label) + "=" + value;
    }
    if (unit.empty()) unit = "run";
    return issue.kind.empty() ? unit : unit + " " + issue.kind;
  }

  std::uint64_t raised_ = 0;
  std::string recommendation_;
  std::map<std::string, Found> units_;
};

}  // namespace tocsin::rules
