#include "ingest/kafka/positions_since.h"

#include <algorithm>
#include <chrono>
#include <string>
#include <utility>

#include "core/log.h"
#include "core/telemetry.h"
#include "ingest/kafka/config.h"
#include "ingest/kafka/consumer.h"

namespace tocsin::ingest {
namespace {

constexpr std::chrono::milliseconds kSincePatience{20'000};
constexpr int kLooksForLeader = 40;
constexpr std::chrono::milliseconds kBetweenLooks{250};

// Of a topic that was made just now some brokers do not know yet who leads it.
bool no_leader_yet(rd_kafka_resp_err_t error) {
  return error == RD_KAFKA_RESP_ERR_NOT_LEADER_FOR_PARTITION ||
         error == RD_KAFKA_RESP_ERR_LEADER_NOT_AVAILABLE;
}

rd_kafka_resp_err_t offsets_for_time(rd_kafka_t* client, rd_kafka_topic_partition_list_t& list,
                                     std::int64_t millis) {
  for (int i = 0; i < list.cnt; ++i) list.elems[i].offset = millis;
  const auto error =
      rd_kafka_offsets_for_times(client, &list, static_cast<int>(kSincePatience.count()));
  if (error != RD_KAFKA_RESP_ERR_NO_ERROR) return error;
  for (int i = 0; i < list.cnt; ++i) {
    if (no_leader_yet(list.elems[i].err)) return list.elems[i].err;
  }
  return error;
}

// Nothing is assigned, so nothing comes: the client only waits, and hears of leaders meanwhile.
void wait_for_leader(rd_kafka_t* client) {
  const Kafka<rd_kafka_message_t> none(
      rd_kafka_consumer_poll(client, static_cast<int>(kBetweenLooks.count())));
}

}  // namespace

core::Result<std::vector<core::Position>> kafka_positions_since(
    const TransportConfig& cfg, const TopicsConfig& topics,
    std::span<const core::StreamPartition> asked, core::WallTime since) {
  std::vector<core::Position> out;
  if (asked.empty()) return out;
  core::NullLog log;
  core::NullTelemetry telemetry;
  const KafkaContext context{
      cfg.kafka, kafka_address(cfg.kafka), topics.prefix, topic_plan(topics), log, telemetry};
  const auto settings =
      consumer_settings("tocsin-since", kafka_client_id("since"), std::chrono::milliseconds{10});
  auto conf = make_kafka_conf(context.properties, KafkaRole::consumer, settings);
  if (!conf) return conf.error();
  auto client = KafkaClient::start(std::move(*conf), KafkaRole::consumer, nullptr, context.log);
  if (!client) return client.error();
  rd_kafka_poll_set_consumer((*client)->get());
  const auto list = partition_list(context, asked);
  const auto millis =
      std::chrono::floor<std::chrono::milliseconds>(since.time_since_epoch()).count();
  auto error = offsets_for_time((*client)->get(), *list, std::max<std::int64_t>(0, millis));
  for (int look = 1; no_leader_yet(error) && look < kLooksForLeader; ++look) {
    wait_for_leader((*client)->get());
    error = offsets_for_time((*client)->get(), *list, std::max<std::int64_t>(0, millis));
  }
  if (error != RD_KAFKA_RESP_ERR_NO_ERROR)
    return kafka_error(error, "looking for a time in the topics");
  for (int i = 0; i < list->cnt; ++i) {
    const auto& one = list->elems[i];
    if (one.err != RD_KAFKA_RESP_ERR_NO_ERROR)
      return kafka_error(one.err, std::string("looking for a time in ") + one.topic);
    std::int64_t next = one.offset;
    if (next < 0) {  // everything is older
      std::int64_t first = 0;
      const auto failed =
          rd_kafka_query_watermark_offsets((*client)->get(), one.topic, one.partition, &first,
                                           &next, static_cast<int>(kSincePatience.count()));
      if (failed != RD_KAFKA_RESP_ERR_NO_ERROR)
        return kafka_error(failed, std::string("looking for the end of ") + one.topic);
    }
    out.push_back({{std::string(context.short_name(one.topic)), one.partition}, next});
  }
  return out;
}

}  // namespace tocsin::ingest
