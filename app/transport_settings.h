// Which transport a command that only looks is to read.
#pragma once

#include <string>

#include "core/result.h"
#include "ingest/ingest.h"

namespace tocsin::app {

struct TransportSettings {
  ingest::TransportConfig transport;
  ingest::TopicsConfig topics;
  std::string cluster = "default";
  std::string evidence_dir;  // where copies of issues' records are, if some are kept
};

/// Where `up` would read, or where the hook would write when there is no configuration. `out`
/// (kafka://host:9092 or a directory) goes before any file. invalid_argument: the file has errors.
core::Result<TransportSettings> transport_settings(const std::string& config_file,
                                                   const std::string& out);

/// The same place as the hook's `out` names it: kafka://host:9092 or a directory.
std::string out_of(const ingest::TransportConfig& transport);

}  // namespace tocsin::app
