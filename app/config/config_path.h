// Which configuration file a command reads.
#pragma once

#include <string>

namespace tocsin::app {

/// The file that was named, else $TOCSIN_CONFIG, else ./tocsin.yaml.
std::string config_path(const std::string& named);

}  // namespace tocsin::app
