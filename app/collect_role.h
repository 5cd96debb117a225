// The node agent: system samples out, on the route key of every run of this node; and local stops.
#pragma once

#include <atomic>
#include <map>
#include <memory>
#include <optional>
#include <stop_token>
#include <string>

#include "actions/actions.h"
#include "collectors/collectors.h"
#include "core/clock.h"
#include "core/log.h"
#include "core/record_publisher.h"
#include "core/record_source.h"
#include "ingest/ingest.h"

namespace tocsin::app {

struct CollectRoleOptions {
  collectors::Config collect;
  std::string host;
  std::string topic_prefix = "tocsin";
};

/// One thread. Learns from `registry` which runs live on this host, sends each of them every sweep
/// (so joins of tensor and system data need no repartition), and watches their processes.
class CollectRole {
 public:
  CollectRole(ingest::Transport& transport, CollectRoleOptions options, core::Clock& clock,
              core::Log& log, core::Telemetry& telemetry);
  ~CollectRole();

  core::Status open();
  void run(const std::stop_token& stop);
  [[nodiscard]] bool ready() const noexcept { return ready_.load(std::memory_order_relaxed); }

 private:
  struct Target;

  void handle(const core::RecordView& record);
  void on_job(const core::JobEvent& event);
  void send(const collectors::Sweep& sweep);
  void send_to(Target& target, const std::string& key, const collectors::Sweep& sweep);
  core::Status publish(std::string key, std::span<const std::byte> frame, core::WallTime time);

  ingest::Transport& transport_;
  CollectRoleOptions options_;
  core::Clock& clock_;
  core::Log& log_;
  core::Telemetry& telemetry_;
  core::Counter& dropped_;
  std::uint64_t incarnation_ = 0;
  std::unique_ptr<collectors::NodeCollector> node_;
  std::unique_ptr<core::RecordSource> source_;
  std::unique_ptr<core::RecordPublisher> publisher_;
  ingest::FrameWriter writer_;
  std::map<core::RunUid, Target> runs_;
  std::unique_ptr<Target> unattributed_;
  std::vector<core::SystemRow> rows_;
  std::atomic<bool> ready_{false};
};

/// Answers to stop commands as they come (log), and signals to processes of this host when a run
/// does not answer in time. One thread.
class StopRole {
 public:
  StopRole(ingest::Transport& transport, std::string host, core::Clock& clock, core::Log& log,
           core::Telemetry& telemetry);
  core::Status open();
  void run(const std::stop_token& stop);

 private:
  void handle(const core::RecordView& record);
  void report(const std::vector<actions::StopTransition>& transitions);

  ingest::Transport& transport_;
  core::Clock& clock_;
  core::Log& log_;
  actions::LocalStopAgent agent_;
  std::unique_ptr<core::RecordSource> source_;
  core::WallTime started_{};
  bool caught_up_ = false;
};

}  // namespace tocsin::app
