// From our section `transport.kafka` to librdkafka's configuration, and from its errors to ours.
// Not a door: includes librdkafka.
#pragma once

#include <librdkafka/rdkafka.h>

#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <utility>

#include "core/log.h"
#include "core/result.h"
#include "core/value.h"

namespace tocsin::ingest {

struct KafkaDeleter {
  void operator()(rd_kafka_conf_t* conf) const noexcept { rd_kafka_conf_destroy(conf); }
  void operator()(rd_kafka_topic_partition_list_t* list) const noexcept {
    rd_kafka_topic_partition_list_destroy(list);
  }
  void operator()(rd_kafka_message_t* message) const noexcept { rd_kafka_message_destroy(message); }
  void operator()(rd_kafka_error_t* error) const noexcept { rd_kafka_error_destroy(error); }
  void operator()(rd_kafka_topic_t* topic) const noexcept { rd_kafka_topic_destroy(topic); }
  void operator()(const rd_kafka_metadata_t* metadata) const noexcept {
    rd_kafka_metadata_destroy(metadata);
  }
};
template <typename T>
using Kafka = std::unique_ptr<T, KafkaDeleter>;

enum class KafkaRole { consumer, producer };
using KafkaSettings = std::span<const std::pair<std::string_view, std::string>>;

/// `ours` first, then the user's properties, then the user's for the role. invalid_argument in
/// librdkafka's own words.
core::Result<Kafka<rd_kafka_conf_t>> make_kafka_conf(const core::Value& properties, KafkaRole role,
                                                     KafkaSettings ours);

/// Starts a client with the configuration; its log lines go to `log`, which must outlive it.
core::Result<rd_kafka_t*> start_kafka(Kafka<rd_kafka_conf_t> conf, KafkaRole role, core::Log& log);

/// bootstrap.servers as the user wrote it.
std::string kafka_address(const core::Value& properties);

/// What a code means to our callers: retry, wrong credentials, missing, fenced, ….
core::Code kafka_code(rd_kafka_resp_err_t error) noexcept;
core::Error kafka_error(rd_kafka_resp_err_t error, std::string_view doing);

}  // namespace tocsin::ingest
