// The section `insights`: what is kept for looking back.
#pragma once

#include <chrono>
#include <string>

#include "config/config.h"
#include "core/time.h"

namespace tocsin::insights {

struct Config {
  bool enabled = true;
  std::string path;                                   // of the store; empty: beside the journal
  core::Duration keep = std::chrono::hours{24} * 90;  // what is over
  config::Bytes max_bytes{2ULL << 30U};               // of events
  config::Bytes max_curve_bytes{4ULL << 30U};         // of scalars and step clocks
  std::uint64_t replays = 2;                          // that people may have judged at once
};
void read(config::Reader& in, Config& out);

}  // namespace tocsin::insights
