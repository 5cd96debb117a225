// The sections `insights` and `store`: what is kept for looking back.
#pragma once

#include <chrono>
#include <string>
#include <vector>

#include "config/config.h"
#include "core/time.h"
#include "insights/series/series_ages.h"

namespace tocsin::insights {

/// Where traces that runs have put beside the topic may be read: directories and s3://bucket/prefix.
struct TracePlaces {
  std::vector<std::string> from;
  std::string endpoint;  // of the store; empty: AWS_ENDPOINT_URL_S3, AWS_ENDPOINT_URL, Amazon
  std::string region;    // empty: AWS_REGION, AWS_DEFAULT_REGION, us-east-1
};

struct Config {
  bool enabled = true;
  std::string path;  // of the store; empty: beside the journal
  KeepAges keep;
  core::Duration backfill = std::chrono::hours{24};  // of telemetry, read when a store is begun
  bool from_beginning = false;                       // it is read whole, whatever backfill says
  config::Bytes max_bytes{2ULL << 30U};              // of events
  config::Bytes max_curve_bytes{4ULL << 30U};        // of scalars and step clocks
  std::uint64_t replays = 2;                         // that people may have judged at once
  TracePlaces traces;
};
void read(config::Reader& in, Config& out);
/// The section `store`: how far back it reads and how long it keeps what.
void read_store(config::Reader& in, Config& out);

}  // namespace tocsin::insights
