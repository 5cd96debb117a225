// A run as it was at a time: what the store keeps of it, without what came later.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "app/api/api_route.h"
#include "core/result.h"
#include "core/time.h"
#include "insights/insights.h"

namespace tocsin::app {

/// `at` of a call; nullopt: it has none.
std::optional<core::WallTime> moment_of(const ApiCall& call);
/// The parameter.
ApiParameter moment_parameter();
/// invalid_argument: it has not come yet.
core::Status check_moment(core::WallTime at, core::WallTime now);

/// Whatever is told of a run, as of `at`: `line` and `issues` are folded again, `events` loses what came later. A
/// newer heartbeat or report takes the place of an older one in the store: step and time of the last one before
/// `at` may be missing (nullopt, or the start). not_found: nothing was known of it, and when it first was.
core::Status put_back(insights::RunLine& line, std::vector<insights::IssueLine>& issues,
                      std::vector<insights::KeptRecord>& events, core::WallTime at);

/// The newest train step at `at`, by the curves; nullopt: none is known.
std::optional<std::int64_t> step_at(insights::SeriesReader& curves, const std::string& run,
                                    core::WallTime at);

}  // namespace tocsin::app
