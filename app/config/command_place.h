// How commands of a person name the records of a configuration: messages print them to be pasted.
#pragma once

#include <string>
#include <vector>

#include "app/config/app_config.h"

namespace tocsin::app {

/// Options, word by word: {"--from", "/data/tocsin-data"}. The configuration file itself where a
/// transport needs more than an address (a login, certificates, names of topics): never a credential.
std::vector<std::string> command_place(const AppConfig& config);

}  // namespace tocsin::app
