// The sections `insights` and `store`: what is kept for looking back.
#pragma once

#include <chrono>
#include <string>

#include "config/config.h"
#include "core/time.h"
#include "insights/series/series_ages.h"

namespace tocsin::insights {

struct Config {
  bool enabled = true;
  std::string path;  // of the store; empty: beside the journal
  KeepAges keep;
  core::Duration backfill = std::chrono::hours{24};  // of telemetry, read when a store is begun
  bool from_beginning = false;                       // it is read whole, whatever backfill says
  config::Bytes max_bytes{2ULL << 30U};              // of events
  config::Bytes max_curve_bytes{4ULL << 30U};        // of scalars and step clocks
  std::uint64_t replays = 2;                         // that people may have judged at once
};
void read(config::Reader& in, Config& out);
/// The section `store`: how far back it reads and how long it keeps what.
void read_store(config::Reader& in, Config& out);

}  // namespace tocsin::insights
