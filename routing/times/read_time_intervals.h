// The section `time_intervals`, and names of intervals as a key of a route.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "config/config.h"
#include "routing/times/time_interval.h"

namespace tocsin::routing {

/// Reads the section `time_intervals` of the root map. Every problem is reported at its place.
void read_time_intervals(config::Reader& root, std::vector<TimeInterval>& intervals);

/// The names that `key` lists; nullopt: it is not there. A name that is not among `known` is reported
/// at its place, with the nearest one.
std::optional<std::vector<std::string>> read_interval_names(config::Reader& in,
                                                            std::string_view key,
                                                            const std::vector<std::string>& known,
                                                            std::string_view help);

}  // namespace tocsin::routing
