// Which actions are told of an issue by one configuration, and what another one changes in that.
#pragma once

#include <map>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "app/config/app_config.h"
#include "core/labels.h"
#include "core/result.h"
#include "routing/routing.h"

namespace tocsin::app {

/// By id of an integration: the groups by which it is told of an issue.
using Destinations = std::map<std::string, std::set<std::string>>;

/// The routing tree of one configuration.
class RoutePreview {
 public:
  /// invalid_argument: as routing::Router::create().
  static core::Result<RoutePreview> of(const AppConfig& config);
  /// Silences decide nothing here. Integrations that are switched off, or whose `when` the labels do
  /// not meet, are left out.
  [[nodiscard]] Destinations destinations(const core::Labels& labels) const;
  /// Whether the integration is told of such labels, once a route leads to it: else it is switched off,
  /// or its `when` is not met.
  [[nodiscard]] bool tells(const std::string& integration, const core::Labels& labels) const;
  /// null: nothing is routed.
  [[nodiscard]] const routing::Router* router() const { return router_.get(); }

 private:
  std::unique_ptr<routing::Router> router_;           // null: nothing is routed
  std::map<std::string, routing::Matchers> filters_;  // by integration that is not switched off
};

/// What changes for one issue, by ids of integrations.
struct RouteMove {
  std::vector<std::string> lost;       // no longer told
  std::vector<std::string> gained;     // told from now on
  std::vector<std::string> regrouped;  // told in another group: closed there and announced again
  [[nodiscard]] bool empty() const noexcept {
    return lost.empty() && gained.empty() && regrouped.empty();
  }
};

RouteMove move_between(const Destinations& before, const Destinations& after);

/// Top-level sections that differ, `rules` too, ascending.
std::vector<std::string> changed_sections(const AppConfig& before, const AppConfig& after);

}  // namespace tocsin::app
