// What the stages share that feed an agent which ends runs: the node's, and the leader's for platforms.
#pragma once

#include <optional>
#include <string_view>
#include <vector>

#include "actions/actions.h"
#include "app/loop/stage.h"
#include "core/log.h"
#include "core/topics.h"
#include "ingest/ingest.h"

namespace tocsin::app {

/// Where those stages read from.
inline StageWiring stop_wiring(std::string name, std::string writer) {
  StageWiring out;
  out.name = std::move(name);
  out.part = "router";
  out.topics = {core::topic::kCommands, core::topic::kAcks, core::topic::kRegistry};
  out.fetch_wait = std::chrono::milliseconds(100);  // what comes ends it at once
  out.writer = std::move(writer);
  out.batch = 256;
  return out;
}

/// Gives a record of `commands`, `acks` or `registry` to `agent`. `ear`: asked(command) and answered(ack)
/// are told before, report(transitions, now) of what follows.
template <class Agent, class Ear>
std::optional<Refusal> feed_stops(Agent& agent, Ear& ear, const core::RecordView& record,
                                  core::WallTime now) {
  if (record.topic == core::topic::kCommands) {
    const auto decoded = ingest::decode_command(record);
    if (!decoded) return Refusal{"bad_command", decoded.error().message};
    if (decoded->command) {
      if (decoded->action == "stop") ear.asked(*decoded->command);
      ear.report(agent.on_command(*decoded->command, now), now);
    } else if (decoded->action == "stop") {
      ear.report(agent.on_withdrawn(decoded->run, now), now);
    }
  } else if (record.topic == core::topic::kAcks) {
    const auto ack = ingest::decode_ack(record);
    if (!ack) return Refusal{"bad_ack", ack.error().message};
    ear.answered(*ack);
    ear.report(agent.on_ack(*ack, now), now);
  } else if (!record.tombstone) {
    const auto decoded = ingest::decode_event(record);
    if (!decoded) return Refusal{"bad_event", decoded.error().message};
    if (const auto* job = std::get_if<core::JobEvent>(&decoded->event)) {
      ear.report(agent.on_job(*job, now), now);
    }
  }
  return std::nullopt;
}

/// `by`: empty, or who carries the stop out.
void log_transition(core::Log& log, const actions::StopTransition& transition, std::string_view by);

}  // namespace tocsin::app
