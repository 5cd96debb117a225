// Who waits for what a bad frame leads to: readers of `issues`, `router-outbox` and `commands`, and
// the time since the frame was produced at which each saw it. The same readers watch the product
// and the floor.
#pragma once

#include <chrono>
#include <functional>
#include <map>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "core/record.h"
#include "ingest/ingest.h"

namespace tocsin::bench {

/// Sizes of what the product writes for one bad frame, for a floor that writes as much.
struct RecordSizes {
  std::size_t issue = 0;
  std::size_t notification = 0;
  std::size_t command = 0;
};

class LatencyWatch {
 public:
  static constexpr const char* kIssue = "issue readable";
  static constexpr const char* kEvaluated = "evaluated";  // the product's own word
  static constexpr const char* kNotification = "notification readable";
  static constexpr const char* kStop = "stop seen by the loop";

  /// `product`: records are issues, notifications and commands; else the key of each is the run.
  LatencyWatch(ingest::Transport& transport, bool product);

  /// A bad frame of this run is produced now.
  void produced(const core::RunUid& run);
  /// Until everything that was produced has been seen at this stage, or the time is over. Returns
  /// how many were not.
  std::size_t wait(const std::string& stage, std::chrono::milliseconds longest) const;
  /// All times in milliseconds, by stage, since the last take(); forgets them.
  [[nodiscard]] std::map<std::string, std::vector<double>> take();
  [[nodiscard]] RecordSizes sizes() const;

 private:
  using Steady = std::chrono::steady_clock;
  struct Times {
    Steady::time_point produced;
    std::map<std::string, double> stage_ms;
  };
  using Handle = std::function<void(const core::RecordView&)>;

  void read(const std::stop_token& stop, const char* topic, const Handle& handle);
  void note(const core::RunUid& run, const char* stage);
  void note(const core::RunUid& run, const char* stage, double ms);
  void on_issue(const core::RecordView& record);
  void on_notification(const core::RecordView& record);
  void on_command(const core::RecordView& record);

  ingest::Transport& transport_;
  const bool product_;
  mutable std::mutex mutex_;  // guards what follows
  std::map<core::RunUid, Times> times_;
  RecordSizes sizes_;
  std::vector<std::jthread> readers_;  // last: they use all of the above
};

}  // namespace tocsin::bench
