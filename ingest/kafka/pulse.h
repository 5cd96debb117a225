// Does the cluster still answer? A consumer that hears nothing cannot tell quiet from cut off: the
// library reports the end of a partition once and is silent when a broker freezes.
#pragma once

#include <librdkafka/rdkafka.h>

#include <atomic>
#include <chrono>
#include <cstdint>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "core/mutex.h"

namespace tocsin::ingest {

/// Asks the leader of one partition after the other for its offsets, once a second, on a thread of
/// its own. `client` outlives it.
class KafkaPulse {
 public:
  using Topic = std::pair<std::string, std::int32_t>;  // full name, partition

  explicit KafkaPulse(rd_kafka_t* client);
  /// Waits for the question under way: at most a second.
  ~KafkaPulse();
  KafkaPulse(const KafkaPulse&) = delete;
  KafkaPulse& operator=(const KafkaPulse&) = delete;

  /// Replaces what is asked about.
  void watch(std::vector<Topic> partitions);
  /// There was an answer within the last two seconds, and for a second before that nothing failed:
  /// after a silence what came meanwhile is fetched first.
  [[nodiscard]] bool steady() const;

 private:
  void run(const std::stop_token& stop);
  [[nodiscard]] bool answered(const Topic& topic) const;

  rd_kafka_t* client_;
  core::Mutex mutex_;
  core::StoppableCondVar changed_;
  std::vector<Topic> partitions_ GUARDED_BY(mutex_);
  std::atomic<std::int64_t> answered_at_{0};  // steady ns; 0: never
  std::atomic<std::int64_t> since_{0};        // steady ns: answers came without a break since then
  std::jthread thread_;                       // last: ends first
};

}  // namespace tocsin::ingest
