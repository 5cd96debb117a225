// State of issues as Prometheus series: repetition is harmless, because state is published and not
// events (docs/actions/publish_metric.md).
#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "core/notification.h"
#include "core/time.h"

namespace tocsin::actions {

/// Thread-safe. Series
///   tocsin_issue_active{…} 0|1
///   tocsin_issue_last_transition_timestamp_seconds{…}
///   tocsin_issue_episodes_total{…}
/// with the allow-listed labels; issues that differ only in other labels share a series (active
/// while any of them is).
class IssueMetrics {
 public:
  struct Options {
    std::vector<std::string> labels{"rule", "severity", "job", "cluster"};
    std::size_t max_series = 10000;  // per family; beyond it new series are counted, not kept
    core::Duration linger = std::chrono::minutes(15);  // how long a resolved issue stays as 0
  };

  IssueMetrics();
  explicit IssueMetrics(Options options);
  ~IssueMetrics();
  IssueMetrics(const IssueMetrics&) = delete;
  IssueMetrics& operator=(const IssueMetrics&) = delete;

  /// Labels to allow besides the present ones; takes the larger limit and the longer linger.
  void widen(const Options& options);
  /// One report; older episodes and repeated reports change nothing. False: over max_series.
  bool apply(const core::NotifiedIssue& issue);
  /// Text exposition 0.0.4 of all families, resolved series older than `linger` dropped first.
  std::string render(core::WallTime now);

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace tocsin::actions
