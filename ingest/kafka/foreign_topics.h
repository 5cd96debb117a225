// Records for topics of the user's, tried before they are written for good.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "core/mutex.h"
#include "core/record.h"
#include "core/result.h"
#include "ingest/kafka/producer.h"

namespace tocsin::ingest {

/// The specs of topics by their own names; their short names begin with a slash. invalid_argument: no name
/// of a topic, or one of Tocsin's own.
core::Result<std::vector<TopicSpec>> foreign_topics(const std::vector<std::string>& names,
                                                    const std::string& prefix);

/// Writes a record in a transaction and takes that back. Thread-safe: one record at a time.
class KafkaTrial {
 public:
  explicit KafkaTrial(const KafkaContext& context) : context_(context) {}
  core::Status take(const core::OutRecord& record);

 private:
  core::Status ready(int timeout_ms) REQUIRES(mutex_);
  core::Status write_and_take_back(const core::OutRecord& record) REQUIRES(mutex_);

  const KafkaContext& context_;
  core::Mutex mutex_;
  std::unique_ptr<KafkaProducer> producer_ GUARDED_BY(mutex_);
};

}  // namespace tocsin::ingest
