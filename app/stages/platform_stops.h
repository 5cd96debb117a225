// Stops of runs that a platform runs, by the leader: when such a run does not answer in time, its
// platform is asked to end it. Each rung is a record of `acks` before it is taken.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "actions/actions.h"
#include "app/loop/stage.h"
#include "core/log.h"
#include "core/telemetry.h"

namespace tocsin::app {

struct PlatformStopsOptions {
  std::string host;
  std::string cluster;
};

class PlatformStopsStage final : public Stage {
 public:
  using Platforms = std::vector<std::unique_ptr<actions::PlatformStop>>;
  /// `caller`: made anew whenever the stage opens, so that nothing of before comes back.
  using CallerFactory = std::function<std::unique_ptr<actions::PlatformCaller>()>;
  PlatformStopsStage(PlatformStopsOptions options, Platforms platforms, CallerFactory caller,
                     core::Log& log, core::Telemetry& telemetry);

  [[nodiscard]] const StageWiring& wiring() const override { return wiring_; }
  core::Status open(const Instant& now) override;
  void started(std::int32_t partition, const Instant& now) override;
  std::optional<Refusal> handle(const core::RecordView& record,
                                const StageContext& context) override;
  std::optional<core::Duration> tick(const StageTick& tick) override;
  StageOutput take(const Instant& now) override;
  void committing() override { begun_ = taken_; }
  void committed(const Instant& now) override;

  // What feed_stops() tells; the node's agent logs what runs were asked and have answered.
  void asked(const core::Command& /*command*/) {}
  void answered(const core::Ack& /*ack*/) {}
  void report(const std::vector<actions::StopTransition>& transitions, core::WallTime now);

 private:
  PlatformStopsOptions options_;
  Platforms platforms_;
  CallerFactory callers_;
  StageWiring wiring_;
  core::Log& log_;
  core::Telemetry& telemetry_;
  std::unique_ptr<actions::PlatformCaller> caller_;
  std::unique_ptr<actions::PlatformAgent> agent_;
  std::set<std::int32_t> inputs_;
  core::WallTime opened_{};
  bool caught_up_ = false;
  // How often take() gave records; of those, how many are in a commit, and durable.
  std::uint64_t taken_ = 0;
  std::uint64_t begun_ = 0;
  std::uint64_t durable_ = 0;
  std::vector<StageRecord> out_;
};

}  // namespace tocsin::app
