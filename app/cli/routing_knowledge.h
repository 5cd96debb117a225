// What a command that looks knows of routing beside the topics: the configuration, the router's state.
#pragma once

#include <optional>
#include <string>

#include "app/config/app_config.h"
#include "app/config/route_moves.h"
#include "app/view/held_back.h"
#include "ingest/ingest.h"

namespace tocsin::app {

class RoutingKnowledge {
 public:
  /// Of the file that the command reads; one that is not there, or has errors, tells nothing.
  void read_config(const std::string& config_file);
  /// unavailable, deadline_exceeded: the state could not be read.
  core::Status read_state(ingest::Transport& transport);

  /// Valid as long as this.
  [[nodiscard]] RoutingSight sight() const;
  /// null: it was not read.
  [[nodiscard]] const routing::RouterStanding* standing() const {
    return standing_ ? &*standing_ : nullptr;
  }

 private:
  std::optional<AppConfig> config_;
  std::optional<RoutePreview> routes_;
  std::optional<routing::RouterStanding> standing_;
};

}  // namespace tocsin::app
