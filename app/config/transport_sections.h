// The sections of a configuration that say where records travel, read although others are broken.
#pragma once

#include <cstddef>
#include <string>

#include "app/config/transport_settings.h"
#include "config/config.h"
#include "core/result.h"

namespace tocsin::app {

struct TransportSections {
  TransportSettings settings;
  std::size_t errors = 0;  // in the rest of the file, which is ignored
};

/// Reads `transport`, `topics`, `cluster` and `evidence.dir` of a file. Errors elsewhere are counted,
/// a file that is not valid YAML elsewhere included. invalid_argument: one of these sections is wrong
/// (with its place), or a broken file has no `transport`.
core::Result<TransportSections> read_transport_sections(const std::string& file,
                                                        const config::Environment& environment);

}  // namespace tocsin::app
