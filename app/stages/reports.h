// The page of each run that has ended (`reports:`), written without being asked for. One process of a
// cluster writes a run's: its partition of `issues` decides which.
#pragma once

#include <functional>
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
};

class ReportsStage final : public AfterwardsStage<core::JobEvent> {
 public:
  /// What is told of an attempt, from the topics; may take some seconds.
  using Gather = std::function<core::Result<report::RunReport>(const core::RunRef& run)>;

  /// `log` and `telemetry` outlive the stage.
  ReportsStage(ReportsOptions options, Gather gather, core::Log& log, core::Telemetry& telemetry);

 private:
  std::optional<core::Duration> wanted(const core::JobEvent& job, const core::RecordView& record,
                                       const StageContext& context) override;
  std::optional<core::RuleStatusEvent> work(const core::JobEvent& event,
                                            const Instant& now) override;

  ReportsOptions options_;
  Gather gather_;
  core::Log& log_;
  core::Counter& written_;
  core::Counter& failed_;
  core::Counter& skipped_;
};

/// What the topics say of one attempt. deadline_exceeded: they were not read to their end in time.
ReportsStage::Gather gather_from(ingest::Transport& transport);

}  // namespace tocsin::app
