// The metrics of stops, whoever carries them out. Internal to actions.
#pragma once

#include <string_view>

#include "actions/stop/stop_ladder.h"
#include "core/telemetry.h"

namespace tocsin::actions {

/// How many stops are under way, and where they stand.
void measure_stops(core::Telemetry& telemetry, const StopLadder& ladder, std::string_view platform);
/// One has come to its end.
void count_stop(core::Telemetry& telemetry, std::string_view platform, StopState outcome);

}  // namespace tocsin::actions
