// Looks after the process once a second and tells one truth in three places: `/-/ready`, the topic
// `issues` (so `tocsin status` and people), and the log.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "app/health/process_trouble.h"
#include "core/clock.h"
#include "core/log.h"
#include "core/mutex.h"
#include "core/telemetry.h"
#include "ingest/ingest.h"

namespace tocsin::app {

struct HealthPorts {
  ingest::Transport* transport = nullptr;
  core::Clock* clock = nullptr;
  core::Log* log = nullptr;
  core::Telemetry* telemetry = nullptr;
  /// What is wrong with the stages now.
  std::function<std::vector<Trouble>()> stages;
};

/// look() on one thread; the others from anywhere.
class HealthWatch {
 public:
  HealthWatch(HealthPorts ports, ProcessTrouble trouble);
  ~HealthWatch();

  /// Call about every second: looks, and publishes what is due. Publishing waits 2 s at most.
  void look();
  /// What keeps the process from its work, a line each, as look() last found it; empty: nothing.
  [[nodiscard]] std::string blocking() const;

 private:
  void look_at_topics();
  void compare_topics();
  void look_at_descriptors();
  [[nodiscard]] std::vector<Trouble> standing();
  void publish(const std::vector<core::Issue>& issues);
  core::Status try_publish(const std::vector<core::Issue>& issues);

  HealthPorts ports_;
  ProcessTrouble trouble_;
  std::unique_ptr<core::RecordPublisher> publisher_;
  core::Duration topics_due_{};  // steady
  bool compared_ = false;        // settings of topics, with success
  bool unpublished_ = false;     // told in the log
  std::vector<Trouble> missing_;
  std::vector<Trouble> unsafe_;
  std::vector<Trouble> descriptors_;
  mutable core::Mutex mutex_;
  std::string blocking_ GUARDED_BY(mutex_);
  core::Gauge& standing_;
};

}  // namespace tocsin::app
