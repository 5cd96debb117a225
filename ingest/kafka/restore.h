// Reads a partition from one end to the other, beside what its owner reads: for state.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string_view>

#include "core/record_source.h"
#include "ingest/kafka/config.h"
#include "ingest/kafka/prefetch.h"

namespace tocsin::ingest {

/// A consumer of no group, started when it is first asked for. Lives on its owner's thread.
class KafkaRestore {
 public:
  explicit KafkaRestore(const KafkaContext& context) : context_(context) {}

  /// What RecordSource::read_all promises.
  core::Status read_all(std::string_view topic, std::int32_t partition,
                        std::optional<core::WallTime> since, core::RecordHandler handler);

  void close() { client_.reset(); }

 private:
  core::Result<rd_kafka_t*> client();
  core::Result<std::int64_t> first_offset(rd_kafka_t* client, const core::StreamPartition& where,
                                          core::WallTime since);
  core::Status read_to_end(rd_kafka_t* client, const core::StreamPartition& where,
                           core::RecordHandler handler);

  const KafkaContext& context_;
  std::unique_ptr<KafkaClient> client_;
  KafkaPrefetch prefetch_;
};

}  // namespace tocsin::ingest
