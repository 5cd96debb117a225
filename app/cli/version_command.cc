#include "app/cli/version_command.h"

#include <iostream>

#include "app/process/exit_code.h"
#include "app/process/version.h"
#include "core/value.h"

namespace tocsin::app {

int version_command(const VersionOptions& options) {
  if (options.json) {
    std::cout << core::to_json(core::ValueMap{{"name", "tocsin"},
                                              {"version", build_version()},
                                              {"compiler", build_compiler()}})
              << "\n";
    return kOk;
  }
  std::cout << version_text() << "\n";
  return kOk;
}

}  // namespace tocsin::app
