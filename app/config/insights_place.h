// Where what is looked back with is kept.
#pragma once

#include <string>

#include "app/config/app_config.h"

namespace tocsin::app {

/// The file of this name beside the store of events, which is meant by an empty one.
std::string insights_path(const AppConfig& config, const std::string& file);

}  // namespace tocsin::app
