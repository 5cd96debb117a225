// One librdkafka producer: queues records, knows topics and partition counts, counts deliveries.
#pragma once

#include <array>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "core/mutex.h"
#include "core/record.h"
#include "core/result.h"
#include "core/telemetry.h"
#include "ingest/kafka/config.h"

namespace tocsin::ingest {

/// Thread-safe.
class KafkaProducer {
 public:
  /// `transactional_id` empty: a plain idempotent producer.
  static core::Result<std::unique_ptr<KafkaProducer>> open(const KafkaContext& context,
                                                           const PublisherOptions& options,
                                                           const std::string& transactional_id);

  /// Queues a copy; never blocks. Errors as RecordPublisher::publish.
  core::Status produce(const core::OutRecord& record);
  /// The same, but leaves the reports on deliveries to whoever waits in deliver().
  core::Status produce_unserved(const core::OutRecord& record);
  /// deadline_exceeded when not everything was delivered; else the first failure since last time.
  core::Status flush(std::chrono::milliseconds timeout);
  /// As flush(), of what was queued before this call: others may go on queueing. One call at a time.
  core::Status deliver(std::chrono::steady_clock::time_point deadline);
  /// Serves delivery callbacks, waiting at most `timeout` for one.
  void serve(std::chrono::milliseconds timeout);
  /// The first failed delivery since last asked.
  std::optional<core::Error> take_failure();
  /// Drops what is queued or on its way.
  void purge();

  /// Asks the cluster when it is not known yet; waits at most `timeout`.
  core::Result<std::int32_t> partitions(std::string_view topic, std::chrono::milliseconds timeout);
  /// Whether partitions() would answer at once.
  [[nodiscard]] bool knows(std::string_view topic);
  /// Makes the first record of a topic as quick as the others: fetches its leaders now.
  core::Status warm_up(std::string_view topic, std::chrono::milliseconds timeout);

  [[nodiscard]] rd_kafka_t* get() const noexcept { return client_->get(); }

 private:
  struct Topic {
    Kafka<rd_kafka_topic_t> handle;
    std::size_t max_bytes = 0;
    std::optional<std::int32_t> partitions;
    bool warm = false;
    bool missing = false;  // the last delivery said so
  };

  explicit KafkaProducer(const KafkaContext& context);
  core::Result<Topic*> topic(std::string_view name) REQUIRES(mutex_);
  core::Status learn_partitions(std::chrono::milliseconds timeout);
  void delivered(const rd_kafka_message_t& message);
  static void on_delivery(rd_kafka_t* client, const rd_kafka_message_t* message,
                          void* opaque) noexcept;
  static std::int32_t choose_partition(const rd_kafka_topic_t* topic, const void* key,
                                       std::size_t key_size, std::int32_t count, void* opaque,
                                       void* message_opaque) noexcept;

  const KafkaContext& context_;
  core::Counter& delivered_;
  core::Counter& failed_;
  // Before the topics: their handles go first, for each writes into its client when it goes.
  std::unique_ptr<KafkaClient> client_;
  core::Mutex mutex_;
  std::map<std::string, Topic, std::less<>> topics_ GUARDED_BY(mutex_);
  std::map<std::string, std::int32_t, std::less<>> known_partitions_ GUARDED_BY(mutex_);
  std::optional<core::Error> failure_ GUARDED_BY(mutex_);
  // A record is of the round in which it was queued; deliver() begins a new one and waits for the old.
  std::size_t round_ GUARDED_BY(mutex_) = 0;
  std::array<std::size_t, 2> on_the_way_ GUARDED_BY(mutex_){};  // records per round
};

}  // namespace tocsin::ingest
