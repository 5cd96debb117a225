#include "tests/simulation/deciders.h"

#include <optional>

#include "core/fields/stop_request.h"
#include "core/topics.h"
#include "ingest/ingest.h"
#include "tests/simulation/broker_log.h"

namespace tocsin::simulation {

std::vector<core::StopRequest> Deciders::requests() const {
  std::vector<core::StopRequest> out;
  for (const auto& stored : broker_.records(core::topic::kRouterControl)) {
    const core::OutRecord& record = stored.record;
    if (!record.key.starts_with(core::kApprovalPrefix) || !record.value) continue;
    if (auto request = core::read_stop_request(*record.value)) out.push_back(std::move(*request));
  }
  return out;
}

void Deciders::step() {
  if (rate_ == 0 || !random_.chance(rate_)) return;
  std::map<std::string, core::StopRequest> newest;
  for (core::StopRequest& one : requests()) newest[one.id] = std::move(one);
  std::vector<core::StopRequest> waiting;
  for (const auto& [id, one] : newest) {
    if (one.state == "waiting" && !answered_.contains({id, one.asked_at})) waiting.push_back(one);
  }
  if (!waiting.empty()) decide(random_.pick(waiting));
}

// As `tocsin stops` and the API do it: the request as it stands there, decided.
void Deciders::decide(const core::StopRequest& request) {
  answered_.insert({request.id, request.asked_at});
  const double mood = random_.real();
  if (mood > 0.8) return trace_.say("people", "leave " + request.id + " alone");
  const bool approves = mood < 0.45;
  trace_.say("people", (approves ? "approve " : "reject ") + request.id);
  words_.push_back({request.id, request.asked_at, approves, clock_.now(), clock_.monotonic()});
  broker_.append(core::stop_request_record(
      core::decided(request, approves ? "approved" : "rejected", kDecider, clock_.now())));
}

void Deciders::look() {
  if (broker_.end("commands") == std::exchange(end_, broker_.end("commands"))) return;
  for (const auto& stored : broker_.records("commands")) {
    if (!stored.record.key.ends_with("/stop")) continue;
    const auto decoded = ingest::decode_command(view_of(stored));
    if (!decoded || !decoded->command || decoded->command->dry_run) continue;
    if (!seen_.insert({stored.partition, stored.offset}).second) continue;
    const core::Command& command = *decoded->command;
    sent_.push_back({command.command_id, command.revision,
                     core::text_at(command.args, "approved_by"), command.issued_at,
                     clock_.monotonic()});
  }
}

}  // namespace tocsin::simulation
