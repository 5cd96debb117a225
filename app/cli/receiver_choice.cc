#include "app/cli/receiver_choice.h"

#include <sys/utsname.h>

#include <algorithm>
#include <iostream>

#include "app/config/command_place.h"
#include "app/config/config_path.h"
#include "app/process/exit_code.h"
#include "core/text.h"
#include "core/visible_text.h"

namespace tocsin::app {

std::optional<AppConfig> receiver_configuration(const std::string& config_file) {
  config::Diagnostics diagnostics;
  AppConfig out = load_config(config_path(config_file), config::process_environment(), diagnostics);
  if (!diagnostics.has_errors()) return out;
  for (const auto& item : diagnostics.items()) std::cerr << config::to_text(item) << "\n";
  return std::nullopt;
}

std::vector<actions::ConfiguredIntegration> chosen_integrations(
    const std::string& name, const actions::ReceiversConfig& receivers) {
  std::vector<actions::ConfiguredIntegration> of_receiver;
  std::vector<actions::ConfiguredIntegration> of_id;
  for (const auto& one : receivers.integrations) {
    if (one.receiver == name) of_receiver.push_back(one);
    if (one.common.id == name) of_id.push_back(one);
  }
  return of_receiver.empty() ? of_id : of_receiver;
}

int no_such_receiver(const std::string& name, const actions::ReceiversConfig& receivers) {
  std::vector<std::string> known = receivers.names;
  if (std::find(known.begin(), known.end(), name) != known.end()) {
    std::cerr << "tocsin: receiver " << core::visible(name) << " has no action\n";
    return kFailed;
  }
  for (const auto& one : receivers.integrations) known.push_back(one.common.id);
  const std::string near = core::nearest(name, known);
  std::cerr << "tocsin: no receiver or integration \"" << core::visible(name) << "\"";
  if (!near.empty()) {
    std::cerr << "; did you mean \"" << core::visible(near) << "\"?";
  } else if (!receivers.names.empty()) {
    std::cerr << "; the configuration has:";
    for (const std::string& one : receivers.names) std::cerr << " " << core::visible(one);
  }
  std::cerr << "\n";
  return kUsage;
}

actions::Environment trial_environment(const AppConfig& config) {
  actions::Environment out;
  out.cluster = config.cluster;
  out.external_url = config.external_url;
  out.place = command_place(config);
  utsname names{};
  if (uname(&names) == 0) out.host = names.nodename;
  return out;
}

}  // namespace tocsin::app
