// What topics say, followed for as long as the process lives.
#pragma once

#include <chrono>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "app/api/topic_watch.h"
#include "app/view/topic_view.h"
#include "core/clock.h"
#include "core/function_ref.h"
#include "core/log.h"
#include "core/mutex.h"
#include "core/result.h"
#include "ingest/ingest.h"

namespace tocsin::app {

/// A TopicView on a thread of its own, which begins with the first reader: who never asks pays
/// nothing. What ended an hour ago is forgotten. Thread-safe.
class LiveView {
 public:
  /// All of them outlive it. `watches` see each record, in their order.
  LiveView(ingest::Transport& transport, const core::Clock& clock, core::Log& log,
           std::vector<TopicWatch*> watches = {})
      : transport_(transport), clock_(clock), log_(log), watches_(std::move(watches)) {}
  LiveView(const LiveView&) = delete;
  LiveView& operator=(const LiveView&) = delete;
  ~LiveView();

  /// Begins to follow the topics, if it does not yet.
  void follow();
  /// Calls `look` with what topics say now; it keeps nothing of the view. unavailable: the topics
  /// are not read to their end, after `patience`.
  core::Status read(core::FunctionRef<void(const TopicView&)> look,
                    std::chrono::milliseconds patience = std::chrono::seconds(10));
  /// Waits until the topics say it. unavailable: they did not within `patience`.
  core::Status await(core::FunctionRef<bool(const TopicView&)> said,
                     std::chrono::milliseconds patience);

 private:
  void begin() REQUIRES(mutex_);
  void run(const std::stop_token& stop);
  core::Status follow_once(const std::stop_token& stop);
  void take(const core::RecordView& record);
  void stand(bool at_end, const std::string& why_not) REQUIRES(mutex_);
  void tidy();

  ingest::Transport& transport_;
  const core::Clock& clock_;
  core::Log& log_;
  const std::vector<TopicWatch*> watches_;
  core::Mutex mutex_;
  core::CondVar changed_;
  TopicView view_ GUARDED_BY(mutex_);
  bool whole_ GUARDED_BY(mutex_) = false;  // the topics were read to their end
  std::string trouble_ GUARDED_BY(mutex_);
  std::jthread thread_ GUARDED_BY(mutex_);
  core::WallTime tidied_{};  // of the thread
};

}  // namespace tocsin::app
