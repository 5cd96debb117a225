// How far the library reads ahead of us. What has lain in its queue for long is in no cache of the
// processor any more, and long queues are memory that the system has to find and clear: with half a
// gigabyte ahead, a reader that catches up needs twice the processor time.
#pragma once

#include <librdkafka/rdkafka.h>

#include <cstddef>

namespace tocsin::ingest {

/// What every consumer of ours may have read ahead, queued.max.messages.kbytes: some fetches.
inline constexpr std::size_t kPrefetchKiB = 16 * 1024;

/// Whether the library looks again by itself soon, by its setting fetch.queue.backoff.ms.
[[nodiscard]] bool has_queue_backoff() noexcept;

/// Until 2.2 the library looks but once a second whether a queue that was full has room again. A
/// question to a broker makes that broker's thread look at once: one is asked, and no answer awaited,
/// whenever a quarter of a full queue was taken from it. Lives on the reader's thread.
class KafkaPrefetch {
 public:
  /// So many in turn are asked about at a time: enough to meet all leaders soon.
  static constexpr std::size_t kPartitions = 16;

  /// Whether ask() is wanted, now that this message was taken.
  [[nodiscard]] bool wants(const rd_kafka_message_t& message) noexcept {
    constexpr std::size_t kLeast = 64;  // small records may fill the queue by their number
    const std::size_t size = message.len + message.key_len;
    taken_ += size < kLeast ? kLeast : size;
    return taken_ >= kEvery;
  }
  /// The leaders of these partitions, whose offsets and errors are overwritten.
  void ask(rd_kafka_t* client, rd_kafka_topic_partition_list_t& partitions);

 private:
  static constexpr std::size_t kEvery = kPrefetchKiB * 1024 / 4;

  std::size_t taken_ = 0;  // bytes since the last question
};

}  // namespace tocsin::ingest
