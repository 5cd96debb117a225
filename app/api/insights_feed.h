// The topics, read as nobody, into the store that pages and the API look back with.
#pragma once

#include <atomic>
#include <memory>
#include <string>
#include <thread>

#include "app/api/run_pins.h"
#include "app/api/store_condition.h"
#include "app/api/store_figures.h"
#include "app/api/stream_hub.h"
#include "app/config/app_config.h"
#include "app/config/insights_place.h"
#include "core/clock.h"
#include "core/log.h"
#include "core/result.h"
#include "core/telemetry.h"
#include "core/value.h"
#include "ingest/ingest.h"
#include "insights/insights.h"

namespace tocsin::app {

/// Reads on a thread of its own from its making on, and tells the hub which runs have changed once
/// that is durable, and how the store stands when that changes (`store`). What goes wrong is retried, and disturbs nobody else.
class InsightsFeed {
 public:
  /// All outlive it.
  InsightsFeed(const AppConfig& config, ingest::Transport& transport, const core::Clock& clock,
               core::Log& log, StreamHub& hub, RunPins& pins, core::Telemetry& telemetry);
  ~InsightsFeed();
  InsightsFeed(const InsightsFeed&) = delete;
  InsightsFeed& operator=(const InsightsFeed&) = delete;

  /// unavailable: it is off, or nothing can be read at present, and why.
  [[nodiscard]] core::Result<std::unique_ptr<insights::EventReader>> reader() const;
  /// Whether the topics were read to their end.
  [[nodiscard]] bool current() const { return current_; }
  /// How the store stands, for GET /api/v1/status; null: it is off.
  [[nodiscard]] core::Value condition() const;
  /// Why the store is not written; empty: it is, or nobody has tried yet.
  [[nodiscard]] std::string trouble() const { return condition_.trouble(); }

 private:
  class Reading;
  void run(const std::stop_token& stop);
  core::Status follow(const std::stop_token& stop);
  core::Error failed(const core::Error& error);
  void is_current();

  insights::Config config_;
  std::string path_;
  std::string source_;  // what is read, so that a store of something else is not gone on with
  std::string cluster_;
  ingest::Transport& transport_;
  const core::Clock& clock_;
  core::Log& log_;
  StreamHub& hub_;
  RunPins& pins_;
  StoreFigures figures_;      // of the thread
  insights::StoreHold hold_;  // the same
  mutable StoreCondition condition_;
  std::atomic<bool> current_ = false;
  std::jthread thread_;
};

}  // namespace tocsin::app
