// The topic of telemetry, read as nobody, into the store of series that curves are drawn from.
#pragma once

#include <atomic>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "app/api/bad_chunks.h"
#include "app/api/run_pins.h"
#include "app/api/store_condition.h"
#include "app/api/store_figures.h"
#include "app/api/stream_hub.h"
#include "app/config/app_config.h"
#include "core/clock.h"
#include "core/log.h"
#include "core/result.h"
#include "core/telemetry.h"
#include "core/value.h"
#include "ingest/ingest.h"
#include "insights/insights.h"

namespace tocsin::app {

/// Reads on a thread of its own from its making on, and tells the hub of runs that have new values
/// (`tick`, as TickPace says when), and how the store stands when that changes (`store`). What goes wrong is retried, and disturbs nobody else.
class CurvesFeed {
 public:
  /// All outlive it.
  CurvesFeed(const AppConfig& config, ingest::Transport& transport, const core::Clock& clock,
             core::Log& log, StreamHub& hub, const RunPins& pins, core::Telemetry& telemetry);
  ~CurvesFeed();
  CurvesFeed(const CurvesFeed&) = delete;
  CurvesFeed& operator=(const CurvesFeed&) = delete;

  /// unavailable: it is off, or nothing can be read at present, and why.
  [[nodiscard]] core::Result<std::unique_ptr<insights::SeriesReader>> reader() const;
  /// Whether the topic was read to its end.
  [[nodiscard]] bool current() const { return current_; }
  /// As that of InsightsFeed.
  [[nodiscard]] core::Value condition() const;
  /// Why the store is not written; empty: it is, or nobody has tried yet.
  [[nodiscard]] std::string trouble() const { return condition_.trouble(); }

 private:
  class Reading;
  void run(const std::stop_token& stop);
  core::Status follow(const std::stop_token& stop);
  core::Error failed(const core::Error& error);

  core::Status look_back(bool whole, insights::SeriesWriter& store,
                         std::vector<core::Position>& out);

  insights::Config config_;
  ingest::TransportConfig place_;  // of the topic, to ask it for a time
  ingest::TopicsConfig topics_;
  std::string path_;
  std::string source_;  // what is read, so that a store of something else is not gone on with
  ingest::Transport& transport_;
  const core::Clock& clock_;
  core::Log& log_;
  StreamHub& hub_;
  const RunPins& pins_;
  StoreFigures figures_;      // of the thread
  insights::StoreHold hold_;  // the same
  mutable StoreCondition condition_;
  mutable BadChunks bad_chunks_;
  std::atomic<bool> current_ = false;
  std::jthread thread_;
};

}  // namespace tocsin::app
