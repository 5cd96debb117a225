// `tocsin config diff OLD NEW`: which sections differ, and which firing issues would be told to
// others (docs/config-diff.md).
#pragma once

#include <string>

namespace tocsin::app {

struct ConfigDiffOptions {
  std::string before;  // two configuration files
  std::string after;
  bool live = false;  // look at the issues that fire now
  std::string out;    // where; empty: the transport of `after`
  bool json = false;
};

/// 0: no section differs, and no issue would move; 1: some do; 3: a file has errors; 4: broker or
/// journal unreachable.
int config_diff(const ConfigDiffOptions& options);

}  // namespace tocsin::app
