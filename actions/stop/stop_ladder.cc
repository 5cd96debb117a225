#include "actions/stop/stop_ladder.h"

#include <algorithm>

#include "actions/stop/ack_target.h"
#include "actions/stop/stop_case.h"
#include "actions/stop/stop_failed.h"

namespace tocsin::actions {

using core::WallTime;

namespace {

constexpr std::size_t kRememberedStops = 1000;
constexpr std::size_t kRememberedRuns = 20'000;
constexpr std::size_t kEarlyAcks = 10'000;
constexpr core::Duration kTold = std::chrono::hours(24);  // the router's dedup_window

// When it happened by the record's own time; a clock that is ahead does not lead into the future.
WallTime moment(WallTime recorded, WallTime now) {
  return recorded == WallTime{} ? now : std::min(recorded, now);
}

}  // namespace

void StopLadder::replaced(const core::RunUid& run, std::uint32_t attempt, WallTime at, Step& step) {
  for (auto& [id, stop] : stops_) {
    if (stop->command.run != run || stop->command.attempt >= attempt) continue;
    stop->move(StopState::rejected_stale,
               "attempt " + std::to_string(attempt) + " has taken its place", at, step);
  }
}

void StopLadder::ended(StopCase& stop, const Run& run, WallTime now, Step& step) const {
  if (!run.ended_at || run.attempt != stop.command.attempt) return;
  const bool before = *run.ended_at < stop.command.issued_at;
  stop.move(before ? StopState::already_ended : StopState::stopped, "job " + run.outcome,
            moment(*run.ended_at, now), step);
}

// Final ones are kept to recognise their repetition; the oldest are forgotten.
void StopLadder::make_room() {
  if (stops_.size() < kRememberedStops) return;
  auto oldest = stops_.end();
  for (auto it = stops_.begin(); it != stops_.end(); ++it) {
    if (!is_final(it->second->state)) continue;
    if (oldest == stops_.end() ||
        it->second->command.issued_at < oldest->second->command.issued_at) {
      oldest = it;
    }
  }
  if (oldest != stops_.end()) stops_.erase(oldest);
}

StopLadder::Step StopLadder::on_foreign(const core::Command& command, WallTime now) {
  Step step;
  if (command.action != "stop" || command.dry_run) return step;
  replaced(command.run, command.attempt, moment(command.issued_at, now), step);
  return step;
}

// Written again, for workers that started later or by a person: what came to nothing is open again.
bool StopLadder::is_known(const core::Command& command) {
  const auto known = stops_.find(command.command_id);
  if (known == stops_.end()) return false;
  StopCase& stop = *known->second;
  if (command.revision <= stop.command.revision) return true;
  const bool open = !is_final(stop.state);
  const bool over = stop.state == StopState::stopped || stop.state == StopState::already_ended;
  if (open) stop.renew(command);
  if (open || over) return true;
  stops_.erase(known);
  return false;
}

StopLadder::Step StopLadder::on_command(const core::Command& command, WallTime now) {
  Step step;
  if (command.action != "stop" || command.dry_run) return step;
  const WallTime at = moment(command.issued_at, now);
  if (is_known(command)) return step;
  std::uint32_t newest = 0;  // of what is known besides this command
  for (auto& [id, other] : stops_) {
    if (other->command.run != command.run) continue;
    newest = std::max(newest, other->command.attempt);
    if (is_final(other->state) || other->command.attempt != command.attempt) continue;
    if (other->command.revision >= command.revision) return step;
    other->move(StopState::cancelled, "replaced by " + command.command_id, at, step);
  }
  replaced(command.run, command.attempt, at, step);
  make_room();
  auto made = std::make_shared<StopCase>(command, reach_);
  StopCase& stop = *made;
  stops_.emplace(command.command_id, std::move(made));
  const auto run = runs_.find(command.run);
  if (run != runs_.end()) {
    newest = std::max(newest, run->second.attempt);
    stop.job = run->second.job;
    stop.labels = run->second.labels;
  }
  if (newest > command.attempt) {
    stop.move(StopState::rejected_stale,
              "attempt " + std::to_string(newest) + " has taken its place", at, step);
    return step;
  }
  // Read again after a restart: acks that follow may still tell that it was taken in time.
  const bool late = command.expires_at && now >= *command.expires_at;
  if (!late) stop.move(StopState::cooperative, command.reason.summary, at, step);
  for (auto ack = early_.begin(); ack != early_.end();) {
    if (ack->command_id != command.command_id) {
      ++ack;
      continue;
    }
    apply(stop, *ack, now, step);
    ack = early_.erase(ack);
  }
  if (run != runs_.end()) ended(stop, run->second, now, step);
  return step;
}

StopLadder::Step StopLadder::on_ack(const core::Ack& ack, WallTime now) {
  Step step;
  if (!ack.action.empty() && ack.action != "stop") return step;
  const auto found = stops_.find(ack.command_id);
  if (found != stops_.end()) {
    apply(*found->second, ack, now, step);
    return step;
  }
  early_.push_back(ack);
  if (early_.size() > kEarlyAcks) early_.pop_front();
  return step;
}

void StopLadder::apply(StopCase& stop, const core::Ack& ack, WallTime now, Step& step) {
  if (!answers(ack, stop.command)) return;
  const WallTime at = moment(ack.time, now);
  if (ack.phase == "received") return;
  if (ack.phase == "refused") {
    // A late rank of a launch that the newest revision names is not meant; a later step follows.
    if (ack.reason == "duplicate" || ack.reason == "too_late") return;
    if (ack.revision < stop.command.revision) return;
    // Where others have accepted, one that refuses changes nothing, unless it is the successor of
    // one that had: its process, too, must not be signalled for what the other was asked.
    const auto before = stop.accepted.find(ack.worker);
    const bool successor = before != stop.accepted.end() && ack.incarnation > before->second;
    if (!stop.accepted.empty() && !(successor && ack.reason == "stale")) return;
    const std::string why = ack.reason + ", refused by " + ack.worker;
    return stop.move(ack.reason == "stale"     ? StopState::rejected_stale
                     : ack.reason == "expired" ? StopState::expired
                                               : StopState::refused,
                     why, at, step);
  }
  auto& incarnation = stop.accepted[ack.worker];
  incarnation = std::max(incarnation, ack.incarnation);
  if (ack.phase == "stopped") {
    if (ack.rank == stop.first_rank) {
      stop.move(StopState::stopped, "acknowledged at step " + std::to_string(ack.step), at, step);
    }
    return;
  }
  if (stop.state == StopState::requested || stop.state == StopState::cooperative) {
    stop.move(StopState::checkpointing, ack.phase + " at step " + std::to_string(ack.step), at,
              step);
  }
}

StopLadder::Step StopLadder::on_job(const core::JobEvent& event, WallTime now) {
  Step step;
  const auto [known, added] = runs_.try_emplace(event.run.uid);
  if (added) runs_by_age_.push_back(event.run.uid);
  Run& run = known->second;
  if (event.run.attempt < run.attempt) return step;  // read late
  if (event.run.attempt > run.attempt) {
    run = {};
    run.attempt = event.run.attempt;
  }
  run.job = event.run.job;
  run.labels = event.labels;
  if (event.phase == core::JobPhase::ended) {
    run.ended_at = event.ended_at.value_or(event.time);
    run.outcome = event.outcome;
  } else if (run.ended_at && event.time > *run.ended_at) {
    run.ended_at.reset();  // had been lost, and is back
  }
  replaced(event.run.uid, run.attempt, moment(event.time, now), step);
  for (auto& [id, stop] : stops_) {
    if (stop->command.run != event.run.uid) continue;
    if (stop->command.attempt == run.attempt) {
      stop->job = run.job;
      stop->labels = run.labels;
    }
    ended(*stop, run, now, step);
  }
  if (runs_by_age_.size() > kRememberedRuns) {
    runs_.erase(runs_by_age_.front());
    runs_by_age_.pop_front();
  }
  return step;
}

StopLadder::Step StopLadder::on_withdrawn(const core::RunUid& run, WallTime now) {
  Step step;
  for (auto& [id, stop] : stops_) {
    const bool signalled =
        stop->state == StopState::platform_graceful || stop->state == StopState::platform_force;
    if (stop->command.run == run && !signalled) {
      stop->move(StopState::cancelled, "withdrawn", now, step);
    }
  }
  return step;
}

void StopLadder::on_recorded(const std::string& command_id, StopState state, WallTime at) {
  const auto found = stops_.find(command_id);
  if (found != stops_.end()) found->second->resume(state, at);
}

StopLadder::Step StopLadder::on_observed(const std::string& command_id, Observed what, WallTime now,
                                         const std::string& detail) {
  Step step;
  const auto found = stops_.find(command_id);
  if (found == stops_.end()) return step;
  StopCase& stop = *found->second;
  const auto say = [&](std::string own) { return detail.empty() ? std::move(own) : detail; };
  switch (what) {
    case Observed::ended:
      if (stop.seen_alive) {
        stop.move(StopState::stopped, say("the " + reach_->what + " has ended"), now, step);
      } else {
        stop.move(StopState::already_ended, say("there is no such " + reach_->what + " any more"),
                  now, step);
      }
      break;
    case Observed::stale:
      stop.move(StopState::rejected_stale, say("the fence names another " + reach_->what), now,
                step);
      break;
    case Observed::denied:
      stop.move(StopState::failed, say("not permitted to signal the " + reach_->what), now, step);
      break;
    case Observed::signalled:
      stop.seen_alive = true;
      break;
  }
  return step;
}

StopLadder::Step StopLadder::tick(WallTime now) {
  Step step;
  for (auto& [id, stop] : stops_) stop->advance(now, step);
  return step;
}

std::map<std::string, StopState> StopLadder::states() const {
  std::map<std::string, StopState> out;
  for (const auto& [id, stop] : stops_) out.emplace(id, stop->state);
  return out;
}

std::vector<std::pair<std::string, ProcessFence>> StopLadder::watched() const {
  std::vector<std::pair<std::string, ProcessFence>> out;
  for (const auto& [id, stop] : stops_) {
    if (!is_final(stop->state) && stop->fence) out.emplace_back(id, *stop->fence);
  }
  return out;
}

const core::Command* StopLadder::command(const std::string& command_id) const {
  const auto found = stops_.find(command_id);
  return found == stops_.end() ? nullptr : &found->second->command;
}

std::optional<core::Issue> stop_failed_issue(const StopTransition& transition,
                                             const std::string& cluster) {
  FailedStop out;
  switch (transition.to) {
    case StopState::failed:
      out.why = StopFailure::failed;
      break;
    case StopState::refused:
      out.why = StopFailure::refused;
      break;
    case StopState::expired:
      out.why = StopFailure::expired;
      break;
    case StopState::rejected_stale:
      out.why = StopFailure::stale;
      break;
    default:
      return std::nullopt;
  }
  out.run.uid = transition.run;
  out.run.attempt = transition.attempt;
  out.run.job = transition.job;
  out.labels = transition.labels;
  out.cluster = cluster;
  out.detail = transition.reason;
  out.command_id = transition.command_id;
  out.caused_by_rule = transition.rule;
  out.at = transition.at;
  return stop_failed_issue(out);
}

std::vector<core::Issue> stop_failed_issues(const std::vector<StopTransition>& transitions,
                                            const std::string& cluster, WallTime now) {
  std::vector<core::Issue> out;
  for (const StopTransition& one : transitions) {
    if (now - one.at > kTold) continue;
    if (auto issue = stop_failed_issue(one, cluster)) out.push_back(std::move(*issue));
  }
  return out;
}

}  // namespace tocsin::actions
