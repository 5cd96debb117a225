// The page of each run that has ended (`reports:`), written without being asked for. One process of a
// cluster writes a run's: its partition of `issues` decides which.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "app/report/run_report.h"
#include "app/stages/afterwards.h"
#include "core/log.h"
#include "core/telemetry.h"
#include "ingest/ingest.h"

namespace tocsin::app {

struct ReportsOptions {
  std::string dir;
  std::string url;  // under which others read it; empty: nowhere
  std::string cluster;
  std::string topic_prefix = "tocsin";
  std::string instance = "0";  // of several processes: part of the transactional id
  std::string version;         // of this program, as the page says it
  std::string events;  // the store of events that pages look back with; empty: none is kept here
  std::string curves;  // the same, of series
};

/// What is told of an attempt, on its way from the topics.
class RunGathering {
 public:
  virtual ~RunGathering() = default;
  /// The next batch of events, waiting at most a tenth of a second for it; nullopt: there are more.
  virtual core::Result<std::optional<report::RunReport>> go_on() = 0;
};

class ReportsStage final : public AfterwardsStage<core::JobEvent> {
 public:
  /// gather_from().
  using Gather =
      std::function<core::Result<std::unique_ptr<RunGathering>>(const core::RunRef& run)>;

  /// `log` and `telemetry` outlive the stage.
  ReportsStage(ReportsOptions options, Gather gather, core::Log& log, core::Telemetry& telemetry);

 private:
  std::optional<core::Duration> wanted(const core::JobEvent& job, const core::RecordView& record,
                                       const StageContext& context) override;
  bool work(const core::JobEvent& event, const Instant& now,
            std::optional<core::RuleStatusEvent>& told) override;
  void leave() override { gathering_.reset(); }
  core::Result<std::optional<report::RunReport>> gather(const core::RunRef& run);
  void add_aftermath(report::RunReport& report, core::Duration since_end) const;
  [[nodiscard]] report::Section curves_of(const report::RunReport& report) const;
  core::RuleStatusEvent write(const core::JobEvent& event, core::Result<report::RunReport> told,
                              core::WallTime now);

  ReportsOptions options_;
  Gather gather_;
  core::Log& log_;
  core::Counter& written_;
  core::Counter& failed_;
  core::Counter& skipped_;
  core::Counter& too_many_;
  std::unique_ptr<RunGathering> gathering_;  // of the first run that waits
};

/// What the topics say of one attempt. deadline_exceeded: nothing came of them, and they were not at
/// their end.
ReportsStage::Gather gather_from(ingest::Transport& transport);

}  // namespace tocsin::app
