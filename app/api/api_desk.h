// What handlers of the API share: topics as they are, a writer, the tree, the clock, who may come in.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "app/api/api_route.h"
#include "app/api/api_writer.h"
#include "app/api/chart_views.h"
#include "app/api/curves_feed.h"
#include "app/api/histories.h"
#include "app/api/insights_feed.h"
#include "app/api/live_view.h"
#include "app/api/run_pins.h"
#include "app/api/standing_watch.h"
#include "app/api/stream_feed.h"
#include "app/api/stream_hub.h"
#include "app/config/app_config.h"
#include "app/serve/access.h"
#include "app/serve/session_table.h"
#include "app/view/held_back.h"
#include "core/clock.h"
#include "core/log.h"
#include "core/telemetry.h"
#include "core/time.h"
#include "routing/routing.h"

namespace tocsin::app {

struct ApiDesk {
  /// All outlive it; `host` is this machine's name.
  ApiDesk(const AppConfig& config, ingest::Transport& transport, const core::Clock& the_clock,
          core::Log& the_log, const std::string& host,
          std::unique_ptr<const routing::Router> explaining, core::Telemetry& telemetry);

  const core::Clock& clock;
  core::Log& log;
  std::string cluster;
  core::Duration resolve_timeout{};
  core::WallTime started{};
  std::vector<std::string> receivers;  // names, in the order of the configuration
  std::unique_ptr<const routing::Router>
      routing;  // to explain only; null: this process routes nothing
  std::vector<routing::InhibitRule> inhibit_rules;
  std::vector<routing::TimeInterval> time_intervals;
  SessionTable sessions;
  LoginBrake brake;
  std::string local_token_file;  // of this machine's own token; empty: there is none
  Access access;
  std::shared_ptr<StreamHub> streams;
  RecentDeliveries deliveries;  // read inside view.read(), as the other histories
  CommandHistory commands;
  AuditHistory audit;
  ToldHistory told;
  StandingWatch standing;  // read inside view.read() too
  ChartViews charts;       // the same
  StreamFeed feed;
  LiveView view;  // behind what watches it
  ApiWriter writer;
  RunPins pins;
  InsightsFeed insights;  // behind the hub that it tells
  CurvesFeed curves;      // the same

  /// What is known beside the topics of the view.
  [[nodiscard]] RoutingSight sight() const noexcept {
    return {routing.get(), &inhibit_rules, &standing.standing(), resolve_timeout};
  }
};

/// A change that this call makes, as a record to be written together with it.
core::OutRecord audit_of(const ApiCall& call, core::WallTime at, std::string what,
                         std::string subject, core::Value before, core::Value after);

}  // namespace tocsin::app
