#include "actions/platform/platform_agent.h"

#include <algorithm>
#include <csignal>

#include "actions/stop/stop_metrics.h"
#include "core/value.h"

namespace tocsin::actions {

using core::Duration;
using core::Value;
using core::WallTime;

namespace {

constexpr Duration kFirstLook = std::chrono::seconds(1);
constexpr Duration kLongestPause = std::chrono::seconds(30);
constexpr Duration kAnswerOverdue = std::chrono::minutes(1);  // the call was not made
constexpr std::size_t kEarlyRecords = 10'000;

const Value& fence_of(const core::Command& command) {
  static const Value none;
  const Value* fence = core::find(command.args, "fence");
  return fence == nullptr ? none : *fence;
}

// A node's agent ends what is a process of its machine, and nothing else.
bool of_a_platform(const core::Command& command) {
  const std::string platform = core::text_at(fence_of(command), "platform");
  return !platform.empty() && platform != "local";
}

std::optional<StopState> state_named(std::string_view name) {
  for (const StopState one :
       {StopState::platform_graceful, StopState::platform_force, StopState::stopped,
        StopState::failed, StopState::rejected_stale, StopState::already_ended}) {
    if (to_string(one) == name) return one;
  }
  return std::nullopt;
}

StopReach reach_of(const std::vector<PlatformStop*>& platforms) {
  StopReach out;
  out.reaches = [platforms](const core::Command& command) {
    return std::any_of(platforms.begin(), platforms.end(),
                       [&](const auto* one) { return one->reaches(fence_of(command)); });
  };
  out.what = "job of the platform";
  out.gentle = "the platform's stop";
  out.hard = "its forced stop";
  out.nothing = "no platform is configured that could end it (section platforms)";
  out.pauses = true;
  out.grace_after_force = true;
  return out;
}

Observed observed(PlatformSeen seen, bool asked_before) {
  switch (seen) {
    case PlatformSeen::ended:
      return Observed::ended;
    case PlatformSeen::stale:
      // What was asked has gone, and another one has its name.
      return asked_before ? Observed::ended : Observed::stale;
    case PlatformSeen::denied:
      return Observed::denied;
    default:
      return Observed::signalled;
  }
}

PlatformTarget target_of(const core::Command& command) {
  return {fence_of(command), core::text_at(command.args, "mode")};
}

}  // namespace

PlatformAgent::PlatformAgent(std::vector<PlatformStop*> platforms, PlatformCaller& caller,
                             core::Log& log, core::Telemetry& telemetry)
    : platforms_(std::move(platforms)),
      caller_(caller),
      log_(log),
      telemetry_(telemetry),
      ladder_(reach_of(platforms_)) {
  measure();
}

PlatformStop* PlatformAgent::platform_of(const Value& fence) const {
  for (PlatformStop* one : platforms_) {
    if (one->reaches(fence)) return one;
  }
  return nullptr;
}

PlatformAgent::Steps PlatformAgent::on_command(const core::Command& command, WallTime now) {
  if (!of_a_platform(command)) return carried(ladder_.on_foreign(command, now), now);
  Steps out = carried(ladder_.on_command(command, now), now);
  if (const auto early = early_.find(command.command_id); early != early_.end()) {
    const core::Ack record = early->second;
    early_.erase(early);
    auto more = on_ack(record, now);
    out.insert(out.end(), more.begin(), more.end());
  }
  return out;
}

PlatformAgent::Steps PlatformAgent::on_ack(const core::Ack& ack, WallTime now) {
  if (ack.action != kPlatformAck) return carried(ladder_.on_ack(ack, now), now);
  const core::Command* command = ladder_.command(ack.command_id);
  if (command == nullptr) {
    if (early_.size() >= kEarlyRecords && !early_.contains(ack.command_id)) {
      early_.erase(early_.begin());
    }
    early_[ack.command_id] = ack;
    return {};
  }
  const auto state = state_named(ack.phase);
  // A person asked again since: what came to nothing then is open.
  if (!state || ack.revision < command->revision || ack.time < command->issued_at) return {};
  const bool hard = *state == StopState::platform_force;
  const bool rung_of_it = hard || *state == StopState::platform_graceful;
  // A rung's time counts from now: its platform is looked at before anything is called a failure.
  ladder_.on_recorded(ack.command_id, *state, rung_of_it ? now : std::min(ack.time, now));
  // Our own record, read back, may come when the stop is over.
  const auto states = ladder_.states();
  const auto stands = states.find(ack.command_id);
  if (rung_of_it && stands != states.end() && !is_final(stands->second)) {
    Rung& rung = rungs_[ack.command_id];
    // Whether it was asked then, the platform shows when it is read.
    if (rung.rung != PlatformRung::force) {
      rung.rung = hard ? PlatformRung::force : PlatformRung::graceful;
    }
  }
  return {};
}

PlatformAgent::Steps PlatformAgent::on_job(const core::JobEvent& event, WallTime now) {
  return carried(ladder_.on_job(event, now), now);
}

PlatformAgent::Steps PlatformAgent::on_withdrawn(const core::RunUid& run, WallTime now) {
  return carried(ladder_.on_withdrawn(run, now), now);
}

PlatformAgent::Steps PlatformAgent::tick(WallTime now) {
  Steps out;
  const auto add = [&](Steps more) { out.insert(out.end(), more.begin(), more.end()); };
  for (const auto& [call, answer] : caller_.take()) add(answered(call, answer, now));
  add(carried(ladder_.tick(now), now));
  return out;
}

PlatformAgent::Steps PlatformAgent::answered(const PlatformCall& call, const PlatformAnswer& answer,
                                             WallTime now) {
  const auto found = rungs_.find(call.command_id);
  if (found == rungs_.end()) return {};
  Rung& rung = found->second;
  rung.in_flight = false;
  const bool asked_before = rung.asked;
  if (call.rung == rung.rung && answer.asked) rung.asked = true;
  rung.pause = std::clamp(rung.pause * 2, kFirstLook, kLongestPause);
  rung.next = now + rung.pause;
  // Who may ask and not look is not told that it failed before its time.
  const bool unseen = answer.seen == PlatformSeen::denied && call.rung == PlatformRung::look;
  if (answer.seen == PlatformSeen::unreachable || unseen) {
    if (rung.trouble != answer.detail) {
      log_.warn("platform_unreachable", {{"command", call.command_id}, {"detail", answer.detail}});
    }
    rung.trouble = answer.detail;
    return {};
  }
  rung.trouble.clear();
  if (call.rung != PlatformRung::look && answer.asked) {
    log_.warn("platform_asked", {{"command", call.command_id}, {"detail", answer.detail}});
  }
  const Observed seen = observed(answer.seen, asked_before);
  return carried(ladder_.on_observed(call.command_id, seen, now, answer.detail), now);
}

PlatformAgent::Steps PlatformAgent::carried(StopLadder::Step step, WallTime now) {
  for (const StopSignal& signal : step.signals) {
    Rung& rung = rungs_[signal.command_id];
    rung.rung = signal.number == SIGKILL ? PlatformRung::force : PlatformRung::graceful;
    rung.asked = false;
    rung.next = now;
    rung.pause = {};
  }
  for (StopTransition& one : step.transitions) {
    one.replayed = one.at < started_;
    const core::Command* moved = ladder_.command(one.command_id);
    const PlatformStop* where = moved == nullptr ? nullptr : platform_of(fence_of(*moved));
    timing_.moved(one, where == nullptr ? "none" : where->name());
    if (!is_final(one.to)) continue;
    const auto rung = rungs_.find(one.command_id);
    if (rung != rungs_.end()) {
      if (one.to == StopState::failed && !rung->second.trouble.empty()) {
        one.reason += "; the last answer: " + rung->second.trouble;
      }
      rungs_.erase(rung);
    }
    if (one.replayed) continue;
    const core::Command* command = ladder_.command(one.command_id);
    const PlatformStop* platform = command == nullptr ? nullptr : platform_of(fence_of(*command));
    count_stop(telemetry_, platform == nullptr ? "none" : platform->name(), one.to);
  }
  if (!step.transitions.empty()) measure();
  return std::move(step.transitions);
}

void PlatformAgent::ask(WallTime now) {
  for (auto& [id, rung] : rungs_) {
    const bool overdue = rung.in_flight && now >= rung.next + kAnswerOverdue;
    if ((rung.in_flight && !overdue) || now < rung.next) continue;
    const core::Command* command = ladder_.command(id);
    PlatformStop* platform = command == nullptr ? nullptr : platform_of(fence_of(*command));
    if (platform == nullptr) continue;
    rung.in_flight = true;
    rung.next = now;
    caller_.submit(
        {id, target_of(*command), rung.asked ? PlatformRung::look : rung.rung, platform});
  }
}

std::optional<core::Ack> PlatformAgent::record_of(const StopTransition& transition,
                                                  const std::string& node) const {
  if (transition.replayed || !state_named(to_string(transition.to))) return std::nullopt;
  const core::Command* command = ladder_.command(transition.command_id);
  const PlatformStop* platform = command == nullptr ? nullptr : platform_of(fence_of(*command));
  if (platform == nullptr) return std::nullopt;
  const bool rung =
      transition.to == StopState::platform_graceful || transition.to == StopState::platform_force;
  const bool of_one = transition.from == StopState::platform_graceful ||
                      transition.from == StopState::platform_force;
  if (!rung && !of_one) return std::nullopt;  // the run's own answers tell it
  core::Ack out;
  out.command_id = transition.command_id;
  out.revision = command->revision;
  out.action = kPlatformAck;
  out.phase = to_string(transition.to);
  out.run = transition.run;
  out.attempt = transition.attempt;
  out.worker = "platform/" + std::string(platform->name());
  out.node = node;
  out.time = transition.at;
  out.reason = transition.reason;
  return out;
}

void PlatformAgent::measure() { measure_stops(telemetry_, ladder_, "platform"); }

}  // namespace tocsin::actions
