// `tocsin insights check|stats`: the stores that the page is drawn from, looked at by hand.
#pragma once

#include <optional>
#include <string>

#include "app/config/app_config.h"

namespace tocsin::app {

struct InsightsOptions {
  std::string config_file;  // empty: $TOCSIN_CONFIG, then ./tocsin.yaml
  std::string directory;    // of insights.db and curves.db; empty: those of the configuration
  bool json = false;
  bool drop_lost = false;  // rebuild: without the runs that the topics have dropped
};

/// 0: both are sound; 1: damage was found; 3: configuration; 4: there is no store, or it cannot be read.
int insights_check(const InsightsOptions& options);
/// The same codes but 1.
int insights_stats(const InsightsOptions& options);

/// The files that are meant; nullopt: the configuration has errors, which were told.
struct StorePaths {
  std::string events, curves;
  std::optional<insights::KeepAges> keep;  // nullopt: only a folder is known
};
std::optional<AppConfig> insights_configuration(const InsightsOptions& options);
StorePaths store_paths(const AppConfig& config);
/// Bytes as people read them: "312.4 MB".
std::string bytes_text(std::int64_t bytes);

}  // namespace tocsin::app
