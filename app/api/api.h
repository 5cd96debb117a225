// The HTTP API of a process: its routes, and who may use them (docs/http-api.md).
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "app/config/app_config.h"
#include "app/serve/http_routes.h"
#include "core/clock.h"
#include "core/log.h"
#include "core/result.h"
#include "core/telemetry.h"
#include "ingest/ingest.h"

namespace tocsin::app {

/// Reads topics from the first request on. Thread-safe once it is made.
class Api {
 public:
  /// All outlive it; `host` is this machine's name. Errors are those of routing::Router::create.
  static core::Result<std::unique_ptr<Api>> create(const AppConfig& config,
                                                   ingest::Transport& transport,
                                                   const core::Clock& clock, core::Log& log,
                                                   const std::string& host,
                                                   core::Telemetry& telemetry);
  ~Api();

  /// They live no longer than this.
  [[nodiscard]] std::vector<HttpRoute> routes();
  /// The page and its files; they live no longer than this either.
  [[nodiscard]] std::vector<HttpRoute> pages();

 private:
  struct Parts;
  explicit Api(std::unique_ptr<Parts> parts);
  std::unique_ptr<Parts> parts_;
};

}  // namespace tocsin::app
