// The router's figures with labels as metrics: routes, integrations, reasons.
#pragma once

#include <map>
#include <set>
#include <string>
#include <utility>

#include "core/telemetry.h"
#include "routing/routing.h"

namespace tocsin::app {

class RouterFigures {
 public:
  explicit RouterFigures(core::Telemetry& telemetry) : telemetry_(telemetry) {}
  /// The label of a route: the first 200 that are seen have one of their own, all others share `other`.
  const std::string& route(const std::string& id);
  void update(const routing::Router& router);
  /// The router was made anew: its counters begin at 0.
  void start_over() { seen_.clear(); }

 private:
  using Key = std::pair<std::string, std::string>;  // name, label
  core::Telemetry& telemetry_;
  std::set<std::string> routes_;
  const std::string other_ = "other";
  std::map<Key, double> seen_;  // counters: what was added already
};

}  // namespace tocsin::app
