// What /metrics says of the process itself: its build, and the standard series `process_*`.
#pragma once

#include <string>

namespace tocsin::app {

/// "0.1.0"; the same that `tocsin version` prints.
std::string build_version();
/// "gcc 12.2.0"
std::string build_compiler();

/// Prometheus text: tocsin_build_info, and process_* read below `proc`. What cannot be read is left
/// out. Any thread.
std::string process_metrics(const std::string& proc = "/proc");

}  // namespace tocsin::app
