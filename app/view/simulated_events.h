// Recorded events as a simulation takes them: what a router reads, in the order of its times.
#pragma once

#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "core/command.h"
#include "core/issue.h"
#include "core/result.h"
#include "core/time.h"
#include "ingest/ingest.h"

namespace tocsin::app {

/// A record of `router-control`.
struct ControlEvent {
  std::string key;
  std::optional<std::string> value;
};
/// A stop that was withdrawn.
struct StopWithdrawn {
  core::RunUid run;
};

struct SimulatedEvent {
  core::WallTime at{};
  std::variant<core::Issue, core::JobEvent, ControlEvent, core::Command, StopWithdrawn, core::Ack>
      what;
};

/// From this time on, up to before that one; nullopt: no bound.
struct EventSpan {
  std::optional<core::WallTime> since;
  std::optional<core::WallTime> until;
  [[nodiscard]] bool holds(core::WallTime at) const {
    return (!since || at >= *since) && (!until || at < *until);
  }
};

/// Of the topics that a router reads; what cannot be read is passed over.
core::Result<std::vector<SimulatedEvent>> events_of_topics(ingest::Transport& transport,
                                                           const EventSpan& span);
/// One event per line: CloudEvents in JSON, or what `tocsin tail --output json` prints.
/// invalid_argument: the line, and what is wrong with it.
core::Result<std::vector<SimulatedEvent>> events_of_lines(const std::string& text,
                                                          const EventSpan& span);

}  // namespace tocsin::app
