// The configuration file after the start: read again when it changes or on a signal, adopted when it
// is right, kept as it was when it is not (docs/configuration.md#reload).
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "app/config/app_config.h"
#include "app/config/config_loss.h"
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
  /// Whether the files are in effect: why not, each time that changes; empty: they are. May be left
  /// out.
  std::function<void(const std::string& trouble)> tell = {};
};

/// Lives on one thread.
class ConfigReload {
 public:
  /// `running`: what the process was started with.
  ConfigReload(const AppConfig& running, ReloadPorts ports);

  /// Call about every second: reads when a file is not what it was and has stood still since the
  /// last call. A file that is not there, as in the middle of a replacement, is waited for during
  /// some calls, and one that is only the beginning of what it was during some more.
  void look();
  /// Reads now, whatever has changed.
  void reload();

 private:
  void reject(const config::Diagnostics& diagnostics);
  void tell(const std::string& trouble);
  [[nodiscard]] bool is_cut_short() const;
  void take(AppConfig fresh);
  void name_restarts(const AppConfig& fresh);
  [[nodiscard]] std::string signature() const;

  ReloadPorts ports_;
  std::map<std::string, std::string> started_sections_;
  std::vector<std::pair<std::string, std::vector<std::string>>> started_routes_;  // of rules
  std::vector<std::string> started_hosted_;                                       // rules of Python
  std::vector<rules::RuleSettings> rules_;                                        // that judge now
  std::vector<std::string> files_;
  ConfigContent started_content_;
  ConfigContent content_;  // of what is in effect
  std::string trouble_;    // as it was told
  int still_ = 0;          // looks since anything changed
  std::string read_;       // signature of what was read last,
  std::string seen_;       // and of what the last look saw
  core::Gauge& successful_;
  core::Gauge& success_time_;
  core::Gauge& restart_needed_;
  core::Gauge& rules_hash_;
};

}  // namespace tocsin::app
