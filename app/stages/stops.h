// Answers to stop commands as they come, and signals to processes of this host when a run does not
// answer in time. What people must be told of a stop that came to nothing goes to `issues`.
#pragma once

#include <functional>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "actions/actions.h"
#include "app/loop/stage.h"
#include "app/stages/stops_here.h"
#include "core/log.h"
#include "core/telemetry.h"

namespace tocsin::app {

struct StopsOptions {
  std::string host;
  std::string cluster;
  std::shared_ptr<StopsHere> here;  // may be null; told of every stop of this node
  /// Is what a fence names ended by somebody else? Empty: never.
  std::function<bool(const core::Value& fence)> elsewhere;
};

class StopsStage final : public Stage {
 public:
  StopsStage(StopsOptions options, std::unique_ptr<actions::ProcessControl> processes,
             core::Log& log, core::Telemetry& telemetry);

  [[nodiscard]] const StageWiring& wiring() const override { return wiring_; }
  core::Status open(const Instant& now) override;
  void started(std::int32_t partition, const Instant& now) override;
  std::optional<Refusal> handle(const core::RecordView& record,
                                const StageContext& context) override;
  std::optional<core::Duration> tick(const StageTick& tick) override;
  StageOutput take(const Instant& now) override;

  // What feed_stops() tells:
  void asked(const core::Command& command);
  void answered(const core::Ack& ack);
  void report(const std::vector<actions::StopTransition>& transitions, core::WallTime now);

 private:
  StopsOptions options_;
  StageWiring wiring_;
  core::Log& log_;
  actions::LocalStopAgent agent_;
  std::set<std::int32_t> inputs_;
  core::WallTime opened_{};
  std::vector<StageRecord> out_;
};

}  // namespace tocsin::app
