#include "actions/profile/profile_ledger.h"

#include <algorithm>
#include <utility>

#include "actions/profile/trace_start.h"
#include "core/value.h"

namespace tocsin::actions {
namespace {

using core::Command;
using core::WallTime;

constexpr core::Duration kForget = std::chrono::hours(48);
constexpr core::Duration kSlotKept = std::chrono::hours(8 * 24);  // longer than the topic keeps it
constexpr const char* kAsked = "asked";  // how often this attempt was, with this one
constexpr const char* kAgain = "again";  // the first one came too late
constexpr double kLaterBy = 3;           // times as far ahead as the first one

bool is_ours(const Command& command) {
  return command.action == "profile" && command.requested_by == "router" && !command.dry_run;
}

std::int64_t number(const core::Value& args, const char* name) {
  const auto* found = core::as<std::int64_t>(core::find(args, name));
  return found == nullptr ? 0 : *found;
}

void set(core::Value& args, const char* name, core::Value value) {
  const auto* before = core::as<core::ValueMap>(args);
  core::ValueMap out = before == nullptr ? core::ValueMap{} : *before;
  std::erase_if(out, [&](const auto& one) { return one.first == name; });
  out.emplace_back(name, std::move(value));
  args = std::move(out);
}

}  // namespace

// Whoever wrote it, and of whatever attempt: hooks take nothing below it any more.
void ProfileLedger::note(const Command& command) {
  Slot& slot = slots_[command.run];
  slot.revision = std::max(slot.revision, command.revision);
  slot.at = std::max(slot.at, command.issued_at);
}

std::uint64_t ProfileLedger::next_revision(const Command& wanted) const {
  const auto slot = slots_.find(wanted.run);
  return slot == slots_.end() ? wanted.revision
                              : std::max(wanted.revision, slot->second.revision + 1);
}

void ProfileLedger::on_command(const Command& command) {
  if (command.action != "profile" || command.dry_run) return;
  const core::MutexLock lock(mutex_);
  note(command);
  if (!is_ours(command)) return;
  Run& run = runs_[command.run];
  if (command.attempt < run.attempt) return;
  if (command.attempt > run.attempt) run = {command.attempt, 0, {}, {}, {}, {}};
  run.commands.insert(command.command_id);
  const auto told =
      static_cast<std::uint64_t>(std::max<std::int64_t>(0, number(command.args, kAsked)));
  run.asked = std::max({run.asked, told, std::uint64_t{run.commands.size()}});
  run.last = std::max(run.last, command.issued_at);
  if (!run.newest || run.newest->issued_at <= command.issued_at) run.newest = command;
}

ProfileLedger::Answer ProfileLedger::reserve(Command& wanted, const ProfileLimits& limits) {
  const core::MutexLock lock(mutex_);
  std::erase_if(runs_,
                [&](const auto& one) { return wanted.issued_at - one.second.last > kForget; });
  std::erase_if(slots_,
                [&](const auto& one) { return wanted.issued_at - one.second.at > kSlotKept; });
  Run& run = runs_[wanted.run];
  if (run.attempt != wanted.attempt) run = {wanted.attempt, 0, {}, {}, {}, {}};
  if (run.commands.contains(wanted.command_id)) return Answer::asked_before;
  if (run.asked >= limits.most) return Answer::too_many;
  if (run.asked > 0 && wanted.issued_at - run.last < limits.every) return Answer::too_soon;
  wanted.revision = next_revision(wanted);
  note(wanted);
  ++run.asked;
  set(wanted.args, kAsked, static_cast<std::int64_t>(run.asked));
  run.commands.insert(wanted.command_id);
  run.before = std::exchange(run.last, wanted.issued_at);
  run.newest = wanted;
  return Answer::ask;
}

void ProfileLedger::release(const Command& command) {
  const core::MutexLock lock(mutex_);
  const auto found = runs_.find(command.run);
  if (found == runs_.end() || found->second.commands.erase(command.command_id) == 0) return;
  Run& run = found->second;
  --run.asked;
  if (run.before) run.last = *run.before;
  run.newest.reset();
}

std::optional<Command> ProfileLedger::on_ack(const core::Ack& ack, const core::CurrentRun& current,
                                             WallTime now) {
  if (ack.phase != "refused" || !ack.reason.starts_with("too_late")) return std::nullopt;
  const core::MutexLock lock(mutex_);
  const auto found = runs_.find(ack.run);
  if (found == runs_.end() || !found->second.newest) return std::nullopt;
  Command& newest = *found->second.newest;
  const bool of_it = newest.command_id == ack.command_id && newest.revision == ack.revision;
  if (!of_it || number(newest.args, "steps") <= 0 || core::find(newest.args, kAgain) != nullptr ||
      !current.step_seconds || current.attempt != newest.attempt ||
      (newest.expires_at && now > *newest.expires_at)) {
    return std::nullopt;
  }
  const bool newer = ack.step > current.step.value_or(0);
  const std::int64_t from =
      TraceStart::of(newer ? ack.step : current.step.value_or(0),
                     newer ? ack.time : current.step_at, *current.step_seconds, now, kLaterBy);
  const core::Duration lasts = newest.expires_at ? *newest.expires_at - newest.issued_at
                                                 : core::Duration(std::chrono::minutes(1));
  ++newest.revision;
  newest.revision = next_revision(newest);
  newest.issued_at = now;
  note(newest);
  newest.expires_at = now + lasts;
  set(newest.args, "from_step", std::max(from, number(newest.args, "from_step") + 1));
  set(newest.args, kAgain, true);
  return newest;
}

}  // namespace tocsin::actions
