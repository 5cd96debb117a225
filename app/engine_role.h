// The engine thread: telemetry in, issues out, one commit for both (streaming-on-kafka §6.8).
#pragma once

#include <atomic>
#include <map>
#include <memory>
#include <set>
#include <stop_token>
#include <string>
#include <vector>

#include "core/clock.h"
#include "core/log.h"
#include "core/record_publisher.h"
#include "core/record_source.h"
#include "core/telemetry.h"
#include "ingest/ingest.h"
#include "rules/rules.h"

namespace tocsin::app {

struct EngineRoleOptions {
  rules::RulesConfig rules;
  rules::EngineConfig engine;
  std::string cluster;
  std::map<std::string, std::string> labels;
  std::string topic_prefix = "tocsin";
  std::string instance = "0";  // of several threads or processes: part of the transactional id
};

/// Everything here belongs to the thread that calls run(), except ready() and failed().
class EngineRole final : public core::AssignmentListener {
 public:
  EngineRole(ingest::Transport& transport, EngineRoleOptions options, core::Clock& clock,
             core::Log& log, core::Telemetry& telemetry);
  ~EngineRole() override;

  /// Opens source, publisher and engine; not_found names missing topics.
  core::Status open();
  /// Reads, judges and commits until asked to stop; then snapshots, commits and leaves.
  void run(const std::stop_token& stop);

  /// All assigned partitions are restored and live, and the last commit went through.
  [[nodiscard]] bool ready() const noexcept { return ready_.load(std::memory_order_relaxed); }

  void assigned(std::span<const core::Position> committed) override;
  void revoked(std::span<const core::StreamPartition> partitions) override;
  void lost(std::span<const core::StreamPartition> partitions) override;

 private:
  struct Probe;
  struct Restoring;  // a partition between its assignment and going live

  void handle(const core::RecordView& record);
  void restore_assigned();
  core::Status begin_restore(std::int32_t partition, Restoring& state);
  void advance_restore();
  void go_live(std::int32_t partition, Restoring& state);
  void gather();
  void gather(rules::Output output);
  void snapshot_all();
  core::Status commit_pending();
  void commit_or_keep();
  void report(const rules::Output& output);
  void start_over(const core::Error& error);
  void forget(std::span<const core::StreamPartition> partitions);
  [[nodiscard]] bool due(core::Duration now) const;

  ingest::Transport& transport_;
  EngineRoleOptions options_;
  core::Clock& clock_;
  core::Log& log_;
  std::unique_ptr<Probe> probe_;
  std::unique_ptr<rules::Engine> engine_;
  std::unique_ptr<core::RecordSource> source_;
  std::unique_ptr<core::RecordPublisher> publisher_;
  ingest::JsonScalarDecoder json_;
  std::string telemetry_topic_;

  std::set<std::int32_t> live_;
  std::map<std::int32_t, Restoring> restoring_;
  std::vector<core::OutRecord> pending_;   // outputs of the open transaction, kept until committed
  std::vector<rules::Output> unreported_;  // logged once they are durable
  bool moved_ = false;                     // records were read since the last commit
  core::Duration last_commit_{};
  core::Duration last_tick_{};
  core::Duration last_snapshot_{};
  core::Duration retry_at_{};
  core::Duration backoff_{};
  std::atomic<bool> ready_{false};
};

}  // namespace tocsin::app
