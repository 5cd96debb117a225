#include "app/stages/stops.h"

#include <algorithm>
#include <iterator>
#include <utility>

#include "app/stages/stop_feed.h"
#include "app/view/events_log.h"
#include "ingest/ingest.h"

namespace tocsin::app {

StopsStage::StopsStage(StopsOptions options, std::unique_ptr<actions::ProcessControl> processes,
                       core::Log& log, core::Telemetry& telemetry)
    : options_(std::move(options)),
      log_(log),
      agent_(options_.host, std::move(processes), log, telemetry) {
  if (options_.here) {
    agent_.tell([here = options_.here](const auto& transition) { here->note(transition); });
  }
  agent_.leave(options_.elsewhere);
  wiring_ = stop_wiring("stops", "stops-" + options_.host);
}

core::Status StopsStage::open(const Instant& now) {
  inputs_.clear();
  out_.clear();
  if (opened_ == core::WallTime{}) opened_ = now.wall;
  agent_.started(opened_);
  return core::ok();
}

void StopsStage::started(std::int32_t partition, const Instant& /*now*/) {
  inputs_.insert(partition);
}

std::optional<Refusal> StopsStage::handle(const core::RecordView& record,
                                          const StageContext& context) {
  return feed_stops(agent_, *this, record, context.now.wall);
}

void StopsStage::asked(const core::Command& command) {
  if (command.issued_at >= opened_) log_stop(log_, command, {});
}

void StopsStage::answered(const core::Ack& ack) {
  if (ack.time >= opened_ && !ack.run.nil()) log_ack(log_, ack);
}

std::optional<core::Duration> StopsStage::tick(const StageTick& tick) {
  // Until everything that was there is read, an old command may already be answered further on, or
  // its launch replaced: after a start, and after a time without the broker.
  const bool caught_up =
      !inputs_.empty() &&
      std::all_of(inputs_.begin(), inputs_.end(), [&](std::int32_t one) { return tick.live(one); });
  if (caught_up) report(agent_.tick(tick.now.wall), tick.now.wall);
  return std::nullopt;
}

StageOutput StopsStage::take(const Instant& /*now*/) {
  StageOutput out;
  out.records = std::exchange(out_, {});
  return out;
}

void StopsStage::report(const std::vector<actions::StopTransition>& transitions,
                        core::WallTime now) {
  for (const auto& issue : actions::stop_failed_issues(transitions, options_.cluster, now)) {
    out_.push_back({0, ingest::encode_issue(issue)});
  }
  for (const auto& transition : transitions) {
    if (!transition.replayed) log_transition(log_, transition, {});
  }
}

}  // namespace tocsin::app
