// Settings that give up a protection: each is somebody's choice, is shown by `tocsin check`, and counts in
// the gauge `tocsin_insecure_settings`.
#pragma once

#include <string>
#include <vector>

#include "app/config/app_config.h"
#include "core/telemetry.h"

namespace tocsin::app {

struct InsecureSetting {
  std::string kind;   // label `setting`: one of a few
  std::string place;  // "receivers.people.email.tls"
  std::string what;   // "mails may travel in clear"
};

/// In the order of the kinds.
std::vector<InsecureSetting> insecure_settings(const AppConfig& config);
/// One series for each kind, also where there is none.
void count_insecure_settings(const AppConfig& config, core::Telemetry& telemetry);

}  // namespace tocsin::app
