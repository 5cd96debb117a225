#include "app/stages/stops.h"

#include <algorithm>
#include <iterator>
#include <utility>

#include "app/view/events_log.h"
#include "core/topics.h"
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
  wiring_.name = "stops";
  wiring_.part = "router";
  wiring_.topics = {core::topic::kCommands, core::topic::kAcks, core::topic::kRegistry};
  wiring_.fetch_wait = std::chrono::milliseconds(100);  // what comes ends it at once
  wiring_.writer = "stops-" + options_.host;
  wiring_.batch = 256;
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
  const core::WallTime now = context.now.wall;
  if (record.topic == core::topic::kCommands) {
    const auto decoded = ingest::decode_command(record);
    if (!decoded) return Refusal{"bad_command", decoded.error().message};
    if (decoded->command) {
      if (decoded->action == "stop" && decoded->command->issued_at >= opened_) {
        log_stop(log_, *decoded->command, {});
      }
      report(agent_.on_command(*decoded->command, now), now);
    } else if (decoded->action == "stop") {
      report(agent_.on_withdrawn(decoded->run, now), now);
    }
  } else if (record.topic == core::topic::kAcks) {
    const auto ack = ingest::decode_ack(record);
    if (!ack) return Refusal{"bad_ack", ack.error().message};
    if (ack->time >= opened_) log_ack(log_, *ack);
    report(agent_.on_ack(*ack, now), now);
  } else if (!record.tombstone) {
    const auto decoded = ingest::decode_event(record);
    if (!decoded) return Refusal{"bad_event", decoded.error().message};
    if (const auto* job = std::get_if<core::JobEvent>(&decoded->event))
      report(agent_.on_job(*job, now), now);
  }
  return std::nullopt;
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
    if (transition.replayed) continue;
    log_.info("stop_state_changed", {{"command_id", transition.command_id},
                                     {"run", core::to_text(transition.run)},
                                     {"attempt", std::int64_t{transition.attempt}},
                                     {"from", std::string(actions::to_string(transition.from))},
                                     {"to", std::string(actions::to_string(transition.to))},
                                     {"reason", transition.reason},
                                     {"at", core::to_rfc3339(transition.at)}});
  }
}

}  // namespace tocsin::app
