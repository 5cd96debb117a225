// What commands share that use the actions of one receiver.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "actions/actions.h"
#include "app/config/app_config.h"

namespace tocsin::app {

/// nullopt: it has errors, which are on stderr.
std::optional<AppConfig> receiver_configuration(const std::string& config_file);
/// Those of the receiver of this name, else the one with this id; empty: there is neither.
std::vector<actions::ConfiguredIntegration> chosen_integrations(
    const std::string& name, const actions::ReceiversConfig& receivers);
/// Says so on stderr, with the nearest name; the exit code for it.
int no_such_receiver(const std::string& name, const actions::ReceiversConfig& receivers);
/// As the router fills it in; nothing of a trial needs runs or topics.
actions::Environment trial_environment(const AppConfig& config);

}  // namespace tocsin::app
