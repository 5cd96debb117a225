// `tocsin init`: a configuration to start from.
#pragma once

#include <string>

namespace tocsin::app {

struct InitOptions {
  std::string file;  // empty: tocsin.yaml
  bool json = false;
};
/// Writes the starter to `file`; never over a file that is there (exit code 1).
int init_command(const InitOptions& options);

}  // namespace tocsin::app
