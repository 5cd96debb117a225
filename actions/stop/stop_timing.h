// How long stops stand at each rung: tocsin_router_stop_duration_seconds. Internal to actions.
#pragma once

#include <chrono>
#include <map>
#include <string>
#include <string_view>

#include "core/telemetry.h"
#include "core/time.h"

namespace tocsin::actions {

class StopTiming {
 public:
  explicit StopTiming(core::Telemetry& telemetry) : telemetry_(telemetry) {}

  /// `one`: a StopTransition. Also those from before a restart: they say since when a stop stands there.
  template <typename Transition>
  void moved(const Transition& one, std::string_view platform) {
    const auto since = since_.find(one.command_id);
    if (since != since_.end() && !one.replayed) {
      telemetry_
          .histogram("tocsin_router_stop_duration_seconds", "how long a stop stood at a phase",
                     {{"platform", platform}, {"phase", to_string(one.from)}})
          .observe(std::chrono::duration<double>(one.at - since->second).count());
    }
    if (is_final(one.to)) {
      since_.erase(one.command_id);
    } else {
      since_[one.command_id] = one.at;
    }
  }

 private:
  core::Telemetry& telemetry_;
  std::map<std::string, core::WallTime> since_;  // by command: when it came to where it stands
};

}  // namespace tocsin::actions
