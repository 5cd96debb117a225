// RecordPublisher on Kafka: records by an idempotent producer, commits as transactions.
#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "core/mutex.h"
#include "core/record_publisher.h"
#include "ingest/kafka/producer.h"
#include "ingest/kafka/source.h"

namespace tocsin::ingest {

/// publish(), flush() and write_ahead() from any thread; commit() from the thread that polls the source.
class KafkaPublisher final : public core::RecordPublisher {
 public:
  static core::Result<std::unique_ptr<KafkaPublisher>> open(const KafkaContext& context,
                                                            PublisherOptions options);
  ~KafkaPublisher() override;

  core::Status publish(const core::OutRecord& record) override;
  core::Status flush(std::chrono::milliseconds timeout) override;
  core::Status commit(std::span<const core::OutRecord> records,
                      std::span<const core::Position> positions) override;
  bool write_ahead(const core::OutRecord& record) override;
  core::Result<std::int32_t> partitions(std::string_view topic) override;

 private:
  using Deadline = std::chrono::steady_clock::time_point;

  /// Where the transaction that a failed call left behind stands.
  enum class Left {
    nothing,
    to_abort,   // the abort did not come through
    to_commit,  // the commit was asked for, no answer came: ask again
    in_doubt,   // as to_commit, but the producer was lost: the owner reads back what is there
  };

  KafkaPublisher(const KafkaContext& context, PublisherOptions options, KafkaSource* source);

  /// What the transaction that was left behind holds.
  struct Content {
    std::size_t records = 0;
    std::uint64_t hash = 0;
  };
  static Content content_of(std::span<const core::OutRecord> records);
  static bool begins_with(std::span<const core::OutRecord> records, const Content& content);

  core::Status commit_transaction(std::span<const core::OutRecord> records,
                                  std::span<const core::Position> positions, Deadline deadline);
  core::Status settle(std::span<const core::OutRecord> records, Deadline deadline);
  core::Status write_transaction(std::span<const core::OutRecord> records,
                                 std::span<const core::Position> positions, Deadline deadline);
  core::Status commit_at_least_once(std::span<const core::OutRecord> records,
                                    std::span<const core::Position> positions, Deadline deadline);
  core::Status commit_behind(std::span<const core::OutRecord> records,
                             std::span<const core::Position> positions, Deadline deadline);
  core::Status store_positions(std::span<const core::Position> positions, Deadline deadline);
  core::Status make_ready(Deadline deadline);
  core::Status produce_all(KafkaProducer& producer, std::span<const core::OutRecord> records,
                           Deadline deadline);
  core::Status send_positions(std::span<const core::Position> positions, Deadline deadline);
  core::Status finish(Deadline deadline);
  core::Status abort(core::Error why, Deadline deadline);
  core::Status failed(Kafka<rd_kafka_error_t> error, std::string_view doing, bool was_commit,
                      Deadline deadline);
  void lose_producer();
  core::Result<KafkaProducer*> plain();
  [[nodiscard]] bool takes_positions() const { return source_ != nullptr && source_->in_group(); }
  [[nodiscard]] Kafka<rd_kafka_topic_partition_list_t> offsets_of(
      std::span<const core::Position> positions) const;

  const KafkaContext& context_;
  const PublisherOptions options_;
  KafkaSource* const source_;  // null: commits carry no positions
  core::Counter& committed_;
  core::Counter& failed_;
  core::Histogram& duration_;

  core::Mutex plain_mutex_;
  std::unique_ptr<KafkaProducer> plain_ GUARDED_BY(plain_mutex_);

  std::unique_ptr<KafkaProducer> transactional_;
  bool initialised_ = false;
  Left left_ = Left::nothing;
  Content content_;                              // of the one that is to_commit
  std::vector<core::Position> their_positions_;  // and what it says about positions
  // What is durable already of a commit that has not succeeded as a whole: it went through after
  // its answer was lost, and what came behind it failed. It is not written again.
  Content settled_;
  bool fenced_ = false;
};

}  // namespace tocsin::ingest
