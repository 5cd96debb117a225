#include "actions/stop/stop_muster.h"

#include <algorithm>
#include <string>
#include <string_view>
#include <utility>

#include "actions/stop/ack_target.h"
#include "actions/stop/stop_step.h"

namespace tocsin::actions {

using core::Command;
using core::Duration;
using core::WallTime;

namespace {

constexpr std::string_view kStep = "not_before_step";
// Half of the way where nothing is known of the pace.
constexpr Duration kHalfWay = std::chrono::seconds(1);
constexpr std::size_t kMaxRuns = 10'000;

std::int64_t step_of(const Command& command) {
  const auto* step = core::as<std::int64_t>(core::find(command.args, kStep));
  return step == nullptr ? 0 : *step;
}

core::Value longer(const core::Value& deadline, Duration by) {
  core::ValueMap out;
  if (const auto* given = core::as<core::ValueMap>(deadline)) out = *given;
  for (auto& [which, value] : out) {
    const auto* text = core::as<std::string>(value);
    if (text == nullptr) continue;
    if (const auto until = core::parse_duration(*text)) value = core::to_text(*until + by);
  }
  return out;
}

// The same stop for a later step: what counts from its being written moves along.
Command put_off(Command command, std::int64_t step, Duration by) {
  core::ValueMap args;
  if (const auto* given = core::as<core::ValueMap>(command.args)) args = *given;
  for (auto& [name, value] : args) {
    if (name == kStep) value = step;
    if (name == "deadline") value = longer(value, by);
  }
  command.args = std::move(args);
  if (command.expires_at) *command.expires_at += by;
  return command;
}

// How long it takes to half of the way to the step, by the pace of the run.
Duration half_way_to(std::int64_t step, const core::CurrentRun& run, WallTime now) {
  if (!run.step || !run.step_seconds) return kHalfWay;
  const auto left = static_cast<double>(std::max<std::int64_t>(step - *run.step, 0));
  const Duration all = std::chrono::duration_cast<Duration>(
      std::chrono::duration<double>(std::min(left * std::max(*run.step_seconds, 0.0), 3600.0)));
  return (all - std::clamp<Duration>(now - run.step_at, {}, all)) / 2;
}

}  // namespace

void StopMuster::on_command(const Command& command, WallTime now) {
  if (command.action != "stop" || command.dry_run) return;
  const auto before = open_.find(command.run);
  const bool again =
      before != open_.end() && before->second.command.command_id == command.command_id;
  if (again && before->second.command.revision >= command.revision) return;
  const auto current = find_(command.run);
  const std::int64_t step = step_of(command);
  const std::size_t asked = command.ranks.size();
  Open open;
  open.world_size = static_cast<std::uint32_t>(
      asked > 0 ? asked : std::max<std::size_t>(current ? current->world_size : 1, 1));
  const bool over =
      (current && current->ended) || (command.expires_at && *command.expires_at <= now);
  if (step <= 0 || open.world_size < 2 || over) {
    open_.erase(command.run);
    return;
  }
  if (again) open.times = before->second.times + (before->second.step < step ? 1 : 0);
  open.command = command;
  open.step = step;
  open.read = now;
  open.half_way = now + (current ? half_way_to(step, *current, now) : kHalfWay);
  if (open_.size() >= kMaxRuns && !again) return;
  open_[command.run] = std::move(open);
}

void StopMuster::on_ack(const core::Ack& ack) {
  if (ack.action != "stop") return;
  const auto asked = open_.find(ack.run);
  if (asked != open_.end() && asked->second.command.command_id == ack.command_id &&
      !answers(ack, asked->second.command)) {
    return;
  }
  if (answers_.size() >= kMaxRuns && !answers_.contains(ack.run)) answers_.erase(answers_.begin());
  Answers& known = answers_[ack.run];
  if (known.command_id != ack.command_id) known = {ack.command_id, ack.revision, {}, false, false};
  if (ack.revision > known.revision) {
    known = {ack.command_id, ack.revision, {}, false, known.leaving};
  }
  if (ack.phase != "received" && ack.phase != "refused") known.leaving = true;
  if (ack.revision < known.revision) return;
  if (ack.phase == "received") known.heard.insert(ack.rank);
  if (ack.phase == "refused" && ack.reason == "too_late") known.too_late = true;
}

// Nothing is to be done about it any more.
bool StopMuster::settled(const Open& open) const {
  if (open.times >= kLater) return true;
  const auto found = answers_.find(open.command.run);
  if (found == answers_.end() || found->second.command_id != open.command.command_id) return false;
  const Answers& known = found->second;
  return known.leaving || (known.revision == open.command.revision && !known.too_late &&
                           known.heard.size() >= open.world_size);
}

std::vector<Command> StopMuster::due(WallTime now) {
  std::vector<Command> out;
  for (auto one = open_.begin(); one != open_.end();) {
    const Open& open = one->second;
    const auto current = find_(one->first);
    if (!current || current->ended || settled(open)) {
      one = open_.erase(one);
      continue;
    }
    ++one;
    const auto known = answers_.find(open.command.run);
    const bool too_late = known != answers_.end() && known->second.too_late &&
                          known->second.revision == open.command.revision;
    if (!too_late && now < open.half_way) continue;
    const CommonStep later = later_step(*current, open.step, open.times + 1, now);
    out.push_back(put_off(open.command, later.step, later.wait + (now - open.read)));
  }
  return out;
}

}  // namespace tocsin::actions
