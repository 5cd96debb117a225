// What /metrics says of the process itself: its build, and the standard series `process_*`.
#pragma once

#include <string>

namespace tocsin::app {

/// Prometheus text: tocsin_build_info, and process_* read below `proc`. What cannot be read is left
/// out. Any thread.
std::string process_metrics(const std::string& proc = "/proc");

}  // namespace tocsin::app
