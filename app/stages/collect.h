// The node agent: system samples out, on the route key of every run of this node.
#pragma once

#include <deque>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "app/loop/stage.h"
#include "app/stages/agent_slot.h"
#include "app/stages/node_target.h"
#include "app/stages/stops_here.h"
#include "collectors/collectors.h"
#include "core/clock.h"
#include "core/log.h"
#include "core/telemetry.h"

namespace tocsin::app {

struct CollectOptions {
  collectors::Config collect;
  std::string host;
  std::shared_ptr<const StopsHere> stops;  // may be null: none are known
};

/// Learns from `registry` which runs live on this host and sends each of them every sweep, so that
/// joins of tensor and system data need no repartition. Samples as its file says, or as people asked
/// it to (AgentSlot).
class CollectStage final : public Stage {
 public:
  CollectStage(CollectOptions options, core::Clock& clock, core::Log& log,
               core::Telemetry& telemetry);
  ~CollectStage() override;

  [[nodiscard]] const StageWiring& wiring() const override { return wiring_; }
  core::Status open(const Instant& now) override;
  void started(std::int32_t partition, const Instant& now) override;
  std::optional<Refusal> handle(const core::RecordView& record,
                                const StageContext& context) override;
  std::optional<core::Duration> tick(const StageTick& tick) override;
  StageOutput take(const Instant& now) override;

 private:
  struct Run {
    NodeTarget target;
    std::int64_t pid = 0;
    /// Its end was told while a stop of ours is under way: stays until its processes are gone too.
    std::optional<core::WallTime> over;
  };
  void on_job(const core::JobEvent& event, core::WallTime now);
  void on_end(const core::JobEvent& event, core::WallTime now);
  void forget(const core::RunUid& run);
  void listen();
  void tell_deaths(core::WallTime now);
  void forget_ended(core::WallTime now);
  [[nodiscard]] bool lives_here(const core::JobEvent& event) const;
  void queue(std::vector<core::OutRecord> records);
  void follow_slot(const StageTick& tick);
  void sample_by(const collectors::Config& config);

  CollectOptions options_;
  StageWiring wiring_;
  core::Clock& clock_;
  core::Log& log_;
  core::Telemetry& telemetry_;
  core::Counter& dropped_;
  core::Counter& deaths_;
  core::Counter& hidden_;
  AgentSlot slot_;
  std::set<std::int32_t> inputs_;
  std::unique_ptr<collectors::NodeCollector> node_;
  std::uint64_t incarnation_ = 0;
  std::map<core::RunUid, Run> runs_;
  std::unique_ptr<NodeTarget> unattributed_;
  std::optional<collectors::PresenceListener> presence_;
  collectors::ProcessWatch watch_;
  std::deque<collectors::Death> untold_;         // of runs that `registry` has not shown yet
  std::map<core::RunUid, core::JobEvent> gone_;  // runs whose process was gone when they were shown
  std::deque<core::OutRecord> out_;
};

}  // namespace tocsin::app
