// `tocsin up`, `collect`, `evaluate`, `route`: roles that run until a signal.
#pragma once

#include <string>
#include <vector>

#include "app/app.h"

namespace tocsin::app {

struct ServeOptions {
  std::string config_file;  // empty: $TOCSIN_CONFIG, then ./tocsin.yaml
  std::string listen;       // these three override the configuration; empty: they do not
  std::string log_level;
  std::string log_format;
  int start_timeout = 300;  // seconds
};

/// Until SIGINT or SIGTERM; a second signal ends at once. An exit code.
int serve(const ServeOptions& given, Roles roles);
/// The same with a configuration that was read already; `doubts`: its warnings.
int serve(const ServeOptions& given, Roles roles, AppConfig loaded,
          const std::vector<config::Diagnostic>& doubts);

}  // namespace tocsin::app
