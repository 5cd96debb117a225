#include "ingest/kafka/restore.h"

#include <algorithm>
#include <chrono>
#include <string>
#include <utility>

#include "ingest/kafka/consumer.h"

namespace tocsin::ingest {
namespace {

using Clock = std::chrono::steady_clock;
using std::chrono::milliseconds;

constexpr milliseconds kRestorePatience{30'000};
constexpr std::int64_t kNone = -1;

bool unknown(rd_kafka_resp_err_t error) {
  return error == RD_KAFKA_RESP_ERR_UNKNOWN_TOPIC_OR_PART ||
         error == RD_KAFKA_RESP_ERR__UNKNOWN_PARTITION || error == RD_KAFKA_RESP_ERR__UNKNOWN_TOPIC;
}

}  // namespace

core::Result<rd_kafka_t*> KafkaRestore::client() {
  if (client_) return client_->get();
  const auto settings =
      consumer_settings("tocsin-restore", kafka_client_id("restore"), milliseconds{10});
  auto conf = make_kafka_conf(context_.properties, KafkaRole::consumer, settings);
  if (!conf) return conf.error();
  auto client = KafkaClient::start(std::move(*conf), KafkaRole::consumer, this, context_.log);
  if (!client) return client.error();
  client_ = std::move(*client);
  rd_kafka_poll_set_consumer(client_->get());
  return client_->get();
}

/// kNone: everything is older.
core::Result<std::int64_t> KafkaRestore::first_offset(rd_kafka_t* client,
                                                      const core::StreamPartition& where,
                                                      core::WallTime since) {
  const auto list = partition_list(context_, {&where, 1});
  list->elems[0].offset =
      std::max<std::int64_t>(0, std::chrono::floor<milliseconds>(since.time_since_epoch()).count());
  const auto asked =
      rd_kafka_offsets_for_times(client, list.get(), static_cast<int>(kRestorePatience.count()));
  const auto error = asked != 0 ? asked : list->elems[0].err;
  if (unknown(error)) return context_.missing(where.stream);
  if (error != 0) return kafka_error(error, "looking for a time in " + where.stream);
  return list->elems[0].offset < 0 ? kNone : list->elems[0].offset;
}

core::Status KafkaRestore::read_all(std::string_view topic, std::int32_t partition,
                                    std::optional<core::WallTime> since,
                                    core::RecordHandler handler) {
  auto client = this->client();
  if (!client) return client.error();
  const core::StreamPartition where{std::string(topic), partition};
  const auto list = partition_list(context_, {&where, 1});
  list->elems[0].offset = RD_KAFKA_OFFSET_BEGINNING;
  if (since) {
    const auto first = first_offset(*client, where, *since);
    if (!first) return first.error();
    if (*first == kNone) return core::ok();
    list->elems[0].offset = *first;
  }
  if (const auto error = rd_kafka_assign(*client, list.get()); error != 0) {
    return kafka_error(error, "assigning " + where.stream);
  }
  auto status = read_to_end(*client, where, handler);
  rd_kafka_assign(*client, nullptr);
  return status;
}

core::Status KafkaRestore::read_to_end(rd_kafka_t* client, const core::StreamPartition& where,
                                       core::RecordHandler handler) {
  auto deadline = Clock::now() + kRestorePatience;
  for (;;) {
    const Kafka<rd_kafka_message_t> message(rd_kafka_consumer_poll(client, 100));
    if (!message) {
      if (Clock::now() < deadline) continue;
      return core::Error{
          core::Code::deadline_exceeded,
          "reading " + where.stream + " from " + context_.address + ": nothing came for 30 s"};
    }
    // The event, not the high watermark: control records of transactions occupy offsets too.
    if (message->err == RD_KAFKA_RESP_ERR__PARTITION_EOF) return core::ok();
    if (unknown(message->err)) return context_.missing(where.stream);
    if (message->err != RD_KAFKA_RESP_ERR_NO_ERROR) {
      auto error = kafka_error(message->err, "reading " + where.stream);
      if (!error.retryable() || Clock::now() >= deadline) return error;
      continue;
    }
    deadline = Clock::now() + kRestorePatience;
    if (prefetch_.wants(*message)) {
      prefetch_.ask(client, *partition_list(context_, {&where, 1}));
    }
    handler(record_view(context_, *message));
  }
}

}  // namespace tocsin::ingest
