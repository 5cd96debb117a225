#include "app/stages/platform_stops.h"

#include <algorithm>
#include <utility>

#include "app/stages/stop_feed.h"
#include "ingest/ingest.h"

namespace tocsin::app {

PlatformStopsStage::PlatformStopsStage(PlatformStopsOptions options, Platforms platforms,
                                       CallerFactory caller, core::Log& log,
                                       core::Telemetry& telemetry)
    : options_(std::move(options)),
      platforms_(std::move(platforms)),
      callers_(std::move(caller)),
      log_(log),
      telemetry_(telemetry) {
  wiring_ = stop_wiring("platform-stops", "platform-stops");
  wiring_.patience = std::chrono::milliseconds(50);  // a platform takes longer to be asked
  wiring_.leader = true;
}

core::Status PlatformStopsStage::open(const Instant& now) {
  inputs_.clear();
  out_.clear();
  caught_up_ = false;
  taken_ = begun_ = durable_ = 0;
  caller_ = callers_();
  std::vector<actions::PlatformStop*> platforms;
  for (const auto& one : platforms_) platforms.push_back(one.get());
  agent_ =
      std::make_unique<actions::PlatformAgent>(std::move(platforms), *caller_, log_, telemetry_);
  if (opened_ == core::WallTime{}) opened_ = now.wall;
  agent_->started(opened_);
  return core::ok();
}

void PlatformStopsStage::started(std::int32_t partition, const Instant& /*now*/) {
  inputs_.insert(partition);
}

std::optional<Refusal> PlatformStopsStage::handle(const core::RecordView& record,
                                                  const StageContext& context) {
  return feed_stops(*agent_, *this, record, context.now.wall);
}

std::optional<core::Duration> PlatformStopsStage::tick(const StageTick& tick) {
  // As the agent of a node: what answers an old command may stand further on.
  caught_up_ = !inputs_.empty() && std::all_of(inputs_.begin(), inputs_.end(),
                                               [&](std::int32_t one) { return tick.live(one); });
  if (!caught_up_) return std::nullopt;
  report(agent_->tick(tick.now.wall), tick.now.wall);
  if (out_.empty() && durable_ == taken_) agent_->ask(tick.now.wall);
  return std::nullopt;
}

StageOutput PlatformStopsStage::take(const Instant& /*now*/) {
  StageOutput out;
  out.records = std::exchange(out_, {});
  if (!out.records.empty()) ++taken_;
  return out;
}

void PlatformStopsStage::committed(const Instant& /*now*/) { durable_ = begun_; }

void PlatformStopsStage::report(const std::vector<actions::StopTransition>& transitions,
                                core::WallTime now) {
  for (const auto& issue : actions::stop_failed_issues(transitions, options_.cluster, now)) {
    out_.push_back({0, ingest::encode_issue(issue)});
  }
  for (const auto& transition : transitions) {
    if (transition.replayed) continue;
    if (auto record = agent_->record_of(transition, options_.host)) {
      out_.push_back({0, ingest::encode_ack(*record, options_.cluster)});
    }
    log_transition(log_, transition, "platform");
  }
}

}  // namespace tocsin::app
