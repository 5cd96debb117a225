// `tocsin check`: a configuration's errors, and what would keep an alarm silent.
#pragma once

#include <string>

namespace tocsin::app {

struct CheckOptions {
  std::string config_file;      // empty: $TOCSIN_CONFIG, then ./tocsin.yaml
  std::string format = "text";  // text, json, github
  bool strict = false;          // warnings count as errors
};
/// 0: no errors; 3: errors.
int check_command(const CheckOptions& options);

}  // namespace tocsin::app
