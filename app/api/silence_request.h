// The body of a silence in /api/v1.
#pragma once

#include <cstdint>
#include <set>
#include <string>
#include <string_view>

#include "core/result.h"
#include "core/time.h"
#include "routing/routing.h"

namespace tocsin::app {

/// Without an id of ours and without who asked for it.
struct SilenceRequest {
  std::string id;             // of the silence that it changes; empty: a new one
  std::uint64_t version = 0;  // that the change follows from; 0: of any
  routing::Silence silence;
  std::set<std::string> named;  // fields that the body has
};
/// invalid_argument: what is wrong, with the name of its field. `now`: its begin where it names none.
core::Result<SilenceRequest> read_silence_request(std::string_view json, core::WallTime now);

}  // namespace tocsin::app
