// Ends a reader's wait from another thread, also while the reader leaves.
#pragma once

#include <atomic>
#include <utility>

#include "core/mutex.h"
#include "ingest/kafka/config.h"

namespace tocsin::ingest {

class KafkaWake {
 public:
  /// From now on waits of this client's consumer are ended.
  void open(rd_kafka_t* client) {
    const core::MutexLock lock(mutex_);
    queue_ = rd_kafka_queue_get_consumer(client);
  }
  /// Before the client goes.
  void close() {
    const core::MutexLock lock(mutex_);
    if (queue_ != nullptr) rd_kafka_queue_destroy(queue_);
    queue_ = nullptr;
  }
  /// Thread-safe.
  void wake() {
    woken_ = true;
    const core::MutexLock lock(mutex_);
    if (queue_ != nullptr) rd_kafka_queue_yield(queue_);
  }
  /// Was it woken since it was last asked?
  bool woken() { return woken_.exchange(false); }

 private:
  core::Mutex mutex_;
  rd_kafka_queue_t* queue_ GUARDED_BY(mutex_) = nullptr;
  std::atomic<bool> woken_{false};
};

}  // namespace tocsin::ingest
