#include "ingest/kafka/consumer.h"

#include <optional>

#include "ingest/kafka/prefetch.h"

namespace tocsin::ingest {
namespace {

std::optional<std::string_view> kafka_header(const void* native, std::string_view name) {
  const auto* message = static_cast<const rd_kafka_message_t*>(native);
  rd_kafka_headers_t* headers = nullptr;
  if (rd_kafka_message_headers(message, &headers) != RD_KAFKA_RESP_ERR_NO_ERROR) return {};
  const std::string terminated(name);
  const void* value = nullptr;
  std::size_t size = 0;
  if (rd_kafka_header_get_last(headers, terminated.c_str(), &value, &size) !=
      RD_KAFKA_RESP_ERR_NO_ERROR) {
    return {};
  }
  return std::string_view(static_cast<const char*>(value), size);
}

}  // namespace

ConsumerSettings consumer_settings(const std::string& group, const std::string& client_id,
                                   std::chrono::milliseconds fetch_wait) {
  ConsumerSettings settings = {
      {"group.id", group},
      {"client.id", client_id},
      {"enable.auto.commit", "false"},
      {"enable.auto.offset.store", "false"},
      {"isolation.level", "read_committed"},
      {"auto.offset.reset", "error"},
      {"enable.partition.eof", "true"},
      {"partition.assignment.strategy", "cooperative-sticky"},
      {"session.timeout.ms", "10000"},
      {"heartbeat.interval.ms", "2500"},
      {"max.poll.interval.ms", "120000"},
      {"socket.timeout.ms", "10000"},
      {"socket.nagle.disable", "true"},
      {"socket.keepalive.enable", "true"},
      {"reconnect.backoff.max.ms", "2000"},
      {"allow.auto.create.topics", "false"},
      {"fetch.wait.max.ms", std::to_string(fetch_wait.count())},
      {"fetch.error.backoff.ms", "100"},
      {"queued.min.messages", "1000000"},
      {"queued.max.messages.kbytes", std::to_string(kPrefetchKiB)},
  };
  if (has_queue_backoff()) settings.emplace_back("fetch.queue.backoff.ms", "10");
  return settings;
}

Kafka<rd_kafka_topic_partition_list_t> partition_list(
    const KafkaContext& context, std::span<const core::StreamPartition> partitions) {
  Kafka<rd_kafka_topic_partition_list_t> list(
      rd_kafka_topic_partition_list_new(static_cast<int>(partitions.size())));
  for (const auto& where : partitions) {
    rd_kafka_topic_partition_list_add(list.get(), context.full_name(where.stream).c_str(),
                                      where.partition);
  }
  return list;
}

core::RecordView record_view(const KafkaContext& context, const rd_kafka_message_t& message) {
  core::RecordView view;
  view.topic = view.stream = context.short_name(rd_kafka_topic_name(message.rkt));
  view.partition = message.partition;
  view.offset = message.offset;
  const std::int64_t time = rd_kafka_message_timestamp(&message, nullptr);
  view.timestamp = time > 0 ? time * 1'000'000 : 0;
  if (message.key != nullptr) {
    view.key = std::string_view(static_cast<const char*>(message.key), message.key_len);
  }
  view.tombstone = message.payload == nullptr;
  if (!view.tombstone) {
    view.value = {static_cast<const std::byte*>(message.payload), message.len};
  }
  view.native = &message;
  view.find_header = kafka_header;
  return view;
}

}  // namespace tocsin::ingest
