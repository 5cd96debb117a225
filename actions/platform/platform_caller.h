// Port: calls to platforms are made off the thread that decides about stops.
#pragma once

#include <chrono>
#include <string>
#include <utility>
#include <vector>

#include "actions/platform/platform_stop.h"

namespace tocsin::actions {

struct PlatformCall {
  std::string command_id;
  PlatformTarget target;
  PlatformRung rung = PlatformRung::look;
  PlatformStop* platform = nullptr;  // outlives the caller
};

class PlatformCaller {
 public:
  virtual ~PlatformCaller() = default;
  virtual void submit(PlatformCall call) = 0;
  /// What has come back since. A call that was not made, since this process may not any more, does
  /// not come back.
  virtual std::vector<std::pair<PlatformCall, PlatformAnswer>> take() = 0;
  /// For one call.
  static constexpr std::chrono::milliseconds kBudget = std::chrono::seconds(15);
};

}  // namespace tocsin::actions
