// Files that a configuration names and this machine does not have.
#pragma once

#include "app/config/app_config.h"
#include "config/config.h"

namespace tocsin::app {

/// Warnings: certificates and authorities (`ca_file`, `cert_file`, `key_file`, Kafka's
/// `ssl.*.location`) that are not there or cannot be read. Secrets are looked at where they are read.
/// Also: an e-mail receiver that leaves its host to the default.
void check_files(const config::Reader& root, const AppConfig& config);

}  // namespace tocsin::app
