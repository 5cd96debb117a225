// Bodies of POST /runs/{run}/capture and /profile.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

#include "app/view/capture_order.h"
#include "core/result.h"

namespace tocsin::app {

struct CaptureBody {
  CaptureOrder order;                    // without its person
  std::optional<std::uint32_t> attempt;  // that is meant; nullopt: the newest
  bool takes_back = false;               // what stands in the order's slot
};

/// invalid_argument: a field that is none, with the nearest one, or a value out of its bounds.
core::Result<CaptureBody> read_capture_body(std::string_view json);
core::Result<CaptureBody> read_profile_body(std::string_view json);

}  // namespace tocsin::app
