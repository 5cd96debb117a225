// The partitions that a Kafka reader has: where each stands, and how the library is told to stand
// elsewhere.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "core/record_source.h"
#include "ingest/kafka/config.h"

namespace tocsin::ingest {

struct KafkaAssigned {
  core::StreamPartition where;
  const rd_kafka_topic_t* handle = nullptr;  // of the last message, to find it fast
  std::int64_t next = -1;                    // behind the last record handed out
  std::int64_t start = RD_KAFKA_OFFSET_BEGINNING;
  bool paused = false;
  bool at_end = false;
};

/// Lives on the reader's thread.
class KafkaAssignments {
 public:
  explicit KafkaAssignments(const KafkaContext& context) : context_(context) {}

  KafkaAssigned* find(const core::StreamPartition& where);
  KafkaAssigned* find(const rd_kafka_message_t& message);
  KafkaAssigned& add(core::StreamPartition where);
  void forget(std::span<const core::StreamPartition> gone);
  void clear() { all_.clear(); }

  /// Sets `paused` of these; those of which it was different.
  std::vector<core::StreamPartition> set_paused(std::span<const core::StreamPartition> partitions,
                                                bool paused);
  [[nodiscard]] std::vector<core::StreamPartition> names() const;
  /// So many of them at most, other ones each time.
  [[nodiscard]] std::vector<core::StreamPartition> next_names(std::size_t most);
  [[nodiscard]] bool all_at_end() const;
  [[nodiscard]] bool at_end(const core::StreamPartition& where) const;

  /// Has the library go on at `offset` in this partition.
  core::Status move(rd_kafka_t* client, KafkaAssigned& partition, std::int64_t offset);
  /// Gives the library all partitions with their starts, and pauses those that are.
  core::Status assign(rd_kafka_t* client);

  [[nodiscard]] bool empty() const noexcept { return all_.empty(); }
  [[nodiscard]] auto begin() const noexcept { return all_.begin(); }
  [[nodiscard]] auto end() const noexcept { return all_.end(); }

 private:
  core::Status restart(rd_kafka_t* client, KafkaAssigned& partition, std::int64_t offset);

  const KafkaContext& context_;
  std::vector<KafkaAssigned> all_;
  std::size_t last_found_ = 0;
  std::size_t last_named_ = 0;
};

/// Where the group stands at these positions' partitions; −1: nothing was committed.
core::Result<std::vector<core::Position>> committed_positions(
    const KafkaContext& context, rd_kafka_t* client, std::span<const core::Position> positions,
    std::chrono::milliseconds timeout);

}  // namespace tocsin::ingest
