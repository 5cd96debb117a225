#include "actions/stop/stop_ledger.h"

#include <algorithm>

namespace tocsin::actions {

using core::Command;
using core::WallTime;

namespace {

constexpr core::Duration kKept = std::chrono::hours(7 * 24);  // as long as the topic
// All that is kept is walked through no more often than this, not with every command.
constexpr core::Duration kForgetEvery = std::chrono::hours(1);
/// Between clocks of two machines, and between ranks of one launch.
constexpr core::Duration kJoinGrace = std::chrono::seconds(10);  // as engine.join_grace

bool is_stop(const Command& command) { return command.action == "stop" && !command.dry_run; }

bool by_router(const Command& command) { return command.requested_by == "router"; }

}  // namespace

void StopLedger::on_command(const Command& command) {
  if (!is_stop(command)) return;
  const core::MutexLock lock(mutex_);
  forget_old(command.issued_at);
  if (by_router(command)) asked_.emplace(command.command_id, command.issued_at);
  const auto [slot, added] = slots_.try_emplace(command.run);
  if (!added && std::pair(command.attempt, command.revision) <
                    std::pair(slot->second.command.attempt, slot->second.command.revision)) {
    return;  // read late: what stands there is newer
  }
  const bool again = !added && slot->second.command.command_id == command.command_id;
  slot->second = {command, std::nullopt, again && slot->second.withdrawn};
}

void StopLedger::on_withdrawn(const core::RunUid& run) {
  const core::MutexLock lock(mutex_);
  if (const auto slot = slots_.find(run); slot != slots_.end()) slot->second.withdrawn = true;
}

StopLedger::Answer StopLedger::reserve(const Command& wanted, const StopLimit& limit) {
  const core::MutexLock lock(mutex_);
  forget_old(wanted.issued_at);
  Answer out;
  out.revision = wanted.attempt;
  out.recent =
      static_cast<std::uint64_t>(std::count_if(asked_.begin(), asked_.end(), [&](const auto& one) {
        return wanted.issued_at - one.second <= limit.per;
      }));
  const auto slot = slots_.find(wanted.run);
  bool again = false;
  if (slot != slots_.end()) {
    const Command& held = slot->second.command;
    out.newest_attempt = held.attempt;
    out.revision = std::max<std::uint64_t>(wanted.attempt, held.revision + 1);
    if (held.attempt > wanted.attempt) return {Leave::newer_attempt, 0, out.recent, held.attempt};
    again = held.attempt == wanted.attempt;
    if (again && slot->second.withdrawn) out.leave = Leave::withdrawn;
    // Who does not know the launch (any more) has nothing to add to what was asked.
    const bool same_launch = wanted.launch.empty() || held.launch == wanted.launch;
    if (again && !slot->second.withdrawn && same_launch) out.leave = Leave::already_requested;
    if (out.leave != Leave::send) return out;
  }
  if (!again && out.recent >= limit.count) {
    out.leave = Leave::held_back;
    return out;
  }
  Slot next{wanted, std::nullopt, false};
  next.command.revision = out.revision;
  if (slot != slots_.end()) next.before = slot->second.command;
  slots_[wanted.run] = std::move(next);
  asked_.emplace(wanted.command_id, wanted.issued_at);
  return out;
}

std::optional<std::string> StopLedger::who_asked(const std::string& command_id) {
  const core::MutexLock lock(mutex_);
  for (const auto& [run, slot] : slots_) {
    if (slot.command.command_id == command_id) return slot.command.requested_by;
  }
  return asked_.contains(command_id) ? std::optional<std::string>("router") : std::nullopt;
}

std::set<core::RunUid> StopLedger::asked_since(const std::string& rule, WallTime since) {
  std::set<core::RunUid> out;
  const core::MutexLock lock(mutex_);
  for (const auto& [run, slot] : slots_) {
    const Command& held = slot.command;
    if (by_router(held) && held.reason.rule == rule && held.issued_at >= since) out.insert(run);
  }
  return out;
}

void StopLedger::release(const Command& command) {
  const core::MutexLock lock(mutex_);
  const auto slot = slots_.find(command.run);
  if (slot == slots_.end() || slot->second.command.command_id != command.command_id ||
      slot->second.command.revision != command.revision) {
    return;
  }
  const bool was_asked =
      slot->second.before && slot->second.before->command_id == command.command_id;
  if (!was_asked) asked_.erase(command.command_id);
  if (slot->second.before) {
    Command before = std::move(*slot->second.before);
    slot->second = {std::move(before), std::nullopt, false};
  } else {
    slots_.erase(slot);
  }
}

std::optional<Command> StopLedger::resend(const core::JobEvent& event, WallTime now) {
  if (event.phase == core::JobPhase::ended || event.launch.empty()) return std::nullopt;
  const core::MutexLock lock(mutex_);
  const auto slot = slots_.find(event.run.uid);
  if (slot == slots_.end() || slot->second.withdrawn) return std::nullopt;
  const Command& held = slot->second.command;
  if (held.attempt != event.run.attempt || held.launch == event.launch ||
      (held.expires_at && *held.expires_at <= now)) {
    return std::nullopt;
  }
  // What opened only after the stop was decided had no part in what it is about: it is the next
  // launch, though it counts as the same attempt (no key tells them apart).
  if (event.time > held.issued_at + kJoinGrace) return std::nullopt;
  Command out = held;
  out.launch = event.launch;
  ++out.revision;
  slot->second = {out, held, false};
  return out;
}

std::optional<Command> StopLedger::put_off(Command later) {
  const core::MutexLock lock(mutex_);
  const auto slot = slots_.find(later.run);
  if (slot == slots_.end() || slot->second.withdrawn) return std::nullopt;
  const Command held = slot->second.command;
  if (held.command_id != later.command_id || held.revision != later.revision) {
    return std::nullopt;
  }
  later.launch = held.launch;
  ++later.revision;
  slot->second = {later, held, false};
  return later;
}

void StopLedger::forget_old(WallTime now) {
  if (now - forgotten_at_ < kForgetEvery && forgotten_at_ - now < kForgetEvery) return;
  forgotten_at_ = now;
  std::erase_if(slots_,
                [&](const auto& one) { return now - one.second.command.issued_at > kKept; });
  std::erase_if(asked_, [&](const auto& one) { return now - one.second > kKept; });
}

}  // namespace tocsin::actions
