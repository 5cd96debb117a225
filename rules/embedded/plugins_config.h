// Section `plugins` of the configuration: rules of the user's own that are programs.
#pragma once

#include <string>

#include "config/config.h"

namespace tocsin::embedded {

/// Section `plugins` of the configuration.
struct PluginsConfig {
  std::string python = "python3";  // the interpreter; looked for in $PATH
  bool native = false;             // libraries may be loaded; rules::read_rules looks at it itself
  /// Not of the section: where the runs are that rules judge, for those that read elements of
  /// tensors. As the hook's `out` and `config`; empty: not known.
  std::string out = {};
  std::string config = {};
};

/// The section as the configuration has it.
void read(config::Reader& in, PluginsConfig& out);

}  // namespace tocsin::embedded
