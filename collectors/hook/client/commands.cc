#include "collectors/hook/client/commands.h"

#include <algorithm>
#include <utility>

#include "collectors/hook/identity/launch.h"
#include "collectors/hook/tocsin_client.h"
#include "core/fields/command.h"
#include "core/fields/out.h"
#include "ingest/ingest.h"

namespace tocsin::hook {
namespace {

using core::Command;

constexpr std::string_view kStop = "stop";
constexpr std::string_view kCapture = "capture";
constexpr std::string_view kProfile = "profile";
constexpr std::string_view kCaptureFor = "capture/";  // an asker beside the engine
constexpr std::size_t kMostSlots = 64;
constexpr std::string_view kAdjust = "adjust/";

bool captures(std::string_view action) {
  return action == kCapture || (action.starts_with(kCaptureFor) && action != kCaptureFor);
}

// Commands that all ranks obey after the same step: the loop hears of them once it is there.
bool waits_for_step(const Command& command) {
  return command.action == kStop || command.action.starts_with(kAdjust);
}

// 0: at once.
std::int64_t not_before_step(const Command& command) {
  if (!waits_for_step(command)) return 0;
  const core::Value* given = core::find(command.args, "not_before_step");
  const auto* step = core::as<std::int64_t>(given);
  return step == nullptr ? 0 : *step;
}

// Has a loop that stands at this step anything to do about it?
bool due_at(const Command& command, std::int64_t step) {
  const std::int64_t leave = not_before_step(command);
  return leave <= 0 || step >= leave;
}

}  // namespace

void CommandBoard::answer(const Command& command, std::string_view phase, std::string_view reason) {
  core::Ack ack;
  ack.command_id = command.command_id;
  ack.revision = command.revision;
  ack.action = command.action;
  ack.phase = std::string(phase);
  ack.reason = std::string(reason);
  if (command.action == kStop && phase == "received") {
    ack.effective_step = std::max(not_before_step(command), session_.train_step());
  }
  session_.ack(std::move(ack));
}

void CommandBoard::refuse(const Command& command, std::string_view reason) {
  ++refused_;
  refusals_[command.action] = {command.command_id, command.revision};
  answer(command, "refused", reason);
}

// What could end or change training must have been issued for a launch that this process belongs
// to: the writer knew of a worker on this node, on this boot, that opened no earlier than we did.
// Clocks of two machines are never compared.
bool CommandBoard::for_this_launch(const Command& command) const {
  // What it asks for, every launch may give.
  const bool harmless = captures(command.action) || command.action == kProfile;
  if (harmless && command.launch.empty()) return true;
  const Identity& me = session_.identity();
  const auto mark = command.launch.find(me.host);
  return mark != command.launch.end() && marks_at_least(mark->second, me.boot_id, me.opened);
}

// Why a command to this worker is not taken; empty: it is.
std::string_view CommandBoard::refusal(const Command& command, core::WallTime now) const {
  if (!for_this_launch(command)) return "stale";
  if (command.expires_at && *command.expires_at <= now) return "expired";
  const auto newest = taken_.find(command.action);
  if (newest != taken_.end() && command.revision < newest->second.revision) return "stale";
  if (command.action == kStop) return {};
  if (captures(command.action)) {
    return slots_.contains(command.action) || slots_.size() < kMostSlots ? "" : "too_many";
  }
  if (command.action.starts_with(kAdjust)) {
    return registered_.count(command.action) != 0 ? "" : "not_registered";
  }
  return registered_.count(command.action) != 0 ? "" : "unsupported";
}

void CommandBoard::take(const core::RecordView& record, core::WallTime now) {
  const Identity& me = session_.identity();
  const auto decoded = ingest::decode_command(record);
  if (!decoded || decoded->run != me.run) return;
  if (!decoded->command) {
    withdraw(decoded->action);
    return;
  }
  const Command& command = *decoded->command;
  if (!command.ranks.empty() &&
      std::find(command.ranks.begin(), command.ranks.end(), me.rank) == command.ranks.end()) {
    return;
  }
  const core::MutexLock lock(mutex_);
  const auto taken = taken_.find(command.action);
  const auto refused = refusals_.find(command.action);
  if ((taken != taken_.end() && taken->second.same(command)) ||
      (refused != refusals_.end() && refused->second.same(command))) {
    return;  // read again
  }
  const auto held = slots_.find(command.action);
  if (held != slots_.end() && held->second.command.revision == command.revision) {
    return refuse(command, "duplicate");
  }
  if (const std::string_view reason = refusal(command, now); !reason.empty()) {
    return refuse(command, reason);
  }
  if (!accept(command)) refuse(command, "too_late");
}

// False: training has passed the step at whose end it was to leave; the writer names a later one.
bool CommandBoard::accept(const Command& command) {
  if (command.dry_run) {
    taken_[command.action] = {command.command_id, command.revision};
    answer(command, "received", "dry_run");
    ++received_;
    return true;
  }
  Slot& slot = slots_[command.action];
  // A newer revision of what training has already seen changes its terms, not the fact.
  slot.seen = slot.seen && slot.command.command_id == command.command_id && waits_for_step(command);
  slot.command = command;
  if (captures(command.action)) slot.seen = true;
  refresh();
  const std::int64_t leave = not_before_step(command);
  if (leave > 0 && !slot.seen && asked_.load() >= leave) {
    slots_.erase(command.action);
    refresh();
    return false;
  }
  taken_[command.action] = {command.command_id, command.revision};
  answer(command, "received", "");
  if (captures(command.action)) session_.capture(command);
  ++received_;  // last: who sees it counted may rely on its effect
  return true;
}

void CommandBoard::withdraw(const std::string& action) {
  const core::MutexLock lock(mutex_);
  if (slots_.erase(action) == 0) return;
  if (captures(action)) session_.withdraw_capture(action);
  refresh();
}

std::optional<core::WallTime> CommandBoard::expire(core::WallTime now) {
  const core::MutexLock lock(mutex_);
  bool changed = false;
  std::optional<core::WallTime> next;
  for (auto slot = slots_.begin(); slot != slots_.end();) {
    const Command& command = slot->second.command;
    if (slot->second.seen || !command.expires_at || *command.expires_at > now) {
      if (!slot->second.seen && command.expires_at) {
        next = std::min(next.value_or(*command.expires_at), *command.expires_at);
      }
      ++slot;
      continue;
    }
    refuse(command, "expired");
    slot = slots_.erase(slot);
    changed = true;
  }
  if (changed) refresh();
  return next;
}

std::int32_t CommandBoard::bits_of(const std::string& action, const Slot& slot) {
  if (action == kStop) return TOCSIN_WANTS_STOP;
  return slot.seen ? 0 : TOCSIN_WANTS_ATTENTION;
}

void CommandBoard::refresh() {
  std::int32_t bits = 0;
  for (const auto& [action, slot] : slots_) bits |= bits_of(action, slot);
  bits_.store(bits);
}

std::int32_t CommandBoard::ask(std::int64_t train_step) {
  asked_.store(train_step);
  if (bits() == 0) return 0;
  const core::MutexLock lock(mutex_);  // a command may just have turned out to be too late
  std::int32_t wanted = 0;
  for (const auto& [action, slot] : slots_) {
    if (due_at(slot.command, train_step)) wanted |= bits_of(action, slot);
  }
  return wanted;
}

std::optional<std::string> CommandBoard::read(std::string_view slot) {
  const core::MutexLock lock(mutex_);
  const auto at = slots_.find(slot);
  if (at == slots_.end()) return std::nullopt;
  at->second.seen = true;
  std::string json = core::write_json(at->second.command);
  refresh();
  return json;
}

std::vector<std::string> CommandBoard::unseen() const {
  const core::MutexLock lock(mutex_);
  std::vector<std::string> out;
  for (const auto& [action, slot] : slots_) {
    if (!slot.seen && due_at(slot.command, asked_.load())) out.push_back(action);
  }
  return out;
}

void CommandBoard::register_slot(std::string_view slot) {
  const core::MutexLock lock(mutex_);
  registered_.emplace(slot);
}

std::uint64_t CommandBoard::revision_of(std::string_view slot, std::string_view command_id) const {
  const core::MutexLock lock(mutex_);
  const auto newest = taken_.find(slot);
  return newest != taken_.end() && newest->second.command_id == command_id ? newest->second.revision
                                                                           : 1;
}

bool CommandBoard::stopped_by_person() const {
  const core::MutexLock lock(mutex_);
  const auto stop = slots_.find(kStop);
  if (stop == slots_.end()) return false;
  const core::Command& command = stop->second.command;
  return command.reason.rule.empty() && !command.requested_by.empty() &&
         command.requested_by != "router" && command.requested_by != "in-process";
}

}  // namespace tocsin::hook
