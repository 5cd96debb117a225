// The configured integrations as actions, and what they write to topics themselves.
#pragma once

#include <map>
#include <memory>
#include <string>
#include <string_view>

#include "actions/actions.h"
#include "app/config/app_config.h"
#include "core/clock.h"
#include "core/log.h"
#include "core/mutex.h"
#include "core/telemetry.h"
#include "ingest/ingest.h"

namespace tocsin::app {

/// Thread-safe once built: delivery threads execute, the router's thread renders.
class ActionSet {
 public:
  /// Everything pointed to outlives the set. `environment` lacks only what writes to topics.
  static core::Result<std::unique_ptr<ActionSet>> build(const AppConfig& config,
                                                        ingest::Transport& transport,
                                                        actions::Environment environment);

  /// null: no such integration.
  [[nodiscard]] core::Action* find(std::string_view integration) const;
  /// Empty text for an integration that is not there: its delivery will say so.
  [[nodiscard]] core::Result<std::string> render(const core::Notification& notification) const;

 private:
  core::Status publish(const core::OutRecord& record);

  core::Mutex mutex_;  // deliveries run on several threads
  std::unique_ptr<core::RecordPublisher> publisher_ PT_GUARDED_BY(mutex_);
  std::map<std::string, std::unique_ptr<core::Action>, std::less<>> actions_;
};

}  // namespace tocsin::app
