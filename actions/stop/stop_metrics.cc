#include "actions/stop/stop_metrics.h"

#include <cstddef>
#include <map>

namespace tocsin::actions {

void measure_stops(core::Telemetry& telemetry, const StopLadder& ladder,
                   std::string_view platform) {
  std::map<StopState, std::size_t> standing;
  for (const auto& [id, state] : ladder.states()) ++standing[state];
  for (const StopState state : {StopState::cooperative, StopState::checkpointing,
                                StopState::platform_graceful, StopState::platform_force}) {
    telemetry
        .gauge("tocsin_router_stop_state", "stops of this node under way, by where they stand",
               {{"platform", platform}, {"state", to_string(state)}})
        .set(static_cast<double>(standing[state]));
  }
}

void count_stop(core::Telemetry& telemetry, std::string_view platform, StopState outcome) {
  telemetry
      .counter("tocsin_router_stop_commands_total", "stops of this node by how they ended",
               {{"platform", platform}, {"outcome", to_string(outcome)}})
      .add();
}

}  // namespace tocsin::actions
