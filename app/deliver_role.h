// The deliverer: outbox in, outside effects out. One thread schedules and commits; a small pool
// makes the blocking calls (routing-and-actions §5.3 step 3).
#pragma once

#include <atomic>
#include <memory>
#include <stop_token>
#include <string>
#include <utility>
#include <vector>

#include "actions/actions.h"
#include "app/router_role.h"
#include "core/clock.h"
#include "core/log.h"
#include "ingest/ingest.h"

namespace tocsin::app {

struct DeliverRoleOptions {
  std::vector<actions::LaneOptions> lanes;
  std::string cluster;
  std::string topic_prefix = "tocsin";
  core::Duration shutdown_grace = std::chrono::seconds(5);  // for calls in flight
};

class DeliverRole final : public core::AssignmentListener {
 public:
  DeliverRole(ingest::Transport& transport, DeliverRoleOptions options, const Actions& actions,
              actions::IssueMetrics& issue_metrics, core::Clock& clock, core::Log& log,
              core::Telemetry& telemetry);
  ~DeliverRole() override;

  core::Status open();
  void run(const std::stop_token& stop);
  [[nodiscard]] bool ready() const noexcept { return ready_.load(std::memory_order_relaxed); }

  void assigned(std::span<const core::Position> committed) override;
  void revoked(std::span<const core::StreamPartition> partitions) override;
  void lost(std::span<const core::StreamPartition> partitions) override;

 private:
  void restore_if_assigned();
  void handle(const core::RecordView& record);
  void start_attempts();
  void collect_finished();
  void gather();
  core::Status commit();
  void commit_or_keep();
  void start_over(const core::Error& error);
  [[nodiscard]] core::WallTime now() const;

  ingest::Transport& transport_;
  DeliverRoleOptions options_;
  const Actions& actions_;
  actions::IssueMetrics& issue_metrics_;
  core::Clock& clock_;
  core::Log& log_;
  core::Telemetry& telemetry_;
  core::WallTime wall_anchor_;  // steady wall time: anchored once, moved by the monotonic clock
  core::Duration monotonic_anchor_;

  std::unique_ptr<actions::DeliveryLanes> lanes_;
  std::unique_ptr<core::RecordSource> source_;
  std::unique_ptr<core::RecordPublisher> publisher_;
  bool restored_ = false;
  std::vector<core::StreamPartition> waiting_;
  std::vector<core::OutRecord> pending_;
  std::vector<core::Position> pending_positions_;
  std::vector<core::Delivery> unreported_;
  core::Duration retry_at_{};
  core::Duration backoff_{};
  std::atomic<bool> ready_{false};

  std::unique_ptr<actions::DeliveryPool> pool_;
};

}  // namespace tocsin::app
