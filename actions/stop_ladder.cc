#include "actions/stop_ladder.h"

#include <algorithm>
#include <array>
#include <csignal>

namespace tocsin::actions {

using core::Duration;
using core::Value;
using core::WallTime;

namespace {

constexpr Duration kAfterForce = std::chrono::seconds(10);  // a killed process is gone by then
constexpr std::size_t kRemembered = 1000;

const Value* find(const Value& value, std::string_view name) {
  const auto* map = std::get_if<core::ValueMap>(&value.storage());
  if (map == nullptr) return nullptr;
  for (const auto& [key, item] : *map) {
    if (key == name) return &item;
  }
  return nullptr;
}

Duration duration_of(const Value* value, Duration fallback) {
  const auto* text = value == nullptr ? nullptr : std::get_if<std::string>(&value->storage());
  return text == nullptr ? fallback : core::parse_duration(*text).value_or(fallback);
}

bool flag_of(const Value* value) {
  const auto* flag = value == nullptr ? nullptr : std::get_if<bool>(&value->storage());
  return flag != nullptr && *flag;
}

}  // namespace

std::string_view to_string(StopState state) noexcept {
  static constexpr std::array<std::string_view, 13> kNames{
      "requested",      "awaiting_approval", "cooperative", "checkpointing", "platform_graceful",
      "platform_force", "stopped",           "failed",      "cancelled",     "rejected_stale",
      "already_ended",  "expired",           "refused"};
  return kNames[static_cast<std::size_t>(state)];
}

bool is_final(StopState state) noexcept { return state >= StopState::stopped; }

struct StopLadder::Stop {
  core::Command command;
  StopState state = StopState::requested;
  WallTime ack_by{};
  WallTime graceful_by{};
  WallTime total_by{};
  Duration grace{};
  bool allow_force = false;
  bool may_signal = false;  // there is a fence, and the mode ends the process
  bool seen_alive = false;
  std::optional<ProcessFence> fence;
  WallTime signalled_at{};
  std::uint32_t first_rank = 0;  // whose `stopped` ends the run

  explicit Stop(core::Command from) : command(std::move(from)) {
    const Value* deadline = find(command.args, "deadline");
    const Value none;
    const Value& limits = deadline == nullptr ? none : *deadline;
    ack_by = command.issued_at + duration_of(find(limits, "ack"), std::chrono::seconds(30));
    graceful_by =
        command.issued_at + duration_of(find(limits, "graceful"), std::chrono::minutes(10));
    total_by = command.issued_at + duration_of(find(limits, "total"), std::chrono::minutes(15));
    grace = duration_of(find(command.args, "grace"), std::chrono::seconds(60));
    allow_force = flag_of(find(command.args, "allow_force"));
    if (const Value* value = find(command.args, "fence")) fence = process_fence(*value);
    const Value* mode = find(command.args, "mode");
    may_signal = fence.has_value() && (mode == nullptr || *mode != Value("pause"));
    if (!command.ranks.empty()) {
      first_rank = *std::min_element(command.ranks.begin(), command.ranks.end());
    }
  }

