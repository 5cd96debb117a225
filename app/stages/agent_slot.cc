#include "app/stages/agent_slot.h"

#include <utility>

#include "collectors/node/agent_settings.h"
#include "core/identity.h"
#include "core/topics.h"

namespace tocsin::app {
namespace {

constexpr const char* kAgentSlot = "agent";

}  // namespace

AgentSlot::AgentSlot(collectors::Config file, core::Log& log)
    : file_(std::move(file)),
      holds_(file_),
      log_(log),
      key_(core::node_route_key(file_.node) + "/" + kAgentSlot) {}

void AgentSlot::open(std::uint64_t incarnation) {
  incarnation_ = incarnation;
  newest_.reset();
  settled_ = false;
  answers_.clear();
}

std::optional<Refusal> AgentSlot::saw(const core::RecordView& record) {
  // Of other nodes and of runs: whoever they are for says what is wrong with one.
  if (record.topic != core::topic::kCommands || record.key.value_or("") != key_)
    return std::nullopt;
  auto decoded = ingest::decode_command(record);
  if (!decoded) return Refusal{"bad_command", decoded.error().message};
  newest_ = std::move(decoded->command);
  settled_ = false;
  return std::nullopt;
}

void AgentSlot::answer(const core::Command& command, const char* phase, std::string reason,
                       core::WallTime now) {
  const bool refused = std::string_view(phase) == "refused";
  log_.write(refused ? core::Level::warn : core::Level::info, "agent_asked",
             {{"command_id", command.command_id},
              {"phase", phase},
              {"by", command.requested_by},
              {"detail", reason}});
  core::Ack ack;
  ack.command_id = command.command_id;
  ack.revision = command.revision;
  ack.action = kAgentSlot;
  ack.phase = phase;
  ack.attempt = 0;  // of no run
  ack.worker = kAgentSlot;
  ack.incarnation = incarnation_;
  ack.node = file_.node;
  ack.time = now;
  ack.reason = std::move(reason);
  answers_.push_back(ingest::encode_ack(ack, ""));
}

void AgentSlot::back_to_file() {
  if (!in_force_) return;
  in_force_.reset();
  holds_ = file_;
  changed_ = true;
}

void AgentSlot::settle(core::WallTime now) {
  settled_ = true;
  if (!newest_) {
    if (!in_force_) return;
    answer(*in_force_, "ended", "withdrawn; samples " + collectors::sampling_words(file_), now);
    return back_to_file();
  }
  const core::Command& command = *newest_;
  if (command.dry_run) return answer(command, "received", "", now);
  if (command.expires_at && *command.expires_at <= now) {
    answer(command, "ended", "its time is over; samples " + collectors::sampling_words(file_), now);
    return back_to_file();
  }
  const auto settings = collectors::read_agent_settings(command.args);
  if (!settings) {
    answer(command, "refused",
           settings.error().message + "; samples " + collectors::sampling_words(file_), now);
    return back_to_file();
  }
  // One that is only written again, so that the topic keeps it, changes nothing.
  const bool known = in_force_ && in_force_->command_id == command.command_id &&
                     in_force_->revision == command.revision;
  if (!known) {
    holds_ = collectors::with_settings(file_, *settings);
    changed_ = true;
    in_force_ = command;
  }
  answer(command, "applied", "samples " + collectors::sampling_words(holds_), now);
}

std::optional<collectors::Config> AgentSlot::due(core::WallTime now) {
  if (!settled_) settle(now);
  if (in_force_ && in_force_->expires_at && *in_force_->expires_at <= now) {
    answer(*in_force_, "ended", "its time is over; samples " + collectors::sampling_words(file_),
           now);
    back_to_file();
  }
  if (!std::exchange(changed_, false)) return std::nullopt;
  return holds_;
}

std::vector<core::OutRecord> AgentSlot::answers() { return std::exchange(answers_, {}); }

}  // namespace tocsin::app
