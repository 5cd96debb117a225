// Whether the brokers that lead a topic's partitions know it by now.
#pragma once

#include <librdkafka/rdkafka.h>

#include <chrono>
#include <span>

#include "ingest/kafka/config.h"

namespace tocsin::ingest {

/// Whether the leader of every partition of these topics takes records. The metadata name a leader
/// before that broker has made its log, and what a producer sends in between can be lost without a
/// word: the first batch is refused, the second accepted although its numbers do not begin at 0, and
/// the library takes the acknowledgement of the second for one of the first (KAFKA-15591).
/// Who may not ask is not kept waiting. Waits for answers up to `timeout`.
[[nodiscard]] bool leaders_answer(rd_kafka_t* client, std::span<const TopicSpec> topics,
                                  std::chrono::milliseconds timeout);

}  // namespace tocsin::ingest
