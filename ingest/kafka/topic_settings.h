// Settings of topics as a cluster has them: read, compared with the plan, set.
#pragma once

#include <vector>

#include "core/topic_settings.h"
#include "ingest/kafka/config.h"

namespace tocsin::ingest {

/// core::TopicSettings::compare() of this plan.
core::Result<std::vector<core::TopicComparison>> compare_kafka_settings(
    rd_kafka_t* client, const KafkaContext& context);
/// core::TopicSettings::apply().
core::Status apply_kafka_settings(rd_kafka_t* client, const KafkaContext& context,
                                  const std::vector<core::TopicComparison>& comparisons);

}  // namespace tocsin::ingest
