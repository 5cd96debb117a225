// Section `reports` of the configuration: pages about runs that are written without being asked for.
#pragma once

#include <string>

#include "config/config.h"

namespace tocsin::app {

struct ReportsConfig {
  std::string at_end = "none";  // none | html
  std::string dir = "reports";  // made where it is not there
  std::string url;              // under which `dir` can be read; empty: nowhere
};

void read(config::Reader& in, ReportsConfig& out);

}  // namespace tocsin::app