  /// When the next rung is due if nothing else happens.
  [[nodiscard]] std::pair<WallTime, StopState> next() const {
    const WallTime signalled = signalled_at + grace;
    switch (state) {
      case StopState::requested:
      case StopState::cooperative:
        if (command.expires_at && *command.expires_at < ack_by) {
          return {*command.expires_at, StopState::expired};
        }
        if (may_signal) return {ack_by, StopState::platform_graceful};
        if (command.expires_at) return {*command.expires_at, StopState::expired};
        return {total_by, StopState::failed};
      case StopState::checkpointing:
        if (may_signal) return {graceful_by, StopState::platform_graceful};
        return {total_by, StopState::failed};
      case StopState::platform_graceful:
        // `total` shortens the grace, but SIGTERM always gets its time when it came late.
        if (allow_force) {
          const bool late = signalled_at >= total_by;
          return {late ? signalled : std::min(signalled, total_by), StopState::platform_force};
        }
        return {std::max(signalled, total_by), StopState::failed};
      case StopState::platform_force:
        return {signalled_at + kAfterForce, StopState::failed};
      default:
        return {WallTime::max(), state};
    }
  }
};

void StopLadder::move(Stop& stop, StopState to, std::string reason, WallTime now, Step& step) {
  if (is_final(stop.state) || stop.state == to) return;
  step.transitions.push_back({stop.command.command_id, stop.command.run, stop.command.attempt,
                              stop.state, to, std::move(reason), now});
  stop.state = to;
}

void StopLadder::signal(Stop& stop, StopState to, std::string reason, WallTime now, Step& step) {
  move(stop, to, std::move(reason), now, step);
  stop.signalled_at = now;
  step.signals.push_back(
      {stop.command.command_id, *stop.fence, to == StopState::platform_force ? SIGKILL : SIGTERM});
}

void StopLadder::advance(Stop& stop, WallTime now, Step& step) {
  if (is_final(stop.state)) return;
  const bool untaken = stop.state == StopState::requested || stop.state == StopState::cooperative;
  if (untaken && stop.command.expires_at && now >= *stop.command.expires_at) {
    // Also when ack_by passed long ago, while nobody was here to act: what is void stays void.
    return move(stop, StopState::expired, "nobody took it before it expired", now, step);
  }
  const auto [due, to] = stop.next();
  if (now < due) return;
  switch (to) {
    case StopState::platform_graceful:
      return signal(stop, to,
                    stop.state == StopState::checkpointing ? "not ended within deadline.graceful"
                                                           : "not accepted within deadline.ack",
                    now, step);
    case StopState::platform_force:
      return signal(stop, to, "still running after SIGTERM and its grace", now, step);
    case StopState::failed:
      return move(stop, to,
                  stop.state == StopState::platform_force ? "still there after SIGKILL"
                  : stop.state == StopState::platform_graceful
                      ? "still running after SIGTERM, SIGKILL is not allowed (allow_force)"
                      : "not ended within deadline.total, and there is no process to signal",
                  now, step);
    default:
      return;
  }
}

StopLadder::Step StopLadder::on_command(const core::Command& command, WallTime now) {
  Step step;
  if (command.action != "stop" || command.dry_run || stops_.contains(command.command_id))
    return step;
  for (auto& [id, other] : stops_) {
    if (other->command.run != command.run || is_final(other->state)) continue;
    if (other->command.revision >= command.revision) return step;
    move(*other, StopState::cancelled, "replaced by " + command.command_id, now, step);
  }
  // Final ones are kept to recognise their repetition; the oldest are forgotten.
  if (stops_.size() >= kRemembered) {
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
  auto stop = std::make_shared<Stop>(command);
  stops_.emplace(command.command_id, stop);
  if (command.expires_at && now >= *command.expires_at) {
    // Read again after a restart: acks that follow may still tell that it was taken in time.
    return step;
  }
  move(*stop, StopState::cooperative, command.reason.summary, now, step);
  return step;
}

StopLadder::Step StopLadder::on_ack(const core::Ack& ack, WallTime now) {
  Step step;
  const auto found = stops_.find(ack.command_id);
  if (found == stops_.end() || is_final(found->second->state)) return step;
  Stop& stop = *found->second;
  if (ack.run != stop.command.run || ack.attempt != stop.command.attempt) return step;
  if (ack.phase == "refused") {
    if (ack.reason == "duplicate") return step;
    if (ack.reason == "stale") {
      move(stop, StopState::rejected_stale, "refused by " + ack.worker, now, step);
    } else if (ack.reason == "expired") {
      move(stop, StopState::expired, "refused by " + ack.worker, now, step);
    } else if (stop.may_signal) {
      signal(stop, StopState::platform_graceful, "refused: " + ack.reason, now, step);
    } else {
      move(stop, StopState::refused, ack.reason, now, step);
    }
    return step;
  }
  if (ack.phase == "stopped") {
    if (ack.rank == stop.first_rank) {
      move(stop, StopState::stopped, "acknowledged at step " + std::to_string(ack.step), now, step);
    }
    return step;
  }
  if (ack.phase == "received") return step;
  if (stop.state == StopState::requested || stop.state == StopState::cooperative) {
    move(stop, StopState::checkpointing, ack.phase + " at step " + std::to_string(ack.step), now,
         step);
  }
  return step;
}

StopLadder::Step StopLadder::on_job(const core::JobEvent& event, WallTime now) {
  Step step;
  for (auto& [id, stop] : stops_) {
    if (stop->command.run != event.run.uid) continue;
    const bool newer = event.run.attempt > stop->command.attempt;
    if (event.phase == core::JobPhase::started && newer) {
      move(*stop, StopState::already_ended,
           "attempt " + std::to_string(event.run.attempt) + " has started", now, step);
    }
    if (event.phase != core::JobPhase::ended || event.run.attempt != stop->command.attempt)
      continue;
    const bool before = event.ended_at.value_or(event.time) < stop->command.issued_at;
    move(*stop, before ? StopState::already_ended : StopState::stopped, "job " + event.outcome, now,
         step);
  }
  return step;
}

StopLadder::Step StopLadder::on_withdrawn(const core::RunUid& run, WallTime now) {
  Step step;
  for (auto& [id, stop] : stops_) {
    const bool signalled =
        stop->state == StopState::platform_graceful || stop->state == StopState::platform_force;
    if (stop->command.run == run && !signalled) {
      move(*stop, StopState::cancelled, "withdrawn", now, step);
    }
  }
  return step;
}

StopLadder::Step StopLadder::on_observed(const std::string& command_id, Observed what,
                                         WallTime now) {
  Step step;
  const auto found = stops_.find(command_id);
  if (found == stops_.end()) return step;
  Stop& stop = *found->second;
  switch (what) {
    case Observed::ended:
      if (stop.seen_alive) {
        move(stop, StopState::stopped, "the process has ended", now, step);
      } else {
        move(stop, StopState::already_ended, "there is no such process any more", now, step);
      }
      break;
    case Observed::stale:
      move(stop, StopState::rejected_stale, "the fence names another process", now, step);
      break;
    case Observed::denied:
      move(stop, StopState::failed, "not permitted to signal the process", now, step);
      break;
    case Observed::signalled:
      stop.seen_alive = true;
      break;
  }
  return step;
}

StopLadder::Step StopLadder::tick(WallTime now) {
  Step step;
  for (auto& [id, stop] : stops_) advance(*stop, now, step);
  return step;
}

std::optional<WallTime> StopLadder::next_deadline() const {
  std::optional<WallTime> out;
  for (const auto& [id, stop] : stops_) {
    if (is_final(stop->state)) continue;
    const WallTime due = stop->next().first;
    out = out ? std::min(*out, due) : due;
  }
  return out;
}

std::optional<StopState> StopLadder::state(const std::string& command_id) const {
  const auto found = stops_.find(command_id);
  return found == stops_.end() ? std::nullopt : std::optional(found->second->state);
}

std::vector<std::pair<std::string, ProcessFence>> StopLadder::watched() const {
  std::vector<std::pair<std::string, ProcessFence>> out;
  for (const auto& [id, stop] : stops_) {
    if (!is_final(stop->state) && stop->fence) out.emplace_back(id, *stop->fence);
  }
  return out;
}

}  // namespace tocsin::actions
