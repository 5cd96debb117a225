// What handlers of the API share: topics as they are, a writer, the tree, the clock.
#pragma once

#include <memory>
#include <string>

#include "app/api/api_writer.h"
#include "app/api/live_view.h"
#include "core/clock.h"
#include "core/log.h"
#include "core/time.h"
#include "routing/routing.h"

namespace tocsin::app {

struct ApiDesk {
  LiveView view;
  ApiWriter writer;
  std::unique_ptr<const routing::Router>
      routing;  // to explain only; null: this process routes nothing
  const core::Clock& clock;
  core::Log& log;
  std::string cluster;
  core::Duration resolve_timeout{};
  core::WallTime started{};
  std::vector<std::string> receivers;  // names, in the order of the configuration
};

}  // namespace tocsin::app
