// Who is told beyond the receivers of a route, and when: escalation, and backups for what does not
// arrive (docs/escalation.md).
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "config/config.h"
#include "core/function_ref.h"
#include "core/time.h"

namespace tocsin::routing {

/// One step of a ladder. It is carried out `after` the first message of an incident, and `repeats`
/// times more.
struct EscalationStep {
  core::Duration after{};
  std::string receiver;
  bool unless_acked = true;  // its time stands still while everything that fires is acknowledged
  core::Duration every{};    // between repeats
  std::uint32_t repeats = 0;
};

/// The backup of a route: told when a message did not arrive, or has not arrived for `after`.
struct FailureStep {
  core::Duration after = std::chrono::minutes(2);
  std::string receiver;
};

/// What a route says of it; unset: inherited.
struct EscalationConfig {
  std::optional<std::vector<EscalationStep>> steps;
  std::optional<FailureStep> on_failure;
  std::optional<bool> propagate_ack;
};

/// Reports at a key of this reader that no receiver has this name.
using CheckReceiver =
    core::FunctionRef<void(config::Reader& in, std::string_view key, const std::string& receiver)>;

/// The keys `escalation`, `on_delivery_failure` and `propagate_ack` of a route. `receivers`: its own
/// ones, as far as they are written there.
void read_escalation(config::Reader& in, EscalationConfig& out,
                     const std::vector<std::string>& receivers, CheckReceiver check);

}  // namespace tocsin::routing
