// What every consumer of ours on Kafka shares: its settings, lists of partitions, records of messages.
#pragma once

#include <chrono>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "core/record_source.h"
#include "ingest/kafka/config.h"

namespace tocsin::ingest {

using ConsumerSettings = std::vector<std::pair<std::string_view, std::string>>;

/// docs/transports.md. `fetch_wait`: how long a broker may hold an empty answer back.
ConsumerSettings consumer_settings(const std::string& group, const std::string& client_id,
                                   std::chrono::milliseconds fetch_wait);

/// With the full names of the topics.
Kafka<rd_kafka_topic_partition_list_t> partition_list(
    const KafkaContext& context, std::span<const core::StreamPartition> partitions);

/// Valid as long as the message is.
core::RecordView record_view(const KafkaContext& context, const rd_kafka_message_t& message);

}  // namespace tocsin::ingest
