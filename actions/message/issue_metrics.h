// State of issues as Prometheus series: repetition is harmless, because state is published and not
// events (docs/actions/publish_metric.md).
#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "actions/message/issue_series.h"
#include "core/notification.h"
#include "core/time.h"

namespace tocsin::actions {

/// What is wrong with labels to allow, empty if nothing: names that Prometheus does not take, or that
/// become one name there.
std::string metric_label_problem(const std::vector<std::string>& names);

/// Thread-safe. Series
///   tocsin_issue_active{…} 0|1
///   tocsin_issue_last_transition_timestamp_seconds{…}
///   tocsin_issue_episodes_total{…}
/// with the allow-listed labels; issues that differ only in other labels share a series (active
/// while any of them is). Label values hold whatever an event did: what the format cannot hold is
/// escaped or replaced, and long ones are cut.
class IssueMetrics {
 public:
  struct Options {
    std::vector<std::string> labels{"rule", "severity", "job", "cluster"};
    // Per family; beyond it a new series takes the place of one that only lingers, or is counted and
    // not kept. 0: none is kept.
    std::size_t max_series = 10000;
    // How long a resolved issue stays as 0, since its end was heard of.
    core::Duration linger = std::chrono::minutes(15);
  };

  IssueMetrics();
  explicit IssueMetrics(Options options);
  ~IssueMetrics();
  IssueMetrics(const IssueMetrics&) = delete;
  IssueMetrics& operator=(const IssueMetrics&) = delete;

  /// Options of an integration: the first replace those it was made with; further ones add labels and
  /// take the larger limit and the longer linger. A label whose name would come twice is left out.
  void widen(const Options& options);
  /// The options are these from now on.
  void replace(const Options& options);
  /// One report; older episodes and repeated reports change nothing. `now`: an end lingers since then;
  /// unset: since its own time. False: over max_series.
  bool apply(const core::NotifiedIssue& issue, core::WallTime now = {});
  /// The episode is over, whether or not anybody was told of it yet; here and in all pictures.
  void end(const std::string& issue_key, std::uint64_t episode, core::WallTime now);
  /// Text exposition 0.0.4 of all families, resolved series older than `linger` dropped first.
  std::string render(core::WallTime now);
  /// The same as data. With `issue_keys`: only the series that these issues are in.
  std::vector<IssueSeries> series(core::WallTime now,
                                  const std::set<std::string>* issue_keys = nullptr);
  /// Nothing is known any longer.
  void forget();

  /// A picture that one integration pushes, with options of its own; the same one at each call.
  std::shared_ptr<IssueMetrics> picture(const std::string& integration, const Options& options);
  /// What routing says still fires, after a start: to the picture of the integration, or to this one.
  void show(const std::string& integration, const core::NotifiedIssue& issue);

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace tocsin::actions
