// The configuration file after the start: read again when it changes or on a signal, adopted when it
// is right, kept as it was when it is not (docs/configuration.md#reload).
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "app/app_config.h"
#include "core/clock.h"
#include "core/log.h"
#include "core/telemetry.h"

namespace tocsin::app {

struct ReloadPorts {
  core::Clock* clock = nullptr;
  core::Log* log = nullptr;
  core::Telemetry* telemetry = nullptr;
  /// Reads the file as at the start.
  std::function<AppConfig(config::Diagnostics& diagnostics)> load;
  /// Hands new rules to who judges.
  std::function<void(const rules::RulesConfig& rules)> adopt;
};

/// Lives on one thread.
class ConfigReload {
 public:
  /// `running`: what the process was started with.
  ConfigReload(const AppConfig& running, ReloadPorts ports);

  /// Call about every second: reads when a file is not what it was and has stood still since the
  /// last call. A file that is not there, as in the middle of a replacement, is waited for.
  void look();
  /// Reads now, whatever has changed.
  void reload();

 private:
  void reject(const config::Diagnostics& diagnostics);
  void take(AppConfig fresh);
  void name_restarts(const AppConfig& fresh);
  [[nodiscard]] std::string signature() const;

  ReloadPorts ports_;
  std::map<std::string, std::string> started_sections_;
  std::vector<std::pair<std::string, std::vector<std::string>>> started_routes_;  // of rules
  std::vector<std::string> started_hosted_;                                       // rules of Python
  std::vector<rules::RuleSettings> rules_;                                        // that judge now
  std::vector<std::string> files_;
  std::string read_;  // signature of what was read last,
  std::string seen_;  // and of what the last look saw
  core::Gauge& successful_;
  core::Gauge& success_time_;
  core::Gauge& restart_needed_;
  core::Gauge& rules_hash_;
};

}  // namespace tocsin::app
