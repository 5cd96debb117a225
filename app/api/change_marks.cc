#include "app/api/change_marks.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "core/json.h"
#include "core/topics.h"
#include "ingest/ingest.h"

namespace tocsin::app {
namespace {

constexpr std::string_view kAdjust = "adjust/";

// "capture/of-closer" and "adjust/lr" as a reader knows them; empty: it changes no measurement and no setting.
std::string kind_of(const std::string& action) {
  if (action.starts_with("capture")) return "capture";
  if (action.starts_with("profile")) return "profile";
  return action.starts_with(kAdjust) ? "setting" : "";
}

std::string value_text(const core::Value& args) {
  const auto* members = core::as<core::ValueMap>(args);
  if (members == nullptr) return "";
  for (const auto& [name, value] : *members) {
    if (name == "value") return core::to_json(value);
  }
  return "";
}

std::string change_text(const std::string& action, const std::string& value) {
  const std::string kind = kind_of(action);
  if (kind == "capture") return "capture changed";
  if (kind == "profile") return "trace recorded";
  const std::string name = action.substr(kAdjust.size());
  return value.empty() ? name + " changed" : name + " set to " + value;
}

}  // namespace

void ChangeMarks::saw(const core::RecordView& record) {
  if (record.topic == core::topic::kAcks) {
    if (const auto ack = ingest::decode_ack(record)) saw_ack(*ack);
    return;
  }
  if (record.topic != core::topic::kCommands) return;
  const auto decoded = ingest::decode_command(record);
  if (!decoded || !decoded->command || kind_of(decoded->command->action).empty()) return;
  const core::Command& command = *decoded->command;
  Change& into = changes_[command.command_id];
  into.action = command.action;
  into.by = command.requested_by;
  into.value = value_text(command.args);
  into.at = command.issued_at;
}

void ChangeMarks::saw_ack(const core::Ack& ack) {
  if (ack.phase != "applied" || kind_of(ack.action).empty()) return;
  Change& into = changes_[ack.command_id];
  if (into.action.empty()) into.action = ack.action;
  if (into.at == core::WallTime{}) into.at = ack.time;
  const std::int64_t step = ack.effective_step.value_or(ack.step);
  into.step = std::min(into.step.value_or(step), step);
}

core::ValueList ChangeMarks::rows() const {
  std::vector<std::pair<std::int64_t, core::Value>> sorted;
  for (const auto& [id, change] : changes_) {
    if (!change.step) continue;
    sorted.emplace_back(
        *change.step,
        core::ValueMap{{"command_id", id},
                       {"kind", kind_of(change.action)},
                       {"step", *change.step},
                       {"text", change_text(change.action, change.value)},
                       {"by", change.by.empty() ? core::Value() : core::Value(change.by)},
                       {"time", core::to_rfc3339(change.at)}});
  }
  std::stable_sort(sorted.begin(), sorted.end(),
                   [](const auto& a, const auto& b) { return a.first < b.first; });
  core::ValueList out;
  for (auto& entry : sorted) out.push_back(std::move(entry.second));
  return out;
}

}  // namespace tocsin::app
