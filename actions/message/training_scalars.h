// The newest value of each scalar that runs have logged and that a publish_metric asks for
// (docs/actions/publish_metric.md).
#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "actions/message/issue_series.h"
#include "core/codes.h"
#include "core/identity.h"
#include "core/time.h"

namespace tocsin::actions {

/// What is wrong with patterns of names, empty if nothing: RE2, matched against the whole name.
std::string scalar_pattern_problem(const std::vector<std::string>& patterns);

/// One value as a worker of a run has logged it.
struct LoggedScalar {
  core::RunUid run;
  std::string job;
  std::string worker;
  std::uint32_t rank = 0;
  std::string name;
  core::Mode mode = core::Mode::global;
  double value = 0;
  std::int64_t step = 0;
  core::WallTime time{};
};

/// Thread-safe. Bounded: per integration at most `max_series`, of any others nothing. A series whose
/// run logs nothing for `linger` is dropped, and one whose newest value is no number is not shown.
class TrainingScalars {
 public:
  struct Options {
    std::vector<std::string> patterns;  // empty: none
    std::size_t max_series = 1000;
    core::Duration linger = std::chrono::minutes(15);
  };

  TrainingScalars();
  ~TrainingScalars();
  TrainingScalars(const TrainingScalars&) = delete;
  TrainingScalars& operator=(const TrainingScalars&) = delete;

  /// What an integration shows from now on; the newest call of each counts. `scraped`: Prometheus fetches
  /// it.
  void want(const std::string& integration, const Options& options, bool scraped = false);
  /// Does anybody ask for any?
  [[nodiscard]] bool wanted() const;
  /// Does anybody ask for a scalar of this name? False costs the caller all further work.
  [[nodiscard]] bool wants(std::string_view name) const;
  /// An older step of the same worker, name and mode changes nothing.
  void note(const LoggedScalar& scalar);
  /// Nothing is known any longer.
  void forget();

  /// Sorted by their labels: job, mode, rank, run_uid, scalar, worker.
  [[nodiscard]] std::vector<IssueSeries> series(const std::string& integration, core::WallTime now);
  /// The same as they were logged.
  [[nodiscard]] std::vector<LoggedScalar> newest(const std::string& integration,
                                                 core::WallTime now);
  /// Those of all integrations that are scraped, in Prometheus' text format.
  [[nodiscard]] std::string scraped_text(core::WallTime now);
  /// Series that were not kept, since there were max_series.
  [[nodiscard]] std::uint64_t refused() const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace tocsin::actions
