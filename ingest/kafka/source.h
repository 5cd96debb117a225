// RecordSource on Kafka: a member of a consumer group, or a group-less reader.
#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "core/record_source.h"
#include "ingest/kafka/assigned.h"
#include "ingest/kafka/config.h"
#include "ingest/kafka/prefetch.h"
#include "ingest/kafka/pulse.h"
#include "ingest/kafka/restore.h"
#include "ingest/kafka/wake.h"

namespace tocsin::ingest {

/// Lives on one thread; only group_client() and wake() may be used from others. Offsets are never
/// stored by the library: what is committed is what commit() of a publisher is given.
class KafkaSource final : public core::RecordSource {
 public:
  static core::Result<std::unique_ptr<KafkaSource>> open(const KafkaContext& context,
                                                         SourceOptions options);
  ~KafkaSource() override;

  core::Result<std::size_t> poll(std::chrono::milliseconds timeout, std::size_t max_records,
                                 core::RecordHandler handler) override;
  core::Status seek(const core::Position& position) override;
  core::Status pause(std::span<const core::StreamPartition> partitions) override;
  core::Status resume(std::span<const core::StreamPartition> partitions) override;
  [[nodiscard]] std::vector<core::Position> positions() const override;
  [[nodiscard]] bool at_end() const override;
  [[nodiscard]] bool at_end(const core::StreamPartition& where) const override;
  void wake() override;
  core::Status read_all(std::string_view topic, std::int32_t partition,
                        std::optional<core::WallTime> since, core::RecordHandler handler) override;
  void close(std::chrono::milliseconds deadline) override;

  /// For the publisher that commits our positions; null when group-less or closed.
  [[nodiscard]] rd_kafka_t* group_client() const noexcept;
  [[nodiscard]] bool in_group() const noexcept { return !options_.group.empty(); }
  /// Where the group stands at these positions' partitions.
  core::Result<std::vector<core::Position>> committed(std::span<const core::Position> positions,
                                                      std::chrono::milliseconds timeout) const;

 private:
  KafkaSource(const KafkaContext& context, SourceOptions options);

  void leave(std::chrono::milliseconds deadline);
  core::Status start_client();
  core::Status assign_without_group();
  core::Status announce_late();
  core::Status start_partitions(std::vector<core::StreamPartition> partitions);
  void hand_to_owner(std::span<const core::Position> committed);
  void on_assigned(rd_kafka_topic_partition_list_t& list);
  void on_revoked(rd_kafka_topic_partition_list_t& list);
  void feel_pulse();
  static void on_rebalance(rd_kafka_t* client, rd_kafka_resp_err_t error,
                           rd_kafka_topic_partition_list_t* list, void* opaque) noexcept;
  static void on_error(rd_kafka_t* client, int error, const char* reason, void* opaque) noexcept;

  /// True when the message was handed out.
  bool take(rd_kafka_message_t& message, core::RecordHandler handler);
  void read_on();
  void take_error(const rd_kafka_message_t& message);
  void report_gap(KafkaAssigned& partition, const rd_kafka_message_t& message);

  const KafkaContext& context_;
  const SourceOptions options_;
  core::Counter& gaps_;
  core::Counter& rebalances_;
  std::unique_ptr<KafkaClient> client_;
  KafkaWake wake_;  // of client_
  KafkaPrefetch prefetch_;
  KafkaRestore restore_;
  std::unique_ptr<KafkaPulse> pulse_;  // of a member: behind client_, it ends first
  KafkaAssignments assigned_;
  std::vector<core::StreamPartition> unannounced_;  // committed positions could not be read yet
  std::optional<core::Error> pending_error_;
  bool in_assignment_ = false;  // the owner is being told: seek() and resume() only note wishes
  bool ever_assigned_ = false;
  bool closed_ = false;
};

}  // namespace tocsin::ingest
