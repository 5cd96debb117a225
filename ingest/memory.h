// A broker in memory for tests of everything that reads and writes topics: partitions with offsets,
// atomic commits, committed positions per group, compaction on read_all, and induced errors.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "ingest/transport.h"

namespace tocsin::ingest {

/// A record as it lies in a topic.
struct StoredRecord {
  core::OutRecord record;
  std::int32_t partition = 0;
  std::int64_t offset = 0;
};

/// Thread-safe. poll() with a timeout waits for records of another thread; records without a
/// timestamp get `now`, a hand-moved time. Topics exist as the plan of `topics` says; others are
/// not_found.
class MemoryBroker final : public Transport {
 public:
  explicit MemoryBroker(const TopicsConfig& topics = one_partition());
  ~MemoryBroker() override;

  /// The default plan with one partition per topic: what most unit tests want.
  static TopicsConfig one_partition();

  core::Result<std::unique_ptr<core::RecordSource>> source(SourceOptions options) override;
  core::Result<std::unique_ptr<core::RecordPublisher>> publisher(PublisherOptions options) override;
  core::Result<std::unique_ptr<core::Lease>> lease(std::string_view name) override;
  core::Status ensure_topics() override;
  core::Result<std::vector<TopicState>> topic_states() override;
  core::Status ping(std::chrono::milliseconds timeout) override;
  core::Status apply_retention(core::WallTime now) override;
  [[nodiscard]] bool is_kafka() const override { return false; }
  [[nodiscard]] std::string describe() const override { return "memory"; }

  void set_now(core::WallTime now);
  /// The next `times` calls of that kind on any source or publisher fail with `error`; nothing of
  /// a failed commit becomes visible.
  void fail_next_commits(core::Error error, int times = 1);
  void fail_next_publishes(core::Error error, int times = 1);
  void fail_next_polls(core::Error error, int times = 1);
  void fail_next_flushes(core::Error error, int times = 1);
  void fail_pings(core::Error error);  // until heal()
  void heal();                         // forgets all induced errors

  /// Everything in a topic, partition by partition, oldest first (tombstones included).
  [[nodiscard]] std::vector<StoredRecord> records(std::string_view topic) const;
  /// Appends as an outside producer would.
  void append(core::OutRecord record);
  /// Drops everything below `offset`, as retention does: readers behind it see data_loss.
  void trim(std::string_view topic, std::int32_t partition, std::int64_t offset);
  /// Where the group stands; partitions that were never committed are absent.
  [[nodiscard]] std::vector<core::Position> committed(std::string_view group) const;
  /// A rebalance: the group's source sees revoked() (or lost()) and then assigned() in its next
  /// poll. Records read before count as not handed out.
  void rebalance(std::string_view group, bool lost = false);

  struct State;

 private:
  std::shared_ptr<State> state_;
};

}  // namespace tocsin::ingest
