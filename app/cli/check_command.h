// `tocsin check`: a configuration's errors, and what would keep an alarm silent.
#pragma once

#include <string>

namespace tocsin::app {

struct CheckOptions {
  std::string config_file;      // empty: $TOCSIN_CONFIG, then ./tocsin.yaml
  std::string format = "text";  // text, json, github
  bool strict = false;          // warnings count as errors
  bool live = false;            // ask the broker and the far sides too
};
/// 0: no errors; 1, 4: as live_code(); 3: errors, and then nobody is asked.
int check_command(const CheckOptions& options);

}  // namespace tocsin::app
