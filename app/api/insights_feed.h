// The topics, read as nobody, into the store that pages and the API look back with.
#pragma once

#include <memory>
#include <string>
#include <thread>

#include "app/api/store_figures.h"
#include "app/api/stream_hub.h"
#include "app/config/app_config.h"
#include "app/config/insights_place.h"
#include "core/clock.h"
#include "core/log.h"
#include "core/mutex.h"
#include "core/result.h"
#include "core/telemetry.h"
#include "ingest/ingest.h"
#include "insights/insights.h"

namespace tocsin::app {

/// Reads on a thread of its own from its making on, and tells the hub which runs have changed once
/// that is durable. What goes wrong is retried, and disturbs nobody else.
class InsightsFeed {
 public:
  /// All outlive it.
  InsightsFeed(const AppConfig& config, ingest::Transport& transport, const core::Clock& clock,
               core::Log& log, StreamHub& hub, core::Telemetry& telemetry);
  ~InsightsFeed();
  InsightsFeed(const InsightsFeed&) = delete;
  InsightsFeed& operator=(const InsightsFeed&) = delete;

  /// unavailable: it is off, or nothing can be read at present, and why.
  [[nodiscard]] core::Result<std::unique_ptr<insights::EventReader>> reader() const;
  struct Standing {
    bool current = false;  // the topics were read to their end
    std::string trouble;   // empty: there is none
  };
  [[nodiscard]] Standing standing() const;

 private:
  class Reading;
  void run(const std::stop_token& stop);
  core::Status follow(const std::stop_token& stop);
  void stand(bool current, std::string trouble);

  insights::Config config_;
  std::string path_;
  std::string source_;  // what is read, so that a store of something else is not gone on with
  std::string cluster_;
  ingest::Transport& transport_;
  const core::Clock& clock_;
  core::Log& log_;
  StreamHub& hub_;
  StoreFigures figures_;  // of the thread
  mutable core::Mutex mutex_;
  Standing standing_ GUARDED_BY(mutex_);
  std::jthread thread_;
};

}  // namespace tocsin::app
