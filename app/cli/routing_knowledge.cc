#include "app/cli/routing_knowledge.h"

#include <chrono>
#include <utility>

#include "app/config/config_path.h"
#include "app/view/router_reading.h"

namespace tocsin::app {
namespace {

constexpr std::chrono::seconds kStandingPatience{60};

}  // namespace

void RoutingKnowledge::read_config(const std::string& config_file) {
  config::Diagnostics diagnostics;
  AppConfig config =
      load_config(config_path(config_file), config::process_environment(), diagnostics);
  if (diagnostics.has_errors()) return;
  auto routes = RoutePreview::of(config);
  if (!routes) return;
  config_ = std::move(config);
  routes_ = std::move(*routes);
}

core::Status RoutingKnowledge::read_state(ingest::Transport& transport) {
  auto standing = read_standing(transport, kStandingPatience);
  if (!standing) return standing.error();
  standing_ = std::move(*standing);
  return core::ok();
}

RoutingSight RoutingKnowledge::sight() const {
  RoutingSight out;
  out.standing = standing();
  if (!config_) return out;
  out.router = routes_->router();
  out.inhibit_rules = &config_->inhibit_rules;
  out.resolve_timeout = config_->router.resolve_timeout;
  return out;
}

}  // namespace tocsin::app
