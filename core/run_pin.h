// A run that somebody wants to keep: no age and no lack of room takes it out of the stores of the page. Records of
// `router-control`, keys `pin/<run uid>` (docs/stores.md).
#pragma once

#include <string>
#include <string_view>

#include "core/time.h"

namespace tocsin::core {

struct RunPin {
  std::string run;  // uid
  std::string by;
  WallTime at{};
  std::string origin;  // cli, api
};

inline constexpr std::string_view kPinPrefix = "pin/";

}  // namespace tocsin::core
