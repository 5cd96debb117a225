// Structured logs on stderr, one event per line: sentences for people, logfmt or JSON for machines.
#pragma once

#include <memory>
#include <string>

#include "config/config.h"
#include "core/clock.h"
#include "core/log.h"

namespace tocsin::app {

struct LogConfig {
  std::string level = "info";
  std::string format = "auto";  // console on a terminal, else logfmt
};
void read(config::Reader& in, LogConfig& out);

/// Thread-safe. Warnings and errors of one event name beyond 10 in 10 s are counted, and the count
/// is written as `suppressed` with the next one that passes.
std::unique_ptr<core::Log> make_log(const LogConfig& config, const core::Clock& clock);

}  // namespace tocsin::app
