// The router thread: issues in, decided notifications out, one commit for both and for the state.
//
// One router is active at a time: groups may span runs, so all partitions of `issues` belong to it.
// On
// Kafka a second one that starts takes over (its transactional id fences the first); on the journal
// it does not start (the writer is taken).
#pragma once

#include <atomic>
#include <map>
#include <memory>
#include <set>
#include <stop_token>
#include <string>
#include <vector>

#include "actions/actions.h"
#include "core/clock.h"
#include "core/log.h"
#include "core/record_publisher.h"
#include "core/record_source.h"
#include "core/telemetry.h"
#include "ingest/ingest.h"
#include "routing/routing.h"

namespace tocsin::app {

/// Integration id → the action that renders and sends; shared by the router (render) and the
/// deliverer (execute).
using Actions = std::map<std::string, std::unique_ptr<core::Action>>;

struct RouterRoleOptions {
  routing::RouteConfig route;
  std::vector<routing::RuleActions> rule_actions;
  std::vector<routing::Integration> integrations;
  routing::Config limits;
  std::string config_version;
  std::string cluster;
  std::string topic_prefix = "tocsin";
};

class RouterRole final : public core::AssignmentListener {
 public:
  RouterRole(ingest::Transport& transport, RouterRoleOptions options, const Actions& actions,
             actions::IssueMetrics& issue_metrics, core::Clock& clock, core::Log& log,
             core::Telemetry& telemetry);
  ~RouterRole() override;

  core::Status open();
  void run(const std::stop_token& stop);
  [[nodiscard]] bool ready() const noexcept { return ready_.load(std::memory_order_relaxed); }

  void assigned(std::span<const core::Position> committed) override;
  void revoked(std::span<const core::StreamPartition> partitions) override;
  void lost(std::span<const core::StreamPartition> partitions) override;

 private:
  struct Probe;

  [[nodiscard]] core::WallTime now() const;
  core::Status make_router();
  void restore_if_assigned();
  void restore_metrics();
  void handle(const core::RecordView& record);
  void handle_event(const core::RecordView& record);
  void gather();
  core::Status commit();
  void start_over(const core::Error& error);

  ingest::Transport& transport_;
  RouterRoleOptions options_;
  const Actions& actions_;
  actions::IssueMetrics& issue_metrics_;
  core::Clock& clock_;
  core::Log& log_;
  std::unique_ptr<Probe> probe_;
  core::WallTime wall_anchor_;  // steady wall time: a jump of the clock moves no timer
  core::Duration monotonic_anchor_;
  std::unique_ptr<routing::Router> router_;
  std::unique_ptr<core::RecordSource> source_;
  std::unique_ptr<core::RecordPublisher> publisher_;

  bool restored_ = false;
  std::vector<core::StreamPartition> waiting_;  // assigned, still paused
  std::vector<core::OutRecord> pending_;
  std::vector<core::Notification> unreported_;
  bool moved_ = false;  // records were read since the last commit
  core::Duration retry_at_{};
  core::Duration backoff_{};
  std::atomic<bool> ready_{false};
};

}  // namespace tocsin::app
