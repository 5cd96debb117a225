#include "actions/steer/steering_ledger.h"

#include <algorithm>
#include <utility>

#include "actions/profile/trace_start.h"
#include "core/value.h"

namespace tocsin::actions {
namespace {

using core::Command;
using core::WallTime;

constexpr core::Duration kForgetSlot = std::chrono::hours(48);
constexpr std::size_t kMostAnswered = 10'000;     // commands
constexpr std::uint32_t kMostRanks = 100'000;     // of one command
constexpr const char* kAskedSoFar = "asked";      // with this one
constexpr const char* kAskedEarlier = "earlier";  // their command ids
constexpr const char* kCommonStep = "not_before_step";
constexpr double kFurther = 3;  // times as far ahead as before

bool asked_by_router(const Command& command) {
  return command.requested_by == "router" && !command.dry_run;
}

std::int64_t whole_number(const core::Value& args, const char* name) {
  const auto* found = core::as<std::int64_t>(core::find(args, name));
  return found == nullptr ? 0 : *found;
}

void put_argument(core::Value& args, const char* name, core::Value value) {
  const auto* before = core::as<core::ValueMap>(args);
  core::ValueMap out = before == nullptr ? core::ValueMap{} : *before;
  std::erase_if(out, [&](const auto& one) { return one.first == name; });
  out.emplace_back(name, std::move(value));
  args = std::move(out);
}

std::vector<std::string> earlier_of(const Command& command) {
  std::vector<std::string> out;
  const auto* list = core::as<core::ValueList>(core::find(command.args, kAskedEarlier));
  if (list == nullptr) return out;
  for (const core::Value& one : *list) {
    const auto* id = core::as<std::string>(one);
    if (id != nullptr && out.size() < SteeringLedger::kMostAsked) out.push_back(*id);
  }
  return out;
}

bool contains(const std::vector<std::string>& list, const std::string& one) {
  return std::find(list.begin(), list.end(), one) != list.end();
}

// The rank obeys once it is asked in other terms.
bool wants_other_terms(const core::Ack& ack) {
  return ack.phase == "refused" && (ack.reason == "stale" || ack.reason == "too_late");
}

}  // namespace

bool is_steering(std::string_view action) noexcept {
  return action.starts_with("adjust/") || action.starts_with("capture/of-");
}

void SteeringLedger::note(Slot& slot, const Command& command) {
  slot.revision = std::max(slot.revision, command.revision);
}

void SteeringLedger::forget(WallTime now) {
  std::erase_if(slots_, [&](const auto& one) { return now - one.second.last > kForgetSlot; });
}

const SteeringLedger::Slot* SteeringLedger::at(const core::RunUid& run,
                                               const std::string& slot) const {
  const auto found = slots_.find({run, slot});
  return found == slots_.end() ? nullptr : &found->second;
}

void SteeringLedger::on_command(const Command& command) {
  if (!is_steering(command.action)) return;
  const core::MutexLock lock(mutex_);
  Slot& slot = slots_[{command.run, command.action}];
  note(slot, command);
  slot.last = std::max(slot.last, command.issued_at);
  if (!asked_by_router(command) || command.attempt < slot.attempt) return;
  if (command.attempt > slot.attempt) {
    slot = {command.attempt, 0, {}, slot.last, {}, {}, slot.revision, 0};
  }
  for (std::string& id : earlier_of(command)) {
    if (!contains(slot.commands, id)) slot.commands.push_back(std::move(id));
  }
  if (!contains(slot.commands, command.command_id)) slot.commands.push_back(command.command_id);
  const auto told = static_cast<std::uint64_t>(
      std::max<std::int64_t>(0, whole_number(command.args, kAskedSoFar)));
  slot.asked = std::max({slot.asked, told, std::uint64_t{slot.commands.size()}});
  if (!slot.newest || slot.newest->revision <= command.revision) slot.newest = command;
}

void SteeringLedger::on_ack(const core::Ack& ack) {
  if (!is_steering(ack.action) || ack.rank >= kMostRanks) return;
  const core::MutexLock lock(mutex_);
  if (answers_.size() >= kMostAnswered && !answers_.contains(ack.command_id)) {
    answers_.erase(answers_.begin());
  }
  SteeringAnswers& known = answers_[ack.command_id];
  const auto before = known.find(ack.rank);
  if (before == known.end()) {
    known.emplace(ack.rank, ack);
    return;
  }
  // What a rank does stays done, also where it is asked in other terms afterwards.
  const core::Ack& was = before->second;
  const bool done = was.phase == "applied" || was.phase == "ended";
  if (done && ack.phase != "ended") return;
  if (ack.revision < was.revision) return;
  before->second = ack;
}

SteeringLedger::Answer SteeringLedger::reserve(Command& wanted, const SteeringLimits& limits) {
  const core::MutexLock lock(mutex_);
  forget(wanted.issued_at);
  Slot& slot = slots_[{wanted.run, wanted.action}];
  if (slot.attempt != wanted.attempt) {
    slot = {wanted.attempt, 0, {}, {}, {}, {}, slot.revision, 0};
  }
  if (contains(slot.commands, wanted.command_id)) return Answer::asked_before;
  if (slot.asked >= std::min<std::uint64_t>(limits.most, kMostAsked)) return Answer::too_many;
  if (slot.asked > 0 && wanted.issued_at - slot.last < limits.every) return Answer::too_soon;
  wanted.revision = std::max(wanted.revision, slot.revision + 1);
  note(slot, wanted);
  ++slot.asked;
  put_argument(wanted.args, kAskedSoFar, static_cast<std::int64_t>(slot.asked));
  core::ValueList earlier(slot.commands.begin(), slot.commands.end());
  if (!earlier.empty()) put_argument(wanted.args, kAskedEarlier, std::move(earlier));
  slot.commands.push_back(wanted.command_id);
  slot.before = std::exchange(slot.last, wanted.issued_at);
  slot.newest = wanted;
  slot.again = 0;
  return Answer::ask;
}

void SteeringLedger::release(const Command& command) {
  const core::MutexLock lock(mutex_);
  const auto found = slots_.find({command.run, command.action});
  if (found == slots_.end()) return;
  Slot& slot = found->second;
  if (std::erase(slot.commands, command.command_id) == 0) return;
  --slot.asked;
  if (slot.before) slot.last = *slot.before;
  slot.newest.reset();
}

std::uint64_t SteeringLedger::asked(const core::RunUid& run, const std::string& slot,
                                    std::uint32_t attempt) const {
  const core::MutexLock lock(mutex_);
  const Slot* found = at(run, slot);
  return found == nullptr || found->attempt != attempt ? 0 : found->asked;
}

std::optional<Command> SteeringLedger::find(const core::RunUid& run, const std::string& slot,
                                            const std::string& command_id) const {
  const core::MutexLock lock(mutex_);
  const Slot* found = at(run, slot);
  if (found == nullptr || !found->newest || found->newest->command_id != command_id) {
    return std::nullopt;
  }
  return found->newest;
}

bool SteeringLedger::known(const core::RunUid& run, const std::string& slot,
                           const std::string& command_id) const {
  const core::MutexLock lock(mutex_);
  const Slot* found = at(run, slot);
  return found != nullptr && contains(found->commands, command_id);
}

SteeringAnswers SteeringLedger::answers(const std::string& command_id) const {
  const core::MutexLock lock(mutex_);
  const auto found = answers_.find(command_id);
  return found == answers_.end() ? SteeringAnswers{} : found->second;
}

std::optional<Command> SteeringLedger::again(Slot& slot, const core::CurrentRun& current,
                                             WallTime now) {
  Command& newest = *slot.newest;
  const auto answered = answers_.find(newest.command_id);
  if (answered == answers_.end()) return std::nullopt;
  bool late = false;
  bool newcomer = false;
  std::int64_t step = current.step.value_or(0);
  for (const auto& one : answered->second) {
    const core::Ack& ack = one.second;
    if (ack.revision != newest.revision || !wants_other_terms(ack)) continue;
    late = late || ack.reason == "too_late";
    newcomer = newcomer || (ack.reason == "stale" && current.launch != newest.launch);
    step = std::max(step, ack.step);
  }
  if (!late && !newcomer) return std::nullopt;
  if (late && !current.step_seconds) return std::nullopt;
  newest.revision = slot.revision + 1;
  newest.launch = current.launch;
  if (late) {
    const bool newer = step > current.step.value_or(0);
    const std::int64_t from =
        TraceStart::of(step, newer ? now : current.step_at, *current.step_seconds, now, kFurther);
    put_argument(newest.args, kCommonStep,
                 std::max(from, whole_number(newest.args, kCommonStep) + 1));
  }
  note(slot, newest);
  ++slot.again;
  return newest;
}

std::vector<Command> SteeringLedger::due(const Find& find, WallTime now) {
  const core::MutexLock lock(mutex_);
  std::vector<Command> out;
  for (auto& [key, slot] : slots_) {
    if (!slot.newest || slot.again >= kMostAgain) continue;
    if (slot.newest->expires_at && *slot.newest->expires_at <= now) continue;
    const auto current = find(key.first);
    if (!current || current->ended || current->attempt != slot.newest->attempt) continue;
    if (auto later = again(slot, *current, now)) out.push_back(*std::move(later));
  }
  return out;
}

}  // namespace tocsin::actions
