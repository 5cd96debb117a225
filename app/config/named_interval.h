// One time interval of the configuration, for commands that need nothing else of it.
#pragma once

#include <string>

#include "core/result.h"
#include "routing/routing.h"

namespace tocsin::app {

/// The interval of that name in `time_intervals` of the file (as config_path() finds it). not_found: the
/// file has none of that name, with the nearest one. invalid_argument: the section has errors.
core::Result<routing::TimeInterval> named_interval(const std::string& config_file,
                                                   const std::string& name);

}  // namespace tocsin::app
