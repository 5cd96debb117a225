// Which transport a command reads, and steers runs by.
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

/// Where `up` would read, or where the hook would write when there is no configuration. `place`
/// (kafka://host:9092 or a directory) replaces the `transport` of any file. Of a file only the sections
/// that are needed must be right; stderr says in one line when the rest is broken, and which transport
/// is used where no file names one. invalid_argument: what is needed is wrong.
core::Result<TransportSettings> transport_settings(const std::string& config_file,
                                                   const std::string& place);

/// The same place as the hook's `out` names it: kafka://host:9092 or a directory.
std::string out_of(const ingest::TransportConfig& transport);

}  // namespace tocsin::app
