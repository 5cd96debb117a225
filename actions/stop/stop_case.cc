#include "actions/stop/stop_case.h"

#include <algorithm>
#include <array>
#include <csignal>

#include "core/json.h"

namespace tocsin::actions {

using core::Duration;
using core::Value;
using core::WallTime;

namespace {

constexpr Duration kAfterForce = std::chrono::seconds(10);  // a killed process is gone by then

Duration duration_of(const Value* value, Duration fallback) {
  const auto* text = core::as<std::string>(value);
  return text == nullptr ? fallback : core::parse_duration(*text).value_or(fallback);
}

bool flag_of(const Value* value) {
  const auto* flag = core::as<bool>(value);
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

// Deadlines count from issued_at, which stays when the router writes a stop again.
void StopCase::read() {
  const Value none;
  const Value* deadline = core::find(command.args, "deadline");
  const Value& limits = deadline == nullptr ? none : *deadline;
  const WallTime issued = command.issued_at;
  ack_by_ = issued + duration_of(core::find(limits, "ack"), std::chrono::seconds(30));
  graceful_by_ = issued + duration_of(core::find(limits, "graceful"), std::chrono::minutes(10));
  total_by_ = issued + duration_of(core::find(limits, "total"), std::chrono::minutes(15));
  grace_ = duration_of(core::find(command.args, "grace"), std::chrono::seconds(60));
  allow_force_ = flag_of(core::find(command.args, "allow_force"));
  const Value* value = core::find(command.args, "fence");
  fence = value == nullptr ? std::nullopt : process_fence(*value);
  const Value* mode = core::find(command.args, "mode");
  const bool reached = reach_->reaches ? reach_->reaches(command) : fence.has_value();
  may_signal = reached && (reach_->pauses || mode == nullptr || *mode != Value("pause"));
  first_rank =
      command.ranks.empty() ? 0 : *std::min_element(command.ranks.begin(), command.ranks.end());
}

StopCase::StopCase(core::Command from, std::shared_ptr<const StopReach> reach)
    : command(std::move(from)), reach_(std::move(reach)) {
  read();
}

void StopCase::renew(const core::Command& again) {
  command = again;
  read();
}

std::pair<WallTime, StopState> StopCase::next() const {
  const WallTime signalled = signalled_at_ + grace_;
  switch (state) {
    case StopState::requested:
    case StopState::cooperative:
      if (command.expires_at && *command.expires_at < ack_by_) {
        return {*command.expires_at, StopState::expired};
      }
      if (may_signal) return {ack_by_, StopState::platform_graceful};
      if (command.expires_at) return {*command.expires_at, StopState::expired};
      return {total_by_, StopState::failed};
    case StopState::checkpointing:
      if (may_signal) return {graceful_by_, StopState::platform_graceful};
      return {total_by_, StopState::failed};
    case StopState::platform_graceful:
      // `total` shortens the grace, but SIGTERM always gets its time when it came late.
      if (allow_force_) {
        const bool late = signalled_at_ >= total_by_;
        return {late ? signalled : std::min(signalled, total_by_), StopState::platform_force};
      }
      return {std::max(signalled, total_by_), StopState::failed};
    case StopState::platform_force:
      return {
          signalled_at_ + (reach_->grace_after_force ? std::max(grace_, kAfterForce) : kAfterForce),
          StopState::failed};
    default:
      return {WallTime::max(), state};
  }
}

void StopCase::move(StopState to, std::string reason, WallTime at, StopLadder::Step& step) {
  if (is_final(state) || state == to) return;
  step.transitions.push_back({command.command_id, command.run, command.attempt, state, to,
                              std::move(reason), at, job, labels, command.reason.rule});
  state = to;
}

void StopCase::resume(StopState to, WallTime at) {
  if (is_final(state) || to <= state) return;
  state = to;
  if (to == StopState::platform_graceful || to == StopState::platform_force) {
    signalled_at_ = at;
    seen_alive = true;  // or nothing would have been asked of the platform
  }
}

std::string StopCase::why_failed() const {
  if (state == StopState::platform_force) return "still there after " + reach_->hard;
  if (state == StopState::platform_graceful) {
    return "still running after " + reach_->gentle + ", " + reach_->hard +
           " is not allowed (allow_force)";
  }
  return "not ended within deadline.total, and " + reach_->nothing;
}

void StopCase::signal(StopState to, std::string reason, WallTime at, StopLadder::Step& step) {
  move(to, std::move(reason), at, step);
  signalled_at_ = at;
  step.signals.push_back({command.command_id, fence.value_or(ProcessFence{}),
                          to == StopState::platform_force ? SIGKILL : SIGTERM});
}

void StopCase::advance(WallTime now, StopLadder::Step& step) {
  if (is_final(state)) return;
  const bool untaken = state == StopState::requested || state == StopState::cooperative;
  if (untaken && command.expires_at && now >= *command.expires_at) {
    // Also when ack_by passed long ago, while nobody was here to act: what is void stays void.
    return move(StopState::expired, "nobody took it before it expired", *command.expires_at, step);
  }
  const auto [due, to] = next();
  if (now < due) return;
  switch (to) {
    case StopState::platform_graceful:
      return signal(to,
                    state == StopState::checkpointing ? "not ended within deadline.graceful"
                                                      : "not accepted within deadline.ack",
                    now, step);
    case StopState::platform_force:
      return signal(to, "still running after " + reach_->gentle + " and its grace", now, step);
    case StopState::failed:
      return move(to, why_failed(), now, step);
    default:
      return;
  }
}

}  // namespace tocsin::actions
